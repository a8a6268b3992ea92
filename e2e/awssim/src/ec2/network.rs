//! VPC, subnets, zones and private addresses of a region.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::filters::Filters;
use super::page::{Page, paginate};
use crate::call::Call;
use crate::catalog::{Subnet, Zone, subnets, vpc_id, zones};
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

/// Addresses of a /20 less the five AWS keeps.
const ADDRESSES: usize = 4096 - 5;

/// The network of an account in a region.
#[derive(Debug)]
pub struct Network {
    /// The VPC.
    pub vpc_id: String,
    /// All zones.
    pub zones: Vec<Zone>,
    /// Subnets by zone.
    pub subnets: Vec<Subnet>,
    used: BTreeSet<Ipv4Addr>,
}

impl Network {
    /// The default network.
    pub fn new(region: &str) -> Self {
        Self {
            vpc_id: vpc_id(region),
            zones: zones(region),
            subnets: subnets(region),
            used: BTreeSet::new(),
        }
    }

    /// The subnet with this id.
    pub fn subnet(&self, id: &str) -> Result<&Subnet, ApiError> {
        self.subnets.iter().find(|subnet| subnet.id == id).ok_or_else(|| {
            ApiError::client(
                "InvalidSubnetID.NotFound",
                format!("The subnet ID '{id}' does not exist"),
            )
        })
    }

    /// Addresses left in a subnet.
    pub fn free(&self, subnet: &Subnet) -> usize {
        ADDRESSES - self.used.iter().filter(|ip| contains(subnet, **ip)).count()
    }

    /// Takes the asked or the next free address.
    pub fn take(&mut self, subnet_id: &str, asked: Option<Ipv4Addr>) -> Result<Ipv4Addr, ApiError> {
        let subnet = self.subnet(subnet_id)?.clone();
        let address = match asked {
            Some(ip) => self.check_asked(&subnet, ip)?,
            None => self.next_free(&subnet)?,
        };
        self.used.insert(address);
        Ok(address)
    }

    /// Refuses an asked address that cannot be had.
    pub fn check_free(&self, subnet: Option<&str>, ip: Option<Ipv4Addr>) -> Result<(), ApiError> {
        let subnet = match subnet {
            Some(id) => Some(self.subnet(id)?),
            None => self.subnets.first(),
        };
        if let (Some(subnet), Some(ip)) = (subnet, ip) {
            self.check_asked(subnet, ip)?;
        }
        Ok(())
    }

    fn check_asked(&self, subnet: &Subnet, ip: Ipv4Addr) -> Result<Ipv4Addr, ApiError> {
        if !contains(subnet, ip) {
            return Err(ApiError::client(
                "InvalidParameterValue",
                format!("Address {ip} does not fall within the subnet's address range"),
            ));
        }
        if self.used.contains(&ip) {
            return Err(ApiError::client("InvalidIPAddress.InUse", "Address is in use."));
        }
        Ok(ip)
    }

    fn next_free(&self, subnet: &Subnet) -> Result<Ipv4Addr, ApiError> {
        let first = u32::from(Ipv4Addr::new(10, 0, subnet.third_octet, 4));
        let last = first + u32::try_from(ADDRESSES).unwrap_or(0);
        (first..last).map(Ipv4Addr::from).find(|ip| !self.used.contains(ip)).ok_or_else(|| {
            ApiError::client(
                "InsufficientFreeAddressesInSubnet",
                format!("The subnet '{}' has no free addresses", subnet.id),
            )
        })
    }

    /// Gives an address back.
    pub fn release(&mut self, address: Ipv4Addr) {
        self.used.remove(&address);
    }
}

fn contains(subnet: &Subnet, ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    (a, b) == (10, 0) && c & 0xf0 == subnet.third_octet
}

/// `DescribeAvailabilityZones`.
pub fn describe_zones(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let known = ["zone-name", "zone-id", "region-name", "state", "zone-type", "opt-in-status"];
    let (filters, names, ids) = params.read(|p| {
        p.flag("AllAvailabilityZones")?;
        Ok((Filters::read(p, &known)?, p.texts("ZoneName")?, p.texts("ZoneId")?))
    })?;
    let region = &call.region.name;
    let all = &call.region.ec2.network.zones;
    if let Some(name) = names.iter().find(|name| !all.iter().any(|zone| zone.name == **name)) {
        return Err(ApiError::invalid_value("ZoneName", name, "Invalid availability zone."));
    }
    let value = |zone: &Zone, name: &str| match name {
        "zone-name" => vec![zone.name.clone()],
        "zone-id" => vec![zone.id.clone()],
        "region-name" => vec![region.clone()],
        "state" => vec!["available".to_owned()],
        "zone-type" => vec!["availability-zone".to_owned()],
        _ => vec!["opt-in-not-required".to_owned()],
    };
    let rows = all
        .iter()
        .filter(|zone| names.is_empty() || names.contains(&zone.name))
        .filter(|zone| ids.is_empty() || ids.contains(&zone.id))
        .filter(|zone| filters.pass(&Tags::new(), |name| value(zone, name)))
        .map(|zone| {
            json!({
                "zoneName": zone.name, "zoneId": zone.id, "regionName": region,
                "zoneState": "available", "zoneType": "availability-zone",
                "optInStatus": "opt-in-not-required", "groupName": region,
                "networkBorderGroup": region,
            })
        });
    Ok(json!({"availabilityZoneInfo": rows.collect::<Vec<_>>()}))
}

const SUBNET_FILTERS: [&str; 8] = [
    "subnet-id",
    "vpc-id",
    "availability-zone",
    "availability-zone-id",
    "state",
    "cidr-block",
    "default-for-az",
    "map-public-ip-on-launch",
];

/// `DescribeSubnets`.
pub fn describe_subnets(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, filters, page) = params.read(|p| {
        Ok((p.texts("SubnetId")?, Filters::read(p, &SUBNET_FILTERS)?, Page::read(p, (5, 1000))?))
    })?;
    let network = &call.region.ec2.network;
    for id in &ids {
        network.subnet(id)?;
    }
    let rows = network
        .subnets
        .iter()
        .filter(|subnet| ids.is_empty() || ids.contains(&subnet.id))
        .filter(|subnet| filters.pass(&Tags::new(), |name| subnet_value(network, subnet, name)))
        .map(|subnet| (subnet.id.clone(), render_subnet(call, subnet)))
        .collect();
    let fresh = call.now.to_string();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &fresh);
    Ok(json!({"subnetSet": rows, "nextToken": next}))
}

fn subnet_value(network: &Network, subnet: &Subnet, name: &str) -> Vec<String> {
    let value = match name {
        "subnet-id" => &subnet.id,
        "vpc-id" => &network.vpc_id,
        "availability-zone" => &subnet.zone.name,
        "availability-zone-id" => &subnet.zone.id,
        "state" => "available",
        "cidr-block" => &subnet.cidr,
        _ => "false",
    };
    vec![value.to_owned()]
}

fn render_subnet(call: &Call<'_>, subnet: &Subnet) -> Value {
    let network = &call.region.ec2.network;
    json!({
        "subnetId": subnet.id,
        "subnetArn": call.arn("ec2", &format!("subnet/{}", subnet.id)),
        "state": "available",
        "ownerId": call.account.id,
        "vpcId": network.vpc_id,
        "cidrBlock": subnet.cidr,
        "availableIpAddressCount": network.free(subnet),
        "availabilityZone": subnet.zone.name,
        "availabilityZoneId": subnet.zone.id,
        "defaultForAz": false,
        "mapPublicIpOnLaunch": false,
        "assignIpv6AddressOnCreation": false,
        "tagSet": [],
    })
}

/// `DescribeVpcs`.
pub fn describe_vpcs(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let known = ["vpc-id", "state", "cidr", "is-default", "owner-id"];
    let (ids, filters, _page) = params
        .read(|p| Ok((p.texts("VpcId")?, Filters::read(p, &known)?, Page::read(p, (5, 1000))?)))?;
    let vpc = &call.region.ec2.network.vpc_id;
    if let Some(id) = ids.iter().find(|id| *id != vpc) {
        return Err(ApiError::client(
            "InvalidVpcID.NotFound",
            format!("The vpc ID '{id}' does not exist"),
        ));
    }
    let value = |name: &str| {
        let value = match name {
            "vpc-id" => vpc,
            "state" => "available",
            "cidr" => "10.0.0.0/16",
            "owner-id" => &call.account.id,
            _ => "false",
        };
        vec![value.to_owned()]
    };
    let row = json!({
        "vpcId": vpc, "ownerId": call.account.id, "state": "available",
        "cidrBlock": "10.0.0.0/16", "dhcpOptionsId": "dopt-0a1b2c3d4e5f60701",
        "instanceTenancy": "default", "isDefault": false, "tagSet": [],
        "cidrBlockAssociationSet": [{
            "associationId": "vpc-cidr-assoc-0a1b2c3d4e5f60701", "cidrBlock": "10.0.0.0/16",
            "cidrBlockState": {"state": "associated"},
        }],
    });
    let rows: Vec<_> =
        Some(row).filter(|_| filters.pass(&Tags::new(), value)).into_iter().collect();
    Ok(json!({"vpcSet": rows}))
}
