//! Network interfaces: made by themselves, by a launch, or by FSx.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::done;
use super::filters::Filters;
use super::interface::{
    Attachment, Interface, InterfaceType, NewInterface, create, remove, unknown,
};
use super::page::{Page, paginate};
use super::tags::{TagSpecifications, render_tags};
use super::tokens::{Scope, check_token, digest};
use crate::call::Call;
use crate::clock::iso;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

#[derive(Debug)]
struct CreateRequest {
    subnet_id: String,
    groups: Vec<String>,
    private_ip: Option<Ipv4Addr>,
    interface_type: Option<String>,
    description: Option<String>,
    tags: TagSpecifications,
}

/// `CreateNetworkInterface`.
pub fn create_action(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (token, request) = params.read(|p| {
        let request = CreateRequest {
            subnet_id: p.required("SubnetId")?,
            groups: p.texts("SecurityGroupId")?,
            private_ip: p.number("PrivateIpAddress")?,
            interface_type: p.text("InterfaceType")?,
            description: p.text("Description")?,
            tags: TagSpecifications::read(p, &[Kind::NetworkInterface])?,
        };
        Ok((p.text("ClientToken")?, request))
    })?;
    let digest = digest(&request);
    let scope = token
        .as_ref()
        .map(|token| -> Result<Scope, ApiError> {
            check_token(token)?;
            Ok(Scope { action: "CreateNetworkInterface", zone: None, token: token.clone() })
        })
        .transpose()?;
    if let Some(scope) = &scope
        && let Some(replay) = call.region.ec2.tokens.replay(scope, digest)?
    {
        return Ok(replay.answer);
    }
    for group in &request.groups {
        call.region.ec2.group(group, call.now)?;
    }
    let kind = request.interface_type.as_deref().unwrap_or("interface");
    let new = NewInterface {
        interface_type: InterfaceType::parse(kind)?,
        tags: request.tags.of(Kind::NetworkInterface),
        subnet_id: request.subnet_id,
        groups: request.groups,
        private_ip: request.private_ip,
        description: request.description.unwrap_or_default(),
        requester: None,
        token: token.clone(),
    };
    call.commit()?;
    let interface = create(call, new)?;
    let answer = json!({"networkInterface": render(call, &interface), "clientToken": token});
    if let Some(scope) = scope {
        call.region.ec2.tokens.spend(scope, digest, answer.clone(), vec![interface.id]);
    }
    Ok(answer)
}

/// `DeleteNetworkInterface`.
pub fn delete_action(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let id = params.read(|p| p.required("NetworkInterfaceId"))?;
    let interface = call.region.ec2.interface(&id, call.now)?;
    if interface.attachment.is_some() {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("Network interface '{id}' is currently in use."),
        ));
    }
    if interface.requester.is_some() {
        return Err(ApiError::with_status(
            403,
            "OperationNotPermitted",
            format!("You do not have permission to access the specified resource '{id}'."),
        ));
    }
    call.commit()?;
    remove(call, &id);
    Ok(done())
}

const FILTERS: [&str; 12] = [
    "addresses.private-ip-address",
    "attachment.instance-id",
    "availability-zone",
    "description",
    "group-id",
    "interface-type",
    "network-interface-id",
    "private-ip-address",
    "requester-id",
    "status",
    "subnet-id",
    "vpc-id",
];

/// `DescribeNetworkInterfaces`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, filters, page) = params.read(|p| {
        Ok((p.texts("NetworkInterfaceId")?, Filters::read(p, &FILTERS)?, Page::read(p, (5, 1000))?))
    })?;
    let all = &call.region.ec2.interfaces;
    let visible = |id: &String| all.get(id).is_some_and(|nic| nic.visible_at <= call.now);
    if let Some(id) = ids.iter().find(|id| !visible(id)) {
        return Err(unknown(id));
    }
    let rows = all
        .values()
        .filter(|nic| nic.visible_at <= call.now)
        .filter(|nic| ids.is_empty() || ids.contains(&nic.id))
        .filter(|nic| {
            let tags = call.tags(Kind::NetworkInterface, &nic.id);
            filters.pass(tags, |name| value(call, nic, name))
        })
        .map(|nic| (nic.id.clone(), render(call, nic)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"networkInterfaceSet": rows, "nextToken": next}))
}

fn value(call: &Call<'_>, nic: &Interface, name: &str) -> Vec<String> {
    match name {
        "addresses.private-ip-address" | "private-ip-address" => {
            nic.private_ip.iter().map(ToString::to_string).collect()
        }
        "attachment.instance-id" => {
            nic.attachment.iter().map(|at| at.instance_id.clone()).collect()
        }
        "availability-zone" => vec![nic.zone.clone()],
        "description" => vec![nic.description.clone()],
        "group-id" => nic.groups.clone(),
        "interface-type" => vec![nic.interface_type.name().to_owned()],
        "network-interface-id" => vec![nic.id.clone()],
        "requester-id" => nic.requester.clone().into_iter().collect(),
        "status" => vec![status(nic).to_owned()],
        "subnet-id" => vec![nic.subnet_id.clone()],
        _ => vec![call.region.ec2.network.vpc_id.clone()],
    }
}

fn status(nic: &Interface) -> &'static str {
    if nic.attachment.is_some() || nic.requester.is_some() { "in-use" } else { "available" }
}

/// `attachment` of an answer.
pub fn render_attachment(attachment: &Attachment, account: Option<&str>) -> Value {
    json!({
        "attachmentId": attachment.id,
        "instanceId": account.map(|_| &attachment.instance_id),
        "instanceOwnerId": account,
        "deviceIndex": attachment.device,
        "networkCardIndex": attachment.card,
        "status": "attached",
        "attachTime": iso(attachment.at),
        "deleteOnTermination": attachment.delete_on_termination,
    })
}

/// `privateIpAddressesSet` of an answer.
pub fn render_addresses(nic: &Interface) -> Value {
    let row = |ip: &Ipv4Addr| json!({"privateIpAddress": ip, "primary": true});
    Value::Array(nic.private_ip.iter().map(row).collect())
}

fn render(call: &Call<'_>, nic: &Interface) -> Value {
    let account = &call.account.id;
    let attachment = nic.attachment.as_ref().map(|at| render_attachment(at, Some(account)));
    json!({
        "networkInterfaceId": nic.id,
        "subnetId": nic.subnet_id,
        "vpcId": call.region.ec2.network.vpc_id,
        "availabilityZone": nic.zone,
        "description": nic.description,
        "ownerId": account,
        "requesterId": nic.requester,
        "requesterManaged": nic.requester.is_some(),
        "status": status(nic),
        "macAddress": nic.mac,
        "privateIpAddress": nic.private_ip,
        "privateIpAddressesSet": render_addresses(nic),
        "sourceDestCheck": true,
        "groupSet": call.region.ec2.render_group_set(&nic.groups),
        "interfaceType": nic.interface_type.name(),
        "attachment": attachment,
        "tagSet": render_tags(call.tags(Kind::NetworkInterface, &nic.id)),
        "ipv6AddressesSet": [],
    })
}
