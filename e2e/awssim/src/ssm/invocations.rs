//! Reading and cancelling invocations.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::{Command, Invocation, Status};
use super::invalid;
use crate::call::Call;
use crate::clock::{epoch, iso};
use crate::ec2::{Page, paginate};
use crate::effect::{Effect, InvocationKey};
use crate::wire::{ApiError, decode_json};

/// Characters of output a list shows.
const MOST_LISTED: usize = 2_500;
const CUT: &str = "---Output truncated---";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetRequest {
    command_id: String,
    instance_id: String,
    plugin_name: Option<String>,
}

/// `GetCommandInvocation`: right after the send it knows nothing.
pub fn get(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: GetRequest = decode_json(request)?;
    let unknown = || ApiError::client("InvocationDoesNotExist", "");
    let command = call.region.ssm.commands.get(&request.command_id);
    let command = command.filter(|command| command.known_at <= call.now).ok_or_else(unknown)?;
    let invocation = command.invocations.get(&request.instance_id).ok_or_else(unknown)?;
    if request.plugin_name.is_some_and(|name| name != command.script.step) {
        return Err(ApiError::client("InvalidPluginName", "The plugin name is not valid."));
    }
    Ok(render_get(command, &request.instance_id, invocation))
}

fn render_get(command: &Command, instance_id: &str, invocation: &Invocation) -> Value {
    let (status, details) = invocation.status.wire();
    let done = invocation.status.is_final();
    let time = |at: Option<Timestamp>| at.map(iso).unwrap_or_default();
    json!({
        "CommandId": command.id,
        "InstanceId": instance_id,
        "Comment": command.comment,
        "DocumentName": command.document,
        "DocumentVersion": "$DEFAULT",
        "PluginName": command.script.step,
        "ResponseCode": invocation.exit.unwrap_or(-1),
        "ExecutionStartDateTime": time(invocation.started_at),
        "ExecutionElapsedTime": elapsed(invocation),
        "ExecutionEndDateTime": time(invocation.finished_at),
        "Status": status,
        "StatusDetails": details,
        "StandardOutputContent": if done { invocation.stdout.as_str() } else { "" },
        "StandardOutputUrl": "",
        "StandardErrorContent": if done { invocation.stderr.as_str() } else { "" },
        "StandardErrorUrl": "",
    })
}

fn elapsed(invocation: &Invocation) -> String {
    match (invocation.started_at, invocation.finished_at) {
        (Some(start), Some(end)) => format!("PT{:.3}S", end.duration_since(start).as_secs_f64()),
        (_, _) => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ListRequest {
    command_id: Option<String>,
    instance_id: Option<String>,
    max_results: Option<usize>,
    next_token: Option<String>,
    #[serde(default)]
    details: bool,
}

/// `ListCommandInvocations`: right after the send it is empty.
pub fn list(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: ListRequest = decode_json(request)?;
    let size = request.max_results.unwrap_or(50);
    let page = Page::new(Some(size), request.next_token.as_deref(), (1, 50))
        .map_err(|error| invalid(error.message))?;
    let mut rows = Vec::new();
    for command in call.region.ssm.commands.values().filter(|c| c.known_at <= call.now) {
        if request.command_id.as_ref().is_some_and(|id| *id != command.id) {
            continue;
        }
        for (instance, invocation) in &command.invocations {
            if request.instance_id.as_ref().is_none_or(|id| id == instance) {
                let row = render_row(command, instance, invocation, request.details);
                rows.push((format!("{} {instance}", command.id), row));
            }
        }
    }
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    let mut answer = json!({"CommandInvocations": rows});
    if let (Some(next), Some(members)) = (next, answer.as_object_mut()) {
        members.insert("NextToken".to_owned(), json!(next));
    }
    Ok(answer)
}

fn render_row(command: &Command, instance: &str, invocation: &Invocation, details: bool) -> Value {
    let (status, detail) = invocation.status.wire();
    let plugins: Vec<Value> =
        details.then(|| render_plugin(command, invocation)).into_iter().collect();
    json!({
        "CommandId": command.id,
        "InstanceId": instance,
        "InstanceName": "",
        "Comment": command.comment,
        "DocumentName": command.document,
        "DocumentVersion": "$DEFAULT",
        "RequestedDateTime": epoch(command.requested_at),
        "Status": status,
        "StatusDetails": detail,
        "StandardOutputUrl": "",
        "StandardErrorUrl": "",
        "CommandPlugins": plugins,
        "ServiceRole": "",
    })
}

fn render_plugin(command: &Command, invocation: &Invocation) -> Value {
    let (status, detail) = invocation.status.wire();
    let mut row = json!({
        "Name": command.script.step,
        "Status": status,
        "StatusDetails": detail,
        "ResponseCode": invocation.exit.unwrap_or(-1),
        "Output": if invocation.status.is_final() { listed_output(invocation) } else { String::new() },
    });
    if let Some(members) = row.as_object_mut() {
        let times = [
            ("ResponseStartDateTime", invocation.started_at),
            ("ResponseFinishDateTime", invocation.finished_at),
        ];
        for (name, at) in times {
            members.extend(at.map(|at| (name.to_owned(), json!(epoch(at)))));
        }
    }
    row
}

/// Both streams, cut to what a list shows.
fn listed_output(invocation: &Invocation) -> String {
    let mut text = invocation.stdout.clone();
    if !invocation.stderr.is_empty() {
        text.push_str("\n----------ERROR-------\n");
        text.push_str(&invocation.stderr);
    }
    if text.chars().count() <= MOST_LISTED {
        return text;
    }
    let kept: String = text.chars().take(MOST_LISTED - CUT.len()).collect();
    format!("{kept}{CUT}")
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct CancelRequest {
    command_id: String,
    #[serde(default)]
    instance_ids: Vec<String>,
}

/// `CancelCommand`: best effort; a running script is killed.
pub fn cancel(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: CancelRequest = decode_json(request)?;
    let now = call.now;
    let (account, region) = (call.account.id.clone(), call.region.name.clone());
    let command = call.region.ssm.commands.get_mut(&request.command_id).ok_or_else(|| {
        ApiError::client("InvalidCommandId", "The specified command ID is not valid.")
    })?;
    let ids = &request.instance_ids;
    let open = command
        .invocations
        .iter_mut()
        .filter(|(id, _)| ids.is_empty() || ids.contains(id))
        .filter(|(_, invocation)| !invocation.status.is_final());
    for (instance_id, invocation) in open {
        if invocation.status == Status::InProgress {
            call.effects.push(Effect::Abort {
                key: InvocationKey {
                    account: account.clone(),
                    region: region.clone(),
                    command_id: request.command_id.clone(),
                    instance_id: instance_id.clone(),
                },
            });
        }
        invocation.status = Status::Cancelled;
        invocation.finished_at = Some(now);
    }
    Ok(json!({}))
}
