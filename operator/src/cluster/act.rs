//! Writes for a cluster: every step as it says, side by side, no decision.

use futures::future::join_all;
use hpc_crds::HpcCluster;
use hpc_plan::cloud::Failure;
use hpc_plan::cluster::{ClusterPlan, Desired, Outcome, Step};

use super::observe::scope;
use crate::context::Context;
use crate::finalizer;

/// Carries out every step of the plan; a failed one does not stop the others.
pub async fn act(
    ctx: &Context,
    desired: &Desired,
    cluster: &HpcCluster,
    plan: &ClusterPlan,
) -> Vec<Outcome> {
    join_all(plan.steps.iter().map(async |step| {
        let result = carry_out(ctx, desired, cluster, step).await;
        if let Err(failure) = &result {
            tracing::warn!(cluster = desired.owner.full_name(), %step, %failure, failure.message, "step");
        }
        Outcome::of(step, result)
    }))
    .await
}

async fn carry_out(
    ctx: &Context,
    desired: &Desired,
    cluster: &HpcCluster,
    step: &Step,
) -> Result<Vec<String>, Failure> {
    match step {
        Step::AddFinalizer => finalizer::add(&ctx.client, cluster).await.map(|()| vec![]),
        Step::RemoveFinalizer => {
            finalizer::remove(&ctx.client, cluster).await?;
            ctx.memory.forget(&desired.owner.uid);
            Ok(vec![])
        }
        Step::CreateGroup { .. }
        | Step::Authorize { .. }
        | Step::Revoke { .. }
        | Step::CreatePlacementGroup { .. }
        | Step::CreateDocument { .. }
        | Step::Create { .. }
        | Step::AttachVolume { .. }
        | Step::TagRetained { .. }
        | Step::Terminate { .. }
        | Step::Delete { .. } => ctx.cloud.apply(&scope(ctx, desired), step).await,
    }
}
