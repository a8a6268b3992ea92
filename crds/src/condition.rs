//! The only producer of conditions. Types and reasons are closed enums, so that every value a user
//! can meet has a sentence in the documentation and every place that sets one is found by the
//! compiler.

#![expect(clippy::doc_markdown, reason = "kubectl explain prints these comments as they are")]

mod reason;
mod set;

pub use reason::Reason;
pub use set::ConditionSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumMessage, EnumString, IntoEnumIterator, IntoStaticStr};

use crate::types::Time;

/// One statement about an object, in the shape all Kubernetes tools read.
///
/// Only [`ConditionSet`] makes one. `type` and `reason` are text here, because a status may have
/// been written by another version of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Condition {
    /// type names what the condition speaks of. Example: Ready. Other values may appear.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Z][A-Za-z]*$"))]
    pub type_: String,
    /// status is True, False or Unknown.
    pub status: ConditionStatus,
    /// observedGeneration is the generation of the spec the condition speaks of.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_i64))]
    pub observed_generation: i64,
    /// lastTransitionTime is when `status` changed last, in UTC.
    pub last_transition_time: Time,
    /// reason is one word from a documented list. Example: InsufficientCapacity. Other values may
    /// appear.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Z][A-Za-z]*$"))]
    pub reason: String,
    /// message says in a sentence what is so and, if something is wrong, what to do.
    #[schemars(length(max = 1024))]
    pub message: String,
}

impl Condition {
    /// Whether this is the condition of type `type_`.
    pub fn is(&self, type_: ConditionType) -> bool {
        self.type_ == <&str>::from(type_)
    }

    /// The type, if this version knows it.
    pub fn known_type(&self) -> Option<ConditionType> {
        self.type_.parse().ok()
    }

    /// The reason, if this version knows it.
    pub fn known_reason(&self) -> Option<Reason> {
        self.reason.parse().ok()
    }
}

/// The condition of type `type_` among `conditions`.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.is(type_))
}

/// Whether the condition of type `type_` is there and True.
pub fn is_true(conditions: &[Condition], type_: ConditionType) -> bool {
    find(conditions, type_).is_some_and(|found| found.status == ConditionStatus::True)
}

/// Whether a statement holds.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known, or not decided yet.
    #[default]
    Unknown,
}

/// What a condition can speak of. The order is the order in status.
#[derive(
    Clone,
    Copy,
    Debug,
    Display,
    EnumIter,
    EnumMessage,
    EnumString,
    IntoStaticStr,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
)]
pub enum ConditionType {
    /// The cluster takes jobs: network, storage, head and fleets are ready.
    Ready,
    /// Security groups and placement groups exist.
    NetworkReady,
    /// Every file system is available and mounted on the head.
    StorageReady,
    /// The head node has booted and its scheduler accepts jobs.
    HeadReady,
    /// Every queue has its minimum of nodes, and they take jobs.
    FleetsReady,
    /// Jobs want nodes that cannot be had now. Present only while true.
    GrowthBlocked,
    /// Nodes have to leave and do so when their jobs let them. Present only while true.
    NodesLeaving,
    /// Every attempt of the run ended with a valid number.
    Succeeded,
    /// The run is over, well or not.
    Finished,
    /// The numbers of the run are published.
    ResultsReady,
    /// AWS is a simulator: the numbers say nothing about real hardware.
    Simulated,
    /// The operator is at work on the object. Present only while true.
    Reconciling,
    /// The operator cannot go on without help. Present only while true.
    Stalled,
}

impl ConditionType {
    /// What `Ready` of an `HPCCluster` is made of, most basic first.
    pub const CLUSTER_PARTS: [Self; 4] =
        [Self::NetworkReady, Self::StorageReady, Self::HeadReady, Self::FleetsReady];

    /// Every type, in the order in status.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// A sentence that says what it means that the condition is True.
    pub fn description(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Whether the condition is left out when it is not True, as Flux, Helm and kstatus expect of
    /// abnormal conditions.
    pub fn is_only_when_true(self) -> bool {
        matches!(self, Self::GrowthBlocked | Self::NodesLeaving | Self::Reconciling | Self::Stalled)
    }
}
