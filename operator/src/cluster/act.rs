//! Carrying out the steps of a cluster's plan. Writes only, and decides nothing.

use futures::stream::iter;
use futures::{FutureExt, StreamExt};
use hpc_aws::Scope;
use hpc_crds::HpcCluster;
use hpc_plan::cloud::Failure;
use hpc_plan::cluster::{ClusterPlan, Desired, Outcome, Step};

use super::observe::scope;
use crate::context::Context;
use crate::finalizer;

/// Steps of one plan at a time.
const AT_ONCE: usize = 8;

/// Carries out all steps and tells what came of each, in the order of the plan.
pub async fn act(
    ctx: &Context,
    cluster: &HpcCluster,
    desired: &Desired,
    plan: &ClusterPlan,
) -> Vec<Outcome> {
    ctx.tell(cluster, plan);
    let scope = scope(desired);
    let all: Vec<_> =
        plan.steps.iter().map(|step| outcome(ctx, cluster, &scope, step).boxed()).collect();
    iter(all).buffered(AT_ONCE).collect().await
}

async fn outcome(ctx: &Context, cluster: &HpcCluster, scope: &Scope, step: &Step) -> Outcome {
    Outcome::of(step, apply(ctx, cluster, scope, step).await)
}

async fn apply(
    ctx: &Context,
    cluster: &HpcCluster,
    scope: &Scope,
    step: &Step,
) -> Result<Vec<String>, Failure> {
    match step {
        Step::AddFinalizer => finalizer::add(ctx, cluster).await.map(|()| Vec::new()),
        Step::RemoveFinalizer => {
            finalizer::remove(ctx, cluster).await?;
            ctx.telemetry.forget(cluster);
            Ok(Vec::new())
        }
        Step::CreateGroup { .. }
        | Step::Authorize { .. }
        | Step::Revoke { .. }
        | Step::CreatePlacementGroup { .. }
        | Step::CreateDocument { .. }
        | Step::Create { .. }
        | Step::AttachVolume { .. }
        | Step::TagRetained { .. }
        | Step::Answer { .. }
        | Step::Terminate { .. }
        | Step::Delete { .. } => ctx.cloud.apply(scope, step).await,
    }
}
