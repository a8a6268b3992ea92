//! The kind `HPCCluster`: one pass, in five calls.

mod act;
mod observe;
mod rest;

use std::sync::Arc;

use hpc_crds::HpcCluster;
use hpc_plan::cluster::{Desired, plan};
use kube::runtime::controller::Action;

use crate::context::Context;
use crate::controller::{self, Error, Shutdown};
use crate::publish::publish;
use act::act;
use observe::observe;

/// Serves all clusters until the process ends.
pub async fn serve(ctx: Arc<Context>, shutdown: Shutdown) {
    controller::serve(ctx, shutdown, |clusters, _| clusters, reconcile).await;
}

/// One pass over a cluster; while it is at rest, only a look for news of its head.
///
/// 1. `Desired::new`: what the spec asks for, every default made explicit (pure)
/// 2. `observe`: what exists, in AWS and in Kubernetes (reads only)
/// 3. `plan`: what to do now, and what we wait for (pure, cannot fail)
/// 4. `act`: carry out each step; steps do not depend on one another (writes only)
/// 5. `publish`: status and events, only if they changed
///
/// # Errors
/// When the status could not be stored.
pub async fn reconcile(cluster: Arc<HpcCluster>, ctx: Arc<Context>) -> Result<Action, Error> {
    let desired = Desired::new(&cluster, &ctx.settings);
    if rest::lasts(&ctx, &cluster, &desired).await {
        return Ok(ctx.listen(desired.settings.demand_poll));
    }
    let observed = observe(&ctx, &cluster, &desired).await;
    let plan = plan(&desired, &observed, ctx.clock.now());
    let outcomes = act(&ctx, &cluster, &desired, &plan).await;
    let status = plan.status.with(&outcomes, ctx.clock.now()).status;
    publish(&ctx, &*cluster, status).await?;
    rest::begin(&ctx, &cluster, observed.report, plan.requeue);
    Ok(ctx.requeue(&*cluster, plan.requeue))
}
