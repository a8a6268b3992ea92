//! What belongs to a queue the spec no longer names: its nodes go, its launches are called off.

use std::time::Duration;

use hpc_crds::{Intent, IntentState};

use crate::intents::{self, Cause};
use crate::names::ROLE;

use super::fleets::place;
use super::part::{Part, Verdict, View};
use super::step::Step;
use super::wait::Wait;

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
    let named = |queue: &str| view.desired.cluster.queues.iter().any(|known| known.name == queue);
    let stray = view.observed.object.status.intents.iter().filter(|intent| {
        let stray = place(&intent.thing).is_some_and(|(queue, _)| !named(queue));
        intents::is_known(intent) && stray
    });
    let detail = "the spec no longer names the queue";
    Part::all(stray.map(|intent| call_off(view, intent, detail)), "")
}

/// An intent that is kept until it is older than `window`.
pub(super) fn remember(view: &View<'_>, intent: &Intent, window: Duration) -> Part {
    let seconds = window.saturating_sub(view.since(intent)).as_secs();
    let wait = Wait::Remembered { thing: intent.thing.clone(), seconds };
    Part { waits: vec![wait], ..Part::ready("") }
}

/// Given up first, so that a late sight of it is understood; forgotten once nothing can come of it.
pub(super) fn call_off(view: &View<'_>, intent: &Intent, detail: &str) -> Part {
    match intent.state {
        IntentState::Open | IntentState::Acted | IntentState::Settled => {
            let given_up = intents::abandon(intent, Cause::Superseded, detail, view.now);
            Part::storing(
                given_up,
                Verdict::creating(format!("{} is being given back", intent.thing)),
            )
        }
        IntentState::Abandoned if view.since(intent) <= view.desired.settings.visibility_window => {
            remember(view, intent, view.desired.settings.visibility_window)
        }
        IntentState::Abandoned => Part { forget: vec![intent.thing.clone()], ..Part::ready("") },
    }
}
