//! What the spec asks for, every default made explicit; deletion and refusal are desired states too.

use std::time::Duration;

use hpc_crds::{
    DeletionPolicy, DeploymentType, HpcCluster, Multithreading, NetworkInterface, Placement,
    QueueSpec, UserSpec,
};
use serde::{Deserialize, Serialize};

use crate::cloud::{SubnetId, Tags};
use crate::names::{IGNORE_PREDECESSOR, Owner, PAUSED};
use crate::slots::Slots;

/// Limits and switches of the installation, from the operator's flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Installation id; part of every tag.
    pub installation: String,
    /// Most live instances over the installation, heads included.
    pub max_instances: i64,
    /// Most cost per hour over the installation, micro-dollars.
    pub max_hourly_cost: i64,
    /// Plan and tell, never act.
    pub dry_run: bool,
    /// Provider that stands in for EFA on a simulated cloud; empty on a real one.
    pub simulated_fabric: String,
    /// How long an agent may take to come online after the launch.
    pub agent_timeout: Duration,
    /// How long a node may take to boot after the launch.
    pub boot_timeout: Duration,
    /// How long AWS may hide what it has made.
    pub visibility_window: Duration,
    /// How long a token is looked up before an attempt whose body changed is given up.
    pub lookup_window: Duration,
    /// First wait after all rungs refused for lack of capacity; doubles to ten minutes.
    pub capacity_backoff: Duration,
    /// Between two looks at what the jobs of a queue that can grow want.
    pub demand_poll: Duration,
    /// Least time between two looks at the health of machines.
    pub status_poll: Duration,
    /// Between the two observations that let the finalizer go.
    pub finalizer_gap: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            installation: "default".to_owned(),
            max_instances: 20,
            max_hourly_cost: 100_000_000,
            dry_run: false,
            simulated_fabric: String::new(),
            agent_timeout: Duration::from_mins(10),
            boot_timeout: Duration::from_mins(20),
            visibility_window: Duration::from_secs(30),
            lookup_window: Duration::from_mins(5),
            capacity_backoff: Duration::from_secs(30),
            demand_poll: Duration::from_secs(10),
            status_poll: Duration::from_mins(1),
            finalizer_gap: Duration::from_secs(5),
        }
    }
}

/// Most attempts to make a head, a gang's ladder or a file system before a human is asked.
pub const MAX_ATTEMPTS: i32 = 3;
/// How long a node that came for a job stays without one, where the spec does not say.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// Where a node's own disks are mounted where the spec does not say.
const LOCAL_SCRATCH: &str = "/local";
/// Login and job user where the spec names none.
const DEFAULT_USER: (&str, i32) = ("hpc", 4001);

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Identity of the object.
    pub owner: Owner,
    /// Generation the rest was read from.
    pub generation: i64,
    /// Where to end.
    pub goal: Goal,
    /// The cluster itself; deletion needs it as well (names, retention).
    pub cluster: Cluster,
    /// Limits and switches.
    pub settings: Settings,
    /// Uid of a predecessor that may be left alone.
    pub ignore_predecessor: Option<String>,
}

/// Where to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Goal {
    /// The cluster stands.
    Present,
    /// Nothing but what is retained is left.
    Absent,
    /// Nothing moves.
    Paused,
}

/// The cluster in the planner's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Region of every call.
    pub region: String,
    /// Subnet of head, state volume and file systems.
    pub head_subnet: SubnetId,
    /// Subnets of the queues, in order of preference.
    pub compute_subnets: Vec<SubnetId>,
    /// Instance profile of the head.
    pub head_profile: String,
    /// Instance profile of the nodes.
    pub node_profile: String,
    /// Image family.
    pub image_family: String,
    /// Image id, when the user pinned one.
    pub image_id: Option<String>,
    /// Type of the head.
    pub head_type: String,
    /// GiB of the state volume.
    pub state_gib: i32,
    /// What becomes of the state volume.
    pub state_policy: DeletionPolicy,
    /// The queues, in order.
    pub queues: Vec<Queue>,
    /// The file systems, in order.
    pub storages: Vec<Storage>,
    /// Key pair of the default login user.
    pub key_name: Option<String>,
    /// Who may reach the head by ssh.
    pub ssh_cidrs: Vec<String>,
    /// The user's tags.
    pub tags: Tags,
    /// Who has an account; never empty.
    pub users: Vec<User>,
}

/// Somebody with an account on every node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Login name.
    pub name: String,
    /// Number of user and group.
    pub uid: i32,
    /// Public keys of OpenSSH.
    pub keys: Vec<String>,
}

/// A queue of equal nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Types, in order of preference.
    pub types: Vec<String>,
    /// Its nodes that always run, by number.
    pub nodes: Slots,
    /// Number of its last node; those after the last that always runs come and go with the jobs.
    pub most: i32,
    /// How long a node without a job stays.
    pub idle_timeout: Duration,
    /// Whether its nodes carry EFA.
    pub efa: bool,
    /// Whether it has a cluster placement group.
    pub grouped: bool,
    /// Whether a core counts as more than one CPU.
    pub multithreading: bool,
    /// Where its nodes' own disks are mounted.
    pub local_scratch: String,
}

/// What may change of a queue while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Numbers {
    /// Its name.
    pub name: String,
    /// Its nodes that always run.
    pub standing: Slots,
    /// Number of its last node.
    pub most: i32,
    /// Seconds after which a node that came for a job and has none leaves.
    pub idle_seconds: u64,
}

/// A Lustre file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Its name.
    pub name: String,
    /// Where it is mounted.
    pub mount_path: String,
    /// What becomes of it.
    pub policy: DeletionPolicy,
    /// FSx's word for its type.
    pub deployment_type: &'static str,
    /// GiB.
    pub capacity_gib: i32,
    /// MB/s per TiB.
    pub per_unit_throughput: Option<i32>,
    /// Lustre version.
    pub version: String,
}

impl Desired {
    /// Reads the spec. Total: what admission refuses cannot be here, and what it could not know
    /// (types, zones, quotas) is judged by `plan` against the observation.
    pub fn new(object: &HpcCluster, settings: &Settings) -> Self {
        let meta = &object.metadata;
        let annotation = |key| meta.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        Self {
            owner: Owner {
                installation: settings.installation.clone(),
                uid: meta.uid.clone().unwrap_or_default(),
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
            },
            generation: meta.generation.unwrap_or_default(),
            goal: match (meta.deletion_timestamp.is_some(), annotation(PAUSED)) {
                (_, Some(value)) if value.trim().eq_ignore_ascii_case("true") => Goal::Paused,
                (true, _) => Goal::Absent,
                (false, _) => Goal::Present,
            },
            cluster: Cluster::new(object),
            settings: settings.clone(),
            ignore_predecessor: annotation(IGNORE_PREDECESSOR),
        }
    }
}

impl Cluster {
    /// Reads what the spec says of the cluster itself.
    pub fn new(object: &HpcCluster) -> Self {
        let aws = &object.spec.aws;
        let head_subnet = SubnetId(aws.network.head_subnet_id.clone());
        let compute: Vec<_> =
            aws.network.compute_subnet_ids.iter().cloned().map(SubnetId).collect();
        Self {
            region: aws.region.clone(),
            compute_subnets: if compute.is_empty() { vec![head_subnet.clone()] } else { compute },
            head_subnet,
            head_profile: aws.iam.head_instance_profile_name.clone(),
            node_profile: aws.iam.node_instance_profile_name.clone(),
            image_family: aws.image.os.to_string(),
            image_id: aws.image.id.clone(),
            head_type: aws.head.instance_type.clone(),
            state_gib: aws.head.state_volume.size_gib,
            state_policy: aws.head.state_volume.deletion_policy,
            queues: aws.queues.iter().map(Queue::new).collect(),
            storages: aws.storage.iter().filter_map(Storage::new).collect(),
            key_name: aws.ssh.as_ref().and_then(|ssh| ssh.key_name.clone()),
            ssh_cidrs: aws.ssh.iter().flat_map(|ssh| ssh.allowed_cidrs.iter()).cloned().collect(),
            tags: aws.tags.clone(),
            users: users(&object.spec.users),
        }
    }
}

fn users(named: &[UserSpec]) -> Vec<User> {
    let default = User { name: DEFAULT_USER.0.to_owned(), uid: DEFAULT_USER.1, keys: vec![] };
    let named = named.iter().map(|user| User {
        name: user.name.clone(),
        uid: user.uid,
        keys: user.ssh_public_keys.clone(),
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() { vec![default] } else { named }
}

impl Queue {
    fn new(spec: &QueueSpec) -> Self {
        Self {
            name: spec.name.clone(),
            types: spec.instance_types.clone(),
            nodes: Slots::span(1, spec.min_nodes),
            most: spec.max_nodes,
            idle_timeout: spec
                .idle_timeout_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map_or(IDLE_TIMEOUT, Duration::from_secs),
            efa: spec.network_interface == NetworkInterface::Efa,
            grouped: spec.placement == Some(Placement::Cluster),
            multithreading: spec.multithreading == Some(Multithreading::Enabled),
            local_scratch: spec
                .local_scratch
                .as_ref()
                .map_or(LOCAL_SCRATCH, |scratch| &scratch.mount_path)
                .to_owned(),
        }
    }

    /// What the scheduler is told of it while it runs.
    pub fn numbers(&self) -> Numbers {
        Numbers {
            name: self.name.clone(),
            standing: self.nodes.clone(),
            most: self.most,
            idle_seconds: self.idle_timeout.as_secs(),
        }
    }
}

impl Desired {
    /// Whether a job can make nodes come: then its demand is looked at without being told.
    pub fn can_grow(&self) -> bool {
        let grows =
            |queue: &Queue| usize::try_from(queue.most).is_ok_and(|most| most > queue.nodes.len());
        self.goal == Goal::Present && self.cluster.queues.iter().any(grows)
    }
}

impl Storage {
    fn new(spec: &hpc_crds::StorageSpec) -> Option<Self> {
        let lustre = spec.lustre.as_ref()?;
        Some(Self {
            name: spec.name.clone(),
            mount_path: spec.mount_path.clone(),
            policy: spec.deletion_policy,
            deployment_type: match lustre.deployment_type {
                DeploymentType::Scratch2 => "SCRATCH_2",
                DeploymentType::Persistent2 => "PERSISTENT_2",
            },
            capacity_gib: lustre.capacity_gib,
            per_unit_throughput: lustre.per_unit_throughput_mibps,
            version: lustre.version.to_string(),
        })
    }
}
