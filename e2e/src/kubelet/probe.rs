//! HTTP probes, asked as a kubelet asks them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::plan::Probe;
use super::supervisor::Command;
use crate::error::{LabError, Result};

/// Asks once; anything but a 2xx or 3xx answer in time is an error.
pub async fn ask(probe: &Probe) -> Result<()> {
    let url = format!("http://127.0.0.1:{}{}", probe.port, probe.path);
    let failed =
        |source: reqwest::Error| LabError::malformed(format!("the probe of {url}"))(source);
    let client = reqwest::Client::builder().no_proxy();
    let client = client.timeout(Duration::from_secs(probe.timeout_seconds)).build();
    let answer = client.map_err(failed)?.get(&url).send().await.map_err(failed)?;
    answer.error_for_status().map(drop).map_err(failed)
}

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Restart what fails.
    Liveness,
    /// Tell whether it serves.
    Readiness,
}

/// Asks for ever and tells the supervisor whenever enough answers in a row agree.
pub async fn watch(probe: Probe, purpose: Purpose, supervisor: mpsc::Sender<Command>) {
    let mut ticks = interval(Duration::from_secs(probe.period_seconds));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let healthy = ask(&probe).await.is_ok();
        failures = if healthy { 0 } else { failures + 1 };
        let told = if healthy || failures >= probe.failures {
            supervisor.send(Command::Probed { purpose, healthy }).await
        } else {
            Ok(())
        };
        if told.is_err() {
            return;
        }
        if failures >= probe.failures {
            failures = 0;
        }
    }
}
