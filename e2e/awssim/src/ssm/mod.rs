//! Systems Manager: Run Command with own documents, Parameter Store, and
//! which agents are online.

mod agents;
mod commands;
mod document;
mod documents;
mod invocations;
mod parameters;
mod respond;
mod send;

use std::collections::BTreeMap;

use serde_json::Value;

pub use commands::{Command, complete, handle_event};
pub use document::Document;
pub use parameters::Parameter;
pub use respond::Responder;

use crate::call::Call;
use crate::wire::ApiError;

/// SSM of one account in one region.
#[derive(Debug, Default)]
pub struct Ssm {
    /// Documents by name.
    pub documents: BTreeMap<String, Document>,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// Commands by id.
    pub commands: BTreeMap<String, Command>,
}

type Action = fn(&mut Call<'_>, &Value) -> Result<Value, ApiError>;

const ACTIONS: [(&str, Action); 13] = [
    ("CancelCommand", invocations::cancel),
    ("CreateDocument", documents::create),
    ("DeleteDocument", documents::delete),
    ("DeleteParameter", parameters::delete),
    ("DeleteParameters", parameters::delete_many),
    ("DescribeDocument", documents::describe),
    ("DescribeInstanceInformation", agents::describe),
    ("GetCommandInvocation", invocations::get),
    ("GetParameter", parameters::get),
    ("GetParametersByPath", parameters::get_by_path),
    ("ListCommandInvocations", invocations::list),
    ("PutParameter", parameters::put),
    ("SendCommand", send::send),
];

/// Names of the actions.
pub fn actions() -> Vec<&'static str> {
    ACTIONS.iter().map(|(name, _)| *name).collect()
}

/// Performs an SSM action.
pub fn perform(call: &mut Call<'_>, action: &str, request: &Value) -> Result<Value, ApiError> {
    let run = ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, run)| run);
    let run = run.ok_or_else(|| ApiError::client("UnknownOperationException", ""))?;
    run(call, request)
}

/// `ValidationException`.
fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationException", message)
}

/// A tag of a create call.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Tag {
    key: String,
    value: String,
}

fn collect_tags(tags: Vec<Tag>) -> Result<crate::ledger::Tags, ApiError> {
    let tags = tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
    crate::ec2::check_tags(&tags).map_err(|error| invalid(error.message))?;
    Ok(tags)
}
