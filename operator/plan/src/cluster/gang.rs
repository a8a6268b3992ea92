//! A gang between its launch and being whole: found again, answered, grown, or given back.

use hpc_crds::{Intent, IntentState};

use crate::intents::{self, Cause, Payload, Proposal};

use super::fleets::{Fleet, slots, thing};
use super::making::give_up;
use super::observed::Instance;
use super::part::{Part, Verdict, attempt_of};
use super::wait::Wait;

impl<'a> Fleet<'a> {
    /// A gang between its launch and being whole; `None` when none is under way.
    pub(super) fn gang(&self) -> Option<Part> {
        let latest = self.seen.iter().map(|node| attempt_of(&node.tags)).max();
        match (self.intent, latest) {
            (None, Some(attempt)) => self.adopt(attempt),
            (Some(intent), Some(attempt)) if intent.attempt < attempt => self.adopt(attempt),
            (Some(intent), _) => match intent.state {
                IntentState::Open => self.answered(intent),
                IntentState::Acted => self.grown(intent),
                IntentState::Abandoned if intents::may_have_worked(intent) => self.answered(intent),
                IntentState::Settled | IntentState::Abandoned => None,
            },
            (None, None) => None,
        }
    }

    /// Instances of an attempt no intent speaks of: the status was lost. Their record is made
    /// again; a gang with a ready node was whole before.
    fn adopt(&self, attempt: i32) -> Option<Part> {
        let mut gang = self.seen.iter().filter(|node| attempt_of(&node.tags) == attempt).peekable();
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
        let state = if was_whole { IntentState::Settled } else { IntentState::Acted };
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
        Some(Part::storing(intents::acted(intent, gang, self.view.now), verdict))
    }

    fn of(&self, intent: &Intent) -> impl Iterator<Item = &'a Instance> + '_ {
        let attempt = intent.attempt;
        self.seen.iter().copied().filter(move |node| attempt_of(&node.tags) == attempt)
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
        let age = self.view.since(intent);
        if seen < wanted {
            return (age >= self.view.desired.settings.lookup_window || seen > 0)
                .then(|| self.await_members(intent, seen, wanted));
        }
        if age >= self.view.desired.settings.boot_timeout {
            return Some(give_up(self.view, intent, Cause::BootTimeout, self.late(ready, wanted)));
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
            format!("Queue {}: {seen} of {wanted} nodes are visible", self.queue.name),
            Wait::Visible { thing: thing(&self.queue.name) },
        )
    }

    /// All or nothing: a member ended before the gang was whole, so the rest goes back as well.
    fn lost_member(&self, intent: &Intent, dead: &Instance) -> Part {
        let code = dead.state_reason.as_deref().unwrap_or("no reason told");
        let detail = format!("{} ended before the gang was whole ({code})", dead.id);
        let cause = Cause::of_end(code, Cause::Partial);
        give_up(self.view, intent, cause, detail)
    }

    fn late(&self, ready: usize, wanted: usize) -> String {
        let report = self.view.observed.report.iter().flat_map(|report| &report.worst);
        let worst =
            report.map(|node| format!("; {} step '{}': {}", node.name, node.step, node.message));
        let limit = self.view.desired.settings.boot_timeout.as_secs();
        format!(
            "{ready} of {wanted} nodes ready after {limit}s{}",
            worst.take(1).collect::<String>()
        )
    }

    /// Members of the gang that was given up may not be shown yet; a new one would stand beside
    /// them.
    pub(super) fn may_hide(&self) -> bool {
        let window = self.view.desired.settings.visibility_window;
        self.intent.is_some_and(|intent| {
            let launched = intent.resource_ids.len().max(Payload::of(intent).slots.len());
            intent.state == IntentState::Abandoned
                && !intent.resource_ids.is_empty()
                && self.of(intent).count() < launched
                && self.view.since(intent) <= window
        })
    }
}
