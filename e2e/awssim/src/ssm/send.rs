//! `SendCommand`: not idempotent, at most 50 instances, agents must have
//! registered.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::{Command, Invocation, render_command};
use super::document::{Script, Values, execution_timeout};
use super::documents::{check_version, find};
use super::invalid;
use crate::agenda::Event;
use crate::call::Call;
use crate::clock::Delay;
use crate::ec2::Agent;
use crate::wire::{ApiError, decode_json};

const MOST_TARGETS: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendRequest {
    #[serde(default)]
    instance_ids: Vec<String>,
    document_name: String,
    document_version: Option<String>,
    document_hash: Option<String>,
    document_hash_type: Option<String>,
    timeout_seconds: Option<u64>,
    comment: Option<String>,
    #[serde(default)]
    parameters: Values,
    max_concurrency: Option<String>,
    max_errors: Option<String>,
}

/// `SendCommand`.
pub fn send(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: SendRequest = decode_json(request)?;
    check(&request)?;
    let script = script_of(call, &request)?;
    check_agents(call, &request.instance_ids)?;
    let id = call.account.new_uuid(call.engine.dice);
    let timeout = request.timeout_seconds.unwrap_or(3600);
    let command = Command {
        id: id.clone(),
        document: request.document_name,
        comment: request.comment.unwrap_or_default(),
        parameters: request.parameters,
        requested_at: call.now,
        timeout_seconds: timeout,
        script,
        known_at: call.after(Delay::Invocation, &id),
        invocations: request
            .instance_ids
            .iter()
            .map(|instance| (instance.clone(), Invocation::default()))
            .collect(),
    };
    let answer = json!({"Command": render_command(&command)});
    for instance in command.invocations.keys() {
        let at = call.after(Delay::Delivery, &format!("{id} {instance}"));
        call.schedule(at, Event::CommandDelivered(id.clone(), instance.clone()));
        let expires = call.now.saturating_add(jiff::SignedDuration::from_secs(
            i64::try_from(timeout).unwrap_or(i64::MAX),
        ));
        call.schedule(
            expires.unwrap_or(call.now),
            Event::CommandExpired(id.clone(), instance.clone()),
        );
    }
    call.region.ssm.commands.insert(id, command);
    Ok(answer)
}

fn check(request: &SendRequest) -> Result<(), ApiError> {
    if request.instance_ids.is_empty() {
        return Err(invalid("InstanceIds is required: Targets are not simulated."));
    }
    if request.instance_ids.len() > MOST_TARGETS {
        return Err(invalid(
            "1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: \
             Member must have length less than or equal to 50",
        ));
    }
    let distinct: BTreeSet<&String> = request.instance_ids.iter().collect();
    if distinct.len() != request.instance_ids.len() {
        return Err(ApiError::client("DuplicateInstanceId", "Duplicate instance IDs."));
    }
    if !(30..=2_592_000).contains(&request.timeout_seconds.unwrap_or(3600)) {
        return Err(invalid("TimeoutSeconds must be between 30 and 2592000."));
    }
    if request.comment.as_ref().is_some_and(|comment| comment.chars().count() > 100) {
        return Err(invalid("Comment must have at most 100 characters."));
    }
    for bound in [&request.max_concurrency, &request.max_errors].into_iter().flatten() {
        if bound.trim_end_matches('%').parse::<u32>().is_err() {
            return Err(invalid("MaxConcurrency and MaxErrors are numbers or percentages."));
        }
    }
    Ok(())
}

fn script_of(call: &Call<'_>, request: &SendRequest) -> Result<Script, ApiError> {
    check_version(request.document_version.as_deref())?;
    if request.document_name == "AWS-RunShellScript" {
        return shell_script(&request.parameters);
    }
    let document = find(call, &request.document_name)?;
    if document.active_at > call.now {
        return Err(ApiError::client(
            "InvalidDocument",
            format!("Document with name {} is not active.", document.name),
        ));
    }
    let hash_differs = request.document_hash.as_ref().is_some_and(|hash| *hash != document.hash());
    if hash_differs || request.document_hash_type.as_deref().is_some_and(|kind| kind != "Sha256") {
        return Err(ApiError::client("InvalidDocument", "The document hash does not match."));
    }
    document.script(&request.parameters)
}

/// AWS's own document, by its published parameters.
fn shell_script(values: &Values) -> Result<Script, ApiError> {
    let known = ["commands", "workingDirectory", "executionTimeout"];
    let refuse = |why: String| ApiError::client("InvalidParameters", why);
    if let Some(name) = values.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(refuse(format!("Parameter {name} is not defined in AWS-RunShellScript.")));
    }
    let first = |name: &str| values.get(name).and_then(|texts| texts.first()).cloned();
    let commands = values
        .get("commands")
        .ok_or_else(|| refuse("Parameter commands is required.".to_owned()))?;
    Ok(Script {
        step: "aws:runShellScript".to_owned(),
        text: commands.join("\n"),
        environment: Vec::new(),
        working_directory: first("workingDirectory").filter(|folder| !folder.is_empty()),
        timeout_seconds: execution_timeout(first("executionTimeout").as_deref()),
    })
}

/// An agent that never registered is unknown to SSM; one that is lost is not.
fn check_agents(call: &Call<'_>, ids: &[String]) -> Result<(), ApiError> {
    let registered = |id: &&String| {
        let instance = call.region.ec2.instances.get(*id);
        instance
            .is_some_and(|i| i.is_up() && !matches!(i.agent, Agent::Unregistered | Agent::Barred))
    };
    match ids.iter().find(|id| !registered(id)) {
        None => Ok(()),
        Some(id) => Err(ApiError::client(
            "InvalidInstanceId",
            format!("Instances [[{id}]] not in a valid state for account {}", call.account.id),
        )),
    }
}
