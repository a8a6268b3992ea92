//! The kind `BenchmarkRun`: one pass, in five calls.

mod act;
mod observe;

use std::sync::Arc;

use hpc_crds::{BenchmarkRun, HpcCluster};
use hpc_plan::run::{Desired, Settings, plan};
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::controller::{Error, Guarded, Shutdown, serve};
use crate::publish::publish;
use act::act;
use observe::observe;

/// Serves runs until the shutdown. A run is woken by its cluster as well: it may wait for it.
pub async fn run(ctx: Arc<Context>, shutdown: Shutdown) {
    let clusters = ctx.apis::<DeserializeGuard<HpcCluster>>();
    let wake = move |controller: Guarded<BenchmarkRun>| {
        clusters.iter().cloned().fold(controller, woken_by)
    };
    serve(ctx, shutdown, wake, reconcile).await;
}

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
/// The same five parts as for a cluster: desired, observe, plan, act, publish.
pub async fn reconcile(run: Arc<BenchmarkRun>, ctx: Arc<Context>) -> Result<Action, Error> {
    let desired = Desired::new(&run, &settings(&ctx));
    let observed = observe(&ctx, &run, &desired).await;
    let plan = plan(&desired, &observed, ctx.clock.now());
    let outcomes = act(&ctx, &run, &desired, &plan).await;
    let status = plan.status.with(&outcomes, ctx.clock.now()).status;
    publish(&ctx, &*run, status).await?;
    Ok(ctx.requeue(&*run, plan.requeue))
}

fn settings(ctx: &Context) -> Settings {
    Settings {
        installation: ctx.settings.installation.clone(),
        simulated_fabric: ctx.settings.simulated_fabric.clone(),
    }
}
