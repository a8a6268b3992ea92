//! What exists, in AWS and in Kubernetes: the whole input of the planner beside the spec.
//!
//! One observation is complete or it is not used: when a read fails, `failures` says which, and the
//! planner decides nothing but the condition.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use hpc_crds::{ConditionType, HpcClusterStatus};
use serde::Deserialize;

use super::ailing::Ailing;
use super::desired::Numbers;
use super::step::Step;
use crate::cloud::{
    Failure, FileSystemId, GroupId, InstanceId, InstanceType, InterfaceId, Rule, SubnetId, Tags,
    VolumeId,
};
use crate::slots::Slots;

/// Most bytes of a report, before it was compressed to fit a parameter.
const LONGEST_REPORT: u64 = 1 << 20;

/// Everything read in one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The object as the cache has it.
    pub object: Object,
    /// Account of the credentials; `None` when the call failed (then `failures` says why).
    pub account: Option<Account>,
    /// Reads that failed; the fields they fill are empty.
    pub failures: Vec<Failure>,
    /// Subnets named by the spec that exist.
    pub subnets: Vec<Subnet>,
    /// Types named by the spec that exist.
    pub types: BTreeMap<String, InstanceType>,
    /// (type, availability zone) pairs in which a named type is offered.
    pub offered: Vec<(String, String)>,
    /// The image, resolved by id when status or spec names one, else by family.
    pub image: Option<Image>,
    /// Price of a named type, micro-dollars per hour, where known.
    pub prices: BTreeMap<String, i64>,
    /// Resources that carry our installation tag and this cluster's namespace and name but another uid.
    pub strangers: Vec<Stranger>,
    /// Our security groups (tag `cluster-uid`).
    pub groups: Vec<Group>,
    /// Our placement groups (tag `cluster-uid`).
    pub placement_groups: Vec<PlacementGroup>,
    /// Our network interfaces that were made on their own (tag `role`).
    pub interfaces: Vec<Interface>,
    /// Our volumes.
    pub volumes: Vec<Volume>,
    /// Our instances, terminated ones included while AWS shows them.
    pub instances: Vec<Instance>,
    /// Our file systems.
    pub file_systems: Vec<FileSystem>,
    /// Whether the SSM document of this build exists and is active.
    pub document_ready: bool,
    /// Whether the head's parameter exists.
    pub parameter_exists: bool,
    /// Instances whose SSM agent is online.
    pub agents_online: Vec<InstanceId>,
    /// Live instances that EC2 calls sick or is about to take.
    pub ailing: Vec<Ailing>,
    /// What the head last reported.
    pub report: Option<Report>,
    /// What the head was last told, by parameter.
    pub notes: BTreeMap<String, String>,
    /// Instances of the whole installation that live now, this cluster's included.
    pub installation_instances: i64,
    /// Their price, micro-dollars per hour.
    pub installation_hourly_cost: i64,
}

/// The Kubernetes side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// Status as last stored.
    pub status: HpcClusterStatus,
}

/// Whose credentials we hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Twelve digits.
    pub id: String,
    /// `aws`, `aws-cn`, …
    pub partition: String,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its id.
    pub id: SubnetId,
    /// Its VPC.
    pub vpc: String,
    /// Availability zone name.
    pub zone: String,
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `ami-…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
}

/// Something of an earlier object of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Resource id or name.
    pub id: String,
    /// The uid it is tagged with.
    pub uid: String,
    /// Whether it was retained on purpose; such a one is no predecessor.
    pub retained: bool,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: GroupId,
    /// Its derived name.
    pub name: String,
    /// Its rules, those AWS adds included.
    pub rules: Vec<Rule>,
    /// Its tags.
    pub tags: Tags,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroup {
    /// Its derived name.
    pub name: String,
    /// Whether instances can be launched into it.
    pub available: bool,
    /// Whether it is going away.
    pub deleting: bool,
}

/// A network interface of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its id.
    pub id: InterfaceId,
    /// Its private address.
    pub private_ip: String,
    /// Whether it is attached.
    pub in_use: bool,
    /// Its tags.
    pub tags: Tags,
}

/// A volume of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its id.
    pub id: VolumeId,
    /// Where it stands.
    pub state: VolumeState,
    /// The instance it is attached to.
    pub attached_to: Option<InstanceId>,
    /// Its tags.
    pub tags: Tags,
}

/// State of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
pub enum VolumeState {
    /// Being made.
    Creating,
    /// Free.
    Available,
    /// Attached, or on the way.
    InUse,
    /// Going or gone.
    Deleting,
    /// Broken.
    Error,
}

/// An instance of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Where it stands.
    pub state: InstanceState,
    /// Why it ended, AWS' code (`Server.InsufficientInstanceCapacity`, …).
    pub state_reason: Option<String>,
    /// Its address, absent for a while after launch.
    pub private_ip: Option<String>,
    /// Position in its launch: the slot.
    pub launch_index: i32,
    /// Token of its launch.
    pub token: Option<String>,
    /// Its tags.
    pub tags: Tags,
}

/// State of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
pub enum InstanceState {
    /// Coming.
    Pending,
    /// Here.
    Running,
    /// Going.
    ShuttingDown,
    /// Gone.
    Terminated,
    /// Stopped or stopping, by somebody else.
    Stopped,
}

impl InstanceState {
    /// Whether it bills or may come back.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Stopped => true,
            Self::ShuttingDown | Self::Terminated => false,
        }
    }
}

/// A file system of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its id.
    pub id: FileSystemId,
    /// Where it stands.
    pub lifecycle: Lifecycle,
    /// FSx's own message when it failed.
    pub failure: Option<String>,
    /// Name of the server, `fs-….fsx.REGION.amazonaws.com`.
    pub dns_name: String,
    /// Its mount name; empty while AWS does not show it.
    pub mount_name: String,
    /// Its tags.
    pub tags: Tags,
}

/// Life of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
pub enum Lifecycle {
    /// Being made.
    Creating,
    /// Usable.
    Available,
    /// Broken.
    Failed,
    /// Changing, usable.
    Updating,
    /// Going.
    Deleting,
    /// Usable perhaps, wrongly set up.
    Misconfigured,
}

/// What the head writes to its SSM parameter. Unknown fields are ignored, missing ones are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Which head wrote it; another one's report says nothing about this head.
    pub instance_id: String,
    /// `Booting`, `Ready`, `Failed`.
    pub state: String,
    /// The boot step it is in or failed at.
    pub step: String,
    /// Last lines of that step.
    pub message: String,
    /// Nodes the scheduler can use, by launch.
    pub fleets: Vec<ReportedFleet>,
    /// What jobs want beyond the nodes that always run.
    pub demand: Vec<Demand>,
    /// Nodes that always run and that the scheduler has powered down, by launch.
    pub left: Vec<ReportedFleet>,
    /// The numbers of the queues as the scheduler has them; none while the head does not tell.
    pub queues: Vec<Numbers>,
    /// The nodes that fare worst.
    pub worst: Vec<WorstNode>,
    /// Whether the lists were too long for the parameter: what they do not name is unknown.
    pub cut: bool,
}

impl Report {
    /// Reads the parameter's value: JSON, or base64 of it compressed when it is long.
    pub fn read(value: &str) -> Option<Self> {
        if let Ok(plain) = serde_json::from_str(value) {
            return Some(plain);
        }
        let packed = STANDARD.decode(value).ok()?;
        let text = GzDecoder::new(packed.as_slice()).take(LONGEST_REPORT);
        serde_json::from_reader(text).ok()
    }
}

/// The usable nodes of one launch. A number alone would not do: the node that bore it before may
/// have been ready as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedFleet {
    /// Their queue.
    pub queue: String,
    /// Their gang; empty for nodes that always run.
    pub gang: String,
    /// The attempt that launched them.
    pub attempt: i32,
    /// Those it is about: that the scheduler can place jobs on, or that have left.
    pub ready: Slots,
}

/// Nodes the scheduler has resumed for one job: all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Demand {
    /// Names the resumption; never used twice in the life of a cluster.
    pub gang: String,
    /// Of which queue.
    pub queue: String,
    /// Which nodes.
    pub slots: Slots,
}

/// A node that did not come up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorstNode {
    /// Its name.
    pub name: String,
    /// Its instance.
    pub instance_id: String,
    /// The step it failed at.
    pub step: String,
    /// Exit code of the step.
    pub exit: i32,
    /// Last lines.
    pub message: String,
}

/// What came of a step, to be added to the status in the same pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The step's token, when it carried out an intent.
    pub token: Option<String>,
    /// The step in words.
    pub step: String,
    /// The condition a failure shows on.
    pub part: ConditionType,
    /// Ids it made, or the failure.
    pub result: Result<Vec<String>, Failure>,
}

impl Outcome {
    /// What came of `step`.
    pub fn of(step: &Step, result: Result<Vec<String>, Failure>) -> Self {
        let token = match step {
            Step::Create { token, .. } => Some(token.0.clone()),
            Step::AddFinalizer
            | Step::RemoveFinalizer
            | Step::CreateGroup { .. }
            | Step::Authorize { .. }
            | Step::Revoke { .. }
            | Step::CreatePlacementGroup { .. }
            | Step::CreateDocument { .. }
            | Step::AttachVolume { .. }
            | Step::TagRetained { .. }
            | Step::Answer { .. }
            | Step::Terminate { .. }
            | Step::Delete { .. } => None,
        };
        Self { token, step: step.to_string(), part: step.part(), result }
    }
}
