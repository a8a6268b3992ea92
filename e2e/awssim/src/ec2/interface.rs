//! One network interface: made by itself, by a launch, or by FSx.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::json;

use super::Ec2;
use crate::call::{Call, Newborn};
use crate::clock::Delay;
use crate::ledger::{Kind, Tags};
use crate::wire::ApiError;

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
            other => {
                Err(ApiError::invalid_value("InterfaceType", other, "Unknown interface type."))
            }
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
#[expect(clippy::struct_field_names, reason = "the fields have EC2's names")]
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
        self.interfaces.get(id).filter(|nic| nic.usable_at <= now).ok_or_else(|| unknown(id))
    }
}

/// What EC2 says about an interface it does not know.
pub fn unknown(id: &str) -> ApiError {
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
    let groups = if new.groups.is_empty() { vec![ec2.default_group()] } else { new.groups };
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
    call.region.ec2.interfaces.insert(id.clone(), interface.clone());
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
    if let Some([a, b, c, d]) = address.map(|ip| ip.octets()) {
        return format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
    }
    let digits: Vec<char> = id.chars().rev().take(8).collect();
    let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
    format!("06:00:{}", pairs.join(":"))
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
