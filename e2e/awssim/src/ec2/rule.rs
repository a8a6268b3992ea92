//! One rule of a security group, as asked for and as checked.

use std::net::Ipv4Addr;

use jiff::Timestamp;

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

    /// The IPv4 range, if it is one.
    pub fn cidr(&self) -> Option<&str> {
        match self {
            Self::Cidr(cidr) => Some(cidr),
            Self::Cidr6(_) | Self::Group(_) => None,
        }
    }

    /// The IPv6 range, if it is one.
    pub fn cidr6(&self) -> Option<&str> {
        match self {
            Self::Cidr6(cidr) => Some(cidr),
            Self::Cidr(_) | Self::Group(_) => None,
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

    /// Whether EC2 takes both for one rule.
    pub fn same_as(&self, other: &Self) -> bool {
        (self.egress, &self.protocol, self.ports, &self.peer)
            == (other.egress, &other.protocol, other.ports, &other.peer)
    }
}

/// A rule as asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Protocol.
    pub protocol: String,
    /// Ports.
    pub ports: Option<(i32, i32)>,
    /// Peers with their descriptions.
    pub peers: Vec<(Peer, Option<String>)>,
}

/// `IpPermissions.N`.
pub fn read_permissions(params: &mut Params) -> Result<Vec<Asked>, ApiError> {
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
        Ok(Asked { protocol, ports, peers })
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
        ApiError::client("InvalidParameterValue", format!("CIDR block {cidr} is malformed"))
    })
}

/// Network and mask of an IPv4 range.
pub fn parse_cidr(cidr: &str) -> Option<(u32, u32)> {
    let (address, bits) = cidr.split_once('/')?;
    let (address, bits): (Ipv4Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
    Some((u32::from(address) & mask, mask))
}
