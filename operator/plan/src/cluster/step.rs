//! Everything the operator can do for a cluster, as data. A step leaves no choice to `act`.

use std::fmt;

use hpc_crds::ConditionType;
use serde::{Deserialize, Serialize};

use crate::cloud::{
    FileSystemId, GroupId, InstanceId, InterfaceId, Nic, Rule, SubnetId, Tags, Token, VolumeId,
};

/// One action. All steps of a plan are executable now and independent of one another.
#[expect(clippy::large_enum_variant, reason = "a plan has a dozen steps, and none is stored")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put our finalizer on the object.
    AddFinalizer,
    /// Let the object go.
    RemoveFinalizer,
    /// Make a security group. AWS has no token here: the name is the key.
    CreateGroup {
        /// Derived name, unique per cluster and role.
        name: String,
        /// VPC it lives in.
        vpc: String,
        /// What it is for, in words.
        description: String,
        /// Owner and user tags.
        tags: Tags,
    },
    /// Add rules to a group; existing ones count as success.
    Authorize {
        /// The group.
        group: GroupId,
        /// Rules of one direction.
        rules: Vec<Rule>,
    },
    /// Take rules out of a group; absent ones count as success.
    Revoke {
        /// The group.
        group: GroupId,
        /// Rules of one direction.
        rules: Vec<Rule>,
    },
    /// Make a cluster placement group. The name is the key.
    CreatePlacementGroup {
        /// Derived name.
        name: String,
        /// Owner and user tags.
        tags: Tags,
    },
    /// Make the per-installation SSM document. Name and content go together.
    CreateDocument {
        /// Derived name with the content's hash.
        name: String,
        /// JSON of schema 2.2.
        content: String,
        /// Installation tag.
        tags: Tags,
    },
    /// Carry out a published intent: its token makes a repeat harmless.
    Create {
        /// From the intent.
        token: Token,
        /// The thing it is for, as in the intent (`head`, `queue/compute`, …).
        thing: String,
        /// The whole request.
        body: Body,
    },
    /// Attach the state volume to the head.
    AttachVolume {
        /// The volume.
        volume: VolumeId,
        /// The head.
        instance: InstanceId,
        /// Device name asked for, `/dev/sdf`.
        device: String,
    },
    /// Tell the head something: what its jobs cannot have now, who its users are.
    Answer {
        /// Name of the parameter.
        parameter: String,
        /// Its whole value.
        text: String,
    },
    /// Mark what outlives the object, before the finalizer goes; mark a file system as mounted,
    /// before it is.
    TagRetained {
        /// What is marked.
        resource: Resource,
        /// Tags to add.
        tags: Tags,
    },
    /// End instances. Tags were checked in the observation this plan was made from.
    Terminate {
        /// Which.
        instances: Vec<InstanceId>,
        /// Why, for the audit log.
        because: String,
    },
    /// Delete one resource.
    Delete {
        /// Which.
        resource: Resource,
        /// Why, for the audit log.
        because: String,
    },
}

/// A resource that can be deleted or marked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Resource {
    /// Security group.
    Group(GroupId),
    /// Placement group by name.
    PlacementGroup(String),
    /// Network interface.
    Interface(InterfaceId),
    /// EBS volume.
    Volume(VolumeId),
    /// FSx file system; deletion carries a token derived from its id.
    FileSystem(FileSystemId, Token),
    /// SSM parameter by name.
    Parameter(String),
}

/// The request behind a [`Step::Create`]; its JSON is the intent's payload and its hash the body hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// The head's own network interface.
    Interface(InterfaceBody),
    /// The state volume.
    Volume(VolumeBody),
    /// A file system.
    FileSystem(FileSystemBody),
    /// A head or a gang of nodes: all or nothing.
    Launch(LaunchBody),
}

/// `CreateNetworkInterface`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceBody {
    /// Where.
    pub subnet: SubnetId,
    /// Groups it is in.
    pub groups: Vec<GroupId>,
    /// In words.
    pub description: String,
    /// Owner and user tags.
    pub tags: Tags,
}

/// `CreateVolume`, gp3 and encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeBody {
    /// Availability zone.
    pub zone: String,
    /// GiB.
    pub size_gib: i32,
    /// Owner and user tags.
    pub tags: Tags,
}

/// FSx `CreateFileSystem` for Lustre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemBody {
    /// Where.
    pub subnet: SubnetId,
    /// Its own security group.
    pub groups: Vec<GroupId>,
    /// `SCRATCH_2` or `PERSISTENT_2`.
    pub deployment_type: String,
    /// GiB, on the grid of the deployment type.
    pub capacity_gib: i32,
    /// MB/s per TiB, `PERSISTENT_2` only.
    pub per_unit_throughput: Option<i32>,
    /// Lustre version, `2.15`.
    pub version: String,
    /// Owner and user tags.
    pub tags: Tags,
}

/// `RunInstances` with `MinCount` = `MaxCount` = [`LaunchBody::count`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchBody {
    /// Instances, all or none.
    pub count: i32,
    /// Such as `c5n.18xlarge`.
    pub instance_type: String,
    /// AMI id.
    pub image: String,
    /// Subnet of every interface; the zone follows from it.
    pub subnet: SubnetId,
    /// Security groups of every interface.
    pub groups: Vec<GroupId>,
    /// An interface made before (the head's): then `nics` is empty.
    pub interface: Option<InterfaceId>,
    /// Interfaces to make, the primary one first.
    pub nics: Vec<Nic>,
    /// Cores of each instance, with one thread each; the type's own threads when absent.
    pub single_threaded: Option<i32>,
    /// Cluster placement group.
    pub placement_group: Option<String>,
    /// Instance profile name.
    pub profile: String,
    /// Key pair for ssh.
    pub key_name: Option<String>,
    /// User data, base64 of at most 16,384 bytes.
    pub user_data: String,
    /// Owner and user tags of instance, volumes and interfaces.
    pub tags: Tags,
}

impl Step {
    /// The condition a failure of this step shows on.
    pub fn part(&self) -> ConditionType {
        match self {
            Self::CreateGroup { .. }
            | Self::Authorize { .. }
            | Self::CreatePlacementGroup { .. }
            | Self::CreateDocument { .. } => ConditionType::NetworkReady,
            Self::Create { thing, .. } => match thing.split('/').next() {
                Some("storage") => ConditionType::StorageReady,
                Some("queue") => ConditionType::FleetsReady,
                _ => ConditionType::HeadReady,
            },
            Self::Answer { .. } | Self::AttachVolume { .. } => ConditionType::HeadReady,
            Self::AddFinalizer
            | Self::RemoveFinalizer
            | Self::Revoke { .. }
            | Self::TagRetained { .. }
            | Self::Terminate { .. }
            | Self::Delete { .. } => ConditionType::Ready,
        }
    }
}

impl Body {
    /// The tags that go into the create call.
    pub const fn tags(&self) -> &Tags {
        match self {
            Self::Interface(body) => &body.tags,
            Self::Volume(body) => &body.tags,
            Self::FileSystem(body) => &body.tags,
            Self::Launch(body) => &body.tags,
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(body) => write!(f, "interface in {}", body.subnet),
            Self::Volume(body) => write!(f, "volume of {} GiB in {}", body.size_gib, body.zone),
            Self::FileSystem(body) => {
                write!(
                    f,
                    "{} of {} GiB in {}",
                    body.deployment_type, body.capacity_gib, body.subnet
                )
            }
            Self::Launch(body) => {
                write!(f, "{} x {} in {}", body.count, body.instance_type, body.subnet)
            }
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(id) => write!(f, "security group {id}"),
            Self::PlacementGroup(name) => write!(f, "placement group {name}"),
            Self::Interface(id) => write!(f, "interface {id}"),
            Self::Volume(id) => write!(f, "volume {id}"),
            Self::FileSystem(id, _) => write!(f, "file system {id}"),
            Self::Parameter(name) => write!(f, "parameter {name}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => f.write_str("add the finalizer"),
            Self::RemoveFinalizer => f.write_str("remove the finalizer"),
            Self::CreateGroup { name, .. } => write!(f, "create security group {name}"),
            Self::Authorize { group, rules } => rules_of(f, "authorize", group, rules),
            Self::Revoke { group, rules } => rules_of(f, "revoke", group, rules),
            Self::CreatePlacementGroup { name, .. } => write!(f, "create placement group {name}"),
            Self::CreateDocument { name, .. } => write!(f, "create document {name}"),
            Self::Create { token, thing, body } => write!(f, "create {thing}: {body} [{token}]"),
            Self::AttachVolume { volume, instance, .. } => {
                write!(f, "attach {volume} to {instance}")
            }
            Self::Answer { parameter, text } => {
                let name = parameter.rsplit('/').next().unwrap_or_default();
                write!(f, "tell the head of {name}: {text}")
            }
            Self::TagRetained { resource, tags } => {
                let keys: Vec<_> = tags.keys().map(String::as_str).collect();
                write!(f, "mark {resource} with {}", keys.join(" "))
            }
            Self::Terminate { instances, because } => {
                let ids: Vec<&str> = instances.iter().map(InstanceId::as_str).collect();
                write!(f, "terminate {} ({because})", ids.join(" "))
            }
            Self::Delete { resource, because } => write!(f, "delete {resource} ({because})"),
        }
    }
}

fn rules_of(
    f: &mut fmt::Formatter<'_>,
    verb: &str,
    group: &GroupId,
    rules: &[Rule],
) -> fmt::Result {
    let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
    write!(f, "{verb} on {group}: {}", rules.join(", "))
}
