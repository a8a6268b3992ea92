//! One pass over a `BenchmarkRun`.

mod act;
mod observe;

use std::sync::Arc;

use hpc_crds::BenchmarkRun;
use hpc_plan::run::{Desired, plan};
use kube::runtime::controller::Action;

use crate::context::Context;
use crate::controllers::action;
use crate::error::Error;
use crate::publish::publish;
use act::act;
use observe::observe;

pub use observe::kubernetes;

/// One pass over a run: the same five parts as for a cluster.
pub async fn reconcile(run: Arc<BenchmarkRun>, ctx: Arc<Context>) -> Result<Action, Error> {
    let desired = Desired::new(&run, &ctx.run_settings);
    let observed = observe(&ctx, &desired, &run).await;
    let plan = plan(&desired, &observed, ctx.now());
    ctx.tell(&desired.owner, &plan);
    let outcomes = act(&ctx, &desired, &run, &plan).await;
    publish(&ctx, &*run, plan.status.with(&outcomes, ctx.now()).status).await?;
    Ok(action(&ctx, &desired.owner.uid, plan.requeue))
}
