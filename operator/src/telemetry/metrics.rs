//! The metrics by name. Labels are bounded: never a run's name, never an id of AWS.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hpc_aws::Heard;
use hpc_crds::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerError {
    controller: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lease {
    lease: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    service: &'static str,
    operation: &'static str,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    service: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Shown {
    kind: String,
    namespace: String,
    name: String,
    r#type: String,
    status: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Nodes {
    namespace: String,
    hpccluster: String,
    state: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// All metrics of the process.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    passes: Family<Controller, Counter>,
    durations: Histograms<Controller>,
    errors: Family<ControllerError, Counter>,
    leader: Family<Lease, Gauge>,
    calls: Histograms<Call>,
    throttled: Family<Operation, Counter>,
    launch_failures: Family<Code, Counter>,
    conditions: Family<Shown, Gauge<i64>>,
    nodes: Family<Nodes, Gauge<i64>>,
    shown: Mutex<HashMap<(String, String, String), Vec<Shown>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            passes: Family::default(),
            durations: Family::new_with_constructor(seconds),
            errors: Family::default(),
            leader: Family::default(),
            calls: Family::new_with_constructor(seconds),
            throttled: Family::default(),
            launch_failures: Family::default(),
            conditions: Family::default(),
            nodes: Family::default(),
            shown: Mutex::default(),
        };
        metrics.register();
        metrics
    }
}

/// From a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl Metrics {
    fn register(&mut self) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let registry = &mut self.registry;
        registry.register("hpc_operator_build", "Version of the operator", build);
        let name = "hpc_operator_reconcile";
        registry.register(name, "Passes over an object", self.passes.clone());
        let name = "hpc_operator_reconcile_duration_seconds";
        registry.register(name, "Time of a pass", self.durations.clone());
        let name = "hpc_operator_reconcile_errors";
        registry.register(name, "Passes that ended with an error", self.errors.clone());
        let name = "hpc_operator_leader";
        registry.register(name, "1 while this process holds the lease", self.leader.clone());
        let name = "hpc_aws_request_duration_seconds";
        registry.register(name, "Time of a call to AWS", self.calls.clone());
        let name = "hpc_aws_throttled";
        registry.register(name, "Calls AWS throttled", self.throttled.clone());
        let name = "kube_hpc_hpccluster_launch_failures";
        registry.register(name, "Launches AWS refused", self.launch_failures.clone());
        let name = "operator_status_condition_count";
        registry.register(name, "Conditions as they are", self.conditions.clone());
        let name = "kube_hpc_hpccluster_nodes";
        registry.register(name, "Nodes of a cluster", self.nodes.clone());
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn passed(&self, controller: &str, took: Duration) {
        let label = Controller { controller: controller.to_owned() };
        self.passes.get_or_create(&label).inc();
        self.durations.get_or_create(&label).observe(took.as_secs_f64());
    }

    pub fn failed(&self, controller: &str, reason: &str) {
        let (controller, reason) = (controller.to_owned(), reason.to_owned());
        self.errors.get_or_create(&ControllerError { controller, reason }).inc();
    }

    pub fn leads(&self, lease: &str, leads: bool) {
        let label = Lease { lease: lease.to_owned() };
        self.leader.get_or_create(&label).set(i64::from(leads));
    }

    pub fn heard(&self, heard: &Heard<'_>) {
        let &Heard { service, operation, code, throttled, took } = heard;
        let call = Call { service, operation, code: code.to_owned() };
        self.calls.get_or_create(&call).observe(took.as_secs_f64());
        if throttled {
            self.throttled.get_or_create(&Operation { service, operation }).inc();
        }
        if operation == "RunInstances" && code != "OK" {
            self.launch_failures.get_or_create(&Code { code: code.to_owned() }).inc();
        }
    }

    /// Shows the conditions of an object in place of those shown before.
    pub fn conditions(&self, kind: &str, meta: &ObjectMeta, conditions: &[Condition]) {
        let (namespace, name) = place(meta);
        let shown = |condition: &Condition| Shown {
            kind: kind.to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            r#type: condition.type_.clone(),
            status: condition.status.to_string(),
            reason: condition.reason.clone(),
        };
        let now: Vec<_> = conditions.iter().map(shown).collect();
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind.to_owned(), namespace.clone(), name.clone());
        let before = all.insert(key, now.clone()).unwrap_or_default();
        for gone in before.iter().filter(|old| !now.contains(old)) {
            self.conditions.remove(gone);
        }
        for label in &now {
            self.conditions.get_or_create(label).set(1);
        }
    }

    /// Shows nothing of an object any more.
    pub fn forget(&self, kind: &str, meta: &ObjectMeta) {
        self.conditions(kind, meta, &[]);
        let (namespace, hpccluster) = place(meta);
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(kind.to_owned(), namespace.clone(), hpccluster.clone()));
        for state in ["desired", "ready"] {
            let (namespace, hpccluster) = (namespace.clone(), hpccluster.clone());
            self.nodes.remove(&Nodes { namespace, hpccluster, state });
        }
    }

    pub fn nodes(&self, meta: &ObjectMeta, desired: i32, ready: i32) {
        let (namespace, hpccluster) = place(meta);
        for (state, count) in [("desired", desired), ("ready", ready)] {
            let (namespace, hpccluster) = (namespace.clone(), hpccluster.clone());
            let label = Nodes { namespace, hpccluster, state };
            self.nodes.get_or_create(&label).set(i64::from(count));
        }
    }
}

fn place(meta: &ObjectMeta) -> (String, String) {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}
