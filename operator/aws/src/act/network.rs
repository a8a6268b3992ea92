//! Security groups, their rules, and placement groups: AWS has no token for these, so the derived
//! name is the key and a taken name counts only when the tags are ours.

use aws_sdk_ec2::types::{IpPermission, PlacementStrategy, ResourceType};
use hpc_plan::cloud::{Direction, Failure, GroupId, Kind, Rule, Tags};

use super::Made;
use crate::Scope;
use crate::action::{
    AUTHORIZE_EGRESS, AUTHORIZE_INGRESS, CREATE_PLACEMENT_GROUP, CREATE_SECURITY_GROUP,
    DESCRIBE_PLACEMENT_GROUPS, DESCRIBE_SECURITY_GROUPS, REVOKE_EGRESS, REVOKE_INGRESS,
};
use crate::guard::ours;
use crate::region::Region;
use crate::words;

pub(super) struct NewGroup<'s> {
    pub name: &'s str,
    pub vpc: &'s str,
    pub description: &'s str,
    pub tags: &'s Tags,
}

pub(super) async fn create_group(region: &Region, scope: &Scope, new: NewGroup<'_>) -> Made {
    let request = region
        .ec2
        .create_security_group()
        .group_name(new.name)
        .vpc_id(new.vpc)
        .description(new.description)
        .tag_specifications(words::tagged(ResourceType::SecurityGroup, new.tags));
    match region.call(&CREATE_SECURITY_GROUP, || request.clone().send()).await {
        Ok(answer) => Ok(answer.group_id.into_iter().collect()),
        Err(taken) if taken.kind == Kind::Exists => own_group(region, scope, &new, taken).await,
        Err(failure) => Err(failure),
    }
}

async fn own_group(region: &Region, scope: &Scope, new: &NewGroup<'_>, taken: Failure) -> Made {
    let request = region
        .ec2
        .describe_security_groups()
        .filters(words::filter("group-name", [new.name]))
        .filters(words::filter("vpc-id", [new.vpc]));
    let answer = region.call(&DESCRIBE_SECURITY_GROUPS, || request.clone().send()).await?;
    let found = answer.security_groups().first().map(words::group);
    let own = found.filter(|group| {
        ours(&CREATE_SECURITY_GROUP, scope, group.id.as_str(), &group.tags).is_ok()
    });
    own.map(|group| vec![group.id.0]).ok_or(taken)
}

pub(super) async fn create_placement_group(
    region: &Region,
    scope: &Scope,
    name: &str,
    tags: &Tags,
) -> Made {
    let request = region
        .ec2
        .create_placement_group()
        .group_name(name)
        .strategy(PlacementStrategy::Cluster)
        .tag_specifications(words::tagged(ResourceType::PlacementGroup, tags));
    match region.call(&CREATE_PLACEMENT_GROUP, || request.clone().send()).await {
        Ok(_) => Ok(vec![name.to_owned()]),
        Err(taken) if taken.kind == Kind::Exists => {
            own_placement_group(region, scope, name, taken).await
        }
        Err(failure) => Err(failure),
    }
}

async fn own_placement_group(region: &Region, scope: &Scope, name: &str, taken: Failure) -> Made {
    let request =
        region.ec2.describe_placement_groups().filters(words::filter("group-name", [name]));
    let answer = region.call(&DESCRIBE_PLACEMENT_GROUPS, || request.clone().send()).await?;
    let own = answer.placement_groups().iter().any(|group| {
        group.strategy() == Some(&PlacementStrategy::Cluster)
            && ours(&CREATE_PLACEMENT_GROUP, scope, name, &words::tags(group.tags())).is_ok()
    });
    if own { Ok(vec![name.to_owned()]) } else { Err(taken) }
}

/// AWS refuses all rules of a call when one of them exists, so then they go one by one.
pub(super) async fn authorize(region: &Region, group: &GroupId, rules: &[Rule]) -> Made {
    match add(region, group, rules).await {
        Err(failure) if failure.kind == Kind::Exists => {
            for rule in rules {
                tolerate(add(region, group, std::slice::from_ref(rule)).await, Kind::Exists)?;
            }
        }
        outcome => outcome?,
    }
    Ok(vec![group.0.clone()])
}

/// As with [`authorize`]: one absent rule refuses the call.
pub(super) async fn revoke(region: &Region, group: &GroupId, rules: &[Rule]) -> Made {
    match remove(region, group, rules).await {
        Err(failure) if failure.kind == Kind::NotFound => {
            for rule in rules {
                tolerate(remove(region, group, std::slice::from_ref(rule)).await, Kind::NotFound)?;
            }
        }
        outcome => outcome?,
    }
    Ok(vec![group.0.clone()])
}

/// A failure of this kind is what was asked for.
pub(super) fn tolerate(outcome: Result<(), Failure>, kind: Kind) -> Result<(), Failure> {
    match outcome {
        Err(failure) if failure.kind == kind => Ok(()),
        outcome => outcome,
    }
}

fn permissions(rules: &[Rule]) -> Vec<IpPermission> {
    rules.iter().map(words::permission).collect()
}

async fn add(region: &Region, group: &GroupId, rules: &[Rule]) -> Result<(), Failure> {
    let (id, rules_of) = (group.as_str(), Some(permissions(rules)));
    match rules.first().map(|rule| rule.direction) {
        None => Ok(()),
        Some(Direction::Ingress) => {
            let request = region.ec2.authorize_security_group_ingress().group_id(id);
            let request = request.set_ip_permissions(rules_of);
            region.call(&AUTHORIZE_INGRESS, || request.clone().send()).await.map(drop)
        }
        Some(Direction::Egress) => {
            let request = region.ec2.authorize_security_group_egress().group_id(id);
            let request = request.set_ip_permissions(rules_of);
            region.call(&AUTHORIZE_EGRESS, || request.clone().send()).await.map(drop)
        }
    }
}

async fn remove(region: &Region, group: &GroupId, rules: &[Rule]) -> Result<(), Failure> {
    let (id, rules_of) = (group.as_str(), Some(permissions(rules)));
    match rules.first().map(|rule| rule.direction) {
        None => Ok(()),
        Some(Direction::Ingress) => {
            let request = region.ec2.revoke_security_group_ingress().group_id(id);
            let request = request.set_ip_permissions(rules_of);
            region.call(&REVOKE_INGRESS, || request.clone().send()).await.map(drop)
        }
        Some(Direction::Egress) => {
            let request = region.ec2.revoke_security_group_egress().group_id(id);
            let request = request.set_ip_permissions(rules_of);
            region.call(&REVOKE_EGRESS, || request.clone().send()).await.map(drop)
        }
    }
}
