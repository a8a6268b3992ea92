//! How much of a launch can be had: resource tokens, capacity, addresses.

use super::launch_check::Checked;
use super::launch_request::LaunchRequest;
use crate::call::Call;
use crate::capacity::Pool;
use crate::wire::ApiError;

/// How many to launch: resource tokens, capacity and addresses allowing.
pub fn reserve(
    call: &mut Call<'_>,
    request: &LaunchRequest,
    checked: &Checked,
) -> Result<u32, ApiError> {
    call.take_resources("RunInstances", request.max)?;
    let pool = Pool {
        instance_type: checked.instance_type.name.clone(),
        zone: checked.zone.name.clone(),
        market: checked.market.to_owned(),
    };
    let free = call.account.capacity.free(&pool).unwrap_or(u32::MAX);
    if free < request.min {
        return Err(no_capacity(&pool.instance_type, &pool.zone));
    }
    let count = request.max.min(free);
    check_addresses(call, request, checked, count)?;
    check_counts(call, request, count)?;
    call.account.capacity.take(&pool, count);
    Ok(count)
}

fn check_addresses(
    call: &Call<'_>,
    request: &LaunchRequest,
    checked: &Checked,
    count: u32,
) -> Result<(), ApiError> {
    let network = &call.region.ec2.network;
    let subnet_id = default_subnet(call, request, checked)?;
    let subnet = network.subnet(&subnet_id)?;
    let addressed = request
        .nics
        .iter()
        .filter(|nic| nic.interface_type.as_deref() != Some("efa-only") && nic.existing.is_none())
        .count();
    let each = if request.nics.is_empty() { 1 } else { addressed };
    if network.free(subnet) < each * count as usize {
        return Err(ApiError::client(
            "InsufficientFreeAddressesInSubnet",
            format!(
                "There are not enough free addresses in subnet '{}' to satisfy the requested \
                 number of instances.",
                subnet.id
            ),
        ));
    }
    Ok(())
}

/// The subnet an interface gets that names none.
pub fn default_subnet(
    call: &Call<'_>,
    request: &LaunchRequest,
    checked: &Checked,
) -> Result<String, ApiError> {
    let named = request.nics.iter().find_map(|nic| nic.subnet_id.clone());
    let of_zone = || {
        let subnets = &call.region.ec2.network.subnets;
        subnets.iter().find(|subnet| subnet.zone == checked.zone).map(|subnet| subnet.id.clone())
    };
    request.subnet_id.clone().or(named).or_else(of_zone).ok_or_else(|| {
        ApiError::client(
            "MissingInput",
            format!("No subnets found for the default VPC in zone {}.", checked.zone.name),
        )
    })
}

/// The refusal of a launch that finds no free machine.
fn no_capacity(instance_type: &str, zone: &str) -> ApiError {
    ApiError::with_status(
        500,
        "InsufficientInstanceCapacity",
        format!(
            "We currently do not have sufficient {instance_type} capacity in the Availability Zone \
             you requested ({zone}). Our system will be working on provisioning additional \
             capacity. You can currently get {instance_type} capacity by not specifying an \
             Availability Zone in your request or choosing another Availability Zone."
        ),
    )
}

/// Quotas of what a launch makes beside instances.
fn check_counts(call: &Call<'_>, request: &LaunchRequest, count: u32) -> Result<(), ApiError> {
    let ec2 = &call.region.ec2;
    let quotas = &call.account.quotas;
    let fresh = request.nics.iter().filter(|nic| nic.existing.is_none()).count();
    let each = if request.nics.is_empty() { 1 } else { fresh };
    let nics = ec2.interfaces.len() + each * count as usize;
    if nics as u64 > quotas.limit("network-interfaces") {
        return Err(ApiError::client(
            "NetworkInterfaceLimitExceeded",
            "The maximum number of network interfaces has been reached.",
        ));
    }
    if ec2.volumes.len() as u64 + u64::from(count) > quotas.limit("volumes") {
        return Err(ApiError::client("VolumeLimitExceeded", "Volume limit exceeded."));
    }
    for nic in request.nics.iter().filter(|nic| nic.private_ip.is_some()) {
        let subnet = nic.subnet_id.as_deref().or(request.subnet_id.as_deref());
        ec2.network.check_free(subnet, nic.private_ip)?;
    }
    ec2.network.check_free(request.subnet_id.as_deref(), request.private_ip)
}
