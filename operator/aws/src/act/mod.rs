//! Carrying out a step: one arm per variant, no choice left.
//!
//! Names that are taken and things that are gone count as done, but only when they are ours.

mod create;
mod give_back;
mod launch;
mod network;

use hpc_plan::cloud::{Failure, Kind, Token};
use hpc_plan::cluster::{Body, Step};

use crate::Scope;
use crate::action::{ATTACH_VOLUME, Action, CREATE_DOCUMENT, DESCRIBE_VOLUMES};
use crate::error::failure;
use crate::region::{Aws, Region};
use crate::words;

/// Ids that a step made, or found made.
type Made = Result<Vec<String>, Failure>;

/// See [`crate::Cloud::apply`].
pub(crate) async fn apply(aws: &Aws, scope: &Scope, step: &Step) -> Made {
    let region = aws.region(&scope.region);
    let made = dispatch(aws, &region, scope, step).await;
    region.shared.acted(&scope.owner.uid);
    tell(scope, step, &made);
    made
}

/// The audit log: every step with what came of it.
fn tell(scope: &Scope, step: &Step, made: &Made) {
    let came = match made {
        Ok(ids) => ids.join(" "),
        Err(failure) => format!("{failure}: {}", failure.message),
    };
    let (cluster, ok) = (scope.owner.full_name(), made.is_ok());
    tracing::info!(%step, cluster, ok, came, "step");
}

#[expect(clippy::cognitive_complexity, reason = "one arm per kind of step, no choice in any")]
async fn dispatch(aws: &Aws, region: &Region, scope: &Scope, step: &Step) -> Made {
    match step {
        Step::AddFinalizer | Step::RemoveFinalizer => Err(not_ours_to_do()),
        Step::CreateGroup { name, vpc, description, tags } => {
            let request = network::NewGroup { name, vpc, description, tags };
            network::create_group(region, scope, request).await
        }
        Step::Authorize { group, rules } => network::authorize(region, group, rules).await,
        Step::Revoke { group, rules } => network::revoke(region, group, rules).await,
        Step::CreatePlacementGroup { name, tags } => {
            network::create_placement_group(region, scope, name, tags).await
        }
        Step::CreateDocument { name, content, tags } => {
            create::document(region, name, content, tags).await
        }
        Step::Create { token, body, .. } => create_body(aws, region, scope, (token, body)).await,
        Step::AttachVolume { volume, instance, device } => {
            attach(region, volume.as_str(), instance.as_str(), device).await
        }
        Step::Answer { parameter, text } => create::answer(region, scope, parameter, text).await,
        Step::TagRetained { resource, tags } => {
            give_back::mark(region, scope, resource, tags).await
        }
        Step::Terminate { instances, .. } => give_back::terminate(region, scope, instances).await,
        Step::Delete { resource, .. } => give_back::delete(region, scope, resource).await,
    }
}

async fn create_body(
    aws: &Aws,
    region: &Region,
    scope: &Scope,
    (token, body): (&Token, &Body),
) -> Made {
    match body {
        Body::Interface(body) => create::interface(region, token, body).await,
        Body::Volume(body) => create::volume(region, token, body).await,
        Body::FileSystem(body) => create::file_system(region, token, body).await,
        Body::Launch(body) => launch::launch(aws, scope, token, body).await,
    }
}

/// Finalizers are on the Kubernetes side of the shell.
fn not_ours_to_do() -> Failure {
    let action = Action { service: "kubernetes", name: "PatchFinalizers", ..CREATE_DOCUMENT };
    failure(&action, Kind::Invalid, "NotOfTheCloud", "finalizers are not the cloud's")
}

/// A volume that hangs on this instance already is what was asked for.
async fn attach(region: &Region, volume: &str, instance: &str, device: &str) -> Made {
    let request = region.ec2.attach_volume().volume_id(volume).instance_id(instance).device(device);
    match region.call(&ATTACH_VOLUME, || request.clone().send()).await {
        Ok(_) => Ok(vec![volume.to_owned()]),
        Err(refusal) if refusal.kind == Kind::InUse => {
            let request =
                region.ec2.describe_volumes().filters(words::filter("volume-id", [volume]));
            let found = region.call(&DESCRIBE_VOLUMES, || request.clone().send()).await?;
            let mut attachments =
                found.volumes().iter().flat_map(aws_sdk_ec2::types::Volume::attachments);
            if attachments.any(|one| one.instance_id() == Some(instance)) {
                return Ok(vec![volume.to_owned()]);
            }
            Err(refusal)
        }
        Err(refusal) => Err(refusal),
    }
}
