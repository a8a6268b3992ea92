//! Security groups: create, describe, delete with its dependencies.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::filters::Filters;
use super::network::Network;
use super::page::{Page, paginate};
use super::rule::{Peer, Rule};
use super::rules::render_permissions;
use super::tags::{TagSpecifications, render_tags};
use super::{Ec2, done};
use crate::call::{Call, Newborn};
use crate::clock::Delay;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

/// One security group.
#[derive(Debug, Clone)]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,
    /// Unique in the VPC.
    pub name: String,
    /// Required by EC2.
    pub description: String,
    /// From when Describe shows it.
    pub visible_at: Timestamp,
    /// From when other calls may name it.
    pub usable_at: Timestamp,
    /// Rules of both directions.
    pub rules: Vec<Rule>,
}

impl SecurityGroup {
    /// The group named `default` that every VPC has.
    pub fn default_of(network: &Network) -> Self {
        let id = network.vpc_id.replace("vpc-", "sg-");
        let within = Rule {
            id: "sgr-0a1b2c3d4e5f60701".to_owned(),
            egress: false,
            protocol: "-1".to_owned(),
            ports: None,
            peer: Peer::Group(id.clone()),
            description: None,
            visible_at: Timestamp::MIN,
        };
        Self {
            rules: vec![within, Rule::all_egress("sgr-0a1b2c3d4e5f60702")],
            id,
            name: "default".to_owned(),
            description: "default VPC security group".to_owned(),
            visible_at: Timestamp::MIN,
            usable_at: Timestamp::MIN,
        }
    }
}

impl Ec2 {
    /// The group, once other calls may name it.
    pub fn group(&self, id: &str, now: Timestamp) -> Result<&SecurityGroup, ApiError> {
        self.groups.get(id).filter(|group| group.usable_at <= now).ok_or_else(|| group_unknown(id))
    }

    /// The default group's id.
    pub fn default_group(&self) -> String {
        let found = self.groups.values().find(|group| group.name == "default");
        found.map(|group| group.id.clone()).unwrap_or_default()
    }

    /// `groupSet` of an answer.
    pub fn render_group_set(&self, ids: &[String]) -> Value {
        let row = |id: &String| json!({"groupId": id, "groupName": self.groups.get(id).map(|group| &group.name)});
        Value::Array(ids.iter().map(row).collect())
    }
}

/// What EC2 says about a group it does not know.
pub fn group_unknown(id: &str) -> ApiError {
    if !id.starts_with("sg-") {
        return ApiError::client("InvalidGroupId.Malformed", format!("Invalid id: \"{id}\""));
    }
    ApiError::client("InvalidGroup.NotFound", format!("The security group '{id}' does not exist"))
}

/// `CreateSecurityGroup`.
pub fn create(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (name, description, vpc, tags) = params.read(|p| {
        Ok((
            p.required("GroupName")?,
            p.required("GroupDescription")?,
            p.text("VpcId")?,
            TagSpecifications::read(p, &[Kind::SecurityGroup])?,
        ))
    })?;
    check_new(call, &name, &description, vpc.as_deref())?;
    call.commit()?;
    let id = call.new_id("sg");
    let egress = call.new_id("sgr");
    let group = SecurityGroup {
        id: id.clone(),
        name: name.clone(),
        description,
        visible_at: call.after(Delay::Visible, &id),
        usable_at: call.after(Delay::Usable, &id),
        rules: vec![Rule::all_egress(&egress)],
    };
    call.region.ec2.groups.insert(id.clone(), group);
    let tags = tags.of(Kind::SecurityGroup);
    let tag_set = render_tags(&tags);
    let detail = json!({"name": name});
    call.born(Newborn { kind: Kind::SecurityGroup, id: &id, tags, token: None, detail });
    let arn = call.arn("ec2", &format!("security-group/{id}"));
    Ok(json!({"return": true, "groupId": id, "tagSet": tag_set, "securityGroupArn": arn}))
}

fn check_new(
    call: &Call<'_>,
    name: &str,
    description: &str,
    vpc: Option<&str>,
) -> Result<(), ApiError> {
    let network = &call.region.ec2.network;
    let legal = |text: &str| {
        text.len() <= 255
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || " ._-:/()#,@[]+=&;{}!$*".contains(c))
    };
    if !legal(name) || name.starts_with("sg-") {
        return Err(ApiError::invalid_value("GroupName", name, "Invalid security group name."));
    }
    if !legal(description) {
        return Err(ApiError::invalid_value(
            "GroupDescription",
            description,
            "Character sets beyond ASCII are not supported.",
        ));
    }
    if let Some(vpc) = vpc.filter(|vpc| *vpc != network.vpc_id) {
        return Err(ApiError::client(
            "InvalidVpcID.NotFound",
            format!("The vpc ID '{vpc}' does not exist"),
        ));
    }
    if call.region.ec2.groups.values().any(|group| group.name == name) {
        return Err(ApiError::client(
            "InvalidGroup.Duplicate",
            format!("The security group '{name}' already exists for VPC '{}'", network.vpc_id),
        ));
    }
    let limit = call.account.quotas.limit("security-groups");
    if call.region.ec2.groups.len() as u64 >= limit {
        return Err(ApiError::client(
            "SecurityGroupLimitExceeded",
            "The maximum number of security groups has been reached.",
        ));
    }
    Ok(())
}

/// `DeleteSecurityGroup`.
pub fn delete(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (id, name) = params.read(|p| Ok((p.text("GroupId")?, p.text("GroupName")?)))?;
    let id = match (id, name) {
        (Some(id), _) => id,
        (None, Some(name)) => find_by_name(call, &name)?,
        (None, None) => return Err(ApiError::missing("GroupId")),
    };
    let now = call.now;
    let group = call.region.ec2.group(&id, now)?;
    if group.name == "default" {
        return Err(ApiError::client(
            "CannotDelete",
            format!("the specified group: \"{id}\" name: \"default\" cannot be deleted by a user"),
        ));
    }
    if is_needed(&call.region.ec2, &id) {
        return Err(ApiError::client(
            "DependencyViolation",
            format!("resource {id} has a dependent object"),
        ));
    }
    call.commit()?;
    call.region.ec2.groups.remove(&id);
    call.gone(Kind::SecurityGroup, &id);
    let mut answer = done();
    if let Some(members) = answer.as_object_mut() {
        members.insert("groupId".to_owned(), json!(id));
    }
    Ok(answer)
}

fn find_by_name(call: &Call<'_>, name: &str) -> Result<String, ApiError> {
    let found = call.region.ec2.groups.values().find(|group| group.name == name);
    found.map(|group| group.id.clone()).ok_or_else(|| {
        ApiError::client(
            "InvalidGroup.NotFound",
            format!("The security group '{name}' does not exist in default VPC"),
        )
    })
}

/// Network interfaces (those of FSx included) and rules of other groups pin a
/// group.
fn is_needed(ec2: &Ec2, id: &str) -> bool {
    let in_use = ec2.interfaces.values().any(|nic| nic.groups.iter().any(|group| group == id));
    let named = ec2
        .groups
        .values()
        .filter(|group| group.id != id)
        .flat_map(|group| &group.rules)
        .any(|rule| matches!(&rule.peer, Peer::Group(peer) if peer == id));
    in_use || named
}

const FILTERS: [&str; 7] = [
    "description",
    "egress.ip-permission.group-id",
    "group-id",
    "group-name",
    "ip-permission.group-id",
    "owner-id",
    "vpc-id",
];

/// `DescribeSecurityGroups`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, names, filters, page) = params.read(|p| {
        Ok((
            p.texts("GroupId")?,
            p.texts("GroupName")?,
            Filters::read(p, &FILTERS)?,
            Page::read(p, (5, 1000))?,
        ))
    })?;
    let visible =
        |id: &str| call.region.ec2.groups.get(id).is_some_and(|group| group.visible_at <= call.now);
    if let Some(id) = ids.iter().find(|id| !visible(id)) {
        return Err(group_unknown(id));
    }
    let rows = call
        .region
        .ec2
        .groups
        .values()
        .filter(|group| group.visible_at <= call.now)
        .filter(|group| ids.is_empty() || ids.contains(&group.id))
        .filter(|group| names.is_empty() || names.contains(&group.name))
        .filter(|group| {
            let tags = call.tags(Kind::SecurityGroup, &group.id);
            filters.pass(tags, |name| value(call, group, name))
        })
        .map(|group| (group.id.clone(), render(call, group)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"securityGroupInfo": rows, "nextToken": next}))
}

fn value(call: &Call<'_>, group: &SecurityGroup, name: &str) -> Vec<String> {
    let peers = |egress: bool| {
        let rules = group.rules.iter().filter(|rule| rule.egress == egress);
        rules.filter_map(|rule| rule.peer.group().map(str::to_owned)).collect()
    };
    match name {
        "description" => vec![group.description.clone()],
        "egress.ip-permission.group-id" => peers(true),
        "group-id" => vec![group.id.clone()],
        "group-name" => vec![group.name.clone()],
        "ip-permission.group-id" => peers(false),
        "owner-id" => vec![call.account.id.clone()],
        _ => vec![call.region.ec2.network.vpc_id.clone()],
    }
}

fn render(call: &Call<'_>, group: &SecurityGroup) -> Value {
    let rules: Vec<&Rule> = group.rules.iter().filter(|rule| rule.visible_at <= call.now).collect();
    let side = |egress: bool| {
        let side: Vec<&Rule> = rules.iter().copied().filter(|rule| rule.egress == egress).collect();
        render_permissions(&side, &call.account.id)
    };
    json!({
        "ownerId": call.account.id,
        "groupId": group.id,
        "groupName": group.name,
        "groupDescription": group.description,
        "vpcId": call.region.ec2.network.vpc_id,
        "ipPermissions": side(false),
        "ipPermissionsEgress": side(true),
        "tagSet": render_tags(call.tags(Kind::SecurityGroup, &group.id)),
        "securityGroupArn": call.arn("ec2", &format!("security-group/{}", group.id)),
    })
}
