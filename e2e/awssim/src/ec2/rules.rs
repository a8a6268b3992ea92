//! Security group rules: authorize, revoke, describe.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::done;
use super::filters::Filters;
use super::page::{Page, paginate};
use super::tags::TagSpecifications;
use crate::call::Call;
use crate::clock::Delay;
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

/// The other side of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// An IPv4 range.
    Cidr(String),
    /// An IPv6 range.
    Cidr6(String),
    /// Another (or the same) group.
    Group(String),
}

impl Peer {
    /// The group, if it is one.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Group(id) => Some(id),
            Self::Cidr(_) | Self::Cidr6(_) => None,
        }
    }
}

/// One rule: one protocol, one port range, one peer.
#[derive(Debug, Clone)]
pub struct Rule {
    /// `sgr-…`.
    pub id: String,
    /// Out of the group's interfaces, or into them.
    pub egress: bool,
    /// `-1`, `tcp`, `udp`, `icmp` or a number.
    pub protocol: String,
    /// First and last port; `None` is all.
    pub ports: Option<(i32, i32)>,
    /// Who.
    pub peer: Peer,
    /// For people.
    pub description: Option<String>,
    /// From when it shows and counts.
    pub visible_at: Timestamp,
}

impl Rule {
    /// The rule every new group has.
    pub fn all_egress(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            egress: true,
            protocol: "-1".to_owned(),
            ports: None,
            peer: Peer::Cidr("0.0.0.0/0".to_owned()),
            description: None,
            visible_at: Timestamp::MIN,
        }
    }

    fn same_as(&self, other: &Self) -> bool {
        (self.egress, &self.protocol, self.ports, &self.peer)
            == (other.egress, &other.protocol, other.ports, &other.peer)
    }
}

/// A rule as asked for.
#[derive(Debug, Clone)]
struct Asked {
    protocol: String,
    ports: Option<(i32, i32)>,
    peers: Vec<(Peer, Option<String>)>,
}

/// `AuthorizeSecurityGroupIngress`.
pub fn authorize_ingress(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    authorize(call, params, false)
}

/// `AuthorizeSecurityGroupEgress`.
pub fn authorize_egress(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    authorize(call, params, true)
}

/// `RevokeSecurityGroupIngress`.
pub fn revoke_ingress(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    revoke(call, params, false)
}

/// `RevokeSecurityGroupEgress`.
pub fn revoke_egress(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    revoke(call, params, true)
}

fn authorize(call: &mut Call<'_>, params: Params, egress: bool) -> Result<Value, ApiError> {
    let (group_id, asked) = params.read(|p| {
        TagSpecifications::read(p, &[])?;
        Ok((p.required("GroupId")?, read_permissions(p)?))
    })?;
    let now = call.now;
    let existing = call.region.ec2.group(&group_id, now)?.rules.clone();
    let mut fresh = Vec::new();
    for rule in expand(call, &asked, egress)? {
        if existing
            .iter()
            .chain(&fresh)
            .any(|known| known.same_as(&rule))
        {
            return Err(ApiError::client(
                "InvalidPermission.Duplicate",
                format!(
                    "the specified rule \"{}\" already exists",
                    describe_rule(&rule)
                ),
            ));
        }
        fresh.push(rule);
    }
    check_count(
        call,
        existing.iter().filter(|rule| rule.egress == egress).count() + fresh.len(),
    )?;
    call.commit()?;
    let rows: Vec<Value> = fresh
        .iter()
        .map(|rule| render_rule(call, &group_id, rule))
        .collect();
    if let Some(group) = call.region.ec2.groups.get_mut(&group_id) {
        group.rules.extend(fresh);
    }
    Ok(json!({"return": true, "securityGroupRuleSet": rows}))
}

fn check_count(call: &Call<'_>, count: usize) -> Result<(), ApiError> {
    if count as u64 > call.account.quotas.limit("rules-per-security-group") {
        return Err(ApiError::client(
            "RulesPerSecurityGroupLimitExceeded",
            "The maximum number of rules per security group has been reached.",
        ));
    }
    Ok(())
}

fn revoke(call: &mut Call<'_>, params: Params, egress: bool) -> Result<Value, ApiError> {
    let (group_id, rule_ids, asked) = params.read(|p| {
        Ok((
            p.required("GroupId")?,
            p.texts("SecurityGroupRuleId")?,
            read_permissions(p)?,
        ))
    })?;
    let now = call.now;
    let existing = call.region.ec2.group(&group_id, now)?.rules.clone();
    let mut doomed = Vec::new();
    for id in rule_ids {
        let known = existing
            .iter()
            .any(|rule| rule.id == id && rule.egress == egress);
        doomed.push(known.then_some(id.clone()).ok_or_else(|| {
            ApiError::client(
                "InvalidSecurityGroupRuleId.NotFound",
                format!("The security group rule ID '{id}' does not exist"),
            )
        })?);
    }
    for wanted in expand(call, &asked, egress)? {
        let found = existing.iter().find(|rule| rule.same_as(&wanted));
        doomed.push(found.map(|rule| rule.id.clone()).ok_or_else(|| {
            ApiError::client(
                "InvalidPermission.NotFound",
                "The specified rule does not exist in this security group.",
            )
        })?);
    }
    call.commit()?;
    if let Some(group) = call.region.ec2.groups.get_mut(&group_id) {
        group.rules.retain(|rule| !doomed.contains(&rule.id));
    }
    Ok(done())
}

fn read_permissions(params: &mut Params) -> Result<Vec<Asked>, ApiError> {
    params.list("IpPermissions", |p| {
        let protocol = normal_protocol(&p.required("IpProtocol")?);
        let ports = (p.number("FromPort")?, p.number("ToPort")?);
        let mut peers = p.list("IpRanges", |r| {
            let cidr = r.required("CidrIp")?;
            check_cidr(&cidr)?;
            Ok((Peer::Cidr(cidr), r.text("Description")?))
        })?;
        peers.extend(p.list("Ipv6Ranges", |r| {
            Ok((Peer::Cidr6(r.required("CidrIpv6")?), r.text("Description")?))
        })?);
        peers.extend(p.list("Groups", |g| {
            g.text("UserId")?;
            g.text("VpcId")?;
            Ok((Peer::Group(g.required("GroupId")?), g.text("Description")?))
        })?);
        let ports = check_ports(&protocol, ports)?;
        Ok(Asked {
            protocol,
            ports,
            peers,
        })
    })
}

fn normal_protocol(protocol: &str) -> String {
    match protocol {
        "all" => "-1",
        "6" => "tcp",
        "17" => "udp",
        "1" => "icmp",
        other => other,
    }
    .to_owned()
}

fn check_ports(
    protocol: &str,
    ports: (Option<i32>, Option<i32>),
) -> Result<Option<(i32, i32)>, ApiError> {
    let (from, to) = match (protocol, ports) {
        ("tcp" | "udp", (Some(from), Some(to))) => (from, to),
        ("tcp" | "udp", _) => {
            return Err(ApiError::client(
                "InvalidParameterValue",
                "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
            ));
        }
        (_, _) => return Ok(None),
    };
    if !(0..=65_535).contains(&from) || !(0..=65_535).contains(&to) || from > to {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("Invalid TCP/UDP port range ({from}:{to})"),
        ));
    }
    Ok(Some((from, to)))
}

fn check_cidr(cidr: &str) -> Result<(), ApiError> {
    parse_cidr(cidr).map(|_| ()).ok_or_else(|| {
        ApiError::client(
            "InvalidParameterValue",
            format!("CIDR block {cidr} is malformed"),
        )
    })
}

/// Network and mask of an IPv4 range.
pub fn parse_cidr(cidr: &str) -> Option<(u32, u32)> {
    let (address, bits) = cidr.split_once('/')?;
    let (address, bits): (Ipv4Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
    Some((u32::from(address) & mask, mask))
}

/// The single rules that a request stands for.
fn expand(call: &mut Call<'_>, asked: &[Asked], egress: bool) -> Result<Vec<Rule>, ApiError> {
    let mut rules = Vec::new();
    for permission in asked {
        for (peer, description) in &permission.peers {
            if let Some(group) = peer.group() {
                call.region.ec2.group(group, call.now)?;
            }
            let id = call.new_id("sgr");
            rules.push(Rule {
                visible_at: call.after(Delay::RuleVisible, &id),
                id,
                egress,
                protocol: permission.protocol.clone(),
                ports: permission.ports,
                peer: peer.clone(),
                description: description.clone(),
            });
        }
    }
    Ok(rules)
}

fn describe_rule(rule: &Rule) -> String {
    let peer = match &rule.peer {
        Peer::Cidr(value) | Peer::Cidr6(value) | Peer::Group(value) => value,
    };
    let protocol = if rule.protocol == "-1" {
        "ALL".to_owned()
    } else {
        rule.protocol.to_uppercase()
    };
    match rule.ports {
        Some((from, to)) => {
            format!("peer: {peer}, {protocol}, from port: {from}, to port: {to}, ALLOW")
        }
        None => format!("peer: {peer}, {protocol}, ALLOW"),
    }
}

/// `ipPermissions` of an answer: rules of one protocol and range together.
pub fn render_permissions(rules: &[&Rule], owner: &str) -> Value {
    let mut groups: Vec<((&str, Option<(i32, i32)>), Vec<&Rule>)> = Vec::new();
    for rule in rules {
        let key = (rule.protocol.as_str(), rule.ports);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(rule),
            None => groups.push((key, vec![rule])),
        }
    }
    let render = |((protocol, ports), members): ((&str, Option<(i32, i32)>), Vec<&Rule>)| {
        let of = |pick: fn(&Rule, &str) -> Option<Value>| {
            members
                .iter()
                .filter_map(|rule| pick(rule, owner))
                .collect::<Vec<_>>()
        };
        json!({
            "ipProtocol": protocol,
            "fromPort": ports.map(|(from, _)| from),
            "toPort": ports.map(|(_, to)| to),
            "groups": of(group_row),
            "ipRanges": of(cidr_row),
            "ipv6Ranges": of(cidr6_row),
            "prefixListIds": [],
        })
    };
    Value::Array(groups.into_iter().map(render).collect())
}

fn group_row(rule: &Rule, owner: &str) -> Option<Value> {
    let id = rule.peer.group()?;
    Some(json!({"userId": owner, "groupId": id, "description": rule.description}))
}

fn cidr_row(rule: &Rule, _owner: &str) -> Option<Value> {
    match &rule.peer {
        Peer::Cidr(cidr) => Some(json!({"cidrIp": cidr, "description": rule.description})),
        Peer::Cidr6(_) | Peer::Group(_) => None,
    }
}

fn cidr6_row(rule: &Rule, _owner: &str) -> Option<Value> {
    match &rule.peer {
        Peer::Cidr6(cidr) => Some(json!({"cidrIpv6": cidr, "description": rule.description})),
        Peer::Cidr(_) | Peer::Group(_) => None,
    }
}

/// `DescribeSecurityGroupRules`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, filters, page) = params.read(|p| {
        Ok((
            p.texts("SecurityGroupRuleId")?,
            Filters::read(p, &["group-id", "security-group-rule-id"])?,
            Page::read(p, (5, 1000))?,
        ))
    })?;
    let mut rows = Vec::new();
    for group in call
        .region
        .ec2
        .groups
        .values()
        .filter(|group| group.visible_at <= call.now)
    {
        for rule in group
            .rules
            .iter()
            .filter(|rule| rule.visible_at <= call.now)
        {
            let value = |name: &str| match name {
                "group-id" => vec![group.id.clone()],
                _ => vec![rule.id.clone()],
            };
            let asked = ids.is_empty() || ids.contains(&rule.id);
            if asked && filters.pass(&Tags::new(), value) {
                rows.push((rule.id.clone(), render_rule(call, &group.id, rule)));
            }
        }
    }
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"securityGroupRuleSet": rows, "nextToken": next}))
}

fn render_rule(call: &Call<'_>, group_id: &str, rule: &Rule) -> Value {
    let owner = &call.account.id;
    let (from, to) = rule.ports.unwrap_or((-1, -1));
    json!({
        "securityGroupRuleId": rule.id,
        "groupId": group_id,
        "groupOwnerId": owner,
        "isEgress": rule.egress,
        "ipProtocol": rule.protocol,
        "fromPort": from,
        "toPort": to,
        "cidrIpv4": match &rule.peer { Peer::Cidr(cidr) => Some(cidr), Peer::Cidr6(_) | Peer::Group(_) => None },
        "cidrIpv6": match &rule.peer { Peer::Cidr6(cidr) => Some(cidr), Peer::Cidr(_) | Peer::Group(_) => None },
        "referencedGroupInfo": rule.peer.group().map(|id| json!({"groupId": id, "userId": owner})),
        "description": rule.description,
        "tagSet": [],
    })
}
