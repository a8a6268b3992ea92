//! Scripted answers for instances without a body.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use super::commands::Command;
use crate::call::Call;
use crate::effect::InvocationKey;
use crate::machine::{ExecEnd, ExecOutput};

/// One scripted answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Responder {
    /// Text that must be part of the script, of a parameter, or of a
    /// parameter's payload once decoded (base64, then gzip).
    pub matching: String,
    /// Only on this instance.
    #[serde(default)]
    pub instance_id: Option<String>,
    /// Standard output.
    #[serde(default)]
    pub stdout: String,
    /// Standard error.
    #[serde(default)]
    pub stderr: String,
    /// Exit code.
    #[serde(default)]
    pub exit: i32,
    /// How many commands to answer; absent is all.
    #[serde(default)]
    pub count: Option<u32>,
}

/// The answer of the newest responder that matches, using it up by one.
pub fn find(call: &mut Call<'_>, key: &InvocationKey) -> Option<ExecOutput> {
    let command = call.region.ssm.commands.get(&key.command_id)?;
    let texts = texts_of(command);
    let responder = call.account.responders.iter_mut().rev().find(|responder| {
        responder.count != Some(0)
            && responder.instance_id.as_ref().is_none_or(|id| *id == key.instance_id)
            && texts.iter().any(|text| text.contains(&responder.matching))
    })?;
    responder.count = responder.count.map(|count| count - 1);
    Some(ExecOutput {
        end: ExecEnd::Exited(responder.exit),
        stdout: responder.stdout.clone().into_bytes(),
        stderr: responder.stderr.clone().into_bytes(),
    })
}

fn texts_of(command: &Command) -> Vec<String> {
    let mut texts = vec![command.script.text.clone()];
    for value in command.parameters.values().flatten() {
        texts.extend(unpack(value));
        texts.push(value.clone());
    }
    texts
}

fn unpack(value: &str) -> Option<String> {
    let packed = STANDARD.decode(value).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).ok()?;
    Some(text)
}
