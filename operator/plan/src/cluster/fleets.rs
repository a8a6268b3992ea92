//! The queues' nodes: gangs, all or nothing. A gang that was never whole is given back; a node
//! lost from a whole one is replaced alone.

use std::collections::BTreeSet;

use hpc_crds::{ConditionStatus, Intent, IntentState, Reason};

use crate::intents::{self, Cause, Payload, Proposal};
use crate::names::{SLOTS, queue_role};

use super::desired::Queue;
use super::launch;
use super::making::{Absence, Making, give_up};
use super::observed::Instance;
use super::part::{Part, Verdict, View, attempt_of};
use super::preflight;
use super::step::Step;
use super::wait::Wait;

/// All queues.
pub(super) fn fleets(view: &View<'_>, head_ready: bool) -> Part {
    let parts = view
        .desired
        .cluster
        .queues
        .iter()
        .map(|queue| Fleet::new(view, queue).plan(head_ready));
    Part::all(parts, "Every queue has its nodes")
}

/// Name of a queue among the intents.
pub(super) fn thing(queue: &str) -> String {
    format!("queue/{queue}")
}

/// One queue with everything seen of it.
pub(super) struct Fleet<'a> {
    view: &'a View<'a>,
    queue: &'a Queue,
    intent: Option<&'a Intent>,
    seen: Vec<&'a Instance>,
}

impl<'a> Fleet<'a> {
    pub fn new(view: &'a View<'a>, queue: &'a Queue) -> Self {
        let seen = view.instances(&queue_role(&queue.name)).collect();
        Self {
            view,
            queue,
            intent: view.intent(&thing(&queue.name)),
            seen,
        }
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
        let cleanup = self.cleanup();
        let gang = self.gang();
        match gang {
            Some(gang) => cleanup.and(gang),
            None => cleanup.and(self.complete(head_ready)),
        }
    }

    /// Live instances that count: not of a gang given up, not surplus.
    fn members(&self) -> impl Iterator<Item = &'a Instance> + '_ {
        let live = self
            .seen
            .iter()
            .copied()
            .filter(|node| node.state.is_live());
        live.filter(|node| !self.is_given_up(node))
    }

    fn is_given_up(&self, node: &Instance) -> bool {
        self.intent.is_some_and(|intent| {
            intent.state == IntentState::Abandoned && intent.attempt == attempt_of(&node.tags)
        })
    }

    fn is_ready(&self, node: &Instance) -> bool {
        let report = self.view.observed.report.iter();
        report
            .flat_map(|report| &report.nodes)
            .any(|told| told.instance_id == node.id.0 && told.ready)
    }

    /// Ends what was given up, what has no slot any more, and second holders of a slot.
    fn cleanup(&self) -> Part {
        let mut ends = vec![];
        let given_up = self
            .seen
            .iter()
            .filter(|node| node.state.is_live() && self.is_given_up(node));
        let given_up: Vec<_> = given_up.map(|node| node.id.clone()).collect();
        if let (false, Some(intent)) = (given_up.is_empty(), self.intent) {
            ends.push(Step::Terminate {
                instances: given_up,
                because: intent.reason.clone(),
            });
        }
        let mut taken = BTreeSet::new();
        let surplus = self.members().filter(|node| {
            let slot = slot_of(node);
            !self.queue.nodes.contains(&slot) || !taken.insert(slot)
        });
        let surplus: Vec<_> = surplus.map(|node| node.id.clone()).collect();
        if !surplus.is_empty() {
            let because = format!("queue {} has no slot for them", self.queue.name);
            ends.push(Step::Terminate {
                instances: surplus,
                because,
            });
        }
        Part::all(
            ends.into_iter()
                .map(|step| Part::step("Instances are being ended", step)),
            "",
        )
    }

    /// A gang between its launch and being whole; `None` when none is under way.
    fn gang(&self) -> Option<Part> {
        let latest = self.seen.iter().map(|node| attempt_of(&node.tags)).max();
        match (self.intent, latest) {
            (None, Some(attempt)) => self.adopt(attempt),
            (Some(intent), Some(attempt)) if intent.attempt < attempt => self.adopt(attempt),
            (Some(intent), _) => match intent.state {
                IntentState::Open => self.answered(intent),
                IntentState::Acted => self.grown(intent),
                IntentState::Settled | IntentState::Abandoned => None,
            },
            (None, None) => None,
        }
    }

    /// Instances of an attempt no intent speaks of: the status was lost. Their record is made
    /// again; a gang with a ready node was whole before.
    fn adopt(&self, attempt: i32) -> Option<Part> {
        let mut gang = self
            .seen
            .iter()
            .filter(|node| attempt_of(&node.tags) == attempt)
            .peekable();
        let first = gang.peek()?;
        let payload = Payload {
            instance_type: first.instance_type.clone(),
            zone: first.zone.clone(),
            slots: slots(first),
            ..Payload::default()
        };
        let ids: Vec<_> = gang.clone().map(|node| node.id.0.clone()).collect();
        let was_whole = gang.any(|node| self.is_ready(node));
        let proposal = Proposal {
            owner: &self.view.desired.owner,
            thing: &thing(&self.queue.name),
            attempt,
            body_hash: intents::hash(&payload),
            payload,
        };
        let acted = intents::acted(&proposal.open(self.view.now), ids, self.view.now);
        let state = if was_whole {
            IntentState::Settled
        } else {
            IntentState::Acted
        };
        let intent = intents::turn(&acted, state, self.view.now);
        Some(Part::storing(
            intent,
            Verdict::creating(format!("Queue {}: nodes found again", self.queue.name)),
        ))
    }

    /// The answer to a launch was lost, yet its instances are here.
    fn answered(&self, intent: &Intent) -> Option<Part> {
        let gang: Vec<_> = self.of(intent).map(|node| node.id.0.clone()).collect();
        if gang.is_empty() {
            return None;
        }
        let verdict = Verdict::creating(format!("Queue {}: nodes launched", self.queue.name));
        Some(Part::storing(
            intents::acted(intent, gang, self.view.now),
            verdict,
        ))
    }

    fn of(&self, intent: &Intent) -> impl Iterator<Item = &'a Instance> + '_ {
        let attempt = intent.attempt;
        self.seen
            .iter()
            .copied()
            .filter(move |node| attempt_of(&node.tags) == attempt)
    }

    /// A launched gang: whole, still coming, or to be given back.
    fn grown(&self, intent: &Intent) -> Option<Part> {
        let wanted = Payload::of(intent).slots.len();
        if let Some(dead) = self.of(intent).find(|node| !node.state.is_live()) {
            return Some(self.lost_member(intent, dead));
        }
        let ready = self.of(intent).filter(|node| self.is_ready(node)).count();
        let seen = self.of(intent).count();
        if ready >= wanted {
            return Some(Part {
                intents: vec![intents::turn(intent, IntentState::Settled, self.view.now)],
                ..self.verdict_of_nodes()
            });
        }
        let waited = self.view.since(intent);
        if seen < wanted {
            return (waited >= self.view.desired.settings.lookup_window || seen > 0)
                .then(|| self.await_members(intent, seen, wanted));
        }
        if waited >= self.view.desired.settings.boot_timeout {
            return Some(give_up(
                self.view,
                intent,
                Cause::BootTimeout,
                self.late(ready, wanted),
            ));
        }
        Some(self.verdict_of_nodes())
    }

    fn await_members(&self, intent: &Intent, seen: usize, wanted: usize) -> Part {
        let settings = &self.view.desired.settings;
        if self.view.since(intent) >= settings.lookup_window {
            let detail = format!("{seen} of {wanted} instances ever became visible");
            return give_up(self.view, intent, Cause::Partial, detail);
        }
        Part::waiting(
            format!(
                "Queue {}: {seen} of {wanted} nodes are visible",
                self.queue.name
            ),
            Wait::Visible {
                thing: thing(&self.queue.name),
            },
        )
    }

    /// All or nothing: a member ended before the gang was whole, so the rest goes back as well.
    fn lost_member(&self, intent: &Intent, dead: &Instance) -> Part {
        let code = dead.state_reason.as_deref().unwrap_or("no reason told");
        let detail = format!("{} ended before the gang was whole ({code})", dead.id);
        let capacity = code.contains("InsufficientInstanceCapacity");
        let cause = if capacity {
            Cause::Capacity
        } else {
            Cause::Partial
        };
        give_up(self.view, intent, cause, detail)
    }

    fn late(&self, ready: usize, wanted: usize) -> String {
        let report = self
            .view
            .observed
            .report
            .iter()
            .flat_map(|report| &report.worst);
        let worst =
            report.map(|node| format!("; {} step '{}': {}", node.name, node.step, node.message));
        let limit = self.view.desired.settings.boot_timeout.as_secs();
        format!(
            "{ready} of {wanted} nodes ready after {limit}s{}",
            worst.take(1).collect::<String>()
        )
    }

    /// Nothing is under way: are all slots filled and ready? Else launch what is missing.
    fn complete(&self, head_ready: bool) -> Part {
        let filled: BTreeSet<_> = self.members().map(slot_of).collect();
        let missing: Vec<_> = self
            .queue
            .nodes
            .iter()
            .filter(|slot| !filled.contains(*slot))
            .cloned()
            .collect();
        if missing.is_empty() {
            return self.verdict_of_nodes();
        }
        if !head_ready
            && self
                .intent
                .is_none_or(|intent| intent.state == IntentState::Settled)
        {
            let wait = Wait::HeadFirst {
                queue: self.queue.name.clone(),
            };
            return Part {
                waits: vec![wait],
                ..Part::pending()
            };
        }
        let ending = self
            .seen
            .iter()
            .any(|node| node.state.is_live() && self.is_given_up(node));
        if ending {
            return Part::pending();
        }
        self.launch(missing)
    }

    fn launch(&self, missing: Vec<String>) -> Part {
        let count = i64::try_from(missing.len()).unwrap_or(i64::MAX);
        if self
            .intent
            .is_none_or(|intent| intent.state != IntentState::Open)
            && let Some(excess) = preflight::over_limit(self.view, &self.queue.types, count)
        {
            return Part::new(excess);
        }
        let seen = self
            .seen
            .iter()
            .map(|node| attempt_of(&node.tags))
            .max()
            .unwrap_or_default();
        let thing = thing(&self.queue.name);
        let making = Making {
            thing: &thing,
            seen,
            rungs: self.rungs(&missing),
            absence: Absence::Ended,
        };
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

    fn verdict_of_nodes(&self) -> Part {
        let (ready, wanted) = (self.ready(), self.queue.nodes.len());
        if ready >= wanted {
            return Part::ready("");
        }
        let wait = Wait::Nodes {
            queue: self.queue.name.clone(),
            ready,
            wanted,
        };
        let message = format!(
            "Queue {}: {ready} of {wanted} nodes accept jobs",
            self.queue.name
        );
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::Booting, message);
        Part {
            waits: vec![wait],
            ..Part::new(verdict)
        }
    }
}

fn slots(node: &Instance) -> Vec<String> {
    let text = node.tags.get(SLOTS).map_or("", String::as_str);
    text.split(',')
        .filter(|slot| !slot.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The node name an instance boots under: its gang's slots by launch index.
fn slot_of(node: &Instance) -> String {
    let index = usize::try_from(node.launch_index).unwrap_or(usize::MAX);
    slots(node).into_iter().nth(index).unwrap_or_default()
}
