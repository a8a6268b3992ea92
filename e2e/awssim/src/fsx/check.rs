//! What `CreateFileSystem` is refused for.

use super::request::{CreateRequest, LustreRequest};
use crate::call::Call;
use crate::ec2::{Reach, Traffic, check_tags};
use crate::ledger::{Kind, Tags};
use crate::wire::ApiError;

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::client("BadRequest", message)
}

/// All checks; gives the capacity in GiB.
pub fn check(call: &Call<'_>, request: &CreateRequest) -> Result<u64, ApiError> {
    if request.file_system_type != "LUSTRE" {
        return Err(bad("Only LUSTRE file systems are simulated."));
    }
    let lustre = request.lustre();
    let capacity = check_capacity(request, &lustre)?;
    check_throughput(&lustre)?;
    check_version(request, &lustre)?;
    check_options(&lustre)?;
    check_tags(&tags(request))?;
    check_network(call, request)?;
    check_addresses(call, request, capacity)?;
    check_quotas(call, capacity)?;
    Ok(capacity)
}

/// Tags by key.
pub fn tags(request: &CreateRequest) -> Tags {
    request.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect()
}

/// The capacity grid of each deployment type.
fn check_capacity(request: &CreateRequest, lustre: &LustreRequest) -> Result<u64, ApiError> {
    let capacity = request
        .storage_capacity
        .ok_or_else(|| bad("Storage capacity is required for this file system."))?;
    let storage = request.storage_type.as_deref().unwrap_or("SSD");
    let deployment = lustre.deployment_type();
    let (ok, grid) = match (deployment, storage) {
        ("SCRATCH_1", "SSD") => (
            [1200, 2400].contains(&capacity) || (capacity > 0 && capacity % 3600 == 0),
            "1200, 2400 or a multiple of 3600",
        ),
        ("PERSISTENT_2", "SSD") if lustre.efa_enabled == Some(true) => {
            let step = efa_step(lustre.per_unit_storage_throughput);
            (capacity > 0 && capacity % step == 0, "a multiple of the EFA storage unit")
        }
        ("SCRATCH_2" | "PERSISTENT_1" | "PERSISTENT_2", "SSD") => (
            capacity == 1200 || (capacity > 0 && capacity % 2400 == 0),
            "1200 or a multiple of 2400",
        ),
        ("PERSISTENT_1", "HDD") => {
            let step = if lustre.per_unit_storage_throughput == Some(40) { 1800 } else { 6000 };
            (capacity > 0 && capacity % step == 0, "a multiple of 6000 (12 MB/s) or 1800 (40 MB/s)")
        }
        ("SCRATCH_1" | "SCRATCH_2" | "PERSISTENT_1" | "PERSISTENT_2", other) => {
            return Err(bad(format!("Storage type {other} is not supported by {deployment}.")));
        }
        (other, _) => return Err(bad(format!("Invalid Lustre deployment type: {other}"))),
    };
    if ok {
        return Ok(capacity);
    }
    Err(bad(format!("Invalid Lustre FS storage capacity: {capacity}. Must be {grid}.")))
}

fn efa_step(throughput: Option<u64>) -> u64 {
    match throughput {
        Some(1000) => 4800,
        Some(500) => 9600,
        Some(250) => 19_200,
        _ => 38_400,
    }
}

fn check_throughput(lustre: &LustreRequest) -> Result<(), ApiError> {
    let allowed: &[u64] = match lustre.deployment_type() {
        "PERSISTENT_1" => &[12, 40, 50, 100, 200],
        "PERSISTENT_2" => &[125, 250, 500, 1000],
        _ => &[],
    };
    let refusal = |message: &str| ApiError::client("InvalidPerUnitStorageThroughput", message);
    match lustre.per_unit_storage_throughput {
        None if allowed.is_empty() => Ok(()),
        None => Err(refusal("PerUnitStorageThroughput is required for persistent file systems.")),
        Some(_) if allowed.is_empty() => {
            Err(refusal("PerUnitStorageThroughput is not supported by scratch file systems."))
        }
        Some(value) if allowed.contains(&value) => Ok(()),
        Some(_) => Err(refusal(
            "Invalid Lustre deployment configuration: the provided throughput is invalid or does \
             not meet the storage capacity requirement",
        )),
    }
}

fn check_version(request: &CreateRequest, lustre: &LustreRequest) -> Result<(), ApiError> {
    let version = request.version();
    if !["2.10", "2.12", "2.15"].contains(&version.as_str()) {
        return Err(bad(format!("Invalid file system type version: {version}")));
    }
    if lustre.deployment_type() == "PERSISTENT_2" && version == "2.10" {
        return Err(bad("PERSISTENT_2 file systems require Lustre version 2.12 or later."));
    }
    if lustre.metadata_configuration.is_some() {
        if lustre.deployment_type() != "PERSISTENT_2" {
            return Err(bad("MetadataConfiguration requires a PERSISTENT_2 file system."));
        }
        if version != "2.15" {
            return Err(bad("MetadataConfiguration requires Lustre version 2.15."));
        }
    }
    Ok(())
}

fn check_options(lustre: &LustreRequest) -> Result<(), ApiError> {
    let persistent = lustre.deployment_type().starts_with("PERSISTENT");
    if !matches!(lustre.data_compression_type.as_deref(), None | Some("NONE" | "LZ4")) {
        return Err(bad("Invalid DataCompressionType."));
    }
    if lustre.automatic_backup_retention_days.unwrap_or(0) > 0 && !persistent {
        return Err(bad("Backups are not supported by scratch file systems."));
    }
    if lustre.efa_enabled == Some(true) {
        if lustre.deployment_type() != "PERSISTENT_2" {
            return Err(bad("EFA requires a PERSISTENT_2 file system."));
        }
        if lustre.metadata_configuration.is_none() {
            return Err(bad("EFA requires a MetadataConfiguration."));
        }
    }
    Ok(())
}

/// One subnet; groups that exist and let LNET through, by the rules that are
/// visible now.
fn check_network(call: &Call<'_>, request: &CreateRequest) -> Result<(), ApiError> {
    let invalid = |message: String| ApiError::client("InvalidNetworkSettings", message);
    let ec2 = &call.region.ec2;
    let [subnet_id] = request.subnet_ids.as_slice() else {
        return Err(bad("Exactly one subnet ID is required for a Lustre file system."));
    };
    let subnet = ec2.network.subnet(subnet_id).map_err(|_unknown| {
        invalid(format!("The subnet '{subnet_id}' does not exist."))
            .field("InvalidSubnetId", subnet_id)
    })?;
    let mut groups = request.security_group_ids.clone();
    for id in &groups {
        ec2.group(id, call.now).map_err(|_unknown| {
            invalid(format!("The security group '{id}' does not exist."))
                .field("InvalidSecurityGroupId", id)
        })?;
    }
    if groups.is_empty() {
        groups.push(ec2.default_group());
    }
    let itself = Reach { groups: &groups, address: None };
    let open = |traffic| ec2.is_open(call.now, itself, itself, traffic);
    if !open(Traffic::LNET) || !open(Traffic::LNET_SOURCES) {
        return Err(invalid(format!(
            "The file system cannot be created because the default security group in the subnet \
             provided or the provided security groups do not permit Lustre LNET network traffic \
             on port 988 (subnet {})",
            subnet.id
        ))
        .field("InvalidSecurityGroupId", &groups.join(",")));
    }
    if request.lustre().efa_enabled == Some(true) && !ec2.allows_itself_everything(&groups) {
        return Err(invalid(
            "Insufficient security group permissions to create an EFA-enabled file system. Update \
             security group to allow all internal inbound and outbound traffic."
                .to_owned(),
        ));
    }
    Ok(())
}

/// Interfaces of a file system: one for the metadata server and one per
/// 2,400 GiB.
pub fn interface_count(capacity: u64) -> u64 {
    (1 + capacity.div_ceil(2400)).min(20)
}

fn check_addresses(
    call: &Call<'_>,
    request: &CreateRequest,
    capacity: u64,
) -> Result<(), ApiError> {
    let network = &call.region.ec2.network;
    let subnet = request.subnet_ids.first().and_then(|id| network.subnet(id).ok());
    let free = subnet.map_or(0, |subnet| network.free(subnet)) as u64;
    let nics = call.region.ec2.interfaces.len() as u64 + interface_count(capacity);
    if free < interface_count(capacity) || nics > call.account.quotas.limit("network-interfaces") {
        return Err(ApiError::client(
            "InvalidNetworkSettings",
            "The subnet does not have enough free IP addresses.",
        ));
    }
    Ok(())
}

fn check_quotas(call: &Call<'_>, capacity: u64) -> Result<(), ApiError> {
    let quotas = &call.account.quotas;
    let exceeded = |limit: &str, message: &str| {
        Err(ApiError::client("ServiceLimitExceeded", message).field("Limit", limit))
    };
    let living = call.account.ledger.living(Kind::FileSystem, &call.region.name) as u64;
    if living >= quotas.limit("file-systems") {
        return exceeded("FILE_SYSTEM_COUNT", "The number of file systems exceeds the limit.");
    }
    let used: u64 = call.region.fsx.file_systems.values().map(|fs| fs.capacity_gib).sum();
    if used + capacity > quotas.limit("file-system-storage-gib") {
        return exceeded("TOTAL_STORAGE", "The total storage exceeds the limit.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(deployment: &str, throughput: Option<u64>, capacity: u64) -> String {
        let lustre = LustreRequest {
            deployment_type: Some(deployment.to_owned()),
            per_unit_storage_throughput: throughput,
            ..LustreRequest::default()
        };
        let request = CreateRequest {
            client_request_token: None,
            file_system_type: "LUSTRE".to_owned(),
            storage_capacity: Some(capacity),
            storage_type: None,
            subnet_ids: Vec::new(),
            security_group_ids: Vec::new(),
            tags: Vec::new(),
            file_system_type_version: Some("2.15".to_owned()),
            lustre_configuration: Some(lustre.clone()),
        };
        let verdict = check_capacity(&request, &lustre)
            .and_then(|_| check_throughput(&lustre))
            .and_then(|()| check_version(&request, &lustre));
        verdict.map_or_else(|error| error.code, |()| "ok".to_owned())
    }

    #[test]
    fn capacity_and_throughput_grids_are_those_of_the_guide() {
        for (deployment, throughput, capacity, expected) in [
            ("SCRATCH_1", None, 1200, "ok"),
            ("SCRATCH_1", None, 3600, "ok"),
            ("SCRATCH_1", None, 4800, "BadRequest"),
            ("SCRATCH_2", None, 1200, "ok"),
            ("SCRATCH_2", None, 2400, "ok"),
            ("SCRATCH_2", None, 3600, "BadRequest"),
            ("SCRATCH_2", None, 0, "BadRequest"),
            ("SCRATCH_2", Some(125), 1200, "InvalidPerUnitStorageThroughput"),
            ("PERSISTENT_2", Some(250), 4800, "ok"),
            ("PERSISTENT_2", None, 4800, "InvalidPerUnitStorageThroughput"),
            ("PERSISTENT_2", Some(200), 4800, "InvalidPerUnitStorageThroughput"),
            ("PERSISTENT_1", Some(200), 2400, "ok"),
            ("PERSISTENT_3", None, 2400, "BadRequest"),
        ] {
            let found = grid(deployment, throughput, capacity);
            assert_eq!(found, expected, "{deployment} {throughput:?} {capacity}");
        }
    }
}
