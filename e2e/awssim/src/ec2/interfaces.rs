//! Network interfaces: made by themselves, by a launch, or by FSx.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::filters::Filters;
use super::page::{Page, paginate};
use super::tags::{TagSpecifications, render_tags};
use super::tokens::{Scope, check_token, digest};
use super::{Ec2, done};
use crate::call::{Call, Newborn};
use crate::clock::{Delay, iso};
use crate::ledger::{Kind, Tags};
use crate::wire::{ApiError, Params};

/// What an interface can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceType {
    /// Plain ENA.
    Interface,
    /// EFA and ENA in one.
    Efa,
    /// EFA without an address.
    EfaOnly,
}

impl InterfaceType {
    /// Reads EC2's name.
    pub fn parse(name: &str) -> Result<Self, ApiError> {
        match name {
            "interface" => Ok(Self::Interface),
            "efa" => Ok(Self::Efa),
            "efa-only" => Ok(Self::EfaOnly),
            other => Err(ApiError::invalid_value(
                "InterfaceType",
                other,
                "Unknown interface type.",
            )),
        }
    }

    /// EC2's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Efa => "efa",
            Self::EfaOnly => "efa-only",
        }
    }

    /// Whether it is an EFA.
    pub fn is_efa(self) -> bool {
        matches!(self, Self::Efa | Self::EfaOnly)
    }
}

/// How an interface hangs on an instance.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// `eni-attach-…`.
    pub id: String,
    /// Instance.
    pub instance_id: String,
    /// Device index on the card.
    pub device: u32,
    /// Network card.
    pub card: u32,
    /// Whether it goes with the instance.
    pub delete_on_termination: bool,
    /// Since when.
    pub at: Timestamp,
}

/// One network interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// `eni-…`.
    pub id: String,
    /// Subnet.
    pub subnet_id: String,
    /// Zone of the subnet.
    pub zone: String,
    /// Address; none for `efa-only`.
    pub private_ip: Option<Ipv4Addr>,
    /// MAC address.
    pub mac: String,
    /// Security groups.
    pub groups: Vec<String>,
    /// What it can do.
    pub interface_type: InterfaceType,
    /// For people.
    pub description: String,
    /// The service that made it, for example `amazon-fsx`.
    pub requester: Option<String>,
    /// Where it hangs.
    pub attachment: Option<Attachment>,
    /// From when Describe shows it.
    pub visible_at: Timestamp,
    /// From when other calls may name it.
    pub usable_at: Timestamp,
}

/// An interface to make.
#[derive(Debug, Clone)]
pub struct NewInterface {
    /// Subnet.
    pub subnet_id: String,
    /// Groups; the default group when empty.
    pub groups: Vec<String>,
    /// A wanted address.
    pub private_ip: Option<Ipv4Addr>,
    /// What it can do.
    pub interface_type: InterfaceType,
    /// For people.
    pub description: String,
    /// The service that makes it.
    pub requester: Option<String>,
    /// Tags.
    pub tags: Tags,
    /// Token of the call.
    pub token: Option<String>,
}

impl Ec2 {
    /// The interface, once other calls may name it.
    pub fn interface(&self, id: &str, now: Timestamp) -> Result<&Interface, ApiError> {
        self.interfaces
            .get(id)
            .filter(|nic| nic.usable_at <= now)
            .ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> ApiError {
    ApiError::client(
        "InvalidNetworkInterfaceID.NotFound",
        format!("The networkInterface ID '{id}' does not exist"),
    )
}

/// Makes an interface; its groups are already checked.
pub fn create(call: &mut Call<'_>, new: NewInterface) -> Result<Interface, ApiError> {
    if call.region.ec2.interfaces.len() as u64 >= call.account.quotas.limit("network-interfaces") {
        return Err(ApiError::client(
            "NetworkInterfaceLimitExceeded",
            "The maximum number of network interfaces has been reached.",
        ));
    }
    let ec2 = &mut call.region.ec2;
    let zone = ec2.network.subnet(&new.subnet_id)?.zone.name.clone();
    let private_ip = match new.interface_type {
        InterfaceType::EfaOnly => None,
        InterfaceType::Interface | InterfaceType::Efa => {
            Some(ec2.network.take(&new.subnet_id, new.private_ip)?)
        }
    };
    let groups = if new.groups.is_empty() {
        vec![ec2.default_group()]
    } else {
        new.groups
    };
    let id = call.new_id("eni");
    let interface = Interface {
        mac: mac_of(&id, private_ip),
        visible_at: call.after(Delay::Visible, &id),
        usable_at: call.after(Delay::Usable, &id),
        id: id.clone(),
        subnet_id: new.subnet_id,
        zone,
        private_ip,
        groups,
        interface_type: new.interface_type,
        description: new.description,
        requester: new.requester,
        attachment: None,
    };
    call.region
        .ec2
        .interfaces
        .insert(id.clone(), interface.clone());
    call.born(Newborn {
        kind: Kind::NetworkInterface,
        id: &id,
        tags: new.tags,
        token: new.token.as_deref(),
        detail: json!({
            "subnetId": interface.subnet_id, "privateIp": interface.private_ip,
            "requester": interface.requester,
        }),
    });
    Ok(interface)
}

fn mac_of(id: &str, address: Option<Ipv4Addr>) -> String {
    match address.map(|ip| ip.octets()) {
        Some([a, b, c, d]) => format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}"),
        None => {
            let digits: Vec<char> = id.chars().rev().take(8).collect();
            let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
            format!("06:00:{}", pairs.join(":"))
        }
    }
}

/// Removes an interface and gives its address back.
pub fn remove(call: &mut Call<'_>, id: &str) {
    if let Some(interface) = call.region.ec2.interfaces.remove(id) {
        if let Some(ip) = interface.private_ip {
            call.region.ec2.network.release(ip);
        }
        call.gone(Kind::NetworkInterface, id);
    }
}

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
            Ok(Scope {
                action: "CreateNetworkInterface",
                zone: None,
                token: token.clone(),
            })
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
        call.region
            .ec2
            .tokens
            .spend(scope, digest, answer.clone(), vec![interface.id]);
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
        Ok((
            p.texts("NetworkInterfaceId")?,
            Filters::read(p, &FILTERS)?,
            Page::read(p, (5, 1000))?,
        ))
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
            filters.pass(&tags, |name| value(call, nic, name))
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
        "attachment.instance-id" => nic
            .attachment
            .iter()
            .map(|at| at.instance_id.clone())
            .collect(),
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
    if nic.attachment.is_some() || nic.requester.is_some() {
        "in-use"
    } else {
        "available"
    }
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
    let attachment = nic
        .attachment
        .as_ref()
        .map(|at| render_attachment(at, Some(account)));
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
        "tagSet": render_tags(&call.tags(Kind::NetworkInterface, &nic.id)),
        "ipv6AddressesSet": [],
    })
}
