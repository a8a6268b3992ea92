//! Security group rules: authorize, revoke, describe.

use serde_json::{Value, json};

use super::done;
use super::filters::Filters;
use super::page::{Page, paginate};
use super::rule::{Asked, Peer, Rule, read_permissions};
use super::tags::TagSpecifications;
use crate::call::Call;
use crate::clock::Delay;
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

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
        if existing.iter().chain(&fresh).any(|known| known.same_as(&rule)) {
            return Err(ApiError::client(
                "InvalidPermission.Duplicate",
                format!("the specified rule \"{}\" already exists", describe_rule(&rule)),
            ));
        }
        fresh.push(rule);
    }
    check_count(call, existing.iter().filter(|rule| rule.egress == egress).count() + fresh.len())?;
    call.commit()?;
    let rows: Vec<Value> = fresh.iter().map(|rule| render_rule(call, &group_id, rule)).collect();
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
        Ok((p.required("GroupId")?, p.texts("SecurityGroupRuleId")?, read_permissions(p)?))
    })?;
    let now = call.now;
    let existing = call.region.ec2.group(&group_id, now)?.rules.clone();
    let mut doomed = Vec::new();
    for id in rule_ids {
        let known = existing.iter().any(|rule| rule.id == id && rule.egress == egress);
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
    let protocol =
        if rule.protocol == "-1" { "ALL".to_owned() } else { rule.protocol.to_uppercase() };
    match rule.ports {
        Some((from, to)) => {
            format!("peer: {peer}, {protocol}, from port: {from}, to port: {to}, ALLOW")
        }
        None => format!("peer: {peer}, {protocol}, ALLOW"),
    }
}

/// Rules of one protocol and port range.
struct Shared<'a> {
    protocol: &'a str,
    ports: Option<(i32, i32)>,
    rules: Vec<&'a Rule>,
}

/// `ipPermissions` of an answer: rules of one protocol and range together.
pub fn render_permissions(rules: &[&Rule], owner: &str) -> Value {
    let mut all: Vec<Shared<'_>> = Vec::new();
    for rule in rules {
        let (protocol, ports) = (rule.protocol.as_str(), rule.ports);
        let known = all.iter_mut().find(|one| (one.protocol, one.ports) == (protocol, ports));
        match known {
            Some(one) => one.rules.push(rule),
            None => all.push(Shared { protocol, ports, rules: vec![rule] }),
        }
    }
    Value::Array(all.iter().map(|one| render_permission(one, owner)).collect())
}

fn render_permission(one: &Shared<'_>, owner: &str) -> Value {
    let of = |pick: fn(&Rule, &str) -> Option<Value>| {
        one.rules.iter().filter_map(|rule| pick(rule, owner)).collect::<Vec<_>>()
    };
    json!({
        "ipProtocol": one.protocol,
        "fromPort": one.ports.map(|(from, _)| from),
        "toPort": one.ports.map(|(_, to)| to),
        "groups": of(group_row),
        "ipRanges": of(cidr_row),
        "ipv6Ranges": of(cidr6_row),
        "prefixListIds": [],
    })
}

fn group_row(rule: &Rule, owner: &str) -> Option<Value> {
    let id = rule.peer.group()?;
    Some(json!({"userId": owner, "groupId": id, "description": rule.description}))
}

fn cidr_row(rule: &Rule, _owner: &str) -> Option<Value> {
    Some(json!({"cidrIp": rule.peer.cidr()?, "description": rule.description}))
}

fn cidr6_row(rule: &Rule, _owner: &str) -> Option<Value> {
    Some(json!({"cidrIpv6": rule.peer.cidr6()?, "description": rule.description}))
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
    for group in call.region.ec2.groups.values().filter(|group| group.visible_at <= call.now) {
        for rule in group.rules.iter().filter(|rule| rule.visible_at <= call.now) {
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
        "cidrIpv4": rule.peer.cidr(),
        "cidrIpv6": rule.peer.cidr6(),
        "referencedGroupInfo": rule.peer.group().map(|id| json!({"groupId": id, "userId": owner})),
        "description": rule.description,
        "tagSet": [],
    })
}
