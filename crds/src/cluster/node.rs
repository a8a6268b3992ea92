//! How the machine of a compute node is set up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

/// Hardware threads of a core.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Multithreading {
    /// One thread per core.
    #[default]
    Disabled,
    /// All threads the type has.
    Enabled,
}

/// The node's own disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalScratchSpec {
    /// mountPath is the folder under which the disks appear, writable for everybody. Required,
    /// absolute, not below a folder of the system. Example: /nvme.
    #[schemars(length(max = 128))]
    pub mount_path: String,
}
