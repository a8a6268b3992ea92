//! The two controllers and what wakes them.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use hpc_crds::{BenchmarkRun, HpcCluster};
use hpc_plan::Requeue;
use hpc_plan::names::digest;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{Action, Config as Pace, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};

use crate::context::Context;
use crate::error::Error;
use crate::publish::Published;
use crate::{cluster, run};

/// Passes under way at a time, per kind and namespace watch.
const CONCURRENCY: u16 = 32;
/// Wait after a pass that did not come to its end.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Wait after a write that met a newer object: its event is on the way.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);

/// Runs both controllers for ever. With a list of namespaces, one watch in each.
pub async fn run(ctx: Arc<Context>, namespaces: &[String]) {
    let scopes =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().map(Some).collect() };
    join_all(scopes.into_iter().map(|namespace| {
        let clusters = control::<HpcCluster, _, _>(Arc::clone(&ctx), namespace, cluster::reconcile);
        let runs = control_runs(Arc::clone(&ctx), namespace);
        async move { tokio::join!(clusters, runs) }
    }))
    .await;
}

fn api<K>(ctx: &Context, namespace: Option<&String>) -> Api<K>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(name) => Api::namespaced(ctx.client.clone(), name),
        None => Api::all(ctx.client.clone()),
    }
}

async fn control<K, F, R>(ctx: Arc<Context>, namespace: Option<&String>, reconcile: R)
where
    K: Published + Send + Sync + 'static,
    K::Status: Send + Sync,
    R: Fn(Arc<K>, Arc<Context>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Action, Error>> + Send + 'static,
{
    let controller =
        Controller::new(api::<DeserializeGuard<K>>(&ctx, namespace), watcher::Config::default());
    drive(controller, ctx, reconcile).await;
}

/// Runs are woken by their cluster as well: it may be what they wait for.
async fn control_runs(ctx: Arc<Context>, namespace: Option<&String>) {
    let runs = api::<DeserializeGuard<BenchmarkRun>>(&ctx, namespace);
    let controller = Controller::new(runs, watcher::Config::default());
    let store = controller.store();
    let clusters = api::<DeserializeGuard<HpcCluster>>(&ctx, namespace);
    let controller = controller.watches(clusters, watcher::Config::default(), move |cluster| {
        let (name, namespace) = (cluster.name_any(), cluster.namespace());
        let of_cluster = move |guard: &Arc<DeserializeGuard<BenchmarkRun>>| {
            let named = guard.0.as_ref().is_ok_and(|run| run.spec.cluster_ref.name == name);
            named && guard.namespace() == namespace
        };
        let found = store.state().into_iter().filter(of_cluster);
        found.map(|run| ObjectRef::from_obj(&*run)).collect::<Vec<_>>()
    });
    drive(controller, ctx, run::reconcile).await;
}

async fn drive<K, F, R>(
    controller: Controller<DeserializeGuard<K>>,
    ctx: Arc<Context>,
    reconcile: R,
) where
    K: Published + Send + Sync + 'static,
    K::Status: Send + Sync,
    R: Fn(Arc<K>, Arc<Context>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Action, Error>> + Send + 'static,
    ObjectRef<DeserializeGuard<K>>: Hash + Eq + Debug,
{
    let passes = controller.with_config(Pace::default().concurrency(CONCURRENCY)).run(
        move |guard, ctx| pass(guard, ctx, reconcile.clone()),
        |_, error, _| after(error),
        ctx,
    );
    passes.for_each(|_| std::future::ready(())).await;
}

/// One pass of one object. An object that cannot be read does not stall the others; one that is
/// older than our own last write is looked at again when the cache has caught up.
async fn pass<K, F, R>(
    guard: Arc<DeserializeGuard<K>>,
    ctx: Arc<Context>,
    reconcile: R,
) -> Result<Action, Error>
where
    K: Published,
    R: Fn(Arc<K>, Arc<Context>) -> F,
    F: Future<Output = Result<Action, Error>>,
{
    let object = match &guard.0 {
        Ok(object) => Arc::new(object.clone()),
        Err(invalid) => {
            tracing::error!(
                name = guard.name_any(),
                error = invalid.error,
                "object cannot be read"
            );
            return Ok(Action::await_change());
        }
    };
    let version = object.resource_version().unwrap_or_default();
    if ctx.memory.is_stale(&object.uid().unwrap_or_default(), &version) {
        return Ok(Action::requeue(AFTER_CONFLICT));
    }
    let began = ctx.metrics.begin();
    let result = reconcile(object, Arc::clone(&ctx)).await;
    let word = if result.is_ok() { "ok" } else { "error" };
    ctx.metrics.end(controller_name::<K>(), word, began);
    result
}

const fn controller_name<K: Published>() -> &'static str {
    match K::ROOT {
        hpc_crds::ConditionType::Ready => "hpccluster",
        _ => "benchmarkrun",
    }
}

fn after(error: &Error) -> Action {
    match error {
        Error::Conflict { .. } => Action::requeue(AFTER_CONFLICT),
        Error::Publish { .. } => {
            tracing::warn!(error = chain(error), "pass");
            Action::requeue(AFTER_ERROR)
        }
    }
}

/// An error with everything behind it, once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// When to look again. Steady objects are swept slowly, spread by a hash of their uid.
pub fn action(ctx: &Context, uid: &str, requeue: Requeue) -> Action {
    match requeue {
        Requeue::After(wait) => Action::requeue(wait),
        Requeue::OnChange => {
            let hash = digest(&[uid]);
            let percent =
                u32::from_str_radix(hash.get(..4).unwrap_or("0"), 16).unwrap_or_default() % 41;
            Action::requeue(ctx.sweep * (80 + percent) / 100)
        }
    }
}
