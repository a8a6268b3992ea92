//! One pass over an `HPCCluster`.

mod act;
mod observe;

use std::sync::Arc;

use hpc_crds::HpcCluster;
use hpc_plan::cluster::{Desired, plan};
use kube::runtime::controller::Action;

use crate::context::Context;
use crate::controllers::action;
use crate::error::Error;
use crate::publish::publish;
use act::act;
use observe::observe;

/// One pass over a cluster.
///
/// 1. `Desired::new`: what the spec asks for, every default explicit (pure)
/// 2. `observe`: what exists, in AWS and in Kubernetes (reads only)
/// 3. `plan`: what to do now, and what we wait for (pure, cannot fail)
/// 4. `act`: carry out each step; steps do not depend on one another (writes only)
/// 5. `publish`: status and events, only if they changed
pub async fn reconcile(cluster: Arc<HpcCluster>, ctx: Arc<Context>) -> Result<Action, Error> {
    let desired = Desired::new(&cluster, &ctx.settings);
    let observed = observe(&ctx, &desired, &cluster).await;
    let plan = plan(&desired, &observed, ctx.now());
    ctx.tell(&desired.owner, &plan);
    let outcomes = act(&ctx, &desired, &cluster, &plan).await;
    publish(&ctx, &*cluster, plan.status.with(&outcomes, ctx.now()).status).await?;
    Ok(action(&ctx, &desired.owner.uid, plan.requeue))
}
