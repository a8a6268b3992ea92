//! EBS volumes: create, attach, detach, delete, describe.

use serde_json::{Value, json};

use super::attach::{attachment_status, render_attachment};
use super::done;
use super::filters::Filters;
use super::page::{Page, paginate};
use super::tags::{TagSpecifications, render_tags};
use super::tokens::{Scope, check_token, digest};
use super::volume::{NewVolume, Volume, VolumeAttachment, make, remove};
use crate::call::Call;
use crate::clock::iso;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

#[derive(Debug)]
struct CreateRequest {
    zone: String,
    size: Option<u32>,
    volume_type: Option<String>,
    encrypted: Option<bool>,
    iops: Option<u32>,
    throughput: Option<u32>,
    tags: TagSpecifications,
}

/// `CreateVolume`.
pub fn create(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (token, request) = params.read(|p| {
        let request = CreateRequest {
            zone: p.required("AvailabilityZone")?,
            size: p.number("Size")?,
            volume_type: p.text("VolumeType")?,
            encrypted: p.flag("Encrypted")?,
            iops: p.number("Iops")?,
            throughput: p.number("Throughput")?,
            tags: TagSpecifications::read(p, &[Kind::Volume])?,
        };
        Ok((p.text("ClientToken")?, request))
    })?;
    if let Some(token) = &token {
        check_token(token)?;
    }
    let digest = digest(&request);
    let scope = token.clone().map(|token| Scope { action: "CreateVolume", zone: None, token });
    if let Some(scope) = &scope
        && let Some(replay) = call.region.ec2.tokens.replay(scope, digest)?
    {
        return Ok(replay.answer);
    }
    let (size_gib, volume_type) = check_new(call, &request)?;
    call.commit()?;
    let new = NewVolume {
        tags: request.tags.of(Kind::Volume),
        encrypted: request.encrypted.unwrap_or(false),
        zone: request.zone,
        size_gib,
        volume_type,
        token,
    };
    let volume = make(call, new);
    let answer = render(call, &volume);
    if let Some(scope) = scope {
        call.region.ec2.tokens.spend(scope, digest, answer.clone(), vec![volume.id]);
    }
    Ok(answer)
}

fn check_new(call: &Call<'_>, request: &CreateRequest) -> Result<(u32, String), ApiError> {
    if !call.region.ec2.network.zones.iter().any(|zone| zone.name == request.zone) {
        return Err(ApiError::client(
            "InvalidZone.NotFound",
            format!("The zone '{}' does not exist.", request.zone),
        ));
    }
    let kind = request.volume_type.clone().unwrap_or_else(|| "gp2".to_owned());
    if !["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"].contains(&kind.as_str()) {
        return Err(ApiError::client("UnknownVolumeType", format!("Unknown volume type: {kind}")));
    }
    let least = if ["st1", "sc1"].contains(&kind.as_str()) { 125 } else { 1 };
    let size = request.size.ok_or_else(|| {
        ApiError::client("MissingParameter", "The request must contain the parameter size/snapshot")
    })?;
    if !(least..=65_536).contains(&size) {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("Volume of {size}GiB is out of bounds for volume type {kind}."),
        ));
    }
    check_performance(request, &kind)?;
    if call.region.ec2.volumes.len() as u64 >= call.account.quotas.limit("volumes") {
        return Err(ApiError::client("VolumeLimitExceeded", "Volume limit exceeded."));
    }
    Ok((size, kind))
}

fn check_performance(request: &CreateRequest, kind: &str) -> Result<(), ApiError> {
    let refuse = |name: &str| {
        Err(ApiError::combination(format!(
            "The parameter {name} is not supported for {kind} volumes."
        )))
    };
    if request.iops.is_some() && !["gp3", "io1", "io2"].contains(&kind) {
        return refuse("iops");
    }
    if request.throughput.is_some() && kind != "gp3" {
        return refuse("throughput");
    }
    Ok(())
}

/// `DeleteVolume`.
pub fn delete(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let id = params.read(|p| p.required("VolumeId"))?;
    let volume = call.region.ec2.volume(&id, call.now)?;
    if let Some(attachment) = &volume.attachment {
        return Err(ApiError::client(
            "VolumeInUse",
            format!("Volume {id} is currently attached to {}", attachment.instance_id),
        ));
    }
    call.commit()?;
    remove(call, &id);
    Ok(done())
}

const FILTERS: [&str; 9] = [
    "attachment.device",
    "attachment.instance-id",
    "attachment.status",
    "availability-zone",
    "encrypted",
    "size",
    "status",
    "volume-id",
    "volume-type",
];

/// `DescribeVolumes`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, filters, page) = params.read(|p| {
        Ok((p.texts("VolumeId")?, Filters::read(p, &FILTERS)?, Page::read(p, (5, 1000))?))
    })?;
    for id in &ids {
        call.region.ec2.volume(id, call.now)?;
    }
    let rows = call
        .region
        .ec2
        .volumes
        .values()
        .filter(|volume| volume.visible_at <= call.now)
        .filter(|volume| ids.is_empty() || ids.contains(&volume.id))
        .filter(|volume| {
            filters.pass(call.tags(Kind::Volume, &volume.id), |name| value(call, volume, name))
        })
        .map(|volume| (volume.id.clone(), render(call, volume)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"volumeSet": rows, "nextToken": next}))
}

fn value(call: &Call<'_>, volume: &Volume, name: &str) -> Vec<String> {
    let of_attachment = |pick: fn(&VolumeAttachment) -> String| {
        volume.attachment.iter().map(pick).collect::<Vec<_>>()
    };
    match name {
        "attachment.device" => of_attachment(|at| at.device.clone()),
        "attachment.instance-id" => of_attachment(|at| at.instance_id.clone()),
        "attachment.status" => {
            volume.attachment.iter().map(|at| attachment_status(call, at).to_owned()).collect()
        }
        "availability-zone" => vec![volume.zone.clone()],
        "encrypted" => vec![volume.encrypted.to_string()],
        "size" => vec![volume.size_gib.to_string()],
        "status" => vec![status(call, volume).to_owned()],
        "volume-id" => vec![volume.id.clone()],
        _ => vec![volume.volume_type.clone()],
    }
}

fn status(call: &Call<'_>, volume: &Volume) -> &'static str {
    if volume.attachment.is_some() {
        "in-use"
    } else if volume.available_at <= call.now {
        "available"
    } else {
        "creating"
    }
}

fn render(call: &Call<'_>, volume: &Volume) -> Value {
    let attachments: Vec<Value> =
        volume.attachment.iter().map(|at| render_attachment(call, &volume.id, at)).collect();
    json!({
        "volumeId": volume.id,
        "size": volume.size_gib,
        "snapshotId": "",
        "availabilityZone": volume.zone,
        "status": status(call, volume),
        "createTime": iso(volume.created_at),
        "attachmentSet": attachments,
        "tagSet": render_tags(call.tags(Kind::Volume, &volume.id)),
        "volumeType": volume.volume_type,
        "iops": (volume.volume_type == "gp3").then_some(3000),
        "throughput": (volume.volume_type == "gp3").then_some(125),
        "encrypted": volume.encrypted,
        "multiAttachEnabled": false,
    })
}
