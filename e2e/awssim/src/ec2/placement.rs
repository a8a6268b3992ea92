//! Placement groups: named, without client token, pinned to the zone of their
//! first living instance.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::filters::Filters;
use super::tags::{TagSpecifications, render_tags};
use super::{Ec2, done};
use crate::call::{Call, Newborn};
use crate::clock::Delay;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

/// One placement group.
#[derive(Debug, Clone)]
pub struct PlacementGroup {
    /// `pg-…`.
    pub id: String,
    /// Unique in the region.
    pub name: String,
    /// `cluster`, `spread` or `partition`.
    pub strategy: String,
    /// From when it can be described or used by name.
    pub usable_at: Timestamp,
    /// `pending` until then.
    pub available_at: Timestamp,
}

impl Ec2 {
    /// The group of this name or id, once it can be used.
    pub fn placement_group(
        &self,
        name_or_id: &str,
        now: Timestamp,
    ) -> Result<&PlacementGroup, ApiError> {
        self.placement_groups
            .values()
            .find(|group| group.name == name_or_id || group.id == name_or_id)
            .filter(|group| group.usable_at <= now)
            .ok_or_else(|| unknown(name_or_id))
    }

    /// Zone of the instances that live in a placement group.
    pub fn zone_of_placement_group(&self, name: &str) -> Option<String> {
        self.instances
            .values()
            .find(|i| i.is_alive() && i.placement_group.as_deref() == Some(name))
            .map(|i| i.zone.clone())
    }
}

fn unknown(name: &str) -> ApiError {
    ApiError::client(
        "InvalidPlacementGroup.Unknown",
        format!("The Placement Group '{name}' is unknown."),
    )
}

/// `CreatePlacementGroup`.
pub fn create(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (name, strategy, partitions, tags) = params.read(|p| {
        Ok((
            p.required("GroupName")?,
            p.text("Strategy")?.unwrap_or_else(|| "cluster".to_owned()),
            p.number::<u32>("PartitionCount")?,
            TagSpecifications::read(p, &[Kind::PlacementGroup])?,
        ))
    })?;
    check_new(call, &name, &strategy, partitions)?;
    call.commit()?;
    let id = call.new_id("pg");
    let group = PlacementGroup {
        id: id.clone(),
        name: name.clone(),
        strategy,
        usable_at: call.after(Delay::Usable, &id),
        available_at: call.after(Delay::SmallResource, &id),
    };
    let tags = tags.of(Kind::PlacementGroup);
    let detail = json!({"name": name});
    call.born(Newborn { kind: Kind::PlacementGroup, id: &id, tags, token: None, detail });
    let row = render(call, &group);
    call.region.ec2.placement_groups.insert(name, group);
    Ok(json!({"return": true, "placementGroup": row}))
}

fn check_new(
    call: &Call<'_>,
    name: &str,
    strategy: &str,
    partitions: Option<u32>,
) -> Result<(), ApiError> {
    let groups = &call.region.ec2.placement_groups;
    if !name.is_ascii() || name.len() > 255 {
        return Err(ApiError::invalid_value("groupName", name, "Invalid placement group name."));
    }
    if !["cluster", "spread", "partition"].contains(&strategy) {
        return Err(ApiError::invalid_value("strategy", strategy, "Unknown strategy."));
    }
    if partitions.is_some() && strategy != "partition" {
        return Err(ApiError::combination(
            "PartitionCount may only be specified with the 'partition' strategy",
        ));
    }
    if groups.contains_key(name) {
        return Err(ApiError::client(
            "InvalidPlacementGroup.Duplicate",
            format!("The placement group '{name}' already exists."),
        ));
    }
    if groups.len() as u64 >= call.account.quotas.limit("placement-groups") {
        return Err(ApiError::client(
            "PlacementGroupLimitExceeded",
            "The maximum number of placement groups has been reached.",
        ));
    }
    Ok(())
}

/// `DeletePlacementGroup`: by name only, and only when nobody is in it.
pub fn delete(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let name = params.read(|p| p.required("GroupName"))?;
    let now = call.now;
    let id = call.region.ec2.placement_group(&name, now)?.id.clone();
    if call.region.ec2.zone_of_placement_group(&name).is_some() {
        return Err(ApiError::client(
            "InvalidPlacementGroup.InUse",
            format!("The placement group '{name}' is in use and may not be deleted."),
        ));
    }
    call.commit()?;
    call.region.ec2.placement_groups.remove(&name);
    call.gone(Kind::PlacementGroup, &id);
    Ok(done())
}

const FILTERS: [&str; 6] =
    ["group-arn", "group-id", "group-name", "spread-level", "state", "strategy"];

/// `DescribePlacementGroups`: not paged; a name must exist, a filter need not.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (names, ids, filters) = params
        .read(|p| Ok((p.texts("GroupName")?, p.texts("GroupId")?, Filters::read(p, &FILTERS)?)))?;
    for name in names.iter().chain(&ids) {
        call.region.ec2.placement_group(name, call.now)?;
    }
    let rows: Vec<Value> = call
        .region
        .ec2
        .placement_groups
        .values()
        .filter(|group| group.usable_at <= call.now)
        .filter(|group| names.is_empty() || names.contains(&group.name))
        .filter(|group| ids.is_empty() || ids.contains(&group.id))
        .filter(|group| {
            let tags = call.tags(Kind::PlacementGroup, &group.id);
            filters.pass(tags, |name| value(call, group, name))
        })
        .map(|group| render(call, group))
        .collect();
    Ok(json!({"placementGroupSet": rows}))
}

fn value(call: &Call<'_>, group: &PlacementGroup, name: &str) -> Vec<String> {
    let value = match name {
        "group-arn" => arn(call, group),
        "group-id" => group.id.clone(),
        "group-name" => group.name.clone(),
        "state" => state(call, group).to_owned(),
        "strategy" => group.strategy.clone(),
        _ => return Vec::new(),
    };
    vec![value]
}

fn arn(call: &Call<'_>, group: &PlacementGroup) -> String {
    call.arn("ec2", &format!("placement-group/{}", group.name))
}

fn state(call: &Call<'_>, group: &PlacementGroup) -> &'static str {
    if group.available_at <= call.now { "available" } else { "pending" }
}

fn render(call: &Call<'_>, group: &PlacementGroup) -> Value {
    json!({
        "groupName": group.name,
        "groupId": group.id,
        "groupArn": arn(call, group),
        "state": state(call, group),
        "strategy": group.strategy,
        "tagSet": render_tags(call.tags(Kind::PlacementGroup, &group.id)),
    })
}
