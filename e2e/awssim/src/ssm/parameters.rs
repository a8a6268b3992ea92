//! Parameter Store, standard tier.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tag, collect_tags, invalid};
use crate::call::{Call, Newborn};
use crate::clock::epoch;
use crate::ec2::{Page, paginate};
use crate::ledger::Kind;
use crate::wire::{ApiError, decode_json};

/// Bytes of a standard parameter.
const MOST_VALUE: usize = 4096;

/// One parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    name: String,
    value: String,
    kind: String,
    version: u64,
    modified_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct PutRequest {
    name: String,
    value: String,
    #[serde(rename = "Type")]
    kind: Option<String>,
    #[serde(rename = "Description")]
    _description: Option<String>,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    tags: Vec<Tag>,
    tier: Option<String>,
}

/// `PutParameter`.
pub fn put(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: PutRequest = decode_json(request)?;
    check_put(&request)?;
    let tags = collect_tags(request.tags)?;
    let existing = call.region.ssm.parameters.get(&request.name);
    if existing.is_some() && !request.overwrite {
        return Err(ApiError::client(
            "ParameterAlreadyExists",
            "The parameter already exists. To overwrite this value, set the overwrite option in \
             the request to true.",
        ));
    }
    let kind = request.kind.or_else(|| existing.map(|known| known.kind.clone()));
    let kind =
        kind.ok_or_else(|| invalid("A parameter type is required when you create a parameter."))?;
    let version = existing.map_or(0, |known| known.version) + 1;
    let name = request.name;
    if version == 1 {
        let detail = json!({});
        call.born(Newborn { kind: Kind::Parameter, id: &name, tags, token: None, detail });
    }
    let parameter = Parameter {
        name: name.clone(),
        value: request.value,
        kind,
        version,
        modified_at: call.now,
    };
    call.region.ssm.parameters.insert(name, parameter);
    Ok(json!({"Version": version, "Tier": "Standard"}))
}

fn check_put(request: &PutRequest) -> Result<(), ApiError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    let reserved = ["aws", "ssm"];
    let first = request.name.trim_start_matches('/').split('/').next().unwrap_or_default();
    if request.name.is_empty() || !request.name.chars().all(legal) {
        return Err(invalid("Parameter name: can't be empty and may have a-zA-Z0-9_.-/ only."));
    }
    if reserved.iter().any(|word| first.to_lowercase().starts_with(word)) {
        return Err(invalid(
            "Parameter name: can't be prefixed with \"aws\" or \"ssm\" (case-insensitive).",
        ));
    }
    if request.name.contains('/') && !request.name.starts_with('/') {
        return Err(invalid("Parameter name must be a fully qualified name."));
    }
    if request.value.is_empty() || request.value.len() > MOST_VALUE {
        return Err(invalid(
            "Standard tier parameters support a maximum parameter value of 4096 characters.",
        ));
    }
    if !matches!(request.kind.as_deref(), None | Some("String" | "StringList" | "SecureString")) {
        return Err(ApiError::client(
            "UnsupportedParameterType",
            "The parameter type is not supported.",
        ));
    }
    if !matches!(request.tier.as_deref(), None | Some("Standard" | "Intelligent-Tiering")) {
        return Err(invalid("Only the standard tier is simulated."));
    }
    if request.overwrite && !request.tags.is_empty() {
        return Err(invalid("Invalid request: tags and overwrite can't be used together."));
    }
    Ok(())
}

fn not_found() -> ApiError {
    ApiError::client("ParameterNotFound", "")
}

fn render(call: &Call<'_>, parameter: &Parameter) -> Value {
    json!({
        "Name": parameter.name,
        "Type": parameter.kind,
        "Value": parameter.value,
        "Version": parameter.version,
        "LastModifiedDate": epoch(parameter.modified_at),
        "ARN": call.arn("ssm", &format!("parameter/{}", parameter.name.trim_start_matches('/'))),
        "DataType": "text",
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetRequest {
    name: String,
    #[serde(rename = "WithDecryption")]
    _with_decryption: Option<bool>,
}

/// `GetParameter`.
pub fn get(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: GetRequest = decode_json(request)?;
    let found = call.region.ssm.parameters.get(&request.name).ok_or_else(not_found)?;
    Ok(json!({"Parameter": render(call, found)}))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ByPathRequest {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(rename = "WithDecryption")]
    _with_decryption: Option<bool>,
    max_results: Option<usize>,
    next_token: Option<String>,
}

/// `GetParametersByPath`: ten a page at most.
pub fn get_by_path(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: ByPathRequest = decode_json(request)?;
    if !request.path.starts_with('/') {
        return Err(invalid("The parameter doesn't meet the parameter name requirements."));
    }
    let size = request.max_results.unwrap_or(10);
    let page = Page::new(Some(size), request.next_token.as_deref(), (1, 10))
        .map_err(|error| invalid(error.message))?;
    let prefix = format!("{}/", request.path.trim_end_matches('/'));
    let below = |name: &str| {
        let rest = name.strip_prefix(&prefix);
        rest.is_some_and(|rest| request.recursive || !rest.contains('/'))
    };
    let rows = call
        .region
        .ssm
        .parameters
        .values()
        .filter(|parameter| below(&parameter.name))
        .map(|parameter| (parameter.name.clone(), render(call, parameter)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    let mut answer = json!({"Parameters": rows});
    if let (Some(next), Some(members)) = (next, answer.as_object_mut()) {
        members.insert("NextToken".to_owned(), json!(next));
    }
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DeleteRequest {
    name: String,
}

/// `DeleteParameter`.
pub fn delete(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: DeleteRequest = decode_json(request)?;
    if remove(call, &request.name) { Ok(json!({})) } else { Err(not_found()) }
}

fn remove(call: &mut Call<'_>, name: &str) -> bool {
    let known = call.region.ssm.parameters.remove(name).is_some();
    if known {
        call.gone(Kind::Parameter, name);
    }
    known
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DeleteManyRequest {
    names: Vec<String>,
}

/// `DeleteParameters`: at most ten.
pub fn delete_many(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: DeleteManyRequest = decode_json(request)?;
    if request.names.is_empty() || request.names.len() > 10 {
        return Err(invalid("Names must have 1 to 10 members."));
    }
    let (deleted, unknown): (Vec<String>, Vec<String>) =
        request.names.into_iter().partition(|name| remove(call, name));
    Ok(json!({"DeletedParameters": deleted, "InvalidParameters": unknown}))
}
