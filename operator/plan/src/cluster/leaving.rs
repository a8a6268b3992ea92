//! Nodes that have to leave: sick ones, those AWS is about to take, those a smaller queue has no
//! place for. The scheduler is told first and takes its jobs off them; what it has powered down is
//! ended, and comes again where the queue still wants it.

use std::collections::BTreeMap;

use hpc_crds::{ConditionStatus, IntentState, Reason};
use serde::Serialize;

use crate::slots::Slots;

use super::ailing::{Ill, ill};
use super::desired::Queue;
use super::fleets::{self, Fleet, slot_of};
use super::growth;
use super::observed::Instance;
use super::part::{Part, Verdict, View, attempt_of};
use super::wait::Wait;

/// Why a node has to leave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Ill(Ill),
    /// Its queue has shrunk: to so many nodes that always run, or to so many at most.
    Shrunk {
        most: i32,
        stand: usize,
    },
}

impl Why {
    const fn reason(&self) -> Reason {
        match self {
            Self::Ill(ill) => ill.reason(),
            Self::Shrunk { .. } => Reason::QueueShrinks,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Ill(ill) => ill.words(),
            Self::Shrunk { most, stand } => format!("minNodes is {stand} and maxNodes {most}"),
        }
    }
}

/// Nodes of one launch that leave for one reason, as the head is told.
#[derive(Serialize)]
pub(super) struct Leave {
    queue: String,
    gang: String,
    attempt: i32,
    slots: Slots,
    /// Their jobs are not waited for: the machine does not work.
    hard: bool,
    code: String,
    message: String,
}

impl Fleet<'_> {
    /// Whether the scheduler has powered a node down for good.
    pub(super) fn has_left(&self, node: &Instance) -> bool {
        growth::scheduler(self.view).is_some_and(|report| self.is_among(&report.left, node))
    }

    /// Why a node that always runs is of no use any more: the scheduler has powered it down, or it
    /// failed to boot again after it had been in use.
    pub(super) fn is_useless(&self, node: &Instance) -> Option<String> {
        if self.has_left(node) {
            return Some("the scheduler has powered it down".to_owned());
        }
        let settled = self.intent.is_some_and(|intent| intent.state == IntentState::Settled);
        if self.gang.is_empty() && settled { self.failed_step(node) } else { None }
    }

    /// A node that may have a job though nobody wants it any more: it is asked to leave first. One
    /// that still boots has none.
    pub(super) fn is_asked_to_leave(&self, node: &Instance) -> bool {
        self.gang.is_empty() && !self.is_booting(node) && !self.has_left(node)
    }

    fn is_booting(&self, node: &Instance) -> bool {
        let begun = self.intent.is_some_and(|intent| match intent.state {
            IntentState::Open | IntentState::Acted => intent.attempt == attempt_of(&node.tags),
            IntentState::Settled | IntentState::Abandoned => false,
        });
        begun && !self.is_ready(node)
    }

    fn why(&self, node: &Instance) -> Option<Why> {
        if let Some(ill) = ill(self.view, &node.id) {
            return Some(Why::Ill(ill.clone()));
        }
        let slot = slot_of(node)?;
        let has_place = self.has_place(slot);
        let stand = self.queue.nodes.len();
        (!has_place).then_some(Why::Shrunk { most: self.queue.most, stand })
    }

    fn has_place(&self, slot: i32) -> bool {
        if self.gang.is_empty() { self.queue.nodes.contains(slot) } else { slot <= self.queue.most }
    }

    fn leaving(&self) -> impl Iterator<Item = (Why, &Instance)> {
        let there = self.members().filter(|node| !self.is_booting(node) && !self.has_left(node));
        there.filter_map(|node| Some((self.why(node)?, node)))
    }
}

/// What the head is told of them.
pub(super) fn told(view: &View<'_>) -> Vec<Leave> {
    let queues = view.desired.cluster.queues.iter();
    queues.flat_map(|queue| of_queue(view, queue)).collect()
}

fn of_queue(view: &View<'_>, queue: &Queue) -> Vec<Leave> {
    let mut launches = BTreeMap::<_, Vec<i32>>::new();
    for fleet in fleets::every(view, queue) {
        for (why, node) in fleet.leaving() {
            let launch = (fleet.gang.to_owned(), attempt_of(&node.tags), why);
            launches.entry(launch).or_default().extend(slot_of(node));
        }
    }
    let leave = launches.into_iter().map(|((gang, attempt, why), slots)| Leave {
        queue: queue.name.clone(),
        gang,
        attempt,
        slots: slots.into_iter().collect(),
        hard: why == Why::Ill(Ill::Impaired),
        code: why.reason().to_string(),
        message: why.words(),
    });
    leave.collect()
}

/// Until they have left they are waited for, and nothing is wrong with the cluster.
pub(super) fn waits(view: &View<'_>) -> Part {
    let waits = told(view).into_iter().map(|leave| {
        let nodes = format!("{} {}", leave.queue, leave.slots);
        Wait::Leaving { nodes, because: leave.message }
    });
    Part { waits: waits.collect(), ..Part::ready("") }
}

/// For the condition `NodesLeaving`.
pub(super) fn verdict(view: &View<'_>) -> Option<Verdict> {
    let told = told(view);
    let first = told.first()?;
    let nodes: Vec<_> = told
        .iter()
        .map(|leave| format!("{} {}: {}", leave.queue, leave.slots, leave.message))
        .collect();
    let reason = first.code.parse().ok()?;
    let message = format!("Nodes leave when the scheduler lets them go. {}", nodes.join("; "));
    Some(Verdict::new(ConditionStatus::True, reason, message))
}
