//! `DescribeInstances`, `TerminateInstances` and the life cycle of instances.

use serde_json::{Value, json};

use super::Fate;
use super::filters::Filters;
use super::instance::{Agent, Instance, InstanceState, check_id, not_found};
use super::interfaces::{self, render_addresses, render_attachment};
use super::launch::body_spec;
use super::page::{Page, paginate};
use super::tags::render_tags;
use super::volumes;
use crate::agenda::Event;
use crate::call::Call;
use crate::capacity::Pool;
use crate::clock::{Delay, iso};
use crate::effect::Effect;
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
        Ok((
            p.texts("InstanceId")?,
            Filters::read(p, &FILTERS)?,
            Page::read(p, (5, 1000))?,
        ))
    })?;
    if !ids.is_empty() && page.is_sized() {
        return Err(ApiError::combination(
            "The parameter instancesSet cannot be used with the parameter maxResults",
        ));
    }
    check_visible(call, &ids)?;
    let asked: std::collections::BTreeSet<&String> = ids.iter().collect();
    let found: Vec<(String, &Instance)> = call
        .region
        .ec2
        .instances
        .values()
        .filter(|instance| instance.visible_at <= call.now)
        .filter(|instance| asked.is_empty() || asked.contains(&instance.id))
        .filter(|instance| {
            filters.is_empty()
                || filters.pass(&call.tags(Kind::Instance, &instance.id), |name| {
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
        call.region
            .ec2
            .instances
            .get(id)
            .is_some_and(|instance| instance.visible_at <= call.now)
    };
    let missing: Vec<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| !known(id))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(not_found(&missing))
    }
}

fn by_reservation(call: &Call<'_>, instances: &[&Instance]) -> Vec<Value> {
    let mut groups: Vec<(&str, Vec<&Instance>)> = Vec::new();
    for instance in instances {
        match groups
            .iter_mut()
            .find(|(id, _)| *id == instance.reservation_id)
        {
            Some((_, members)) => members.push(instance),
            None => groups.push((&instance.reservation_id, vec![instance])),
        }
    }
    groups
        .iter()
        .map(|(id, members)| render_reservation(call, id, members))
        .collect()
}

fn value(call: &Call<'_>, instance: &Instance, name: &str) -> Vec<String> {
    let nics = || {
        let all = &call.region.ec2.interfaces;
        instance.interfaces.iter().filter_map(|id| all.get(id))
    };
    let (state, code) = instance.state.wire();
    let text = |value: &str| vec![value.to_owned()];
    match name {
        "architecture" => text(architecture(instance)),
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

fn architecture(instance: &Instance) -> &'static str {
    let all = crate::catalog::images();
    all.iter()
        .find(|image| image.id == instance.image_id)
        .map_or("x86_64", |i| i.architecture)
}

fn lifecycle(instance: &Instance) -> Option<&'static str> {
    (instance.market == "spot").then_some("spot")
}

fn profile_arn(call: &Call<'_>, instance: &Instance) -> Option<String> {
    let name = instance.profile.as_ref()?;
    Some(format!(
        "arn:aws:iam::{}:instance-profile/{name}",
        call.account.id
    ))
}

/// One reservation of an answer.
pub fn render_reservation(call: &Call<'_>, id: &str, instances: &[&Instance]) -> Value {
    let rows: Vec<Value> = instances
        .iter()
        .map(|instance| render(call, instance))
        .collect();
    json!({
        "reservationId": id, "ownerId": call.account.id, "groupSet": [], "instancesSet": rows,
    })
}

fn render(call: &Call<'_>, instance: &Instance) -> Value {
    let mut row = render_machine(call, instance);
    let network = render_network(call, instance);
    if let (Some(row), Value::Object(network)) = (row.as_object_mut(), network) {
        row.extend(network);
    }
    row
}

fn render_machine(call: &Call<'_>, instance: &Instance) -> Value {
    let (state, code) = instance.state.wire();
    let reason = instance.reason.as_ref();
    let metadata = &instance.metadata;
    json!({
        "instanceId": instance.id,
        "imageId": instance.image_id,
        "instanceState": {"code": code, "name": state},
        "reason": instance.transition,
        "stateReason": reason.map(|why| json!({"code": why.code, "message": why.message})),
        "keyName": instance.key_name,
        "amiLaunchIndex": instance.launch_index,
        "instanceType": instance.instance_type,
        "launchTime": iso(instance.launched_at),
        "placement": {
            "availabilityZone": instance.zone, "tenancy": "default",
            "groupName": instance.placement_group.as_deref().unwrap_or(""),
        },
        "monitoring": {"state": "disabled"},
        "architecture": architecture(instance),
        "rootDeviceType": "ebs",
        "rootDeviceName": instance.root_device,
        "blockDeviceMapping": render_disks(call, instance),
        "virtualizationType": "hvm",
        "clientToken": instance.client_token.as_deref().unwrap_or(""),
        "tagSet": render_tags(&call.tags(Kind::Instance, &instance.id)),
        "hypervisor": "xen",
        "iamInstanceProfile": profile_arn(call, instance).map(|arn| json!({"arn": arn, "id": "AIPA0SIMULATED"})),
        "ebsOptimized": false,
        "enaSupport": true,
        "cpuOptions": {"coreCount": instance.cpu.0, "threadsPerCore": instance.cpu.1},
        "instanceLifecycle": lifecycle(instance),
        "metadataOptions": {
            "state": "applied", "httpTokens": metadata.tokens,
            "httpPutResponseHopLimit": metadata.hop_limit, "httpEndpoint": metadata.endpoint,
            "instanceMetadataTags": metadata.tags,
        },
        "platformDetails": "Linux/UNIX",
        "usageOperation": "RunInstances",
    })
}

fn render_disks(call: &Call<'_>, instance: &Instance) -> Vec<Value> {
    let volumes = call.region.ec2.volumes.values();
    volumes
        .filter_map(|volume| Some((volume, volume.attachment.as_ref()?)))
        .filter(|(_, at)| at.instance_id == instance.id)
        .map(|(volume, at)| {
            json!({
                "deviceName": at.device,
                "ebs": {
                    "volumeId": volume.id, "status": "attached", "attachTime": iso(at.at),
                    "deleteOnTermination": at.delete_on_termination,
                },
            })
        })
        .collect()
}

/// Addresses come late; a terminated instance has none.
fn render_network(call: &Call<'_>, instance: &Instance) -> Value {
    let told = instance.is_alive() && instance.address_at <= call.now;
    let ec2 = &call.region.ec2;
    let nics: Vec<&interfaces::Interface> = instance
        .interfaces
        .iter()
        .filter_map(|id| ec2.interfaces.get(id))
        .collect();
    let groups = nics
        .first()
        .map(|nic| nic.groups.clone())
        .unwrap_or_default();
    json!({
        "privateDnsName": if told { instance.hostname(&call.region.name) } else { String::new() },
        "dnsName": "",
        "privateIpAddress": told.then_some(instance.private_ip),
        "subnetId": instance.is_alive().then_some(&instance.subnet_id),
        "vpcId": instance.is_alive().then_some(&ec2.network.vpc_id),
        "groupSet": ec2.render_group_set(&groups),
        "sourceDestCheck": instance.is_alive().then_some(true),
        "networkInterfaceSet": nics.iter().map(|nic| render_nic(call, nic)).collect::<Vec<_>>(),
    })
}

fn render_nic(call: &Call<'_>, nic: &interfaces::Interface) -> Value {
    json!({
        "networkInterfaceId": nic.id,
        "subnetId": nic.subnet_id,
        "vpcId": call.region.ec2.network.vpc_id,
        "description": nic.description,
        "ownerId": call.account.id,
        "status": "in-use",
        "macAddress": nic.mac,
        "privateIpAddress": nic.private_ip,
        "privateIpAddressesSet": render_addresses(nic),
        "sourceDestCheck": true,
        "groupSet": call.region.ec2.render_group_set(&nic.groups),
        "attachment": nic.attachment.as_ref().map(|at| render_attachment(at, None)),
        "interfaceType": nic.interface_type.name(),
        "ipv6AddressesSet": [],
    })
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
    call.region
        .buckets
        .resources("TerminateInstances", count, call.now)?;
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
        call.region
            .ec2
            .instances
            .get(id)
            .is_some_and(|instance| instance.usable_at <= call.now)
    };
    let missing: Vec<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| !known(id))
        .collect();
    if !missing.is_empty() {
        return Err(not_found(&missing));
    }
    let protected = ids.iter().find(|id| {
        call.region
            .ec2
            .instances
            .get(*id)
            .is_some_and(|instance| instance.protected)
    });
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

/// Begins the end of an instance; nothing happens to one that already goes.
pub fn terminate_by_id(call: &mut Call<'_>, id: &str, why: &Fate) {
    let at = call.after(Delay::Terminated, id);
    let stamp = iso(call.now);
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if matches!(
        instance.state,
        InstanceState::ShuttingDown | InstanceState::Terminated
    ) {
        return;
    }
    instance.state = InstanceState::ShuttingDown;
    instance.reason = Some(why.clone());
    instance.transition = format!("User initiated ({stamp})");
    instance.agent = Agent::Unregistered;
    let has_body = instance.has_body;
    call.schedule(at, Event::InstanceTerminated(id.to_owned()));
    if has_body {
        call.effects.push(Effect::Kill {
            instance_id: id.to_owned(),
        });
    }
}

/// Takes an instance down at once, for a reason of AWS's own.
pub fn fail(call: &mut Call<'_>, id: &str, why: &Fate) {
    terminate_by_id(call, id, why);
    if let Some(instance) = call.region.ec2.instances.get_mut(id) {
        instance.transition = why.message.clone();
    }
    finish(call, id);
}

/// What happens to instances by themselves.
pub fn handle_event(call: &mut Call<'_>, event: &Event) {
    match event {
        Event::InstanceRunning(id) => start(call, id),
        Event::InstanceTerminated(id) => finish(call, id),
        Event::InstanceForgotten(id) => {
            call.region.ec2.instances.remove(id);
        }
        Event::AgentOnline(id) => register_agent(call, id),
        Event::FileSystemSettled(_)
        | Event::FileSystemGone(_)
        | Event::CommandDelivered(..)
        | Event::CommandExpired(..) => {}
    }
}

fn start(call: &mut Call<'_>, id: &str) {
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if instance.state != InstanceState::Pending {
        return;
    }
    if let Some(fate) = instance.fate.clone() {
        return fail(call, id, &fate);
    }
    instance.state = InstanceState::Running;
    let instance = instance.clone();
    if instance.has_body {
        let spec = body_spec(call, &instance).map(Box::new);
        call.effects.extend(spec.map(Effect::Start));
    } else {
        let at = call.after(Delay::Agent, id);
        call.schedule(at, Event::AgentOnline(id.to_owned()));
    }
}

/// An agent registers only with a profile's credentials.
fn register_agent(call: &mut Call<'_>, id: &str) {
    let now = call.now;
    if let Some(instance) = call.region.ec2.instances.get_mut(id) {
        let may = instance.is_up() && instance.profile.is_some() && instance.agent_comes;
        if may && !matches!(instance.agent, Agent::Online(_)) {
            instance.agent = Agent::Online(now);
        }
    }
}

fn finish(call: &mut Call<'_>, id: &str) {
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if instance.state == InstanceState::Terminated {
        return;
    }
    instance.state = InstanceState::Terminated;
    let instance = instance.clone();
    call.gone(Kind::Instance, id);
    let pool = Pool {
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        market: instance.market.to_owned(),
    };
    call.account.capacity.give_back(&pool);
    release_interfaces(call, &instance);
    release_volumes(call, id);
    let at = call.after(Delay::Forgotten, id);
    call.schedule(at, Event::InstanceForgotten(id.to_owned()));
}

fn release_interfaces(call: &mut Call<'_>, instance: &Instance) {
    for nic in &instance.interfaces {
        let Some(interface) = call.region.ec2.interfaces.get_mut(nic) else {
            continue;
        };
        let goes = interface
            .attachment
            .take()
            .is_some_and(|at| at.delete_on_termination);
        if goes {
            interfaces::remove(call, nic);
        }
    }
}

fn release_volumes(call: &mut Call<'_>, instance_id: &str) {
    let attached: Vec<(String, bool)> = call
        .region
        .ec2
        .volumes
        .values()
        .filter_map(|volume| Some((volume.id.clone(), volume.attachment.as_ref()?)))
        .filter(|(_, at)| at.instance_id == instance_id)
        .map(|(id, at)| (id, at.delete_on_termination))
        .collect();
    for (id, goes) in attached {
        if goes {
            volumes::remove(call, &id);
        } else if let Some(volume) = call.region.ec2.volumes.get_mut(&id) {
            volume.attachment = None;
        }
    }
}
