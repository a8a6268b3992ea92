//! The kind `HPCCluster`: what the operator answers.

#![expect(clippy::doc_markdown, reason = "kubectl explain prints these comments as they are")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::intent::Intent;
use crate::types::Time;

/// status is what the operator found and did. Only the operator writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HpcClusterStatus {
    /// conditions are Ready and what it is made of: NetworkReady, StorageReady, HeadReady,
    /// FleetsReady; Simulated when AWS is a simulator; Reconciling and Stalled only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// observedGeneration is the generation of the spec this status speaks of. Default: -1, not
    /// seen yet.
    #[serde(default = "not_observed")]
    #[schemars(range(min = -1, max = 9_007_199_254_740_991_i64))]
    pub observed_generation: i64,
    /// aws is the account the cluster stands in, set before the first resource is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsStatus>,
    /// image is the machine image that was found, used for every node from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,
    /// nodes counts the compute nodes of all queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesStatus>,
    /// head is the head node: where to log in, and as whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadStatus>,
    /// storage are the file systems, one item for each of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub storage: Vec<StorageStatus>,
    /// stateVolume is the volume that holds homes, scheduler state and keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_volume: Option<StateVolumeStatus>,
    /// queues are the fleets of compute nodes, one item for each queue of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub queues: Vec<QueueStatus>,
    /// intents are the creations under way, stored before they are sent to AWS. For the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["token"]))]
    pub intents: Vec<Intent>,
    /// retained are the resources that stay, and go on costing money, after the cluster is deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub retained: Vec<RetainedResource>,
}

/// The generation in a status that no operator has written yet.
pub(crate) fn not_observed() -> i64 {
    -1
}

impl Default for HpcClusterStatus {
    fn default() -> Self {
        Self {
            conditions: Vec::new(),
            observed_generation: not_observed(),
            aws: None,
            image: None,
            nodes: None,
            head: None,
            storage: Vec::new(),
            state_volume: None,
            queues: Vec::new(),
            intents: Vec::new(),
            retained: Vec::new(),
        }
    }
}

/// The account the cluster stands in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsStatus {
    /// accountId is the AWS account, 12 digits. Credentials of another account stop the operator.
    #[schemars(length(max = 12))]
    pub account_id: String,
    /// partition is the part of AWS the account belongs to. Example: aws.
    #[schemars(length(max = 32))]
    pub partition: String,
}

/// The machine image in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// id of the image. Example: ami-0a1b2c3d4e5f60718.
    #[schemars(length(max = 32))]
    pub id: String,
    /// name of the image as its owner gave it.
    #[schemars(length(max = 256))]
    pub name: String,
}

/// The number of compute nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodesStatus {
    /// desired is the number of compute nodes the spec asks for.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub desired: i32,
    /// ready is the number of compute nodes that take jobs.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub ready: i32,
    /// summary is ready and desired as text. Example: 2/2.
    #[schemars(length(max = 16))]
    pub summary: String,
}

impl NodesStatus {
    /// The counts with their summary.
    pub fn new(ready: i32, desired: i32) -> Self {
        Self { desired, ready, summary: format!("{ready}/{desired}") }
    }
}

/// The head node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadStatus {
    /// instanceId is the EC2 instance. Empty while there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub instance_id: String,
    /// privateIp is the address of the head node; it stays when the node is replaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 45))]
    pub private_ip: String,
    /// loginUser is the user to log in as.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub login_user: String,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageStatus {
    /// name of the file system in the spec.
    #[schemars(length(max = 32))]
    pub name: String,
    /// fileSystemId is the FSx file system. Empty while there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub file_system_id: String,
    /// mountName is the Lustre name of the file system, part of its mount address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub mount_name: String,
    /// state is what FSx calls the file system's life cycle. Example: AVAILABLE.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub state: String,
    /// reachedAvailable is true once the file system was AVAILABLE, so it may hold data: from then
    /// on it is not deleted when it fails.
    #[serde(default)]
    pub reached_available: bool,
}

/// The volume that holds homes, scheduler state and keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateVolumeStatus {
    /// volumeId is the EBS volume. Example: vol-0a1b2c3d4e5f60718.
    #[schemars(length(max = 32))]
    pub volume_id: String,
}

/// The nodes of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// name of the queue in the spec.
    #[schemars(length(max = 32))]
    pub name: String,
    /// zone is the availability zone the queue's nodes stand in. Empty while there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub zone: String,
    /// desired is the number of nodes the spec asks for.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub desired: i32,
    /// ready is the number of nodes that take jobs.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub ready: i32,
    /// lastCapacityError is the last time AWS had no capacity for this queue. It stays after
    /// another type was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_capacity_error: Option<CapacityError>,
    /// nextTry is when the next launch is tried, in UTC. Absent when none is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Time>,
}

/// What AWS had no capacity for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityError {
    /// type is the EC2 type that was asked for.
    #[serde(rename = "type")]
    #[schemars(length(max = 32))]
    pub type_: String,
    /// zone is the availability zone that was asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub zone: String,
    /// code is the AWS error code. Example: InsufficientInstanceCapacity.
    #[schemars(length(max = 64))]
    pub code: String,
    /// message is what AWS said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// A resource that outlives the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetainedResource {
    /// kind of the resource. Example: FileSystem.
    #[schemars(length(max = 32))]
    pub kind: String,
    /// id of the resource in AWS.
    #[schemars(length(max = 64))]
    pub id: String,
    /// name of the resource in the spec.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub name: String,
}
