//! What stands between a cluster and Ready. Each variant says what is waited for, with its numbers.

use std::fmt;

use crate::cloud::Failure;

use super::observed::{Lifecycle, VolumeState};

/// One thing waited for.
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A read that failed comes back.
    Read(Failure),
    /// An intent is stored; a later pass acts on it.
    Intent { thing: String, attempt: i32 },
    /// AWS answered; what it made is not visible yet.
    Visible { thing: String },
    /// A token is looked up because the request would differ today.
    LookUp { thing: String },
    /// A newer operator's intent is left alone.
    NewerIntent { thing: String, version: i32 },
    /// The back-off after a refusal.
    Retry { thing: String, seconds: u64, because: String },
    /// A file system comes up.
    FileSystem { name: String, lifecycle: Lifecycle },
    /// A file system in the way goes away.
    FileSystemGone { name: String },
    /// The state volume comes up.
    Volume { state: VolumeState },
    /// The placement group of a queue comes up.
    PlacementGroup { queue: String },
    /// The SSM document comes up.
    Document,
    /// The former head lets the interface and the volume go.
    FormerHead,
    /// The head's machine comes up.
    HeadInstance,
    /// The SSM agent of the head.
    Agent { seconds: u64, limit: u64 },
    /// The boot of the head.
    HeadBoot { step: String },
    /// Nodes of a queue.
    Nodes { queue: String, ready: usize, wanted: usize },
    /// The head, before nodes are launched.
    HeadFirst { queue: String },
    /// Instances end.
    Terminating { count: usize },
    /// Something goes away.
    Gone { what: String },
    /// Something that outlives the cluster carries its mark.
    Marked { what: String },
    /// What AWS may have made and does not show yet.
    Hidden,
    /// The second look before the finalizer goes.
    SecondLook { seconds: u64 },
    /// What was given up is remembered for a while.
    Remembered { thing: String, seconds: u64 },
    /// Nodes leave once their jobs are over.
    Leaving { nodes: String, because: String },
    /// The scheduler drops what it cannot have, and asks again.
    Scheduler { thing: String },
    /// A human.
    Human { because: String },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(failure) => write!(f, "read: {failure}"),
            Self::Intent { thing, attempt } => {
                write!(f, "{thing}: the record of attempt {attempt} is stored first")
            }
            Self::Visible { thing } => write!(f, "{thing}: made, not visible yet"),
            Self::LookUp { thing } => write!(f, "{thing}: looked up by its token"),
            Self::NewerIntent { thing, version } => {
                write!(f, "{thing}: intent of version {version} is left alone")
            }
            Self::Retry { thing, seconds, because } => {
                write!(f, "{thing}: next try in {seconds}s ({because})")
            }
            Self::FileSystem { name, lifecycle } => write!(f, "storage {name}: {lifecycle}"),
            Self::FileSystemGone { name } => write!(f, "storage {name}: the failed one goes"),
            Self::Volume { state } => write!(f, "state volume: {state}"),
            Self::PlacementGroup { queue } => write!(f, "queue {queue}: placement group"),
            Self::Document => f.write_str("SSM document"),
            Self::FormerHead => f.write_str("head: the former one lets go"),
            Self::HeadInstance => f.write_str("head: instance"),
            Self::Agent { seconds, limit } => write!(f, "head: agent, {seconds}s of {limit}s"),
            Self::HeadBoot { step } => write!(f, "head: boot step {step}"),
            Self::Nodes { queue, ready, wanted } => {
                write!(f, "queue {queue}: {ready} of {wanted} nodes")
            }
            Self::HeadFirst { queue } => write!(f, "queue {queue}: head and storage first"),
            Self::Terminating { count } => write!(f, "{count} instances end"),
            Self::Gone { what } => write!(f, "{what} to go"),
            Self::Marked { what } => write!(f, "{what} to be marked as retained"),
            Self::Hidden => f.write_str("what AWS does not show yet"),
            Self::SecondLook { seconds } => write!(f, "a second look in {seconds}s"),
            Self::Remembered { thing, seconds } => {
                write!(f, "{thing}: remembered for {seconds}s more")
            }
            Self::Leaving { nodes, because } => write!(f, "queue {nodes} to leave ({because})"),
            Self::Scheduler { thing } => write!(f, "{thing}: the scheduler asks again"),
            Self::Human { because } => write!(f, "a human: {because}"),
        }
    }
}
