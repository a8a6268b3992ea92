//! Command documents: schema 2.2, one shell step, typed parameters with
//! patterns that are checked on every send.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Tag, collect_tags, invalid};
use crate::call::{Call, Newborn};
use crate::clock::{Delay, epoch};
use crate::ledger::Kind;
use crate::wire::{ApiError, decode_json};

/// SSM's bound on the text of a document.
const MOST_CONTENT: usize = 65_536;

/// One document.
#[derive(Debug, Clone)]
pub struct Document {
    /// Name.
    pub name: String,
    /// Text as sent.
    pub content: String,
    /// Parsed text.
    pub body: Body,
    /// When the create call took effect.
    pub created_at: Timestamp,
    /// `Creating` until then.
    pub active_at: Timestamp,
}

/// What a document says. Members SSM has but that are not acted on here are
/// refused, so that no document relies on them unnoticed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Body {
    schema_version: String,
    /// For people.
    pub description: Option<String>,
    /// Declared parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Declared>,
    main_steps: Vec<Step>,
}

/// One declared parameter.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declared {
    /// `String` or `StringList`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub description: Option<String>,
    /// Value when none is sent.
    pub default: Option<Value>,
    /// A regular expression the whole value must match.
    pub allowed_pattern: Option<String>,
    /// Allowed values.
    pub allowed_values: Option<Vec<String>>,
    /// Most characters.
    pub max_chars: Option<usize>,
    /// Fewest characters.
    pub min_chars: Option<usize>,
    /// `ENV_VAR`: the value arrives in the environment, not in the text.
    pub interpolation_type: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    action: String,
    name: String,
    inputs: Inputs,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Inputs {
    run_command: Vec<String>,
    timeout_seconds: Option<Value>,
    working_directory: Option<String>,
}

/// What a document makes an agent run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Name of the step.
    pub step: String,
    /// Shell text.
    pub text: String,
    /// Environment for `ENV_VAR` parameters.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub working_directory: Option<String>,
    /// Seconds until SIGKILL.
    pub timeout_seconds: u64,
}

/// Values of a send, one or more texts per parameter.
pub type Values = BTreeMap<String, Vec<String>>;

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
    if request
        .target_type
        .is_some_and(|target| target != "/AWS::EC2::Instance")
    {
        return Err(invalid(
            "Only target type /AWS::EC2::Instance is simulated.",
        ));
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
    call.born(Newborn {
        kind: Kind::Document,
        id: &name,
        tags,
        token: None,
        detail: json!({}),
    });
    let answer = json!({"DocumentDescription": render(call, &document)});
    call.region.ssm.documents.insert(name, document);
    Ok(answer)
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let reserved = ["aws", "amazon", "amzn"]
        .iter()
        .any(|word| name.to_lowercase().starts_with(word));
    if (3..=128).contains(&name.len()) && name.chars().all(legal) && !reserved {
        return Ok(());
    }
    Err(invalid(format!("Document name {name} is not valid.")))
}

fn parse(content: &str) -> Result<Body, ApiError> {
    if content.len() > MOST_CONTENT {
        return Err(ApiError::client(
            "MaxDocumentSizeExceeded",
            "The size limit of a document is 64 KB.",
        ));
    }
    let refuse = |why: String| ApiError::client("InvalidDocumentContent", why);
    let body: Body = serde_json::from_str(content).map_err(|error| refuse(error.to_string()))?;
    if body.schema_version != "2.2" {
        return Err(refuse(format!(
            "Schema version {} is not simulated.",
            body.schema_version
        )));
    }
    let [step] = body.main_steps.as_slice() else {
        return Err(refuse("Exactly one step is simulated.".to_owned()));
    };
    if step.action != "aws:runShellScript" {
        return Err(refuse(format!("Action {} is not simulated.", step.action)));
    }
    for (name, declared) in &body.parameters {
        if !["String", "StringList"].contains(&declared.kind.as_str()) {
            return Err(refuse(format!(
                "Parameter {name} has type {}.",
                declared.kind
            )));
        }
        if let Some(pattern) = &declared.allowed_pattern {
            whole(pattern).map_err(|error| refuse(error.to_string()))?;
        }
    }
    Ok(body)
}

fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(200 << 20)
        .build()
}

impl Document {
    /// Hash as SSM shows it.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.content.as_bytes());
        digest
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// The script for these values, each checked against its declaration.
    pub fn script(&self, sent: &Values) -> Result<Script, ApiError> {
        let refuse = |why: String| ApiError::client("InvalidParameters", why);
        if let Some(name) = sent
            .keys()
            .find(|name| !self.body.parameters.contains_key(*name))
        {
            return Err(refuse(format!(
                "Parameter {name} is not defined in document {}.",
                self.name
            )));
        }
        let step = self
            .body
            .main_steps
            .first()
            .ok_or_else(|| refuse("No step.".to_owned()))?;
        let mut script = Script {
            step: step.name.clone(),
            text: step.inputs.run_command.join("\n"),
            environment: Vec::new(),
            working_directory: step.inputs.working_directory.clone(),
            timeout_seconds: 3600,
        };
        let mut timeout = step.inputs.timeout_seconds.as_ref().map(text_of);
        for (name, declared) in &self.body.parameters {
            let value = declared.value(name, sent.get(name)).map_err(&refuse)?;
            if declared.interpolation_type.as_deref() == Some("ENV_VAR") {
                script
                    .environment
                    .push((format!("SSM_{name}"), value.clone()));
            }
            script.text = substitute(&script.text, name, &value);
            timeout = timeout.map(|text| substitute(&text, name, &value));
        }
        script.timeout_seconds = execution_timeout(timeout.as_deref());
        Ok(script)
    }
}

/// The agent accepts 5 to 172,800 seconds; anything else silently is 3,600.
pub fn execution_timeout(asked: Option<&str>) -> u64 {
    let asked = asked.and_then(|text| text.trim().parse().ok());
    asked
        .filter(|seconds| (5..=172_800).contains(seconds))
        .unwrap_or(3600)
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// `{{ name }}` with any spaces.
fn substitute(text: &str, name: &str, value: &str) -> String {
    let pattern = format!(r"\{{\{{\s*{}\s*\}}\}}", regex::escape(name));
    match Regex::new(&pattern) {
        Ok(pattern) => pattern
            .replace_all(text, regex::NoExpand(value))
            .into_owned(),
        Err(_) => text.to_owned(),
    }
}

impl Declared {
    fn value(&self, name: &str, sent: Option<&Vec<String>>) -> Result<String, String> {
        let texts = match (sent, &self.default) {
            (Some(texts), _) => texts.clone(),
            (None, Some(Value::Array(items))) => items.iter().map(text_of).collect(),
            (None, Some(value)) => vec![text_of(value)],
            (None, None) => return Err(format!("Parameter {name} is required.")),
        };
        if self.kind == "String" && texts.len() != 1 {
            return Err(format!("Parameter {name} takes one value."));
        }
        for text in &texts {
            self.check(name, text)?;
        }
        Ok(texts.join("\n"))
    }

    fn check(&self, name: &str, text: &str) -> Result<(), String> {
        if let Some(pattern) = &self.allowed_pattern {
            let pattern = whole(pattern).map_err(|error| error.to_string())?;
            if !pattern.is_match(text) {
                return Err(format!(
                    "Parameter {name} does not match its allowed pattern."
                ));
            }
        }
        if self
            .allowed_values
            .as_ref()
            .is_some_and(|allowed| !allowed.iter().any(|v| v == text))
        {
            return Err(format!(
                "Parameter {name} is not one of its allowed values."
            ));
        }
        let length = text.chars().count();
        let most = self.max_chars.unwrap_or(usize::MAX);
        if length > most || length < self.min_chars.unwrap_or(0) {
            return Err(format!("Parameter {name} has {length} characters."));
        }
        Ok(())
    }
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
    let tags: Vec<Value> = tags
        .iter()
        .map(|(key, value)| json!({"Key": key, "Value": value}))
        .collect();
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
        ApiError::client(
            "InvalidDocument",
            format!("Document with name {name} does not exist."),
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn document(content: &Value) -> Result<Document, ApiError> {
        let content = content.to_string();
        Ok(Document {
            name: "hpcops-x".into(),
            body: parse(&content)?,
            content,
            created_at: Timestamp::UNIX_EPOCH,
            active_at: Timestamp::UNIX_EPOCH,
        })
    }

    fn payload_document() -> Value {
        json!({
            "schemaVersion": "2.2",
            "parameters": {"payload": {"type": "String", "allowedPattern": "^[A-Za-z0-9+/=]{1,60000}$"}},
            "mainSteps": [{
                "action": "aws:runShellScript", "name": "run",
                "inputs": {"runCommand": ["payload='{{ payload }}'", "echo $payload"], "timeoutSeconds": "60"},
            }],
        })
    }

    #[test]
    fn parameters_are_substituted_after_their_pattern_held() {
        let document = document(&payload_document()).unwrap();
        let script = |value: &str| {
            document.script(&Values::from([("payload".into(), vec![value.to_owned()])]))
        };
        let good = script("QUJD").unwrap();
        assert_eq!(good.text, "payload='QUJD'\necho $payload");
        assert_eq!(good.timeout_seconds, 60);
        assert_eq!(script("a;b").unwrap_err().code, "InvalidParameters");
        assert_eq!(
            script(&"A".repeat(60_001)).unwrap_err().code,
            "InvalidParameters"
        );
        script(&"A".repeat(60_000)).unwrap();
        assert_eq!(
            document.script(&Values::new()).unwrap_err().code,
            "InvalidParameters"
        );
    }

    #[test]
    fn documents_that_would_not_be_acted_on_are_refused() {
        let mut other = payload_document();
        other["schemaVersion"] = json!("1.2");
        assert_eq!(document(&other).unwrap_err().code, "InvalidDocumentContent");
        let mut other = payload_document();
        other["mainSteps"][0]["onFailure"] = json!("exit");
        assert_eq!(document(&other).unwrap_err().code, "InvalidDocumentContent");
    }

    #[test]
    fn the_agent_silently_replaces_a_timeout_out_of_range() {
        for (asked, expected) in [("60", 60), ("4", 3600), ("172801", 3600), ("x", 3600)] {
            assert_eq!(execution_timeout(Some(asked)), expected);
        }
    }
}
