//! `AttachVolume` and `DetachVolume`.

use serde_json::{Value, json};

use super::instance::InstanceState;
use super::volume::VolumeAttachment;
use crate::call::Call;
use crate::clock::{Delay, iso};
use crate::wire::{ApiError, Params};

/// `AttachVolume`.
pub fn attach(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (id, instance_id, device) = params.read(|p| {
        Ok((p.required("VolumeId")?, p.required("InstanceId")?, p.required("Device")?))
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
    if let Some(instance) = call.region.ec2.instances.get_mut(&attachment.instance_id) {
        instance.volumes.push(id.clone());
    }
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
        return Err(ApiError::client("IncorrectState", format!("{id} is not 'available'.")));
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
    let mut taken =
        instance.volumes.iter().filter_map(|id| ec2.volumes.get(id)?.attachment.as_ref());
    if taken.any(|at| at.device == device) {
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
        Ok((p.required("VolumeId")?, p.text("InstanceId")?, p.text("Device")?))
    })?;
    let volume = call.region.ec2.volume(&id, call.now)?;
    let attachment = volume.attachment.clone().ok_or_else(|| {
        ApiError::client("IncorrectState", format!("Volume '{id}' is in the 'available' state."))
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
    if let Some(instance) = call.region.ec2.instances.get_mut(&attachment.instance_id) {
        instance.volumes.retain(|attached| *attached != id);
    }
    let mut row = render_attachment(call, &id, &attachment);
    if let Some(members) = row.as_object_mut() {
        members.insert("status".to_owned(), json!("detaching"));
    }
    Ok(row)
}

/// `attaching` or `attached`.
pub fn attachment_status(call: &Call<'_>, attachment: &VolumeAttachment) -> &'static str {
    if attachment.attached_at <= call.now { "attached" } else { "attaching" }
}

/// An attachment in answers.
pub fn render_attachment(call: &Call<'_>, id: &str, attachment: &VolumeAttachment) -> Value {
    json!({
        "volumeId": id,
        "instanceId": attachment.instance_id,
        "device": attachment.device,
        "status": attachment_status(call, attachment),
        "attachTime": iso(attachment.at),
        "deleteOnTermination": attachment.delete_on_termination,
    })
}
