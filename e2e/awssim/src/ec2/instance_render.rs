//! Instances in answers.

use serde_json::{Value, json};

use super::instance::Instance;
use super::interface::Interface;
use super::interfaces::{render_addresses, render_attachment};
use super::tags::render_tags;
use crate::call::Call;
use crate::clock::iso;
use crate::ledger::Kind;

/// Value of the filter and of the answer.
pub fn lifecycle(instance: &Instance) -> Option<&'static str> {
    (instance.market == "spot").then_some("spot")
}

/// Value of the filter and of the answer.
pub fn profile_arn(call: &Call<'_>, instance: &Instance) -> Option<String> {
    let name = instance.profile.as_ref()?;
    Some(format!("arn:aws:iam::{}:instance-profile/{name}", call.account.id))
}

/// One reservation of an answer.
pub fn render_reservation(call: &Call<'_>, id: &str, instances: &[&Instance]) -> Value {
    let rows: Vec<Value> = instances.iter().map(|instance| render(call, instance)).collect();
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
        "architecture": instance.architecture,
        "rootDeviceType": "ebs",
        "rootDeviceName": instance.root_device,
        "blockDeviceMapping": render_disks(call, instance),
        "virtualizationType": "hvm",
        "clientToken": instance.client_token.as_deref().unwrap_or(""),
        "tagSet": render_tags(call.tags(Kind::Instance, &instance.id)),
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
    let volumes = instance.volumes.iter().filter_map(|id| call.region.ec2.volumes.get(id));
    volumes
        .filter_map(|volume| Some((volume, volume.attachment.as_ref()?)))
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
    let nics: Vec<&Interface> =
        instance.interfaces.iter().filter_map(|id| ec2.interfaces.get(id)).collect();
    let groups = nics.first().map(|nic| nic.groups.clone()).unwrap_or_default();
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

fn render_nic(call: &Call<'_>, nic: &Interface) -> Value {
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
