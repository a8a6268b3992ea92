//! Everything a launch is refused for before capacity is asked.

use super::instance::Metadata;
use super::interface::InterfaceType;
use super::launch_options::{
    check_cpu, check_market, check_metadata, check_tenancy, decode_user_data,
};
use super::launch_request::LaunchRequest;
use super::nic_check::{self, Nic};
use crate::call::Call;
use crate::catalog::{Image, InstanceType, Zone, images, offered};
use crate::quota::vcpu_quota;
use crate::wire::ApiError;

/// A launch that may go ahead if there is capacity.
#[derive(Debug)]
pub struct Checked {
    /// The type.
    pub instance_type: InstanceType,
    /// The image.
    pub image: Image,
    /// The zone.
    pub zone: Zone,
    /// Decoded user data.
    pub user_data: Option<Vec<u8>>,
    /// IMDS options.
    pub metadata: Metadata,
    /// Profile name.
    pub profile: Option<String>,
    /// Placement group name.
    pub placement_group: Option<String>,
    /// Cores and threads per core.
    pub cpu: (u32, u32),
    /// Market.
    pub market: &'static str,
}

/// Runs all checks in the order EC2 seems to.
pub fn check(call: &Call<'_>, request: &LaunchRequest, zone: Zone) -> Result<Checked, ApiError> {
    check_counts(request)?;
    let (instance_type, image) = check_type(call, request)?;
    let placement_group = check_placement(call, request, &instance_type, &zone)?;
    check_network(call, request, &instance_type)?;
    check_tenancy(request)?;
    let checked = Checked {
        user_data: decode_user_data(request.user_data.as_deref())?,
        metadata: check_metadata(request)?,
        profile: check_profile(call, request)?,
        cpu: check_cpu(request, &instance_type)?,
        market: check_market(request, &instance_type)?,
        placement_group,
        instance_type,
        image,
        zone,
    };
    check_key(call, request)?;
    check_offered(&checked)?;
    check_quota(call, request, &checked)?;
    Ok(checked)
}

fn check_counts(request: &LaunchRequest) -> Result<(), ApiError> {
    if request.min == 0 || request.max == 0 || request.min > request.max {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!(
                "Invalid value '{}' for MinCount. It must be at least 1 and at most MaxCount ({}).",
                request.min, request.max
            ),
        ));
    }
    match request.shutdown.as_deref() {
        None | Some("stop" | "terminate") => Ok(()),
        Some(other) => Err(ApiError::invalid_value(
            "instanceInitiatedShutdownBehavior",
            other,
            "Expected stop or terminate.",
        )),
    }
}

fn check_type(call: &Call<'_>, request: &LaunchRequest) -> Result<(InstanceType, Image), ApiError> {
    let name = &request.instance_type;
    let known = call.engine.types.get(name).cloned().ok_or_else(|| {
        ApiError::client(
            "InvalidParameterValue",
            format!("Invalid value '{name}' for InstanceType."),
        )
    })?;
    let all = images();
    let image = super::images::find(&all, &request.image_id)?.clone();
    if !known.architectures.iter().any(|architecture| architecture == image.architecture) {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!(
                "The architecture '{}' of the specified instance type does not match the \
                 architecture '{}' of the specified AMI. Specify an instance type and an AMI that \
                 have matching architectures, and try again.",
                known.architectures.join(","),
                image.architecture
            ),
        ));
    }
    Ok((known, image))
}

fn check_offered(checked: &Checked) -> Result<(), ApiError> {
    let (t, zone) = (&checked.instance_type, &checked.zone);
    if offered(t, zone) {
        return Ok(());
    }
    Err(ApiError::client(
        "Unsupported",
        format!(
            "Your requested instance type ({}) is not supported in your requested Availability \
             Zone ({}). Please retry your request by not specifying an Availability Zone or \
             choosing another one.",
            t.name, zone.name
        ),
    ))
}

fn check_placement(
    call: &Call<'_>,
    request: &LaunchRequest,
    instance_type: &InstanceType,
    zone: &Zone,
) -> Result<Option<String>, ApiError> {
    let asked = match (&request.placement.group_name, &request.placement.group_id) {
        (Some(_), Some(_)) => {
            return Err(ApiError::combination(
                "The parameters GroupName and GroupId may not be used together.",
            ));
        }
        (Some(name), None) => name,
        (None, Some(id)) => id,
        (None, None) => return Ok(None),
    };
    let ec2 = &call.region.ec2;
    let group = ec2.placement_group(asked, call.now)?;
    if !instance_type.strategies.contains(&group.strategy) {
        return Err(ApiError::combination(format!(
            "Placement groups with strategy '{}' are not supported by the '{}' instance type.",
            group.strategy, instance_type.name
        )));
    }
    let pinned = ec2.zone_of_placement_group(&group.name).filter(|_| group.strategy == "cluster");
    match pinned {
        Some(pinned) if pinned != zone.name => Err(ApiError::client(
            "InvalidPlacementGroup.InUse",
            format!(
                "The placement group '{}' is in use in another availability zone: {pinned}",
                group.name
            ),
        )),
        Some(_) | None => Ok(Some(group.name.clone())),
    }
}

fn check_network(
    call: &Call<'_>,
    request: &LaunchRequest,
    instance_type: &InstanceType,
) -> Result<(), ApiError> {
    for group in request.groups.iter().chain(request.nics.iter().flat_map(|nic| &nic.groups)) {
        call.region.ec2.group(group, call.now)?;
    }
    if request.nics.is_empty() {
        if request.private_ip.is_some() && request.max > 1 {
            return Err(ApiError::combination(
                "The privateIpAddress parameter cannot be specified when launching more than one \
                 instance.",
            ));
        }
        return Ok(());
    }
    if request.subnet_id.is_some() || request.private_ip.is_some() {
        return Err(ApiError::combination(
            "Network interfaces and an instance-level subnet ID may not be specified on the same \
             request",
        ));
    }
    if !request.groups.is_empty() {
        return Err(ApiError::combination(
            "Network interfaces and instance-level security groups may not be specified on the \
             same request",
        ));
    }
    nic_check::check(instance_type, &nics(call, request)?, request.max)
}

/// The interfaces with their types; existing ones must be free.
fn nics<'a>(call: &Call<'_>, request: &'a LaunchRequest) -> Result<Vec<Nic<'a>>, ApiError> {
    request
        .nics
        .iter()
        .map(|asked| {
            let kind = match &asked.existing {
                Some(id) => {
                    let existing = call.region.ec2.interface(id, call.now)?;
                    if existing.attachment.is_some() || existing.requester.is_some() {
                        return Err(ApiError::client(
                            "InvalidNetworkInterface.InUse",
                            format!("Interface: [{id}] in use."),
                        ));
                    }
                    existing.interface_type
                }
                None => {
                    InterfaceType::parse(asked.interface_type.as_deref().unwrap_or("interface"))?
                }
            };
            Ok(Nic { asked, kind })
        })
        .collect()
}

fn check_profile(call: &Call<'_>, request: &LaunchRequest) -> Result<Option<String>, ApiError> {
    let (member, asked) = match &request.profile {
        None | Some((None, None)) => return Ok(None),
        Some((Some(_), Some(_))) => {
            return Err(ApiError::combination(
                "The parameters iamInstanceProfile.arn and iamInstanceProfile.name may not be \
                 used together",
            ));
        }
        Some((Some(arn), None)) => ("arn", arn.as_str()),
        Some((None, Some(name))) => ("name", name.as_str()),
    };
    let prefix = format!("arn:aws:iam::{}:instance-profile/", call.account.id);
    let name = if member == "arn" { asked.strip_prefix(&prefix) } else { Some(asked) };
    let known = &call.account.settings.instance_profiles;
    name.filter(|name| known.contains(*name)).map(|name| Some(name.to_owned())).ok_or_else(|| {
        ApiError::invalid_value(
            &format!("iamInstanceProfile.{member}"),
            asked,
            if member == "arn" {
                "Invalid IAM Instance Profile ARN"
            } else {
                "Invalid IAM Instance Profile name"
            },
        )
    })
}

fn check_key(call: &Call<'_>, request: &LaunchRequest) -> Result<(), ApiError> {
    match &request.key_name {
        Some(name) if !call.account.settings.key_pairs.contains(name) => Err(ApiError::client(
            "InvalidKeyPair.NotFound",
            format!("The key pair '{name}' does not exist"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// vCPU of the family in use plus what is asked.
fn check_quota(
    call: &Call<'_>,
    request: &LaunchRequest,
    checked: &Checked,
) -> Result<(), ApiError> {
    let quota = vcpu_quota(&checked.instance_type.name);
    let limit = call.account.quotas.limit(quota);
    let used: u64 = call
        .region
        .ec2
        .instances
        .values()
        .filter(|i| i.is_alive() && vcpu_quota(&i.instance_type) == quota)
        .map(|i| u64::from(i.cpu.0 * i.cpu.1))
        .sum();
    let (cores, threads) = checked.cpu;
    let asked = u64::from(request.min) * u64::from(cores * threads);
    if used + asked <= limit {
        return Ok(());
    }
    Err(ApiError::client(
        "VcpuLimitExceeded",
        format!(
            "You have requested more vCPU capacity than your current vCPU limit of {limit} allows \
             for the instance bucket that the specified instance type belongs to. Please visit \
             http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
        ),
    ))
}
