//! What the metadata service of an instance tells: data only; the host serves
//! it and demands the session token.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::call::Call;
use crate::clock::iso;
use crate::ec2::{Instance, Interface};
use crate::ledger::Kind;

/// The text at a path, or the listing of a folder.
pub fn lookup(call: &Call<'_>, instance: &Instance, path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    if path == "latest/user-data" {
        let data = instance.user_data.as_deref()?;
        return Some(String::from_utf8_lossy(data).into_owned());
    }
    let leaves = leaves(call, instance);
    leaves.get(path).cloned().or_else(|| listing(&leaves, path))
}

/// Children of a folder, folders with a slash at the end.
fn listing(leaves: &BTreeMap<String, String>, folder: &str) -> Option<String> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let children: BTreeSet<String> = leaves
        .keys()
        .filter_map(|path| path.strip_prefix(&prefix))
        .map(|rest| match rest.split_once('/') {
            Some((child, _)) => format!("{child}/"),
            None => rest.to_owned(),
        })
        .collect();
    let names: Vec<String> = children.into_iter().collect();
    (!names.is_empty()).then(|| names.join("\n"))
}

fn leaves(call: &Call<'_>, instance: &Instance) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |path: &str, value: String| {
        all.insert(format!("latest/meta-data/{path}"), value);
    };
    let hostname = instance.hostname(&call.region.name);
    let zones = &call.region.ec2.network.zones;
    let zone_id = zones.iter().find(|z| z.name == instance.zone).map(|z| z.id.clone());
    put("ami-id", instance.image_id.clone());
    put("ami-launch-index", instance.launch_index.to_string());
    put("hostname", hostname.clone());
    put("instance-id", instance.id.clone());
    put("instance-life-cycle", instance.market.to_owned());
    put("instance-type", instance.instance_type.clone());
    put("local-hostname", hostname);
    put("local-ipv4", instance.private_ip.to_string());
    put("placement/availability-zone", instance.zone.clone());
    put("placement/availability-zone-id", zone_id.unwrap_or_default());
    put("placement/region", call.region.name.clone());
    if let Some(group) = &instance.placement_group {
        put("placement/group-name", group.clone());
    }
    put("reservation-id", instance.reservation_id.clone());
    put("services/domain", "amazonaws.com".to_owned());
    put("services/partition", "aws".to_owned());
    for (path, value) in network(call, instance) {
        put(&path, value);
    }
    for (path, value) in iam(call, instance) {
        put(&path, value);
    }
    if instance.metadata.tags == "enabled" {
        for (key, value) in call.tags(Kind::Instance, &instance.id) {
            put(&format!("tags/instance/{key}"), value.clone());
        }
    }
    all.insert("latest/dynamic/instance-identity/document".to_owned(), document(call, instance));
    all
}

fn network(call: &Call<'_>, instance: &Instance) -> Vec<(String, String)> {
    let all = &call.region.ec2.interfaces;
    let nics: Vec<&Interface> = instance.interfaces.iter().filter_map(|id| all.get(id)).collect();
    let mut leaves = Vec::new();
    if let Some(primary) = nics.first() {
        leaves.push(("mac".to_owned(), primary.mac.clone()));
        let groups = &call.region.ec2.groups;
        let names: Vec<String> = primary
            .groups
            .iter()
            .filter_map(|id| groups.get(id).map(|group| group.name.clone()))
            .collect();
        leaves.push(("security-groups".to_owned(), names.join("\n")));
    }
    for nic in nics {
        leaves.extend(interface(call, nic));
    }
    leaves
}

fn interface(call: &Call<'_>, nic: &Interface) -> Vec<(String, String)> {
    let (card, device) = nic.attachment.as_ref().map_or((0, 0), |at| (at.card, at.device));
    let network = &call.region.ec2.network;
    let cidr = network.subnet(&nic.subnet_id).map(|subnet| subnet.cidr.clone());
    let base = format!("network/interfaces/macs/{}", nic.mac);
    let mut leaves = vec![
        (format!("{base}/device-number"), device.to_string()),
        (format!("{base}/network-card"), card.to_string()),
        (format!("{base}/interface-id"), nic.id.clone()),
        (format!("{base}/mac"), nic.mac.clone()),
        (format!("{base}/owner-id"), call.account.id.clone()),
        (format!("{base}/security-group-ids"), nic.groups.join("\n")),
        (format!("{base}/subnet-id"), nic.subnet_id.clone()),
        (format!("{base}/subnet-ipv4-cidr-block"), cidr.unwrap_or_default()),
        (format!("{base}/vpc-id"), network.vpc_id.clone()),
    ];
    if let Some(ip) = nic.private_ip {
        leaves.push((format!("{base}/local-ipv4s"), ip.to_string()));
    }
    leaves
}

fn iam(call: &Call<'_>, instance: &Instance) -> Vec<(String, String)> {
    let Some(credentials) = &instance.credentials else {
        return Vec::new();
    };
    let expires = call.now.saturating_add(jiff::SignedDuration::from_hours(6)).unwrap_or(call.now);
    let arn = format!("arn:aws:iam::{}:instance-profile/{}", call.account.id, credentials.role);
    let info = json!({
        "Code": "Success", "LastUpdated": iso(call.now), "InstanceProfileArn": arn,
        "InstanceProfileId": "AIPA0SIMULATED",
    });
    let role = json!({
        "Code": "Success", "LastUpdated": iso(call.now), "Type": "AWS-HMAC",
        "AccessKeyId": credentials.access_key_id,
        "SecretAccessKey": credentials.secret_access_key,
        "Token": credentials.token, "Expiration": iso(expires),
    });
    vec![
        ("iam/info".to_owned(), info.to_string()),
        (format!("iam/security-credentials/{}", credentials.role), role.to_string()),
    ]
}

fn document(call: &Call<'_>, instance: &Instance) -> String {
    json!({
        "accountId": call.account.id,
        "architecture": instance.architecture,
        "availabilityZone": instance.zone,
        "imageId": instance.image_id,
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "pendingTime": iso(instance.launched_at),
        "privateIp": instance.private_ip,
        "region": call.region.name,
        "version": "2017-09-30",
    })
    .to_string()
}
