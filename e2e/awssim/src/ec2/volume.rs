//! One EBS volume: made by itself or as the root of an instance.

use jiff::Timestamp;
use serde_json::json;

use super::Ec2;
use crate::call::{Call, Newborn};
use crate::clock::Delay;
use crate::effect::Effect;
use crate::ledger::{Kind, Tags};
use crate::wire::ApiError;

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
#[expect(clippy::struct_field_names, reason = "the fields have EC2's names")]
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
    /// The volume, once other calls may name it.
    pub fn volume(&self, id: &str, now: Timestamp) -> Result<&Volume, ApiError> {
        self.volumes.get(id).filter(|volume| volume.visible_at <= now).ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> ApiError {
    ApiError::client("InvalidVolume.NotFound", format!("The volume '{id}' does not exist."))
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
    call.engine.state_dir.join("volumes").join(&call.account.id).join(id)
}
