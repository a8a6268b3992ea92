//! The loop around a kind's `reconcile`: watches, bounds, pace after errors, bad objects.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{Stream, StreamExt};
use hpc_crds::HpcCluster;
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::controller::{Action, Config};
use kube::runtime::{Controller, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::context::Context;

/// Passes of one kind at a time; zero would mean without bound.
const CONCURRENCY: u16 = 16;
/// How soon to look again when the cache is behind our own write; its next event comes first.
const CATCH_UP: Duration = Duration::from_millis(500);
/// How soon to look again after a conflict.
const CONFLICT: Duration = Duration::from_millis(100);
/// How soon to look again after another error.
const RETRY: Duration = Duration::from_secs(5);

/// Why a pass did not end well. What AWS refuses is not here: it is part of the status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The status could not be stored.
    #[error("the status could not be stored")]
    Publish {
        /// The API server's answer.
        source: kube::Error,
    },
}

impl Error {
    /// For metrics.
    fn reason(&self) -> &'static str {
        if self.is_conflict() { "Conflict" } else { "Publish" }
    }

    /// Whether the object changed since it was read: the next pass sees what is stored now.
    pub fn is_conflict(&self) -> bool {
        let Self::Publish { source } = self;
        matches!(source, kube::Error::Api(refusal) if refusal.code == 409)
    }
}

/// True once the process ends.
pub type Shutdown = watch::Receiver<bool>;

/// A controller of a kind, as `also` extends it: objects that do not parse are kept apart.
pub type Guarded<K> = Controller<DeserializeGuard<K>>;

/// Serves a kind in all its namespaces until the process ends. `also` may add the clusters of the
/// namespace to what triggers a pass; `reconcile` is one pass.
pub async fn serve<K, F>(
    ctx: Arc<Context>,
    shutdown: Shutdown,
    also: impl Fn(Guarded<K>, Api<DeserializeGuard<HpcCluster>>) -> Guarded<K>,
    reconcile: impl Fn(Arc<K>, Arc<Context>) -> F + Clone + Send + Sync + 'static,
) where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    F: Future<Output = Result<Action, Error>> + Send + 'static,
{
    let scopes = ctx.apis().into_iter().zip(ctx.apis());
    let controllers = scopes.map(|(objects, clusters)| {
        let controller = Controller::new(objects, watcher::Config::default())
            .with_config(Config::default().concurrency(CONCURRENCY))
            .graceful_shutdown_on(ended(shutdown.clone()));
        let reconcile = reconcile.clone();
        let pass =
            move |object: Arc<DeserializeGuard<K>>, ctx| pass(object, ctx, reconcile.clone());
        report(also(controller, clusters).run(pass, |_, error, _| after(error), Arc::clone(&ctx)))
    });
    join_all(controllers).await;
}

async fn ended(mut shutdown: Shutdown) {
    // A closed channel is an end as well.
    let _closed = shutdown.wait_for(|over| *over).await;
}

async fn pass<K, F>(
    object: Arc<DeserializeGuard<K>>,
    ctx: Arc<Context>,
    reconcile: impl Fn(Arc<K>, Arc<Context>) -> F,
) -> Result<Action, Error>
where
    K: Resource<DynamicType = ()> + Clone,
    F: Future<Output = Result<Action, Error>>,
{
    let kind = K::kind(&());
    let object = match &object.0 {
        Ok(object) => Arc::new(object.clone()),
        Err(invalid) => {
            let name = invalid.metadata.name.as_deref();
            tracing::error!(%kind, name, error = invalid.error, "the object cannot be read");
            ctx.telemetry.failed(&kind, "Unreadable");
            return Ok(Action::await_change());
        }
    };
    if ctx.memory.is_stale(&*object) {
        return Ok(Action::requeue(CATCH_UP));
    }
    let timer = ctx.telemetry.pass(&kind, object.meta().uid.as_deref().unwrap_or_default());
    let outcome = reconcile(Arc::clone(&object), Arc::clone(&ctx)).await;
    drop(timer);
    if let Err(error) = &outcome {
        ctx.telemetry.failed(&kind, error.reason());
        log(&*object, error);
    }
    outcome
}

/// A conflict is an everyday thing and only counted.
fn log<K: Resource<DynamicType = ()>>(object: &K, error: &Error) {
    if error.is_conflict() {
        return;
    }
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    tracing::warn!(name = object.name_any(), causes = causes.join(": "), "{error}");
}

fn after(error: &Error) -> Action {
    Action::requeue(if error.is_conflict() { CONFLICT } else { RETRY })
}

/// Logs what is not about one object: a watch that broke is restarted by the controller.
async fn report<T, E: std::error::Error + 'static>(
    passes: impl Stream<Item = Result<T, kube::runtime::controller::Error<Error, E>>>,
) {
    let tell = |outcome| async {
        if let Err(kube::runtime::controller::Error::QueueError(error)) = outcome {
            tracing::warn!(%error, "a watch broke");
        }
    };
    passes.for_each(tell).await;
}
