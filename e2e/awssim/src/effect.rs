//! What a call or an event wants done on the machine. Decided under the lock,
//! done after it: no machine is touched while the state is held.

use crate::machine::{BodySpec, Command};

/// Which invocation of which command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvocationKey {
    /// Account the command belongs to.
    pub account: String,
    /// Region of the command.
    pub region: String,
    /// Command id.
    pub command_id: String,
    /// Target.
    pub instance_id: String,
}

/// One thing to do outside the lock.
#[derive(Debug)]
pub enum Effect {
    /// Start the body of an instance.
    Start(Box<BodySpec>),
    /// Kill the body of an instance.
    Kill {
        /// The instance.
        instance_id: String,
    },
    /// Run a command in a body.
    Execute {
        /// Where its result belongs.
        key: InvocationKey,
        /// What to run.
        command: Command,
    },
    /// Kill a running command.
    Abort {
        /// Which.
        key: InvocationKey,
    },
    /// Remove what a resource kept on disk.
    Discard {
        /// Folder or file.
        path: std::path::PathBuf,
    },
}
