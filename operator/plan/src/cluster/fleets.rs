//! The queues' nodes: gangs, all or nothing. A gang that was never whole is given back; a node
//! lost from a whole one is replaced alone.

use std::collections::BTreeSet;

use hpc_crds::{ConditionStatus, Intent, IntentState, Reason};

use crate::intents::{self, Cause, Payload};
use crate::names::{SLOTS, queue_role};

use super::desired::Queue;
use super::launch;
use super::making::{Absence, Making, newer};
use super::observed::Instance;
use super::part::{Part, Verdict, View, attempt_of};
use super::preflight::{self, Ask};
use super::step::Step;
use super::wait::Wait;

/// All queues.
pub(super) fn fleets(view: &View<'_>, head_ready: bool) -> Part {
    let parts =
        view.desired.cluster.queues.iter().map(|queue| Fleet::new(view, queue).plan(head_ready));
    Part::all(parts, "Every queue has its nodes")
}

/// What goes back whatever comes of the spec: gangs given up, nodes without a slot.
pub(super) fn give_back(view: &View<'_>) -> Part {
    let parts = view.desired.cluster.queues.iter().map(|queue| {
        let fleet = Fleet::new(view, queue);
        match view.strange(&thing(&queue.name)) {
            Some(strange) => newer(strange),
            None => fleet.cleanup().and(fleet.gang().unwrap_or_else(|| Part::ready(""))),
        }
    });
    Part::all(parts, "")
}

/// Name of a queue among the intents.
pub(super) fn thing(queue: &str) -> String {
    format!("queue/{queue}")
}

/// One queue with everything seen of it.
pub(super) struct Fleet<'a> {
    pub view: &'a View<'a>,
    pub queue: &'a Queue,
    pub intent: Option<&'a Intent>,
    pub seen: Vec<&'a Instance>,
}

impl<'a> Fleet<'a> {
    pub fn new(view: &'a View<'a>, queue: &'a Queue) -> Self {
        let seen = view.instances(&queue_role(&queue.name)).collect();
        Self { view, queue, intent: view.intent(&thing(&queue.name)), seen }
    }

    /// Nodes the scheduler can use.
    pub fn ready(&self) -> usize {
        self.members().filter(|node| self.is_ready(node)).count()
    }

    /// Zone of the live nodes.
    pub fn zone(&self) -> Option<&'a str> {
        self.members().map(|node| node.zone.as_str()).next()
    }

    fn plan(&self, head_ready: bool) -> Part {
        if let Some(strange) = self.view.strange(&thing(&self.queue.name)) {
            return newer(strange);
        }
        let cleanup = self.cleanup();
        let gang = self.gang();
        match gang {
            Some(gang) => cleanup.and(gang),
            None => cleanup.and(self.complete(head_ready)),
        }
    }

    /// Live instances that count: not of a gang given up, not surplus.
    fn members(&self) -> impl Iterator<Item = &'a Instance> + '_ {
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

    pub fn is_ready(&self, node: &Instance) -> bool {
        let report = self.view.observed.report.iter();
        report
            .flat_map(|report| &report.nodes)
            .any(|told| told.instance_id == node.id.0 && told.ready)
    }

    /// Ends what was given up, what has no slot any more, and second holders of a slot.
    fn cleanup(&self) -> Part {
        let mut ends = vec![];
        let given_up =
            self.seen.iter().filter(|node| node.state.is_live() && self.is_given_up(node));
        let given_up: Vec<_> = given_up.map(|node| node.id.clone()).collect();
        if let (false, Some(intent)) = (given_up.is_empty(), self.intent) {
            ends.push(Step::Terminate { instances: given_up, because: intent.reason.clone() });
        }
        let mut taken = BTreeSet::new();
        let mut members: Vec<_> = self.members().collect();
        members.sort_by_key(|node| std::cmp::Reverse(attempt_of(&node.tags)));
        let surplus = members.into_iter().filter(|node| {
            let slot = slot_of(node);
            !self.queue.nodes.contains(&slot) || !taken.insert(slot)
        });
        let surplus: Vec<_> = surplus.map(|node| node.id.clone()).collect();
        if !surplus.is_empty() {
            let because = format!("queue {} has no slot for them", self.queue.name);
            ends.push(Step::Terminate { instances: surplus, because });
        }
        Part::all(ends.into_iter().map(|step| Part::step("Instances are being ended", step)), "")
    }

    /// Nothing is under way: are all slots filled and ready? Else launch what is missing.
    fn complete(&self, head_ready: bool) -> Part {
        let filled: BTreeSet<_> = self.members().map(slot_of).collect();
        let missing: Vec<_> =
            self.queue.nodes.iter().filter(|slot| !filled.contains(*slot)).cloned().collect();
        if missing.is_empty() {
            return self.call_off().unwrap_or_else(|| self.verdict_of_nodes());
        }
        let begins = self.intent.is_none_or(|intent| match intent.state {
            IntentState::Settled | IntentState::Abandoned => true,
            IntentState::Open | IntentState::Acted => false,
        });
        if !head_ready && begins {
            let wait = Wait::HeadFirst { queue: self.queue.name.clone() };
            return Part { waits: vec![wait], ..Part::pending() };
        }
        let ending = self.seen.iter().any(|node| node.state.is_live() && self.is_given_up(node));
        if ending || self.may_hide() {
            let thing = thing(&self.queue.name);
            return Part { waits: vec![Wait::Visible { thing }], ..Part::pending() };
        }
        self.launch(&missing)
    }

    /// A launch for slots that turned out to be filled: what it may have made shows in time.
    fn call_off(&self) -> Option<Part> {
        let open = self.intent.filter(|intent| intent.state == IntentState::Open)?;
        let nodes = self.verdict_of_nodes();
        if self.view.since(open) >= self.view.desired.settings.lookup_window {
            let detail = "nothing is missing any more";
            let given_up = intents::abandon(open, Cause::Superseded, detail, self.view.now);
            return Some(Part { intents: vec![given_up], ..nodes });
        }
        Some(Part { waits: vec![Wait::LookUp { thing: open.thing.clone() }], ..nodes })
    }

    fn launch(&self, missing: &[String]) -> Part {
        let thing = thing(&self.queue.name);
        let count = i64::try_from(missing.len()).unwrap_or(i64::MAX);
        let ask = Ask { thing: &thing, types: &self.queue.types, count };
        if let Some(excess) = preflight::over_limit(self.view, &ask) {
            return Part::new(excess);
        }
        let seen = self.seen.iter().map(|node| attempt_of(&node.tags)).max().unwrap_or_default();
        let making =
            Making { thing: &thing, seen, rungs: self.rungs(missing), absence: Absence::Ended };
        making.pursue(self.view, |payload, attempt| {
            launch::gang(self.view, self.queue, payload, attempt)
        })
    }

    /// The ladder: type by type, and for each type subnet by subnet, where it is offered. A queue
    /// in a placement group stays in the zone of its living nodes.
    fn rungs(&self, missing: &[String]) -> Vec<Payload> {
        let pinned = self.queue.grouped.then(|| self.zone()).flatten();
        let mut rungs = vec![];
        for instance_type in &self.queue.types {
            for (subnet, zone) in preflight::places(self.view, instance_type) {
                if pinned.is_none_or(|pin| pin == zone) {
                    rungs.push(Payload {
                        instance_type: instance_type.clone(),
                        subnet: subnet.to_string(),
                        zone: zone.to_owned(),
                        slots: missing.to_vec(),
                        ..Payload::default()
                    });
                }
            }
        }
        rungs
    }

    pub fn verdict_of_nodes(&self) -> Part {
        let (ready, wanted) = (self.ready(), self.queue.nodes.len());
        if ready >= wanted {
            return Part::ready("");
        }
        let wait = Wait::Nodes { queue: self.queue.name.clone(), ready, wanted };
        let message = format!("Queue {}: {ready} of {wanted} nodes accept jobs", self.queue.name);
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::Booting, message);
        Part { waits: vec![wait], ..Part::new(verdict) }
    }
}

/// The node names of an instance's gang, by launch index.
pub(super) fn slots(node: &Instance) -> Vec<String> {
    let text = node.tags.get(SLOTS).map_or("", String::as_str);
    text.split(',').filter(|slot| !slot.is_empty()).map(str::to_owned).collect()
}

/// The node name an instance boots under: its gang's slots by launch index.
fn slot_of(node: &Instance) -> String {
    let index = usize::try_from(node.launch_index).unwrap_or(usize::MAX);
    slots(node).into_iter().nth(index).unwrap_or_default()
}
