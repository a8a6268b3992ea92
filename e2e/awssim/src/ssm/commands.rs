//! Commands, their invocations, and how they get on.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::document::{Script, Values};
use super::respond;
use crate::agenda::Event;
use crate::call::Call;
use crate::clock::epoch;
use crate::ec2::Agent;
use crate::effect::{Effect, InvocationKey};
use crate::machine::{self, ExecEnd, ExecOutput, MachineError};

/// Characters of standard output that `GetCommandInvocation` shows.
const MOST_STDOUT: usize = 24_000;
/// Characters of standard error.
const MOST_STDERR: usize = 8_000;
/// Unscaled seconds until a lost agent is tried again.
const RETRY_SECONDS: f64 = 5.0;

/// Status of an invocation, with its detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Not yet with the agent.
    #[default]
    Pending,
    /// Running.
    InProgress,
    /// Exit 0.
    Success,
    /// Another exit code.
    Failed,
    /// Killed at its execution timeout.
    ExecutionTimedOut,
    /// Never started.
    DeliveryTimedOut,
    /// By `CancelCommand`.
    Cancelled,
    /// The instance went.
    Undeliverable,
}

impl Status {
    /// `Status` and `StatusDetails`.
    pub fn wire(self) -> (&'static str, &'static str) {
        match self {
            Self::Pending => ("Pending", "Pending"),
            Self::InProgress => ("InProgress", "InProgress"),
            Self::Success => ("Success", "Success"),
            Self::Failed => ("Failed", "Failed"),
            Self::ExecutionTimedOut => ("TimedOut", "ExecutionTimedOut"),
            Self::DeliveryTimedOut => ("TimedOut", "DeliveryTimedOut"),
            Self::Cancelled => ("Cancelled", "Cancelled"),
            Self::Undeliverable => ("Failed", "Undeliverable"),
        }
    }

    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::InProgress)
    }
}

/// One command on one instance.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Now.
    pub status: Status,
    /// Exit code, once there is one.
    pub exit: Option<i32>,
    /// First characters.
    pub stdout: String,
    /// First characters.
    pub stderr: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// One command.
#[derive(Debug, Clone)]
pub struct Command {
    /// UUID.
    pub id: String,
    /// Document name.
    pub document: String,
    /// As sent.
    pub comment: String,
    /// As sent.
    pub parameters: Values,
    /// When it was sent.
    pub requested_at: Timestamp,
    /// Delivery timeout; not scaled, it is the caller's.
    pub timeout_seconds: u64,
    /// What runs.
    pub script: Script,
    /// From when reads know it.
    pub known_at: Timestamp,
    /// By instance.
    pub invocations: BTreeMap<String, Invocation>,
}

/// What happens to commands by themselves.
pub fn handle_event(call: &mut Call<'_>, event: &Event) {
    match event {
        Event::CommandDelivered(command, instance) => deliver(call, command, instance),
        Event::CommandExpired(command, instance) => {
            if let Some(invocation) = pending(call, command, instance) {
                invocation.status = Status::DeliveryTimedOut;
            }
        }
        Event::FileSystemSettled(_)
        | Event::FileSystemGone(_)
        | Event::InstanceRunning(_)
        | Event::AgentOnline(_)
        | Event::InstanceTerminated(_)
        | Event::InstanceForgotten(_) => {}
    }
}

fn pending<'a>(
    call: &'a mut Call<'_>,
    command: &str,
    instance: &str,
) -> Option<&'a mut Invocation> {
    let command = call.region.ssm.commands.get_mut(command)?;
    command.invocations.get_mut(instance).filter(|i| i.status == Status::Pending)
}

/// Hands the command to the agent, or waits for it.
fn deliver(call: &mut Call<'_>, command_id: &str, instance_id: &str) {
    if pending(call, command_id, instance_id).is_none() {
        return;
    }
    let target = call.region.ec2.instances.get(instance_id).filter(|i| i.is_up());
    let Some((agent, has_body)) = target.map(|i| (i.agent, i.has_body)) else {
        if let Some(invocation) = pending(call, command_id, instance_id) {
            invocation.status = Status::Undeliverable;
        }
        return;
    };
    let Agent::Online(_) = agent else {
        let event = Event::CommandDelivered(command_id.to_owned(), instance_id.to_owned());
        return try_again(call, event);
    };
    let key = InvocationKey {
        account: call.account.id.clone(),
        region: call.region.name.clone(),
        command_id: command_id.to_owned(),
        instance_id: instance_id.to_owned(),
    };
    if has_body { execute(call, key) } else { answer_by_script(call, &key) }
}

fn execute(call: &mut Call<'_>, key: InvocationKey) {
    let Some(command) = call.region.ssm.commands.get(&key.command_id) else {
        return;
    };
    let script = command.script.clone();
    let command = machine::Command {
        command_id: key.command_id.clone(),
        script: script.text,
        environment: script.environment,
        working_directory: script.working_directory,
        timeout: Duration::from_secs(script.timeout_seconds),
    };
    begin(call, &key);
    call.effects.push(Effect::Execute { key, command });
}

fn begin(call: &mut Call<'_>, key: &InvocationKey) {
    let now = call.now;
    if let Some(invocation) = pending(call, &key.command_id, &key.instance_id) {
        invocation.status = Status::InProgress;
        invocation.started_at = Some(now);
    }
}

/// A bodiless instance answers what a test scripted, or waits for it.
fn answer_by_script(call: &mut Call<'_>, key: &InvocationKey) {
    if let Some(output) = respond::find(call, key) {
        begin(call, key);
        return complete(call, key, Ok(output));
    }
    let event = Event::CommandDelivered(key.command_id.clone(), key.instance_id.clone());
    try_again(call, event);
}

fn try_again(call: &mut Call<'_>, event: Event) {
    let at = call.now.saturating_add(call.engine.clock.scaled(RETRY_SECONDS));
    call.schedule(at.unwrap_or(call.now), event);
}

/// Notes how an invocation ended. A cancelled one stays cancelled.
pub fn complete(
    call: &mut Call<'_>,
    key: &InvocationKey,
    output: Result<ExecOutput, MachineError>,
) {
    let now = call.now;
    let Some(command) = call.region.ssm.commands.get_mut(&key.command_id) else {
        return;
    };
    let Some(invocation) = command.invocations.get_mut(&key.instance_id) else {
        return;
    };
    if invocation.status.is_final() {
        return;
    }
    invocation.finished_at = Some(now);
    match output {
        Ok(output) => {
            invocation.stdout = first_characters(&output.stdout, MOST_STDOUT);
            invocation.stderr = first_characters(&output.stderr, MOST_STDERR);
            let (status, exit) = verdict(output.end);
            invocation.status = status;
            invocation.exit = Some(exit);
        }
        Err(error) => {
            invocation.status = Status::Undeliverable;
            invocation.stderr = error.to_string();
        }
    }
}

fn verdict(end: ExecEnd) -> (Status, i32) {
    match end {
        ExecEnd::Exited(0) => (Status::Success, 0),
        ExecEnd::Exited(code) => (Status::Failed, code),
        ExecEnd::Signalled(signal) => (Status::Failed, 128 + signal),
        ExecEnd::TimedOut => (Status::ExecutionTimedOut, 137),
    }
}

/// The first characters; what follows is lost, as in SSM.
pub fn first_characters(bytes: &[u8], most: usize) -> String {
    String::from_utf8_lossy(bytes).chars().take(most).collect()
}

/// `Command` of an answer.
pub fn render_command(command: &Command) -> Value {
    let expires = command.requested_at.saturating_add(jiff::SignedDuration::from_secs(
        i64::try_from(command.timeout_seconds).unwrap_or(i64::MAX),
    ));
    json!({
        "CommandId": command.id,
        "DocumentName": command.document,
        "DocumentVersion": "$DEFAULT",
        "Comment": command.comment,
        "ExpiresAfter": epoch(expires.unwrap_or(command.requested_at)),
        "Parameters": command.parameters,
        "InstanceIds": command.invocations.keys().collect::<Vec<_>>(),
        "Targets": [],
        "RequestedDateTime": epoch(command.requested_at),
        "Status": "Pending",
        "StatusDetails": "Pending",
        "MaxConcurrency": "50",
        "MaxErrors": "0",
        "TargetCount": command.invocations.len(),
        "CompletedCount": 0,
        "ErrorCount": 0,
        "DeliveryTimedOutCount": 0,
        "TimeoutSeconds": command.timeout_seconds,
    })
}
