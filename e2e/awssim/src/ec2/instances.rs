//! `DescribeInstances` and `TerminateInstances`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Fate;
use super::filters::Filters;
use super::instance::{Instance, InstanceState, check_id, not_found};
use super::instance_render::{lifecycle, profile_arn, render_reservation};
use super::lifecycle::terminate_by_id;
use super::page::{Page, paginate};
use crate::call::Call;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

const FILTERS: [&str; 22] = [
    "affinity",
    "architecture",
    "availability-zone",
    "client-token",
    "iam-instance-profile.arn",
    "image-id",
    "instance-id",
    "instance-lifecycle",
    "instance-state-code",
    "instance-state-name",
    "instance-type",
    "instance.group-id",
    "key-name",
    "network-interface.network-interface-id",
    "network-interface.subnet-id",
    "owner-id",
    "placement-group-name",
    "private-dns-name",
    "private-ip-address",
    "reservation-id",
    "subnet-id",
    "vpc-id",
];

/// `DescribeInstances`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, filters, page) = params.read(|p| {
        Ok((p.texts("InstanceId")?, Filters::read(p, &FILTERS)?, Page::read(p, (5, 1000))?))
    })?;
    if !ids.is_empty() && page.is_sized() {
        return Err(ApiError::combination(
            "The parameter instancesSet cannot be used with the parameter maxResults",
        ));
    }
    check_visible(call, &ids)?;
    let asked: BTreeSet<&String> = ids.iter().collect();
    let found: Vec<(String, &Instance)> = call
        .region
        .ec2
        .instances
        .values()
        .filter(|instance| instance.visible_at <= call.now)
        .filter(|instance| asked.is_empty() || asked.contains(&instance.id))
        .filter(|instance| {
            filters.is_empty()
                || filters.pass(call.tags(Kind::Instance, &instance.id), |name| {
                    value(call, instance, name)
                })
        })
        .map(|instance| (instance.id.clone(), instance))
        .collect();
    let (rows, next) = paginate(found, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"reservationSet": by_reservation(call, &rows), "nextToken": next}))
}

fn check_visible(call: &Call<'_>, ids: &[String]) -> Result<(), ApiError> {
    for id in ids {
        check_id(id)?;
    }
    let known = |id: &str| {
        call.region.ec2.instances.get(id).is_some_and(|instance| instance.visible_at <= call.now)
    };
    let missing: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !known(id)).collect();
    if missing.is_empty() { Ok(()) } else { Err(not_found(&missing)) }
}

fn by_reservation(call: &Call<'_>, instances: &[&Instance]) -> Vec<Value> {
    let mut groups: Vec<(&str, Vec<&Instance>)> = Vec::new();
    for instance in instances {
        match groups.iter_mut().find(|(id, _)| *id == instance.reservation_id) {
            Some((_, members)) => members.push(instance),
            None => groups.push((&instance.reservation_id, vec![instance])),
        }
    }
    groups.iter().map(|(id, members)| render_reservation(call, id, members)).collect()
}

fn value(call: &Call<'_>, instance: &Instance, name: &str) -> Vec<String> {
    let nics = || {
        let all = &call.region.ec2.interfaces;
        instance.interfaces.iter().filter_map(|id| all.get(id))
    };
    let (state, code) = instance.state.wire();
    let text = |value: &str| vec![value.to_owned()];
    match name {
        "architecture" => text(instance.architecture),
        "availability-zone" => text(&instance.zone),
        "client-token" => instance.client_token.clone().into_iter().collect(),
        "iam-instance-profile.arn" => profile_arn(call, instance).into_iter().collect(),
        "image-id" => text(&instance.image_id),
        "instance-id" => text(&instance.id),
        "instance-lifecycle" => lifecycle(instance).map(str::to_owned).into_iter().collect(),
        "instance-state-code" => vec![code.to_string()],
        "instance-state-name" => text(state),
        "instance-type" => text(&instance.instance_type),
        "instance.group-id" => nics().flat_map(|nic| nic.groups.clone()).collect(),
        "key-name" => instance.key_name.clone().into_iter().collect(),
        "network-interface.network-interface-id" => instance.interfaces.clone(),
        "network-interface.subnet-id" => nics().map(|nic| nic.subnet_id.clone()).collect(),
        "owner-id" => text(&call.account.id),
        "placement-group-name" => instance.placement_group.clone().into_iter().collect(),
        "private-dns-name" => text(&instance.hostname(&call.region.name)),
        "private-ip-address" => vec![instance.private_ip.to_string()],
        "reservation-id" => text(&instance.reservation_id),
        "subnet-id" => text(&instance.subnet_id),
        "vpc-id" => text(&call.region.ec2.network.vpc_id),
        _ => Vec::new(),
    }
}

/// `TerminateInstances`: one unknown id terminates none.
pub fn terminate(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let ids = params.read(|p| p.texts("InstanceId"))?;
    if ids.is_empty() {
        return Err(ApiError::missing("InstanceId"));
    }
    if ids.len() > 1000 {
        return Err(ApiError::client(
            "InvalidParameterValue",
            "The maximum number of instance IDs in a request is 1000",
        ));
    }
    check_terminable(call, &ids)?;
    call.commit()?;
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    call.take_resources("TerminateInstances", count)?;
    let why = Fate {
        code: "Client.UserInitiatedShutdown".to_owned(),
        message: "Client.UserInitiatedShutdown: User initiated shutdown".to_owned(),
    };
    let rows: Vec<Value> = ids.iter().map(|id| terminate_row(call, id, &why)).collect();
    Ok(json!({"instancesSet": rows}))
}

fn check_terminable(call: &Call<'_>, ids: &[String]) -> Result<(), ApiError> {
    for id in ids {
        check_id(id)?;
    }
    let known = |id: &str| {
        call.region.ec2.instances.get(id).is_some_and(|instance| instance.usable_at <= call.now)
    };
    let missing: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !known(id)).collect();
    if !missing.is_empty() {
        return Err(not_found(&missing));
    }
    let protected = ids
        .iter()
        .find(|id| call.region.ec2.instances.get(*id).is_some_and(|instance| instance.protected));
    match protected {
        None => Ok(()),
        Some(id) => Err(ApiError::client(
            "OperationNotPermitted",
            format!(
                "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' \
                 instance attribute and try again."
            ),
        )),
    }
}

fn terminate_row(call: &mut Call<'_>, id: &str, why: &Fate) -> Value {
    let state = |call: &Call<'_>| {
        let (name, code) = call
            .region
            .ec2
            .instances
            .get(id)
            .map_or(InstanceState::Terminated, |instance| instance.state)
            .wire();
        json!({"code": code, "name": name})
    };
    let previous = state(call);
    terminate_by_id(call, id, why);
    json!({"instanceId": id, "currentState": state(call), "previousState": previous})
}
