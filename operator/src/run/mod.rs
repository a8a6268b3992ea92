//! The kind `BenchmarkRun`: one pass, in five calls.

mod act;
mod observe;

use std::sync::Arc;

use hpc_crds::{BenchmarkRun, HpcCluster};
use hpc_plan::run::{Desired, plan};
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::controller::{self, Error, Guarded, Shutdown};
use crate::publish::publish;
use act::act;
use observe::observe;

/// Serves all runs until the process ends.
pub async fn serve(ctx: Arc<Context>, shutdown: Shutdown) {
    controller::serve(ctx, shutdown, woken_by, reconcile).await;
}

/// A run is looked at when its cluster changes as well: that may be what it waits for.
fn woken_by(
    controller: Guarded<BenchmarkRun>,
    clusters: Api<DeserializeGuard<HpcCluster>>,
) -> Guarded<BenchmarkRun> {
    let runs = controller.store();
    controller.watches(clusters, watcher::Config::default(), move |cluster| {
        let of_cluster = |guard: &Arc<DeserializeGuard<BenchmarkRun>>| {
            let named = |run: &BenchmarkRun| run.spec.cluster_ref.name == cluster.name_any();
            guard.0.as_ref().is_ok_and(named) && guard.namespace() == cluster.namespace()
        };
        let waiting = runs.state().into_iter().filter(of_cluster);
        waiting.map(|run| ObjectRef::from_obj(&*run)).collect::<Vec<_>>()
    })
}

/// One pass over a run.
///
/// 1. `Desired::new`: what the spec asks for, every default made explicit (pure)
/// 2. `observe`: what exists, in Kubernetes and on the head (reads only)
/// 3. `plan`: what to do now, and what we wait for (pure, cannot fail)
/// 4. `act`: carry out each step; steps do not depend on one another (writes only)
/// 5. `publish`: status and events, only if they changed
///
/// # Errors
/// When the status could not be stored.
pub async fn reconcile(run: Arc<BenchmarkRun>, ctx: Arc<Context>) -> Result<Action, Error> {
    let desired = Desired::new(&run, &ctx.run_settings);
    let observed = observe(&ctx, &run, &desired).await;
    let plan = plan(&desired, &observed, ctx.clock.now());
    let outcomes = act(&ctx, &run, &desired, &plan).await;
    let status = plan.status.with(&outcomes, ctx.clock.now()).status;
    publish(&ctx, &*run, status).await?;
    Ok(ctx.requeue(&*run, plan.requeue))
}
