//! The kind `HPCCluster`: what a user asks for.

#![expect(clippy::doc_markdown, reason = "kubectl explain prints these comments as they are")]

mod node;
mod status;
mod users;

pub use node::*;
pub use status::*;
pub use users::*;

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::Display;

/// spec is what the cluster should be. The operator never changes it.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "hpcops.dev",
    version = "v1alpha1",
    kind = "HPCCluster",
    root = "HpcCluster",
    plural = "hpcclusters",
    shortname = "hpcc",
    category = "hpc",
    namespaced,
    status = "HpcClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "HPCCluster is an HPC cluster on AWS: one head node, queues of compute nodes, shared storage and a batch scheduler. The operator makes it so, keeps it so, and gives every resource back on delete, except what a `deletionPolicy` retains.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Nodes","type":"string","jsonPath":".status.nodes.summary"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct HpcClusterSpec {
    /// aws says where in AWS the cluster stands and of what it is made.
    pub aws: AwsSpec,
    /// scheduler is the batch system that runs jobs. Default: type Slurm. Immutable.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
    /// users have an account on every node, with the same uid and home everywhere, at most 32. The
    /// first is who runs jobs that name nobody. Keys may change at any time; a user that is taken
    /// out loses its keys, its files stay. Default: one user hpc with uid 4001 and no keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub users: Vec<UserSpec>,
}

/// Where in AWS the cluster stands and of what it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSpec {
    /// region is the AWS region. Required, immutable. Example: us-east-1.
    #[schemars(length(max = 32))]
    pub region: String,
    /// network names the subnets.
    pub network: NetworkSpec,
    /// iam names the instance profiles the nodes run under.
    pub iam: IamSpec,
    /// image is the machine image of all nodes. Default: os AmazonLinux2023. The image found is
    /// pinned in `status.image`.
    #[serde(default)]
    pub image: ImageSpec,
    /// head is the node that users log in to and that runs the scheduler.
    pub head: HeadSpec,
    /// queues are the groups of compute nodes, one scheduler partition each, 1 to 8. A run without
    /// a queue uses the first.
    #[schemars(length(min = 1, max = 8), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub queues: Vec<QueueSpec>,
    /// storage are the shared file systems, mounted on every node, at most 4. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub storage: Vec<StorageSpec>,
    /// ssh opens the head for logins by SSH. Default: closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshSpec>,
    /// tags are put on every AWS resource beside the operator's own, at most 40. Keys starting
    /// with `aws:` or `hpcops.dev:` are reserved. Example: {"CostCenter": "cfd"}.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = bound_tags)]
    pub tags: BTreeMap<String, String>,
}

/// AWS takes 50 tags on a resource, 10 of which are for the operator, with values of 256 characters.
fn bound_tags(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(40));
    schema.insert("additionalProperties".to_owned(), json!({"type": "string", "maxLength": 256}));
}

/// The subnets of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// headSubnetId is the existing subnet of the head node and of the file systems. Required,
    /// immutable. Example: subnet-0a1b2c3d4e5f60718.
    #[schemars(length(max = 32))]
    pub head_subnet_id: String,
    /// computeSubnetIds are the existing subnets of the compute nodes, tried in this order, 1 to
    /// 8. Default: the head's subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8), inner(length(max = 32)), extend("x-kubernetes-list-type" = "atomic"))]
    pub compute_subnet_ids: Vec<String>,
}

/// The existing instance profiles of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IamSpec {
    /// headInstanceProfileName is the existing instance profile of the head node; it must allow
    /// what the SSM agent needs and `ssm:PutParameter` below `/hpcops/`. Required.
    #[schemars(length(max = 128))]
    pub head_instance_profile_name: String,
    /// nodeInstanceProfileName is the existing instance profile of the compute nodes. Required.
    #[schemars(length(max = 128))]
    pub node_instance_profile_name: String,
}

/// The machine image of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSpec {
    /// os is the image family: it decides where Slurm and MPI are found and, without `id`, which
    /// official ParallelCluster image is taken. Default: AmazonLinux2023. Other values may appear.
    #[serde(default)]
    pub os: OperatingSystem,
    /// id is an image to use instead of the official one; it must be laid out as an image of `os`.
    /// Example: ami-0a1b2c3d4e5f60718.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub id: Option<String>,
}

/// A family of machine images.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum OperatingSystem {
    /// The official AWS ParallelCluster image for Amazon Linux 2023.
    #[default]
    AmazonLinux2023,
}

/// The head node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadSpec {
    /// instanceType is the EC2 type of the head node. Another one replaces the head, which keeps
    /// its address and its volume; the nodes and their jobs go on. Required. Example: c5n.2xlarge.
    #[schemars(length(max = 32))]
    pub instance_type: String,
    /// stateVolume is the EBS volume that holds homes, scheduler state and keys; it survives a
    /// replacement of the head node.
    #[serde(default)]
    pub state_volume: StateVolumeSpec,
}

/// The volume that holds homes, scheduler state and keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateVolumeSpec {
    /// sizeGiB is the size of the volume in GiB, 10 to 16384. Default: 50.
    #[serde(rename = "sizeGiB", default = "StateVolumeSpec::default_size")]
    #[schemars(range(min = 10, max = 16_384))]
    pub size_gib: i32,
    /// deletionPolicy says what happens to the volume when the cluster is deleted: Retain keeps it
    /// (and it goes on costing money), Delete deletes it. Default: Retain.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

impl StateVolumeSpec {
    fn default_size() -> i32 {
        50
    }
}

impl Default for StateVolumeSpec {
    fn default() -> Self {
        Self { size_gib: Self::default_size(), deletion_policy: DeletionPolicy::default() }
    }
}

/// What becomes of stored data when its owner is deleted.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum DeletionPolicy {
    /// Keep the data; it goes on costing money.
    #[default]
    Retain,
    /// Delete the data for good.
    Delete,
}

/// A group of equal compute nodes and the scheduler partition of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// name of the queue, of its scheduler partition and of its nodes (`<name>-1`, `<name>-2`).
    /// Required, unique. Example: compute.
    #[schemars(length(max = 32))]
    pub name: String,
    /// instanceTypes are the EC2 types of the nodes, 1 or 2, in order of preference: the second is
    /// taken when AWS has no capacity for the first. Example: [c5n.18xlarge].
    #[schemars(length(min = 1, max = 2), inner(length(max = 32)), extend("x-kubernetes-list-type" = "atomic"))]
    pub instance_types: Vec<String>,
    /// minNodes is the number of nodes that always run, 0 to 1000. Required.
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub min_nodes: i32,
    /// maxNodes is the number of nodes the queue may grow to, 0 to 1000. Nodes beyond `minNodes`
    /// come when a job wants them, all nodes of the job at once, and leave when they are idle. When
    /// the number is lowered, nodes above it keep their jobs and get no new ones. Required.
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub max_nodes: i32,
    /// idleTimeoutSeconds is how long a node that came for a job stays without one, in seconds, 10
    /// to 604800. It says nothing about the nodes of `minNodes`. Default: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = -1_000_000_000, max = 1_000_000_000))]
    pub idle_timeout_seconds: Option<i32>,
    /// networkInterface is EFA (Elastic Fabric Adapter, for types that have it) or ENA (ordinary
    /// networking). Default: ENA. Other values may appear.
    #[serde(default)]
    pub network_interface: NetworkInterface,
    /// placement is Cluster (all nodes close together in one placement group) or None. Required
    /// when `networkInterface` is EFA; otherwise the default is no placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Placement")]
    pub placement: Option<Placement>,
    /// multithreading says whether a core counts as two CPUs: Disabled (one, as suits most solvers)
    /// or Enabled. Default: Disabled. Other values may appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Multithreading")]
    pub multithreading: Option<Multithreading>,
    /// localScratch says where the node's own NVMe disks appear, joined into one, for files that
    /// need not outlive the node; types without such disks have none. Default: mountPath /local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LocalScratchSpec")]
    pub local_scratch: Option<LocalScratchSpec>,
}

/// The network hardware of a queue's nodes.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NetworkInterface {
    /// Elastic Fabric Adapter: bypasses the kernel, for tightly coupled jobs.
    #[serde(rename = "EFA")]
    #[strum(serialize = "EFA")]
    Efa,
    /// Elastic Network Adapter: ordinary networking.
    #[default]
    #[serde(rename = "ENA")]
    #[strum(serialize = "ENA")]
    Ena,
}

/// How close together a queue's nodes are put.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Placement {
    /// In one cluster placement group.
    Cluster,
    /// Wherever there is capacity.
    None,
}

/// A shared file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageSpec {
    /// name of the file system within the cluster. Required, unique. Example: scratch.
    #[schemars(length(max = 32))]
    pub name: String,
    /// mountPath is the folder on every node under which the file system appears. Required,
    /// absolute, without a slash at its end, not below a folder of the system, /home or /opt.
    /// Example: /fsx.
    #[schemars(length(max = 128))]
    pub mount_path: String,
    /// deletionPolicy says what happens to the file system when the cluster is deleted: Retain
    /// keeps it (and it goes on costing money), Delete deletes it and its data. Default: Retain.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// lustre makes this an FSx for Lustre file system. Exactly one of: lustre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lustre: Option<LustreSpec>,
}

/// An FSx for Lustre file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LustreSpec {
    /// deploymentType is Scratch2 (temporary data, not replicated) or Persistent2 (replicated
    /// within its zone). Required, immutable. Other values may appear.
    pub deployment_type: DeploymentType,
    /// capacityGiB is the size in GiB: 1200 or a multiple of 2400. Required. Example: 1200.
    #[serde(rename = "capacityGiB")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub capacity_gib: i32,
    /// perUnitThroughputMiBps is the throughput per TiB of capacity in MiB/s: 125, 250, 500 or
    /// 1000. Required with Persistent2, refused with Scratch2.
    #[serde(rename = "perUnitThroughputMiBps", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub per_unit_throughput_mibps: Option<i32>,
    /// version is the Lustre version. Default: 2.15. Other values may appear.
    #[serde(default)]
    pub version: LustreVersion,
}

/// How FSx for Lustre keeps data.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum DeploymentType {
    /// SCRATCH_2: not replicated, 200 MB/s per TiB.
    #[default]
    Scratch2,
    /// PERSISTENT_2: replicated within its zone, throughput as bought.
    Persistent2,
}

/// A version of Lustre.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum LustreVersion {
    /// Lustre 2.15.
    #[default]
    #[serde(rename = "2.15")]
    #[strum(serialize = "2.15")]
    V2_15,
}

/// Logins by SSH.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshSpec {
    /// keyName is an existing EC2 key pair, installed for the image's own user. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub key_name: Option<String>,
    /// allowedCidrs are the address ranges that may reach port 22 of the head node, at most 16.
    /// The whole internet is refused. Default: none. Example: [10.0.0.0/8].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 49)), extend("x-kubernetes-list-type" = "set"))]
    pub allowed_cidrs: Vec<String>,
}

/// The batch system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerSpec {
    /// type of the batch system. Default: Slurm. Other values may appear.
    #[serde(rename = "type", default)]
    pub type_: SchedulerType,
}

/// A batch system.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SchedulerType {
    /// Slurm.
    #[default]
    Slurm,
}
