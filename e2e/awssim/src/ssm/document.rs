//! What a command document says, and the script it makes of sent values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::wire::ApiError;

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

/// Reads a document, refusing what would not be acted on.
pub fn parse(content: &str) -> Result<Body, ApiError> {
    if content.len() > MOST_CONTENT {
        return Err(ApiError::client(
            "MaxDocumentSizeExceeded",
            "The size limit of a document is 64 KB.",
        ));
    }
    let refuse = |why: String| ApiError::client("InvalidDocumentContent", why);
    let body: Body = serde_json::from_str(content).map_err(|error| refuse(error.to_string()))?;
    if body.schema_version != "2.2" {
        return Err(refuse(format!("Schema version {} is not simulated.", body.schema_version)));
    }
    let [step] = body.main_steps.as_slice() else {
        return Err(refuse("Exactly one step is simulated.".to_owned()));
    };
    if step.action != "aws:runShellScript" {
        return Err(refuse(format!("Action {} is not simulated.", step.action)));
    }
    for (name, declared) in &body.parameters {
        if !["String", "StringList"].contains(&declared.kind.as_str()) {
            return Err(refuse(format!("Parameter {name} has type {}.", declared.kind)));
        }
        if let Some(pattern) = &declared.allowed_pattern {
            whole(pattern).map_err(|error| refuse(error.to_string()))?;
        }
    }
    Ok(body)
}

fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(200 << 20).build()
}

impl Document {
    /// Hash as SSM shows it.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.content.as_bytes());
        digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// The script for these values, each checked against its declaration.
    pub fn script(&self, sent: &Values) -> Result<Script, ApiError> {
        let refuse = |why: String| ApiError::client("InvalidParameters", why);
        if let Some(name) = sent.keys().find(|name| !self.body.parameters.contains_key(*name)) {
            return Err(refuse(format!(
                "Parameter {name} is not defined in document {}.",
                self.name
            )));
        }
        let step = self.body.main_steps.first().ok_or_else(|| refuse("No step.".to_owned()))?;
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
                script.environment.push((format!("SSM_{name}"), value.clone()));
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
    asked.filter(|seconds| (5..=172_800).contains(seconds)).unwrap_or(3600)
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `{{ name }}` with any spaces.
fn substitute(text: &str, name: &str, value: &str) -> String {
    let pattern = format!(r"\{{\{{\s*{}\s*\}}\}}", regex::escape(name));
    match Regex::new(&pattern) {
        Ok(pattern) => pattern.replace_all(text, regex::NoExpand(value)).into_owned(),
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
                return Err(format!("Parameter {name} does not match its allowed pattern."));
            }
        }
        if self.allowed_values.as_ref().is_some_and(|allowed| !allowed.iter().any(|v| v == text)) {
            return Err(format!("Parameter {name} is not one of its allowed values."));
        }
        let length = text.chars().count();
        let most = self.max_chars.unwrap_or(usize::MAX);
        if length > most || length < self.min_chars.unwrap_or(0) {
            return Err(format!("Parameter {name} has {length} characters."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(script(&"A".repeat(60_001)).unwrap_err().code, "InvalidParameters");
        script(&"A".repeat(60_000)).unwrap();
        assert_eq!(document.script(&Values::new()).unwrap_err().code, "InvalidParameters");
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
