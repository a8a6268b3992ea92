//! Logs and metrics.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use hpc_aws::Heard;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;

/// Longest time passes may all hang before the process is called dead.
const STALLED: Duration = Duration::from_mins(10);

/// Log lines as JSON on standard output, at the level of `RUST_LOG` (default `info`).
pub fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).init();
}

/// Labels of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pass {
    controller: &'static str,
    result: &'static str,
}

/// Labels of an AWS call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    service: &'static str,
    operation: &'static str,
    code: String,
}

/// Counters, and the signs of life behind `/livez` and `/readyz`.
pub struct Metrics {
    registry: Registry,
    passes: Family<Pass, Counter>,
    durations: Family<Pass, Histogram, fn() -> Histogram>,
    calls: Family<Call, Counter>,
    throttled: Family<Call, Counter>,
    under_way: AtomicI64,
    last_end: Mutex<Instant>,
    leading: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.01, 2.0, 12));
        let mut metrics = Self {
            registry: Registry::default(),
            passes: Family::default(),
            durations: Family::new_with_constructor(histogram),
            calls: Family::default(),
            throttled: Family::default(),
            under_way: AtomicI64::default(),
            last_end: Mutex::new(Instant::now()),
            leading: AtomicBool::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("hpc_operator_reconcile", "Passes by result", self.passes.clone());
        registry.register(
            "hpc_operator_reconcile_duration_seconds",
            "Time of a pass",
            self.durations.clone(),
        );
        registry.register("hpc_aws_requests", "AWS calls by answer", self.calls.clone());
        registry.register(
            "hpc_aws_throttled",
            "AWS calls refused for their pace",
            self.throttled.clone(),
        );
        let build = Family::<Vec<(String, String)>, Gauge>::default();
        let version = vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        build.get_or_create(&version).set(1);
        registry.register("hpc_operator_build_info", "Version of the operator", build);
    }

    /// A pass begins.
    pub fn begin(&self) -> Instant {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Instant::now()
    }

    /// A pass ends.
    pub fn end(&self, controller: &'static str, result: &'static str, began: Instant) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Ok(mut last) = self.last_end.lock() {
            *last = Instant::now();
        }
        let pass = Pass { controller, result };
        self.passes.get_or_create(&pass).inc();
        self.durations.get_or_create(&pass).observe(began.elapsed().as_secs_f64());
    }

    /// An AWS call was answered.
    pub fn hear(&self, heard: &Heard<'_>) {
        let (service, operation) = (heard.service, heard.operation);
        let call = Call { service, operation, code: heard.code.to_owned() };
        if heard.throttled {
            self.throttled.get_or_create(&call).inc();
        }
        self.calls.get_or_create(&call).inc();
    }

    /// This process is the operator now.
    pub fn lead(&self) {
        self.leading.store(true, Ordering::Relaxed);
    }

    /// Whether passes come to an end, if any are under way.
    pub fn is_alive(&self) -> bool {
        let idle = self.under_way.load(Ordering::Relaxed) <= 0;
        idle || self.last_end.lock().is_ok_and(|last| last.elapsed() < STALLED)
    }

    /// Whether this process holds the lease and serves objects.
    pub fn is_ready(&self) -> bool {
        self.leading.load(Ordering::Relaxed)
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            text.clear();
        }
        text
    }
}
