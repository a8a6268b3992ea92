//! Regions, zones, the default network of an account and where instance types
//! are offered. Fixed, so that a manifest can name a subnet.

use super::InstanceType;

/// One availability zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// For example `us-east-1a`.
    pub name: String,
    /// For example `use1-az6`.
    pub id: String,
}

/// One subnet of the default network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// For example `subnet-0a1b2c3d4e5f60718`.
    pub id: String,
    /// Zone it is in.
    pub zone: Zone,
    /// For example `10.0.0.0/20`.
    pub cidr: String,
    /// First three octets of every address handed out, and the third's index.
    pub third_octet: u8,
}

/// Zone ids per region in the order of the zone letters.
const REGIONS: [(&str, &[&str]); 14] = [
    ("us-east-1", &["use1-az6", "use1-az1", "use1-az2", "use1-az4", "use1-az3", "use1-az5"]),
    ("us-east-2", &["use2-az1", "use2-az2", "use2-az3"]),
    ("us-west-1", &["usw1-az1", "usw1-az3"]),
    ("us-west-2", &["usw2-az2", "usw2-az1", "usw2-az3", "usw2-az4"]),
    ("eu-west-1", &["euw1-az1", "euw1-az2", "euw1-az3"]),
    ("eu-west-2", &["euw2-az2", "euw2-az3", "euw2-az1"]),
    ("eu-west-3", &["euw3-az1", "euw3-az2", "euw3-az3"]),
    ("eu-central-1", &["euc1-az2", "euc1-az3", "euc1-az1"]),
    ("eu-north-1", &["eun1-az1", "eun1-az2", "eun1-az3"]),
    ("ap-northeast-1", &["apne1-az4", "apne1-az1", "apne1-az2"]),
    ("ap-south-1", &["aps1-az1", "aps1-az3", "aps1-az2"]),
    ("ap-southeast-1", &["apse1-az1", "apse1-az2", "apse1-az3"]),
    ("ap-southeast-2", &["apse2-az1", "apse2-az3", "apse2-az2"]),
    ("ca-central-1", &["cac1-az1", "cac1-az2", "cac1-az4"]),
];

/// Each HPC type lives in one zone of a few regions.
const HPC_ZONES: [(&str, &[&str]); 5] = [
    ("hpc6a.", &["use2-az2", "eun1-az2", "apse1-az1", "apse2-az1"]),
    ("hpc6id.", &["use2-az2", "eun1-az2", "euw3-az1"]),
    ("hpc7a.", &["use2-az2", "eun1-az2", "euw1-az1", "euw3-az1"]),
    ("hpc7g.", &["use1-az6", "euw1-az1", "apne1-az4"]),
    ("hpc8a.", &["use2-az2", "eun1-az2", "apne1-az4"]),
];

/// Zones of a region; empty for a region that does not exist.
pub fn zones(region: &str) -> Vec<Zone> {
    let ids = REGIONS.iter().find(|(name, _)| *name == region).map_or(&[][..], |(_, ids)| ids);
    let letters = 'a'..='z';
    letters
        .zip(ids)
        .map(|(letter, id)| Zone { name: format!("{region}{letter}"), id: (*id).to_owned() })
        .collect()
}

/// The VPC every account has in a region.
pub fn vpc_id(region: &str) -> String {
    format!("vpc-0a1b2c3d4e5f{:05x}", 0x60700 + region_index(region))
}

/// The three subnets every account has in a region, one per zone.
pub fn subnets(region: &str) -> Vec<Subnet> {
    let base = 0x60718 + 16 * region_index(region);
    let octets = [0u8, 16, 32];
    zones(region)
        .into_iter()
        .zip(octets)
        .enumerate()
        .map(|(index, (zone, octet))| Subnet {
            id: format!("subnet-0a1b2c3d4e5f{:05x}", base + index),
            zone,
            cidr: format!("10.0.{octet}.0/20"),
            third_octet: octet,
        })
        .collect()
}

fn region_index(region: &str) -> usize {
    REGIONS.iter().position(|(name, _)| *name == region).unwrap_or(REGIONS.len())
}

/// Whether a zone offers a type. Beside the HPC types, one zone is assumed to
/// be old: `use1-az3` offers nothing with EFA.
pub fn offered(instance_type: &InstanceType, zone: &Zone) -> bool {
    let hpc = HPC_ZONES.iter().find(|(prefix, _)| instance_type.name.starts_with(prefix));
    match hpc {
        Some((_, ids)) => ids.contains(&zone.id.as_str()),
        None => zone.id != "use1-az3" || instance_type.max_efa == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Types;
    use super::*;

    #[test]
    fn the_default_subnets_are_the_documented_ones() {
        let ids: Vec<_> = subnets("us-east-1").into_iter().map(|s| (s.id, s.zone.name)).collect();
        assert_eq!(ids[0], ("subnet-0a1b2c3d4e5f60718".into(), "us-east-1a".into()));
        assert_eq!(ids[2], ("subnet-0a1b2c3d4e5f6071a".into(), "us-east-1c".into()));
        assert_ne!(subnets("us-east-2")[0].id, ids[0].0);
        assert!(zones("mars-1").is_empty());
    }

    #[test]
    fn hpc_types_are_in_one_zone_of_a_region() {
        let types = Types::load().unwrap();
        let where_is = |name: &str, region: &str| {
            let t = types.get(name).unwrap();
            zones(region).into_iter().filter(|z| offered(t, z)).map(|z| z.id).collect::<Vec<_>>()
        };
        assert_eq!(where_is("hpc7a.96xlarge", "us-east-2"), ["use2-az2"]);
        assert_eq!(where_is("hpc7g.16xlarge", "us-east-1"), ["use1-az6"]);
        assert!(where_is("hpc7a.96xlarge", "us-east-1").is_empty());
        assert_eq!(where_is("c5n.18xlarge", "us-east-2").len(), 3);
    }
}
