//! What belongs to a queue the spec no longer names: its nodes go, its launches are called off.

use hpc_crds::{Intent, IntentState};

use crate::intents::{self, Cause};
use crate::names::ROLE;

use super::fleets;
use super::part::{Part, Verdict, View};
use super::step::Step;

/// Nodes and intents of queues that are gone from the spec.
pub(super) fn strays(view: &View<'_>) -> Part {
    nodes(view).and(launches(view))
}

fn nodes(view: &View<'_>) -> Part {
    let roles =
        view.desired.cluster.queues.iter().map(|queue| crate::names::queue_role(&queue.name));
    let roles: Vec<_> = roles.collect();
    let live = view.observed.instances.iter().filter(|found| found.state.is_live());
    let stray = live.filter(|found| {
        found.tags.get(ROLE).is_some_and(|role| role.starts_with("queue-") && !roles.contains(role))
    });
    let instances: Vec<_> = stray.map(|found| found.id.clone()).collect();
    if instances.is_empty() {
        return Part::ready("");
    }
    let because = "the spec no longer names their queue".to_owned();
    Part::step("Nodes of a removed queue are being ended", Step::Terminate { instances, because })
}

fn launches(view: &View<'_>) -> Part {
    let things: Vec<_> =
        view.desired.cluster.queues.iter().map(|queue| fleets::thing(&queue.name)).collect();
    let stray = view.observed.object.status.intents.iter().filter(|intent| {
        intents::is_known(intent)
            && intent.thing.starts_with("queue/")
            && !things.contains(&intent.thing)
    });
    Part::all(stray.map(|intent| launch(view, intent)), "")
}

/// Given up first, so that a late sight of it is understood; forgotten once nothing can come of it.
fn launch(view: &View<'_>, intent: &Intent) -> Part {
    match intent.state {
        IntentState::Open | IntentState::Acted | IntentState::Settled => {
            let detail = "the spec no longer names the queue";
            let given_up = intents::abandon(intent, Cause::Superseded, detail, view.now);
            Part::storing(given_up, Verdict::creating("A removed queue is being given back"))
        }
        IntentState::Abandoned if view.since(intent) <= view.desired.settings.visibility_window => {
            Part::ready("")
        }
        IntentState::Abandoned => Part { forget: vec![intent.thing.clone()], ..Part::ready("") },
    }
}
