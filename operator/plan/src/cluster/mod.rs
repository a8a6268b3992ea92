//! What to do for an HPCCluster now: [`plan`] is a table of contents, one file per part.
//!
//! Parts are layered: each looks only at what the layers before it have made *and we have seen*.
//! Nothing in a plan depends on another step's result; what does waits for the next observation.

mod ailing;
mod boot;
mod deletion;
mod desired;
mod facts;
mod fleets;
mod gang;
mod gate;
mod growth;
mod head;
mod launch;
mod leaving;
mod making;
mod network;
mod notes;
mod observed;
mod part;
mod preflight;
mod status;
mod step;
mod storage;
mod strays;
mod wait;

pub use ailing::{Ailing, Ill};
pub use desired::{Cluster, Desired, Goal, MAX_ATTEMPTS, Numbers, Queue, Settings, Storage, User};
pub use launch::nic_layout;
pub use observed::*;
pub use status::ClusterStatus;
pub use step::*;
pub use wait::Wait;

use jiff::Timestamp;

use crate::Plan;
#[cfg(any(test, feature = "world"))]
pub(crate) use part::attempt_of;
use part::{Part, Parts, View};

/// What to do now for this cluster, and what it waits for. Total: it has an answer for everything.
pub fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> ClusterPlan {
    let view = View { desired, observed, now };
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
        return held(view, &faults);
    }
    let mut network = network::network(view);
    if view.intent(gate::LOST_STATUS).is_some() {
        network.forget.push(gate::LOST_STATUS.to_owned());
    }
    let storage = if network.is_ready() { storage::storage(view) } else { Part::kept() };
    let head = if network.is_ready() { head::head(view, storage.is_ready()) } else { Part::kept() };
    let fleets = fleets::fleets(view, storage.is_ready() && head.is_ready())
        .and(growth::answers(view))
        .and(notes::notes(view))
        .and(leaving::waits(view))
        .and(strays::strays(view));
    Parts { network, storage, head, fleets, whole: None }
}

/// A spec that cannot be built makes nothing; what a gang must give back goes all the same.
fn held(view: &View<'_>, faults: &[preflight::Fault]) -> Parts {
    let mut parts = Parts::refused(faults);
    let given = fleets::give_back(view).and(strays::strays(view));
    parts.fleets = Part {
        verdict: parts.fleets.verdict.clone(),
        kept: parts.fleets.kept,
        ..parts.fleets.and(given)
    };
    parts
}
