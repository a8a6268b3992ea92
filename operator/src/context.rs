//! What every pass is given: clients, settings, and the memory of this process.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use hpc_aws::Cloud;
use hpc_plan::cluster::Settings;
use hpc_plan::{Requeue, run};
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Client, Resource};

use crate::clock::Clock;
use crate::heads::Heads;
use crate::memory::Memory;
use crate::telemetry::Telemetry;

/// Name of the operator in events and managed fields.
pub const NAME: &str = "hpc-operator";

/// Everything a pass needs beside its object.
pub struct Context {
    /// Kubernetes.
    pub client: Client,
    /// AWS.
    pub cloud: Arc<dyn Cloud>,
    /// Questions to heads.
    pub heads: Arc<Heads>,
    /// Limits and waits of the installation, for the cluster planner.
    pub settings: Settings,
    /// The same for the run planner.
    pub run_settings: run::Settings,
    /// Namespaces served; none is all.
    pub namespaces: Vec<String>,
    /// How often a steady object is looked at.
    pub sweep: Duration,
    /// Events.
    pub recorder: Recorder,
    /// Metrics and progress.
    pub telemetry: Arc<Telemetry>,
    /// The time.
    pub clock: Clock,
    /// What this process did.
    pub memory: Memory,
}

impl Context {
    /// A context with everything that follows from client, cloud and settings; `job_poll` is how
    /// often jobs under way are asked for.
    pub fn new(
        client: Client,
        cloud: Arc<dyn Cloud>,
        settings: Settings,
        job_poll: Duration,
    ) -> Self {
        let reporter = Reporter { controller: NAME.to_owned(), instance: None };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
            heads: Heads::new(Arc::clone(&cloud), &settings.installation, job_poll),
            run_settings: run::Settings {
                installation: settings.installation.clone(),
                simulated_fabric: settings.simulated_fabric.clone(),
            },
            cloud,
            settings,
            namespaces: Vec::new(),
            sweep: Duration::from_mins(1),
            telemetry: Arc::default(),
            clock: Clock::system(),
            memory: Memory::default(),
        }
    }

    /// The API of a kind in the object's namespace.
    pub fn api<K>(&self, object: &K) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    /// One API of a kind per namespace served.
    pub fn apis<K>(&self) -> Vec<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        if self.namespaces.is_empty() {
            return vec![Api::all(self.client.clone())];
        }
        let names = self.namespaces.iter();
        names.map(|name| Api::namespaced(self.client.clone(), name)).collect()
    }

    /// Tells a plan once, until it changes: the audit log.
    pub fn tell(&self, object: &impl Resource<DynamicType = ()>, plan: &impl std::fmt::Display) {
        let text = plan.to_string();
        if self.memory.is_news(object, &text) {
            let meta = object.meta();
            let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
            tracing::info!(namespace, name, plan = text, "plan");
        }
    }

    /// When to look again; what needs nothing is still looked at now and then, not all at once.
    pub fn requeue(&self, object: &impl Resource, wish: Requeue) -> Action {
        match wish {
            Requeue::After(wait) => Action::requeue(wait),
            Requeue::OnReport { poll, .. } => self.listen(poll),
            Requeue::OnChange => Action::requeue(self.sweep_of(object)),
        }
    }

    /// Longest time until an object that needs nothing is looked at.
    pub fn sweep_of(&self, object: &impl Resource) -> Duration {
        self.sweep.mul_f64(spread(object))
    }

    /// At the next full `poll` of the clock: all clusters listen at the same moment, so that one
    /// call tells all of them.
    pub fn listen(&self, poll: Duration) -> Action {
        let poll = poll.max(Duration::from_millis(1));
        let now = u128::try_from(self.clock.now().as_millisecond()).unwrap_or_default();
        let gone = u64::try_from(now % poll.as_millis()).unwrap_or_default();
        Action::requeue(poll.saturating_sub(Duration::from_millis(gone)))
    }
}

/// Between 0.75 and 1.25, always the same for one object.
fn spread(object: &impl Resource) -> f64 {
    let mut hash = DefaultHasher::new();
    object.meta().uid.hash(&mut hash);
    0.75 + f64::from(u8::try_from(hash.finish() % 51).unwrap_or_default()) / 100.0
}
