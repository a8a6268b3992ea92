//! EBS volumes: create, attach, detach, delete, describe.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::filters::Filters;
use super::instance::InstanceState;
use super::page::{Page, paginate};
use super::tags::{TagSpecifications, render_tags};
use super::tokens::{Scope, check_token, digest};
use super::{Ec2, done};
use crate::call::{Call, Newborn};
use crate::clock::{Delay, iso};
use crate::effect::Effect;
use crate::ledger::{Kind, Tags};
use crate::wire::{ApiError, Params};

/// How a volume hangs on an instance.
#[derive(Debug, Clone)]
pub struct VolumeAttachment {
    /// Instance.
    pub instance_id: String,
    /// For example `/dev/sdf`.
    pub device: String,
    /// Whether it goes with the instance.
    pub delete_on_termination: bool,
    /// Since when.
    pub at: Timestamp,
    /// `attaching` until then.
    pub attached_at: Timestamp,
}

/// One volume.
#[derive(Debug, Clone)]
pub struct Volume {
    /// `vol-…`.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// GiB.
    pub size_gib: u32,
    /// `gp3`, …
    pub volume_type: String,
    /// At rest.
    pub encrypted: bool,
    /// When the create call took effect.
    pub created_at: Timestamp,
    /// `creating` until then.
    pub available_at: Timestamp,
    /// From when Describe shows it.
    pub visible_at: Timestamp,
    /// Where it hangs.
    pub attachment: Option<VolumeAttachment>,
}

impl Ec2 {
    fn volume(&self, id: &str, now: Timestamp) -> Result<&Volume, ApiError> {
        self.volumes
            .get(id)
            .filter(|volume| volume.visible_at <= now)
            .ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> ApiError {
    ApiError::client(
        "InvalidVolume.NotFound",
        format!("The volume '{id}' does not exist."),
    )
}

/// A volume to make.
#[derive(Debug)]
pub struct NewVolume {
    /// Zone.
    pub zone: String,
    /// GiB.
    pub size_gib: u32,
    /// `gp3`, …
    pub volume_type: String,
    /// At rest.
    pub encrypted: bool,
    /// Tags.
    pub tags: Tags,
    /// Token of the call.
    pub token: Option<String>,
}

/// Makes a volume.
pub fn make(call: &mut Call<'_>, new: NewVolume) -> Volume {
    let id = call.new_id("vol");
    let volume = Volume {
        zone: new.zone,
        size_gib: new.size_gib,
        volume_type: new.volume_type,
        encrypted: new.encrypted,
        created_at: call.now,
        available_at: call.after(Delay::SmallResource, &id),
        visible_at: call.after(Delay::Usable, &id),
        attachment: None,
        id: id.clone(),
    };
    let detail = json!({"sizeGiB": volume.size_gib, "zone": volume.zone});
    call.born(Newborn {
        kind: Kind::Volume,
        id: &id,
        tags: new.tags,
        token: new.token.as_deref(),
        detail,
    });
    call.region.ec2.volumes.insert(id, volume.clone());
    volume
}

/// Removes a volume and its data.
pub fn remove(call: &mut Call<'_>, id: &str) {
    if call.region.ec2.volumes.remove(id).is_some() {
        call.gone(Kind::Volume, id);
        let path = backing_file(call, id);
        call.effects.push(Effect::Discard { path });
    }
}

/// Where the blocks of a volume are kept.
pub fn backing_file(call: &Call<'_>, id: &str) -> std::path::PathBuf {
    call.engine
        .state_dir
        .join("volumes")
        .join(&call.account.id)
        .join(id)
}

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
    let scope = token.clone().map(|token| Scope {
        action: "CreateVolume",
        zone: None,
        token,
    });
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
        call.region
            .ec2
            .tokens
            .spend(scope, digest, answer.clone(), vec![volume.id]);
    }
    Ok(answer)
}

fn check_new(call: &Call<'_>, request: &CreateRequest) -> Result<(u32, String), ApiError> {
    if !call
        .region
        .ec2
        .network
        .zones
        .iter()
        .any(|zone| zone.name == request.zone)
    {
        return Err(ApiError::client(
            "InvalidZone.NotFound",
            format!("The zone '{}' does not exist.", request.zone),
        ));
    }
    let kind = request
        .volume_type
        .clone()
        .unwrap_or_else(|| "gp2".to_owned());
    if !["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"].contains(&kind.as_str()) {
        return Err(ApiError::client(
            "UnknownVolumeType",
            format!("Unknown volume type: {kind}"),
        ));
    }
    let least = if ["st1", "sc1"].contains(&kind.as_str()) {
        125
    } else {
        1
    };
    let size = request.size.ok_or_else(|| {
        ApiError::client(
            "MissingParameter",
            "The request must contain the parameter size/snapshot",
        )
    })?;
    if !(least..=65_536).contains(&size) {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("Volume of {size}GiB is out of bounds for volume type {kind}."),
        ));
    }
    check_performance(request, &kind)?;
    if call.region.ec2.volumes.len() as u64 >= call.account.quotas.limit("volumes") {
        return Err(ApiError::client(
            "VolumeLimitExceeded",
            "Volume limit exceeded.",
        ));
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
            format!(
                "Volume {id} is currently attached to {}",
                attachment.instance_id
            ),
        ));
    }
    call.commit()?;
    remove(call, &id);
    Ok(done())
}

/// `AttachVolume`.
pub fn attach(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (id, instance_id, device) = params.read(|p| {
        Ok((
            p.required("VolumeId")?,
            p.required("InstanceId")?,
            p.required("Device")?,
        ))
    })?;
    check_attach(call, &id, &instance_id, &device)?;
    call.commit()?;
    let attachment = VolumeAttachment {
        instance_id,
        device,
        delete_on_termination: false,
        at: call.now,
        attached_at: call.after(Delay::SmallResource, &format!("attach {id}")),
    };
    let row = render_attachment(call, &id, &attachment);
    if let Some(volume) = call.region.ec2.volumes.get_mut(&id) {
        volume.attachment = Some(attachment);
    }
    Ok(row)
}

fn check_attach(
    call: &Call<'_>,
    id: &str,
    instance_id: &str,
    device: &str,
) -> Result<(), ApiError> {
    let ec2 = &call.region.ec2;
    let volume = ec2.volume(id, call.now)?;
    let instance = ec2.instance(instance_id, call.now)?;
    if volume.attachment.is_some() {
        return Err(ApiError::client(
            "VolumeInUse",
            format!("{id} is already attached to an instance"),
        ));
    }
    if volume.available_at > call.now {
        return Err(ApiError::client(
            "IncorrectState",
            format!("{id} is not 'available'."),
        ));
    }
    if volume.zone != instance.zone {
        return Err(ApiError::client(
            "InvalidVolume.ZoneMismatch",
            format!(
                "The volume '{id}' is not in the same availability zone as instance '{instance_id}'"
            ),
        ));
    }
    if instance.state != InstanceState::Running {
        return Err(ApiError::client(
            "IncorrectState",
            format!("Instance '{instance_id}' is not 'running'."),
        ));
    }
    let taken = ec2
        .volumes
        .values()
        .filter_map(|volume| volume.attachment.as_ref());
    if taken
        .clone()
        .any(|at| at.instance_id == instance_id && at.device == device)
    {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            ),
        ));
    }
    Ok(())
}

/// `DetachVolume`.
pub fn detach(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (id, instance_id, device) = params.read(|p| {
        p.flag("Force")?;
        Ok((
            p.required("VolumeId")?,
            p.text("InstanceId")?,
            p.text("Device")?,
        ))
    })?;
    let volume = call.region.ec2.volume(&id, call.now)?;
    let attachment = volume.attachment.clone().ok_or_else(|| {
        ApiError::client(
            "IncorrectState",
            format!("Volume '{id}' is in the 'available' state."),
        )
    })?;
    let other = |asked: Option<String>, found: &str| asked.is_some_and(|asked| asked != found);
    if other(instance_id, &attachment.instance_id) || other(device, &attachment.device) {
        return Err(ApiError::client(
            "InvalidAttachment.NotFound",
            format!("The volume '{id}' is not attached as described."),
        ));
    }
    call.commit()?;
    if let Some(volume) = call.region.ec2.volumes.get_mut(&id) {
        volume.attachment = None;
    }
    let mut row = render_attachment(call, &id, &attachment);
    if let Some(members) = row.as_object_mut() {
        members.insert("status".to_owned(), json!("detaching"));
    }
    Ok(row)
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
        Ok((
            p.texts("VolumeId")?,
            Filters::read(p, &FILTERS)?,
            Page::read(p, (5, 1000))?,
        ))
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
            filters.pass(&call.tags(Kind::Volume, &volume.id), |name| {
                value(call, volume, name)
            })
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
        "attachment.status" => volume
            .attachment
            .iter()
            .map(|at| attachment_status(call, at).to_owned())
            .collect(),
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

fn attachment_status(call: &Call<'_>, attachment: &VolumeAttachment) -> &'static str {
    if attachment.attached_at <= call.now {
        "attached"
    } else {
        "attaching"
    }
}

fn render_attachment(call: &Call<'_>, id: &str, attachment: &VolumeAttachment) -> Value {
    json!({
        "volumeId": id,
        "instanceId": attachment.instance_id,
        "device": attachment.device,
        "status": attachment_status(call, attachment),
        "attachTime": iso(attachment.at),
        "deleteOnTermination": attachment.delete_on_termination,
    })
}

fn render(call: &Call<'_>, volume: &Volume) -> Value {
    let attachments: Vec<Value> = volume
        .attachment
        .iter()
        .map(|at| render_attachment(call, &volume.id, at))
        .collect();
    json!({
        "volumeId": volume.id,
        "size": volume.size_gib,
        "snapshotId": "",
        "availabilityZone": volume.zone,
        "status": status(call, volume),
        "createTime": iso(volume.created_at),
        "attachmentSet": attachments,
        "tagSet": render_tags(&call.tags(Kind::Volume, &volume.id)),
        "volumeType": volume.volume_type,
        "iops": (volume.volume_type == "gp3").then_some(3000),
        "throughput": (volume.volume_type == "gp3").then_some(125),
        "encrypted": volume.encrypted,
        "multiAttachEnabled": false,
    })
}
