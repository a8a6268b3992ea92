//! The queues' nodes that always run: one gang, all or nothing. A gang that was never whole is
//! given back; a node lost from a whole one is replaced alone.

use std::collections::BTreeSet;

use hpc_crds::{ConditionStatus, Intent, IntentState, Reason};

use crate::intents::{self, Cause, Payload};
use crate::names::{GANG, queue_role, slots_of};
use crate::slots::Slots;

use super::desired::Queue;
use super::growth;
use super::launch;
use super::making::{Absence, Making, newer};
use super::observed::{Instance, ReportedFleet};
use super::part::{Part, Verdict, View, attempt_of};
use super::preflight::{self, Ask};
use super::step::Step;
use super::wait::Wait;

/// All queues.
pub(super) fn fleets(view: &View<'_>, head_ready: bool) -> Part {
    let queues = view.desired.cluster.queues.iter();
    let parts = queues.map(|queue| {
        let standing = Fleet::standing(view, queue).plan(head_ready);
        standing.and(growth::growth(view, queue, head_ready))
    });
    Part::all(parts, "Every queue has its nodes")
}

/// What goes back whatever comes of the spec: gangs given up, nodes without a slot.
pub(super) fn give_back(view: &View<'_>) -> Part {
    let fleets = view.desired.cluster.queues.iter().flat_map(|queue| every(view, queue));
    Part::all(fleets.map(|fleet| fleet.unless_under_way(|| Part::ready(""))), "")
}

/// The nodes of a queue: those that always run, and every gang.
pub(super) fn every<'a>(view: &'a View<'a>, queue: &'a Queue) -> impl Iterator<Item = Fleet<'a>> {
    [Fleet::standing(view, queue)].into_iter().chain(growth::gangs(view, queue))
}

/// Name of a queue's nodes among the intents: those that always run, or those of a gang.
pub(super) fn thing(queue: &str, gang: &str) -> String {
    if gang.is_empty() { format!("queue/{queue}") } else { format!("queue/{queue}/{gang}") }
}

/// The queue and the gang an intent is for.
pub(super) fn place(thing: &str) -> Option<(&str, &str)> {
    let rest = thing.strip_prefix("queue/")?;
    Some(rest.split_once('/').unwrap_or((rest, "")))
}

/// Nodes launched together, with everything seen of them.
pub(super) struct Fleet<'a> {
    pub view: &'a View<'a>,
    pub queue: &'a Queue,
    /// Its gang; empty for the nodes that always run.
    pub gang: &'a str,
    /// Its name among the intents.
    pub thing: String,
    /// The nodes it should have; nothing while nobody can say.
    pub wanted: Option<Slots>,
    pub intent: Option<&'a Intent>,
    pub seen: Vec<&'a Instance>,
}

impl<'a> Fleet<'a> {
    /// The nodes that always run.
    pub fn standing(view: &'a View<'a>, queue: &'a Queue) -> Self {
        // A node that came for a job and is to stay by now stands for the one that always runs.
        let role = queue_role(&queue.name);
        let live = view.instances(&role).filter(|node| node.state.is_live());
        let held = live.filter(|node| !gang_of(node).is_empty()).filter_map(slot_of).collect();
        Self::new(view, queue, "", Some(queue.nodes.without(&held)))
    }

    pub fn new(view: &'a View<'a>, queue: &'a Queue, gang: &'a str, wanted: Option<Slots>) -> Self {
        let role = queue_role(&queue.name);
        let of_queue = view.instances(&role);
        let seen = of_queue.filter(|node| gang_of(node) == gang).collect();
        let thing = thing(&queue.name, gang);
        let intent = view.intent(&thing);
        Self { view, queue, gang, thing, wanted, intent, seen }
    }

    /// How many of its nodes the scheduler can use.
    pub fn ready(&self) -> usize {
        self.members().filter(|node| self.is_ready(node)).count()
    }

    fn plan(&self, head_ready: bool) -> Part {
        self.unless_under_way(|| self.complete(head_ready))
    }

    /// What goes back and what is under way; `idle` when nothing is. Another version's intent is
    /// left alone.
    pub fn unless_under_way(&self, idle: impl FnOnce() -> Part) -> Part {
        match self.view.strange(&self.thing) {
            Some(strange) => newer(strange),
            None => self.cleanup().and(self.under_way().unwrap_or_else(idle)),
        }
    }

    /// Intents of this queue, each with its gang; empty for the nodes that always run.
    pub fn intents_of_queue(&self) -> impl Iterator<Item = (&'a str, &'a Intent)> + '_ {
        let intents = self.view.observed.object.status.intents.iter();
        intents.filter_map(|intent| {
            let (queue, gang) = place(&intent.thing)?;
            (queue == self.queue.name).then_some((gang, intent))
        })
    }

    /// Live instances that count: not of a gang given up.
    pub fn members(&self) -> impl Iterator<Item = &'a Instance> + '_ {
        let live = self.seen.iter().copied().filter(|node| node.state.is_live());
        live.filter(|node| !self.is_given_up(node))
    }

    fn is_given_up(&self, node: &Instance) -> bool {
        self.intent.is_some_and(|intent| {
            intent.state == IntentState::Abandoned
                && intent.attempt == attempt_of(&node.tags)
                && !intents::may_have_worked(intent)
        })
    }

    /// Whether the scheduler can use a node; what it said of an earlier launch does not count.
    pub fn is_ready(&self, node: &Instance) -> bool {
        let report = self.view.observed.report.as_ref();
        report.is_some_and(|report| self.is_among(&report.fleets, node))
    }

    /// Whether a part of the report speaks of this very launch of a node.
    pub fn is_among(&self, told: &[ReportedFleet], node: &Instance) -> bool {
        let attempt = attempt_of(&node.tags);
        let Some(slot) = slot_of(node) else { return false };
        let mut own =
            told.iter().filter(|told| told.queue == self.queue.name && told.gang == self.gang);
        own.any(|told| told.attempt == attempt && told.ready.contains(slot))
    }

    /// Ends what was given up, what has left, what has no slot any more and no job, and second
    /// holders of a slot.
    pub fn cleanup(&self) -> Part {
        let mut ends = vec![];
        let given_up =
            self.seen.iter().filter(|node| node.state.is_live() && self.is_given_up(node));
        let given_up: Vec<_> = given_up.map(|node| node.id.clone()).collect();
        if let (false, Some(intent)) = (given_up.is_empty(), self.intent) {
            ends.push(Step::Terminate { instances: given_up, because: intent.reason.clone() });
        }
        let surplus = self.surplus();
        for (node, because) in
            self.members().filter_map(|node| Some((node, self.is_useless(node)?)))
        {
            if !surplus.contains(&node.id) {
                ends.push(Step::Terminate { instances: vec![node.id.clone()], because });
            }
        }
        if !surplus.is_empty() {
            let because = format!("queue {} has no slot for them", self.queue.name);
            ends.push(Step::Terminate { instances: surplus, because });
        }
        Part::all(ends.into_iter().map(|step| Part::step("Instances are being ended", step)), "")
    }

    fn surplus(&self) -> Vec<crate::cloud::InstanceId> {
        let Some(wanted) = &self.wanted else { return vec![] };
        let mut taken = BTreeSet::new();
        let mut members: Vec<_> = self.members().collect();
        members.sort_by_key(|node| std::cmp::Reverse(attempt_of(&node.tags)));
        let surplus = members.into_iter().filter(|node| {
            let slot = slot_of(node);
            let is_first = slot.is_some_and(|slot| taken.insert(slot));
            let has_place = is_first && slot.is_some_and(|slot| wanted.contains(slot));
            !(has_place || is_first && self.is_asked_to_leave(node))
        });
        surplus.map(|node| node.id.clone()).collect()
    }

    /// The nodes that it should have and that nobody is.
    pub fn missing(&self) -> Slots {
        let filled = self.members().filter_map(slot_of).collect();
        self.wanted.as_ref().map(|wanted| wanted.without(&filled)).unwrap_or_default()
    }

    /// Nothing is under way: are all slots filled and ready? Else launch what is missing.
    fn complete(&self, head_ready: bool) -> Part {
        let missing = self.missing();
        if missing.is_empty() {
            return self.call_off().unwrap_or_else(|| self.verdict_of_nodes());
        }
        if let Some(wait) = self.obstacle(head_ready) {
            return Part { waits: vec![wait], ..Part::pending() };
        }
        self.launch(&missing, Payload::default())
    }

    /// What a launch has to wait for.
    pub fn obstacle(&self, head_ready: bool) -> Option<Wait> {
        let begins = self.intent.is_none_or(|intent| match intent.state {
            IntentState::Settled | IntentState::Abandoned => true,
            IntentState::Open | IntentState::Acted => false,
        });
        if !head_ready && begins {
            return Some(Wait::HeadFirst { queue: self.queue.name.clone() });
        }
        let ending = self.seen.iter().any(|node| node.state.is_live() && self.is_given_up(node));
        (ending || self.may_hide()).then(|| Wait::Visible { thing: self.thing.clone() })
    }

    /// A launch for slots that turned out to be filled: what it may have made shows in time.
    pub fn call_off(&self) -> Option<Part> {
        let open = self.intent.filter(|intent| intent.state == IntentState::Open)?;
        let nodes = self.verdict_of_nodes();
        if self.view.since(open) >= self.view.desired.settings.lookup_window {
            let detail = "nothing is missing any more";
            let given_up = intents::abandon(open, Cause::Superseded, detail, self.view.now);
            return Some(Part { intents: vec![given_up], ..nodes });
        }
        Some(Part { waits: vec![Wait::LookUp { thing: open.thing.clone() }], ..nodes })
    }

    /// The verdict when the missing nodes would pass a limit of the operator.
    pub fn over_limit(&self, missing: &Slots) -> Option<Verdict> {
        let count = i64::try_from(missing.len()).unwrap_or(i64::MAX);
        let ask = Ask { thing: &self.thing, types: &self.queue.types, count };
        preflight::over_limit(self.view, &ask)
    }

    pub fn launch(&self, missing: &Slots, first: Payload) -> Part {
        if let Some(excess) = self.over_limit(missing) {
            return Part::new(excess);
        }
        let seen = self.seen.iter().map(|node| attempt_of(&node.tags)).max().unwrap_or_default();
        let rungs = self.rungs(missing);
        let once = !self.gang.is_empty();
        let making = Making {
            seen,
            first,
            once,
            probes: !once,
            ..Making::new(&self.thing, rungs, Absence::Ended)
        };
        making.pursue(self.view, |payload, attempt| launch::gang(self, payload, attempt))
    }

    /// The ladder: type by type, and for each type subnet by subnet, where it is offered. A queue
    /// in a placement group stays in the zone of its living nodes.
    fn rungs(&self, missing: &Slots) -> Vec<Payload> {
        let pinned = self.queue.grouped.then(|| self.pinned()).flatten();
        let mut rungs = vec![];
        for instance_type in &self.queue.types {
            for (subnet, zone) in preflight::places(self.view, instance_type) {
                if pinned.as_deref().is_none_or(|pin| pin == zone) {
                    rungs.push(Payload {
                        instance_type: instance_type.clone(),
                        subnet: subnet.to_string(),
                        zone: zone.to_owned(),
                        slots: missing.clone(),
                        ..Payload::default()
                    });
                }
            }
        }
        rungs
    }

    /// The zone that living nodes, or another gang on its way, bind the queue to.
    fn pinned(&self) -> Option<String> {
        let living = zone(self.view, self.queue).map(str::to_owned);
        living.or_else(|| {
            let mut others = self.intents_of_queue().filter(|(_, other)| self.is_beside(other));
            others.next().map(|(_, other)| Payload::of(other).zone)
        })
    }

    /// Whether another launch is under way.
    pub fn is_beside(&self, other: &Intent) -> bool {
        let under_way = matches!(other.state, IntentState::Open | IntentState::Acted);
        under_way && other.thing != self.thing
    }

    pub fn verdict_of_nodes(&self) -> Part {
        let (ready, wanted) = (self.ready(), self.wanted.as_ref().map_or(0, Slots::len));
        if ready >= wanted {
            return Part::ready("");
        }
        let wait = Wait::Nodes { queue: self.queue.name.clone(), ready, wanted };
        let message = format!("Queue {}: {ready} of {wanted} nodes accept jobs", self.queue.name);
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::Booting, message);
        Part { waits: vec![wait], ..Part::new(verdict) }
    }
}

/// Zone of the queue's live nodes.
pub(super) fn zone<'a>(view: &View<'a>, queue: &Queue) -> Option<&'a str> {
    let role = queue_role(&queue.name);
    let mut nodes = view.instances(&role);
    nodes.find(|node| node.state.is_live()).map(|node| node.zone.as_str())
}

/// The gang a node was launched for; empty for one that always runs.
pub(super) fn gang_of(node: &Instance) -> &str {
    node.tags.get(GANG).map_or("", String::as_str)
}

/// The number of a node: its gang's slots by launch index.
pub(super) fn slot_of(node: &Instance) -> Option<i32> {
    slots_of(&node.tags).nth(node.launch_index)
}
