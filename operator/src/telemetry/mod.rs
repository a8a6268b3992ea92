//! What the operator tells about itself: logs, metrics, and whether it makes progress.

mod http;
mod metrics;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hpc_aws::{Heard, Listener};
use hpc_crds::Condition;
use kube::Resource;
use prometheus_client::encoding::text::encode;
use tokio::sync::watch;

pub use http::serve;
use metrics::Metrics;

/// A pass that takes longer than this is stuck, and so is the process.
const STUCK: Duration = Duration::from_mins(10);

/// Metrics and progress of this process.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    running: Mutex<HashMap<(String, String), Instant>>,
    ready: watch::Sender<bool>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            metrics: Metrics::default(),
            running: Mutex::default(),
            ready: watch::Sender::new(false),
        }
    }
}

impl Telemetry {
    /// Notes a pass until the answer is dropped.
    #[must_use]
    pub fn pass(self: &Arc<Self>, kind: &str, uid: &str) -> Pass {
        let key = (kind.to_owned(), uid.to_owned());
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.clone(), Instant::now());
        Pass { telemetry: Arc::clone(self), key }
    }

    /// Counts a pass that ended with an error.
    pub fn failed(&self, kind: &str, reason: &str) {
        self.metrics.failed(kind, reason);
    }

    /// Shows the conditions of an object.
    pub fn conditions<K: Resource<DynamicType = ()>>(&self, object: &K, conditions: &[Condition]) {
        self.metrics.conditions(&K::kind(&()), object.meta(), conditions);
    }

    /// Drops what is shown of an object that is gone.
    pub fn forget<K: Resource<DynamicType = ()>>(&self, object: &K) {
        self.metrics.forget(&K::kind(&()), object.meta());
    }

    /// Shows the nodes of a cluster: in all and ready.
    pub fn nodes(&self, object: &impl Resource, desired: i32, ready: i32) {
        self.metrics.nodes(object.meta(), desired, ready);
    }

    /// Shows whether this process holds the lease.
    pub fn leads(&self, lease: &str, leads: bool) {
        self.metrics.leads(lease, leads);
        self.ready.send_replace(leads);
    }

    /// Hears of every call to AWS.
    pub fn listener(self: &Arc<Self>) -> Listener {
        let telemetry = Arc::clone(self);
        Arc::new(move |heard: &Heard<'_>| telemetry.metrics.heard(heard))
    }

    /// Whether this process serves.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Whether no pass is stuck.
    pub fn is_alive(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().all(|began| began.elapsed() < STUCK)
    }

    /// All metrics as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _written = encode(&mut text, self.metrics.registry());
        text
    }
}

/// A pass under way.
pub struct Pass {
    telemetry: Arc<Telemetry>,
    key: (String, String),
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut running = self.telemetry.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(began) = running.remove(&self.key) {
            self.telemetry.metrics.passed(&self.key.0, began.elapsed());
        }
    }
}

/// Logs as JSON lines, filtered by `RUST_LOG`, `info` when it is not set.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_unset| "info".into());
    let lines = tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter);
    lines.with_current_span(false).with_span_list(false).init();
}

/// A panic anywhere ends the process: half a pass must not be followed by another one.
pub fn end_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_counted_when_it_ends_and_the_text_is_what_prometheus_reads() {
        let telemetry = Arc::<Telemetry>::default();
        drop(telemetry.pass("HPCCluster", "u1"));
        telemetry.failed("HPCCluster", "Conflict");
        telemetry.leads("hpc-operator", true);
        let heard = Heard {
            service: "ec2",
            operation: "RunInstances",
            code: "RequestLimitExceeded",
            throttled: true,
            took: Duration::from_millis(20),
        };
        telemetry.listener()(&heard);
        let text = telemetry.text();
        for line in [
            r#"hpc_operator_reconcile_total{controller="HPCCluster"} 1"#,
            r#"hpc_operator_reconcile_errors_total{controller="HPCCluster",reason="Conflict"} 1"#,
            r#"hpc_operator_leader{lease="hpc-operator"} 1"#,
            r#"hpc_aws_throttled_total{service="ec2",operation="RunInstances"} 1"#,
            r#"kube_hpc_hpccluster_launch_failures_total{code="RequestLimitExceeded"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(telemetry.is_ready() && telemetry.is_alive());
    }
}
