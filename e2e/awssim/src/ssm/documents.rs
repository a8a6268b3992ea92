//! Creating, describing and deleting command documents.

use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{Declared, Document, parse};
use super::{Tag, collect_tags, invalid};
use crate::call::{Call, Newborn};
use crate::clock::{Delay, epoch};
use crate::ledger::Kind;
use crate::wire::{ApiError, decode_json};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct CreateRequest {
    content: String,
    name: String,
    document_type: Option<String>,
    document_format: Option<String>,
    target_type: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
}

/// `CreateDocument`.
pub fn create(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: CreateRequest = decode_json(request)?;
    check_name(&request.name)?;
    if request.document_type.as_deref().unwrap_or("Command") != "Command" {
        return Err(invalid("Only Command documents are simulated."));
    }
    if request.document_format.as_deref().unwrap_or("JSON") != "JSON" {
        return Err(invalid("Only JSON documents are simulated."));
    }
    if request.target_type.is_some_and(|target| target != "/AWS::EC2::Instance") {
        return Err(invalid("Only target type /AWS::EC2::Instance is simulated."));
    }
    if call.region.ssm.documents.contains_key(&request.name) {
        return Err(ApiError::client(
            "DocumentAlreadyExists",
            "The specified document already exists.",
        ));
    }
    let body = parse(&request.content)?;
    let tags = collect_tags(request.tags)?;
    let name = request.name;
    let document = Document {
        content: request.content,
        body,
        created_at: call.now,
        active_at: call.after(Delay::SmallResource, &name),
        name: name.clone(),
    };
    call.born(Newborn { kind: Kind::Document, id: &name, tags, token: None, detail: json!({}) });
    let answer = json!({"DocumentDescription": render(call, &document)});
    call.region.ssm.documents.insert(name, document);
    Ok(answer)
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let reserved =
        ["aws", "amazon", "amzn"].iter().any(|word| name.to_lowercase().starts_with(word));
    if (3..=128).contains(&name.len()) && name.chars().all(legal) && !reserved {
        return Ok(());
    }
    Err(invalid(format!("Document name {name} is not valid.")))
}

fn render(call: &Call<'_>, document: &Document) -> Value {
    let parameter = |(name, declared): (&String, &Declared)| {
        let mut row = json!({"Name": name, "Type": declared.kind});
        if let (Some(text), Some(members)) = (&declared.description, row.as_object_mut()) {
            members.insert("Description".to_owned(), json!(text));
        }
        row
    };
    let parameters: Vec<Value> = document.body.parameters.iter().map(parameter).collect();
    let tags = call.tags(Kind::Document, &document.name);
    let tags: Vec<Value> =
        tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    json!({
        "Name": document.name,
        "Owner": call.account.id,
        "Hash": document.hash(),
        "HashType": "Sha256",
        "CreatedDate": epoch(document.created_at),
        "Status": if document.active_at <= call.now { "Active" } else { "Creating" },
        "DocumentVersion": "1",
        "LatestVersion": "1",
        "DefaultVersion": "1",
        "Description": document.body.description.as_deref().unwrap_or(""),
        "Parameters": parameters,
        "PlatformTypes": ["Linux", "MacOS"],
        "DocumentType": "Command",
        "SchemaVersion": "2.2",
        "DocumentFormat": "JSON",
        "Tags": tags,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct NameRequest {
    name: String,
    document_version: Option<String>,
}

/// `DescribeDocument`.
pub fn describe(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: NameRequest = decode_json(request)?;
    check_version(request.document_version.as_deref())?;
    let document = find(call, &request.name)?;
    Ok(json!({"Document": render(call, document)}))
}

/// There is one version of everything.
pub fn check_version(version: Option<&str>) -> Result<(), ApiError> {
    match version {
        None | Some("$LATEST" | "$DEFAULT" | "1") => Ok(()),
        Some(other) => Err(ApiError::client(
            "InvalidDocumentVersion",
            format!("The document version {other} is not valid or does not exist."),
        )),
    }
}

/// The document of that name.
pub fn find<'a>(call: &'a Call<'_>, name: &str) -> Result<&'a Document, ApiError> {
    call.region.ssm.documents.get(name).ok_or_else(|| {
        ApiError::client("InvalidDocument", format!("Document with name {name} does not exist."))
    })
}

/// `DeleteDocument`.
pub fn delete(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: NameRequest = decode_json(request)?;
    check_version(request.document_version.as_deref())?;
    find(call, &request.name)?;
    call.region.ssm.documents.remove(&request.name);
    call.gone(Kind::Document, &request.name);
    Ok(json!({}))
}
