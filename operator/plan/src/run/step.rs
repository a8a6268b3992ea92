//! Everything the operator can do for a run, as data, and what it can wait for.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::cloud::Failure;

use super::observed::Head;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Put our finalizer on the object.
    AddFinalizer,
    /// Let the object go.
    RemoveFinalizer,
    /// Hand stored attempts to the scheduler; a repeat is harmless.
    Submit {
        /// Where.
        head: Head,
        /// What.
        attempts: Vec<Submission>,
    },
    /// Read the whole output of an ended attempt.
    Fetch {
        /// Where.
        head: Head,
        /// Which.
        id: String,
        /// Its folder.
        folder: String,
    },
    /// Take attempts out of the scheduler.
    Cancel {
        /// Where.
        head: Head,
        /// Which.
        ids: Vec<String>,
    },
    /// Write an immutable results `ConfigMap`; one of that name already there is the same.
    Store(Results),
}

/// One attempt as the head is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    /// Attempt id and job name.
    pub id: String,
    /// Folder on shared storage.
    pub folder: String,
    /// User it runs as; never root.
    pub user: String,
    /// Partition.
    pub queue: String,
    /// Nodes, exclusively.
    pub nodes: i32,
    /// Ranks on each.
    pub ranks_per_node: u32,
    /// Minutes until the scheduler ends it.
    pub time_limit_minutes: i32,
    /// Text of the application's `run.sh`.
    pub script: String,
    /// Environment of the script.
    pub environment: BTreeMap<String, String>,
}

/// A results `ConfigMap`, named by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// Its name.
    pub name: String,
    /// SHA-256 of its data, hexadecimal.
    pub sha256: String,
    /// The attempt it tells of.
    pub attempt: String,
    /// Its data.
    pub data: BTreeMap<String, String>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => f.write_str("add the finalizer"),
            Self::RemoveFinalizer => f.write_str("remove the finalizer"),
            Self::Submit { head, attempts } => {
                let ids: Vec<_> = attempts.iter().map(|attempt| attempt.id.as_str()).collect();
                write!(f, "submit on {}: {}", head.instance, ids.join(" "))
            }
            Self::Fetch { head, id, .. } => {
                write!(f, "fetch the output of {id} from {}", head.instance)
            }
            Self::Cancel { head, ids } => {
                write!(f, "cancel on {}: {}", head.instance, ids.join(" "))
            }
            Self::Store(results) => write!(f, "store {} of {}", results.name, results.attempt),
        }
    }
}

/// What a run waits for.
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A read that failed comes back.
    Read(Failure),
    /// The cluster.
    Cluster { name: String },
    /// Jobs under way.
    Jobs { open: usize },
    /// A head that can be told to cancel.
    Head { name: String },
    /// The cluster stands in the status before the first attempt is submitted to it.
    Noted { name: String },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(failure) => write!(f, "read: {failure}"),
            Self::Cluster { name } => write!(f, "cluster {name}"),
            Self::Jobs { open } => write!(f, "{open} jobs under way"),
            Self::Head { name } => write!(f, "a head of cluster {name}"),
            Self::Noted { name } => write!(f, "cluster {name} to be noted"),
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The scheduler has it: attempt id and job id.
    Submitted(Vec<Submitted>),
    /// The scheduler has none of these attempts any more.
    Cancelled(Vec<String>),
    /// Something failed; the next pass tries again.
    Failed(Failure),
    /// Nothing to add to the status.
    Done,
}

/// The head's answer for one submitted attempt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submitted {
    /// The attempt.
    pub id: String,
    /// `Submitted`, `Exists` or `Error`.
    pub state: String,
    /// The scheduler's number.
    #[serde(default)]
    pub job_id: Option<String>,
    /// Why not.
    #[serde(default)]
    pub message: String,
}
