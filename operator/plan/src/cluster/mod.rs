//! What to do for an HPCCluster now: [`plan`] is a table of contents, one file per part.
//!
//! Parts are layered: each looks only at what the layers before it have made *and we have seen*.
//! Nothing in a plan depends on another step's result; what does waits for the next observation.

mod deletion;
mod desired;
mod fleets;
mod gate;
mod head;
mod launch;
mod making;
mod network;
mod observed;
mod part;
mod preflight;
mod status;
mod step;
mod storage;
mod wait;

pub use desired::{Cluster, DEFAULT_USER, Desired, Goal, MAX_ATTEMPTS, Queue, Settings, Storage};
pub use launch::nic_layout;
pub use observed::*;
pub use status::ClusterStatus;
pub use step::*;
pub use wait::Wait;

use jiff::Timestamp;

use crate::Plan;
use part::{Part, Parts, View};

/// What to do now for this cluster, and what it waits for. Total: it has an answer for everything.
pub fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> ClusterPlan {
    let view = View {
        desired,
        observed,
        now,
    };
    let parts = match gate::check(&view) {
        Some(stopped) => stopped,
        None if desired.goal == Goal::Absent => Parts::only(deletion::deletion(&view)),
        None => standing(&view),
    };
    status::assemble(&view, parts)
}

/// The plan of a cluster.
pub type ClusterPlan = Plan<Step, Wait, ClusterStatus>;

fn standing(view: &View<'_>) -> Parts {
    let faults = preflight::faults(view);
    if !faults.is_empty() {
        return Parts::refused(faults);
    }
    let network = network::network(view);
    let storage = if network.is_ready() {
        storage::storage(view)
    } else {
        Part::pending()
    };
    let head = if network.is_ready() {
        head::head(view, storage.is_ready())
    } else {
        Part::pending()
    };
    let fleets = fleets::fleets(view, storage.is_ready() && head.is_ready());
    Parts {
        network,
        storage,
        head,
        fleets,
        whole: None,
    }
}
