//! The API actions we use, each with the token bucket AWS documents for it, so that the operator
//! never asks faster than the account's bucket refills.

/// One API action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Action {
    /// `ec2`, `fsx`, `ssm`, `sts`.
    pub service: &'static str,
    /// Such as `RunInstances`.
    pub name: &'static str,
    /// Whether a repeat is harmless without a token.
    pub reads: bool,
    /// Requests.
    pub requests: Rate,
    /// Instances asked for or given back, where AWS counts those as well.
    pub resources: Option<Rate>,
}

/// Size and refill of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Most tokens it holds.
    pub size: f64,
    /// Tokens per second.
    pub refill: f64,
}

const fn rate(size: f64, refill: f64) -> Rate {
    Rate { size, refill }
}

const fn read(service: &'static str, name: &'static str, requests: Rate) -> Action {
    Action { service, name, reads: true, requests, resources: None }
}

const fn act(service: &'static str, name: &'static str, requests: Rate) -> Action {
    Action { service, name, reads: false, requests, resources: None }
}

// EC2: documented buckets, per account, region and action.
const EC2_READ: Rate = rate(100.0, 20.0);
const EC2_ACT: Rate = rate(50.0, 5.0);
const EC2_CHEAP: Rate = rate(100.0, 5.0);
// FSx and SSM publish no figures: these stay far below what users saw throttled.
const QUIET_READ: Rate = rate(20.0, 5.0);
const QUIET_ACT: Rate = rate(10.0, 2.0);

pub(crate) const DESCRIBE_IMAGES: Action = read("ec2", "DescribeImages", EC2_READ);
pub(crate) const DESCRIBE_INSTANCES: Action = read("ec2", "DescribeInstances", EC2_READ);
pub(crate) const DESCRIBE_INSTANCE_STATUS: Action = read("ec2", "DescribeInstanceStatus", EC2_READ);
pub(crate) const DESCRIBE_INSTANCE_TYPES: Action = read("ec2", "DescribeInstanceTypes", EC2_READ);
pub(crate) const DESCRIBE_NETWORK_INTERFACES: Action =
    read("ec2", "DescribeNetworkInterfaces", EC2_READ);
pub(crate) const DESCRIBE_OFFERINGS: Action =
    read("ec2", "DescribeInstanceTypeOfferings", EC2_READ);
pub(crate) const DESCRIBE_PLACEMENT_GROUPS: Action =
    read("ec2", "DescribePlacementGroups", EC2_READ);
pub(crate) const DESCRIBE_SECURITY_GROUPS: Action = read("ec2", "DescribeSecurityGroups", EC2_READ);
pub(crate) const DESCRIBE_SUBNETS: Action = read("ec2", "DescribeSubnets", EC2_READ);
pub(crate) const DESCRIBE_VOLUMES: Action = read("ec2", "DescribeVolumes", EC2_READ);

pub(crate) const ATTACH_VOLUME: Action = act("ec2", "AttachVolume", EC2_CHEAP);
pub(crate) const AUTHORIZE_EGRESS: Action = act("ec2", "AuthorizeSecurityGroupEgress", EC2_ACT);
pub(crate) const AUTHORIZE_INGRESS: Action = act("ec2", "AuthorizeSecurityGroupIngress", EC2_ACT);
pub(crate) const CREATE_NETWORK_INTERFACE: Action = act("ec2", "CreateNetworkInterface", EC2_CHEAP);
pub(crate) const CREATE_PLACEMENT_GROUP: Action = act("ec2", "CreatePlacementGroup", EC2_ACT);
pub(crate) const CREATE_SECURITY_GROUP: Action = act("ec2", "CreateSecurityGroup", EC2_ACT);
pub(crate) const CREATE_TAGS: Action = act("ec2", "CreateTags", rate(100.0, 10.0));
pub(crate) const CREATE_VOLUME: Action = act("ec2", "CreateVolume", EC2_CHEAP);
pub(crate) const DELETE_NETWORK_INTERFACE: Action = act("ec2", "DeleteNetworkInterface", EC2_CHEAP);
pub(crate) const DELETE_PLACEMENT_GROUP: Action = act("ec2", "DeletePlacementGroup", EC2_ACT);
pub(crate) const DELETE_SECURITY_GROUP: Action = act("ec2", "DeleteSecurityGroup", EC2_ACT);
pub(crate) const DELETE_VOLUME: Action = act("ec2", "DeleteVolume", EC2_ACT);
pub(crate) const REVOKE_EGRESS: Action = act("ec2", "RevokeSecurityGroupEgress", EC2_ACT);
pub(crate) const REVOKE_INGRESS: Action = act("ec2", "RevokeSecurityGroupIngress", EC2_ACT);
pub(crate) const RUN_INSTANCES: Action =
    Action { resources: Some(rate(1000.0, 2.0)), ..act("ec2", "RunInstances", rate(5.0, 2.0)) };
pub(crate) const TERMINATE_INSTANCES: Action =
    Action { resources: Some(rate(1000.0, 20.0)), ..act("ec2", "TerminateInstances", EC2_CHEAP) };

pub(crate) const DESCRIBE_FILE_SYSTEMS: Action = read("fsx", "DescribeFileSystems", QUIET_READ);
pub(crate) const CREATE_FILE_SYSTEM: Action = act("fsx", "CreateFileSystem", QUIET_ACT);
pub(crate) const DELETE_FILE_SYSTEM: Action = act("fsx", "DeleteFileSystem", QUIET_ACT);
pub(crate) const TAG_FILE_SYSTEM: Action = act("fsx", "TagResource", QUIET_ACT);

pub(crate) const DESCRIBE_DOCUMENT: Action = read("ssm", "DescribeDocument", QUIET_READ);
pub(crate) const DESCRIBE_AGENTS: Action = read("ssm", "DescribeInstanceInformation", QUIET_READ);
pub(crate) const GET_INVOCATION: Action = read("ssm", "GetCommandInvocation", rate(40.0, 10.0));
pub(crate) const GET_PARAMETERS: Action = read("ssm", "GetParametersByPath", rate(40.0, 10.0));
pub(crate) const CREATE_DOCUMENT: Action = act("ssm", "CreateDocument", QUIET_ACT);
pub(crate) const DELETE_PARAMETER: Action = act("ssm", "DeleteParameter", QUIET_ACT);
pub(crate) const PUT_PARAMETER: Action = act("ssm", "PutParameter", rate(10.0, 3.0));
pub(crate) const SEND_COMMAND: Action = act("ssm", "SendCommand", rate(10.0, 3.0));
pub(crate) const TAG_PARAMETER: Action = act("ssm", "AddTagsToResource", QUIET_ACT);

pub(crate) const GET_CALLER: Action = read("sts", "GetCallerIdentity", QUIET_READ);
