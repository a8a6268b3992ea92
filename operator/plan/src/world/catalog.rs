//! What never changes in a world: what AWS offers, and how long things take.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cloud::{Card, InstanceType};
use crate::cluster::{Image, Subnet};

/// What AWS offers in the region of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// Subnets of the account.
    pub subnets: Vec<Subnet>,
    /// Types by name.
    pub types: BTreeMap<String, InstanceType>,
    /// (type, zone) pairs.
    pub offered: Vec<(String, String)>,
    /// The image of every node.
    pub image: Option<Image>,
    /// Micro-dollars per hour.
    pub prices: BTreeMap<String, i64>,
    /// Live instances of other clusters of the installation.
    pub other_instances: i64,
    /// How long things take.
    pub pace: Pace,
}

/// How long things take, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Length of a tick.
    pub quantum: Duration,
    /// From a create to its being shown.
    pub hidden: u8,
    /// From the launch to running.
    pub pending: u8,
    /// From running to an online agent.
    pub agent: u8,
    /// From running (and, for a head, its volume attached) to the end of the boot.
    pub boot: u8,
    /// From the order to end to being terminated.
    pub ending: u8,
    /// From the creation of a volume or placement group to its being usable.
    pub small: u8,
    /// From the creation of a file system to AVAILABLE or FAILED.
    pub file_system: u8,
    /// From the deletion of anything but an instance to its being gone.
    pub deletion: u8,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quantum: Duration::from_secs(10),
            hidden: 2,
            pending: 1,
            agent: 1,
            boot: 1,
            ending: 1,
            small: 1,
            file_system: 2,
            deletion: 1,
        }
    }
}

impl Catalog {
    /// One VPC with a subnet in each of two zones, a head type, and three types for nodes: two that
    /// are equal in what a scheduler counts, one without EFA.
    pub fn small() -> Self {
        let zones = ["us-east-1a", "us-east-1b"];
        let types = [
            fabric("c5n.18xlarge", 36, 72, 1),
            fabric("c5n.metal", 36, 72, 1),
            fabric("c5n.2xlarge", 4, 8, 0),
            fabric("c5.18xlarge", 36, 72, 0),
        ];
        let offered =
            types.iter().flat_map(|kind| zones.map(|zone| (kind.name.clone(), zone.into())));
        Self {
            subnets: zones.iter().zip(["subnet-a", "subnet-b"]).map(subnet).collect(),
            offered: offered.collect(),
            image: Some(Image {
                id: "ami-1".to_owned(),
                name: "image-1".to_owned(),
                architecture: "x86_64".to_owned(),
            }),
            prices: types.iter().map(|kind| (kind.name.clone(), 1_000_000)).collect(),
            types: types.into_iter().map(|kind| (kind.name.clone(), kind)).collect(),
            other_instances: 0,
            pace: Pace::default(),
        }
    }

    /// Zone of a subnet.
    pub fn zone(&self, subnet: &str) -> Option<&str> {
        self.subnets.iter().find(|found| found.id.0 == subnet).map(|found| found.zone.as_str())
    }
}

fn subnet((zone, id): (&&str, &str)) -> Subnet {
    Subnet { id: id.into(), vpc: "vpc-1".to_owned(), zone: (*zone).to_owned() }
}

fn fabric(name: &str, cores: i32, vcpus: i32, max_efa: i32) -> InstanceType {
    InstanceType {
        name: name.to_owned(),
        architecture: "x86_64".to_owned(),
        vcpus,
        cores,
        threads_settable: !name.ends_with("metal"),
        memory_mib: 196_608,
        max_efa,
        cards: vec![Card { index: 0, max_interfaces: 15, efa: max_efa > 0 }],
        cluster_placement: true,
    }
}

/// The AWS service of an action.
pub(super) fn service(action: &str) -> &'static str {
    match action {
        "CreateFileSystem" | "DeleteFileSystem" | "DescribeFileSystems" | "TagResource" => "fsx",
        "CreateDocument" | "DeleteParameter" | "GetParameter" => "ssm",
        "GetCallerIdentity" => "sts",
        _ => "ec2",
    }
}
