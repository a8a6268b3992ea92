//! EC2: the state of a region and the table of actions.

mod attach;
mod body;
mod filters;
mod groups;
mod images;
mod instance;
mod instance_render;
mod instances;
mod interface;
mod interfaces;
mod launch;
mod launch_check;
mod launch_options;
mod launch_request;
mod lifecycle;
mod network;
mod nic_check;
mod page;
mod placement;
mod reach;
mod reserve;
mod rule;
mod rules;
mod status;
mod tags;
mod tokens;
mod types;
mod volume;
mod volumes;

use std::collections::BTreeMap;

use serde_json::Value;

pub use groups::SecurityGroup;
pub use instance::{Agent, Fate, Health, Instance, InstanceState};
pub use interface::{
    Interface, InterfaceType, NewInterface, create as create_interface, remove as remove_interface,
};
pub use lifecycle::{fail, handle_event, terminate_by_id};
pub use network::Network;
pub use page::{Page, paginate};
pub use placement::PlacementGroup;
pub use reach::{Reach, Traffic};
pub use tags::check_tags;
pub use volume::{Volume, backing_file};

use crate::call::Call;
use crate::wire::{ApiError, Params};
use tokens::Tokens;

/// EC2 of one account in one region.
#[derive(Debug)]
pub struct Ec2 {
    /// Instances, terminated ones until they are forgotten.
    pub instances: BTreeMap<String, Instance>,
    /// Security groups by id.
    pub groups: BTreeMap<String, SecurityGroup>,
    /// Placement groups by name.
    pub placement_groups: BTreeMap<String, PlacementGroup>,
    /// Network interfaces by id.
    pub interfaces: BTreeMap<String, Interface>,
    /// Volumes by id.
    pub volumes: BTreeMap<String, Volume>,
    /// VPC, subnets, addresses.
    pub network: Network,
    /// Planned failures of coming launches.
    pub fates: Vec<PlannedFate>,
    tokens: Tokens,
}

/// A failure that the next launches of a type will meet.
#[derive(Debug, Clone)]
pub struct PlannedFate {
    /// Instance type; `None` is any.
    pub instance_type: Option<String>,
    /// How many more instances.
    pub count: u32,
    /// What they meet.
    pub fate: Fate,
}

impl Ec2 {
    /// The untouched region of a new account.
    pub fn new(region: &str) -> Self {
        let network = Network::new(region);
        let default = SecurityGroup::default_of(&network);
        Self {
            instances: BTreeMap::new(),
            groups: BTreeMap::from([(default.id.clone(), default)]),
            placement_groups: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            volumes: BTreeMap::new(),
            network,
            fates: Vec::new(),
            tokens: Tokens::default(),
        }
    }
}

type Action = fn(&mut Call<'_>, Params) -> Result<Value, ApiError>;

const ACTIONS: [(&str, Action); 31] = [
    ("AttachVolume", attach::attach),
    ("AuthorizeSecurityGroupEgress", rules::authorize_egress),
    ("AuthorizeSecurityGroupIngress", rules::authorize_ingress),
    ("CreateNetworkInterface", interfaces::create_action),
    ("CreatePlacementGroup", placement::create),
    ("CreateSecurityGroup", groups::create),
    ("CreateTags", tags::create),
    ("CreateVolume", volumes::create),
    ("DeleteNetworkInterface", interfaces::delete_action),
    ("DeletePlacementGroup", placement::delete),
    ("DeleteSecurityGroup", groups::delete),
    ("DeleteTags", tags::delete),
    ("DeleteVolume", volumes::delete),
    ("DescribeAvailabilityZones", network::describe_zones),
    ("DescribeImages", images::describe),
    ("DescribeInstanceStatus", status::describe),
    ("DescribeInstanceTypeOfferings", types::describe_offerings),
    ("DescribeInstanceTypes", types::describe),
    ("DescribeInstances", instances::describe),
    ("DescribeNetworkInterfaces", interfaces::describe),
    ("DescribePlacementGroups", placement::describe),
    ("DescribeSecurityGroupRules", rules::describe),
    ("DescribeSecurityGroups", groups::describe),
    ("DescribeSubnets", network::describe_subnets),
    ("DescribeVolumes", volumes::describe),
    ("DescribeVpcs", network::describe_vpcs),
    ("DetachVolume", attach::detach),
    ("RevokeSecurityGroupEgress", rules::revoke_egress),
    ("RevokeSecurityGroupIngress", rules::revoke_ingress),
    ("RunInstances", launch::run),
    ("TerminateInstances", instances::terminate),
];

/// Names of the actions.
pub fn actions() -> Vec<&'static str> {
    ACTIONS.iter().map(|(name, _)| *name).collect()
}

/// Performs an EC2 action.
pub fn perform(call: &mut Call<'_>, action: &str, mut params: Params) -> Result<Value, ApiError> {
    let unknown = || {
        ApiError::client(
            "InvalidAction",
            format!("The action {action} is not valid for this web service."),
        )
    };
    let run = ACTIONS.iter().find(|(name, _)| *name == action).ok_or_else(unknown)?.1;
    call.dry_run = params.flag("DryRun")?.unwrap_or(false);
    if action.starts_with("Describe") {
        call.commit()?;
    }
    run(call, params)
}

/// The plain answer of actions that have nothing to tell.
fn done() -> Value {
    serde_json::json!({"return": true})
}
