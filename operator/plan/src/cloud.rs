//! The cloud in our own words: ids, tags, rules of security groups, types of instances, failures.
//!
//! SDK types stop at the `hpc-aws` crate; everything the planner reads or asks for is spelled here.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Tags of a resource, ordered so that equal tags print and hash equally.
pub type Tags = BTreeMap<String, String>;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as AWS spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }
    )*};
}

id! {
    /// Of a security group, `sg-…`.
    GroupId
    /// Of an instance, `i-…`.
    InstanceId
    /// Of an EBS volume, `vol-…`.
    VolumeId
    /// Of a network interface, `eni-…`.
    InterfaceId
    /// Of an FSx file system, `fs-…`.
    FileSystemId
    /// Of a subnet, `subnet-…`.
    SubnetId
    /// Idempotency token: 40 hex characters, derived, never random.
    Token
}

/// What a failed call means for us; the table of AWS codes behind it is in `hpc-aws`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
pub enum Kind {
    /// The thing is not there, or not visible yet.
    NotFound,
    /// It exists already (a name or rule taken).
    Exists,
    /// No capacity for this type, zone and market now.
    Capacity,
    /// A limit of the account.
    Quota,
    /// Too many calls; the same request is right later.
    Throttled,
    /// The caller may not do this.
    Denied,
    /// Credentials are missing, expired or wrong.
    Credentials,
    /// The type is not offered in the zone, or an option is not supported by it.
    NotOffered,
    /// The request itself is wrong and stays wrong until the spec changes.
    Invalid,
    /// Something it refers to (subnet, group, key pair, image) does not exist.
    Dependency,
    /// Something still uses it; right later.
    InUse,
    /// The token was used with another body.
    TokenMismatch,
    /// The token's instances are terminated; it will never launch again.
    TokenSpent,
    /// Nobody knows whether it happened (time-out, reset, 5xx): the same token is right.
    Unknown,
}

impl Kind {
    /// Whether the answer proves that nothing was created, so that the attempt can be given up.
    pub const fn is_refusal(self) -> bool {
        match self {
            Self::Capacity
            | Self::Quota
            | Self::Denied
            | Self::NotOffered
            | Self::Invalid
            | Self::Dependency
            | Self::TokenSpent => true,
            Self::NotFound
            | Self::Exists
            | Self::Throttled
            | Self::Credentials
            | Self::InUse
            | Self::TokenMismatch
            | Self::Unknown => false,
        }
    }
}

/// A call that failed: enough to decide, to tell the user, and to find it in AWS' own logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What it means.
    pub kind: Kind,
    /// `ec2`, `fsx`, `ssm`, `sts`.
    pub service: String,
    /// The API action, such as `RunInstances`.
    pub operation: String,
    /// The AWS code, such as `InsufficientInstanceCapacity`.
    pub code: String,
    /// AWS' own words, cut to 300 characters.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} answered {} ({})", self.service, self.operation, self.code, self.kind)
    }
}

/// One permission of a security group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Into or out of the group.
    pub direction: Direction,
    /// All protocols, or one TCP range.
    pub traffic: Traffic,
    /// From or to whom.
    pub peer: Peer,
}

/// Side of a rule.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
pub enum Direction {
    /// Into the group.
    Ingress,
    /// Out of the group.
    Egress,
}

/// What a rule lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Traffic {
    /// Every protocol and port.
    All,
    /// TCP ports, both ends included.
    Tcp(u16, u16),
}

/// The other side of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Peer {
    /// Members of a security group.
    Group(GroupId),
    /// An address range, `10.0.0.0/8` or an IPv6 one.
    Cidr(String),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = match &self.peer {
            Peer::Group(id) => id.as_str(),
            Peer::Cidr(range) => range,
        };
        match self.traffic {
            Traffic::All => write!(f, "{} all {peer}", self.direction),
            Traffic::Tcp(from, to) => write!(f, "{} tcp {from}-{to} {peer}", self.direction),
        }
    }
}

/// One network card of an instance type, as `DescribeInstanceTypes` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Index of the card.
    pub index: i32,
    /// Interfaces it can carry.
    pub max_interfaces: i32,
    /// Whether it can carry an EFA.
    pub efa: bool,
}

/// What we need to know of an instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceType {
    /// Such as `c5n.18xlarge`.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Virtual CPUs.
    pub vcpus: i32,
    /// Physical cores.
    pub cores: i32,
    /// Whether a launch may ask for one thread per core.
    pub threads_settable: bool,
    /// Memory, MiB.
    pub memory_mib: i64,
    /// Most EFA interfaces it takes; 0 when it has none.
    pub max_efa: i32,
    /// Its network cards, ordered by index.
    pub cards: Vec<Card>,
    /// Whether cluster placement groups take it.
    pub cluster_placement: bool,
}

/// One interface asked for in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Card it sits on.
    pub card: i32,
    /// Device index on that card.
    pub device: i32,
    /// What it is.
    pub kind: NicKind,
}

/// Kind of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
pub enum NicKind {
    /// Plain ENA with an address.
    Interface,
    /// ENA and EFA in one.
    Efa,
    /// EFA without an address.
    EfaOnly,
}
