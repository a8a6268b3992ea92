//! Everything a pass may use, built once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hpc_aws::{Cloud, Limits};
use hpc_plan::cluster::Settings;
use hpc_plan::names::Owner;
use hpc_plan::run;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::events::{Recorder, Reporter};

use crate::config::Config;
use crate::heads::Heads;
use crate::telemetry::Metrics;

/// Shared by all passes of both kinds.
pub struct Context {
    /// Kubernetes.
    pub client: Client,
    /// AWS.
    pub cloud: Arc<dyn Cloud>,
    /// Questions to heads.
    pub heads: Arc<Heads>,
    /// Flags, in the cluster planner's words.
    pub settings: Settings,
    /// Flags, in the run planner's words.
    pub run_settings: run::Settings,
    /// Between two looks at a steady object.
    pub sweep: Duration,
    /// Events.
    pub recorder: Recorder,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What was last written and logged, by object uid.
    pub memory: Memory,
}

impl Context {
    /// Puts together what a pass needs.
    pub fn new(
        config: &Config,
        client: Client,
        cloud: Arc<dyn Cloud>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let settings = config.settings();
        let poll = Duration::from_secs(config.waits.job_poll_seconds);
        let reporter = Reporter {
            controller: "hpcops.dev/hpc-operator".to_owned(),
            instance: Some(config.pod_name.clone()),
        };
        Self {
            heads: Heads::new(Arc::clone(&cloud), &settings.installation, poll),
            recorder: Recorder::new(client.clone(), reporter),
            run_settings: run::Settings {
                installation: settings.installation.clone(),
                simulated_fabric: settings.simulated_fabric.clone(),
            },
            sweep: Duration::from_secs(config.waits.fleet_sweep_seconds),
            settings,
            client,
            cloud,
            metrics,
            memory: Memory::default(),
        }
    }

    /// Bounds that every launch is held against once more.
    pub const fn limits(&self) -> Limits {
        Limits {
            max_instances: self.settings.max_instances,
            max_hourly_cost: self.settings.max_hourly_cost,
        }
    }

    /// Logs a plan when it differs from the last one of the object: the audit log.
    pub fn tell(&self, owner: &Owner, plan: &impl std::fmt::Display) {
        let text = plan.to_string();
        if self.memory.is_news(&owner.uid, &text) {
            tracing::info!(object = owner.full_name(), plan = text, "plan");
        }
    }

    /// The one clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock; everything else takes time as an argument"
    )]
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// What this process last did to each object: a cache may be older than our own write.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<String, Remembered>>);

#[derive(Default)]
struct Remembered {
    version: u64,
    plan: String,
}

impl Memory {
    /// Whether `version` of the object is older than what we wrote ourselves. Versions that are no
    /// numbers are taken as fresh; then the precondition of the write is what protects us.
    pub fn is_stale(&self, uid: &str, version: &str) -> bool {
        let seen = version.parse().unwrap_or(u64::MAX);
        self.with(uid, |object| seen < object.version)
    }

    /// Notes the version our write has made.
    pub fn wrote(&self, uid: &str, version: Option<&str>) {
        if let Some(made) = version.and_then(|version| version.parse().ok()) {
            self.with(uid, |object| object.version = object.version.max(made));
        }
    }

    /// Whether a printed plan differs from the last one told of the object.
    pub fn is_news(&self, uid: &str, plan: &str) -> bool {
        self.with(uid, |object| {
            let news = object.plan != plan;
            if news {
                plan.clone_into(&mut object.plan);
            }
            news
        })
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    fn with<T>(&self, uid: &str, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(objects.entry(uid.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_our_own_write_is_stale() {
        let memory = Memory::default();
        assert!(!memory.is_stale("a", "5"));
        memory.wrote("a", Some("9"));
        memory.wrote("a", Some("7"));
        assert!(memory.is_stale("a", "8"));
        assert!(!memory.is_stale("a", "9"));
        assert!(!memory.is_stale("b", "1"));
        assert!(!memory.is_stale("a", "not a number"));
    }

    #[test]
    fn a_plan_is_news_once() {
        let memory = Memory::default();
        assert!(memory.is_news("a", "steps: none"));
        assert!(!memory.is_news("a", "steps: none"));
        assert!(memory.is_news("a", "steps: one"));
    }
}
