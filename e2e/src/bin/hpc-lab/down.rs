//! `hpc-lab down`: stops by process id, the last started first, and looks at the machine itself for
//! what may have been left.

use std::time::Duration;

use hpc_e2e::{LabError, Result, eventually};

use crate::progress::Clock;
use crate::site::{Site, State};

/// The simulator ends its bodies, the operator its work.
const GRACE: Duration = Duration::from_secs(40);

/// Stops the lab and says so.
pub async fn run(site: &Site) -> Result<()> {
    let _lock = site.lock()?;
    let clock = Clock::start();
    let state = site.state()?;
    if state.processes.is_empty() {
        clock.tell("no lab is up");
        return site.forget();
    }
    clock.tell(&format!("stopping the lab in {}", site.name()));
    stop(site, &state, clock).await?;
    clock.tell("the lab is down; nothing of it is left");
    Ok(())
}

/// Stops what a state names; fails if a process of a body survives.
pub async fn stop(site: &Site, state: &State, clock: Clock) -> Result<()> {
    for process in state.processes.iter().rev() {
        if process.identity.is_alive() {
            clock.tell(&format!("stopping {} ({})", process.name, process.identity.pid));
            let grace = if process.name == "control plane" { Duration::ZERO } else { GRACE };
            process.identity.stop(grace).await?;
        }
    }
    if !state.body_prefix.is_empty() {
        eventually("no process of a body is left", Duration::from_secs(20), async || {
            let left = left_behind(&state.body_prefix);
            if left.is_empty() {
                return Ok(Some(()));
            }
            Err(LabError::missing("the end of", format!("processes {left:?}")))
        })
        .await?;
    }
    site.forget()
}

/// Processes of this machine that carry the mark of this lab's bodies or of what holds them.
pub fn left_behind(prefix: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_marked(*pid, prefix)).collect()
}

fn is_marked(pid: u32, prefix: &str) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    ["awssim-rack=", "awssim-body="].iter().any(|mark| command.contains(&format!("{mark}{prefix}")))
}
