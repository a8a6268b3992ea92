//! `hpc-lab status`: what runs, by process id.

use hpc_e2e::Result;

use crate::down::left_behind;
use crate::progress::say;
use crate::site::Site;

/// Prints a line per process.
pub fn run(site: &Site) -> Result<()> {
    let state = site.state()?;
    for process in &state.processes {
        let alive = if process.identity.is_alive() { "runs" } else { "is gone" };
        say(&format!("{:14} {:8} {alive}", process.name, process.identity.pid));
    }
    if state.processes.is_empty() {
        say("no lab is up");
        return Ok(());
    }
    say(&format!("bodies: {} processes", left_behind(&state.body_prefix).len()));
    if state.sim_url.is_empty() {
        say("real AWS");
    } else {
        say(&format!("simulated AWS: {}/_sim/ledger", state.sim_url));
    }
    say(&format!("use it with: . {}/env", site.name()));
    Ok(())
}
