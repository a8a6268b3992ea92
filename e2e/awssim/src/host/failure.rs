//! Short ways to say which step failed for whom.

use std::io;

use crate::machine::MachineError;

/// A tool or a check said no.
pub fn failed(who: &str, step: &str, message: impl Into<String>) -> MachineError {
    MachineError::Failed {
        instance_id: who.to_owned(),
        step: step.to_owned(),
        message: message.into(),
    }
}

/// For `map_err`: a call of the operating system failed.
pub fn io_failed(who: &str, step: &'static str) -> impl FnOnce(io::Error) -> MachineError {
    let instance_id = who.to_owned();
    move |source| MachineError::Io { instance_id, step, source }
}
