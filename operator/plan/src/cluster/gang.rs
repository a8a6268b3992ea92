//! A gang between its launch and being whole: found again, answered, grown, or given back.

use hpc_crds::{Intent, IntentState};

use crate::intents::{self, Cause, Payload, Proposal};
use crate::names::slots_of;

use super::fleets::{Fleet, slot_of};
use super::making::give_up;
use super::observed::{Instance, WorstNode};
use super::part::{Part, Verdict, attempt_of};
use super::wait::Wait;

impl<'a> Fleet<'a> {
    /// A gang between its launch and being whole; `None` when none is under way.
    pub(super) fn under_way(&self) -> Option<Part> {
        // A job's gang of which nothing lives is over: nobody asks for it under this name again.
        let counts = |node: &&&Instance| self.gang.is_empty() || node.state.is_live();
        let latest = self.seen.iter().filter(counts).map(|node| attempt_of(&node.tags)).max();
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
    /// again; a gang with a ready node was whole before, unless a boot step failed on another.
    fn adopt(&self, attempt: i32) -> Option<Part> {
        let mut gang = self.seen.iter().filter(|node| attempt_of(&node.tags) == attempt).peekable();
        let first = gang.peek()?;
        let payload = Payload {
            instance_type: first.instance_type.clone(),
            zone: first.zone.clone(),
            slots: slots_of(&first.tags),
            ..Payload::default()
        };
        let ids: Vec<_> = gang.clone().map(|node| node.id.0.clone()).collect();
        let failed = gang.clone().any(|node| self.failed_step(node).is_some());
        let was_whole = !failed && gang.any(|node| self.is_ready(node));
        let proposal = Proposal {
            owner: &self.view.desired.owner,
            thing: &self.thing,
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

    /// Those of an attempt that are still wanted.
    fn crew(&self, intent: &Intent) -> impl Iterator<Item = &'a Instance> + '_ {
        self.of(intent).filter(|node| {
            let wants = |slot| self.wanted.as_ref().is_none_or(|wanted| wanted.contains(slot));
            slot_of(node).is_some_and(wants)
        })
    }

    /// A launched gang: whole, still coming, or to be given back. Members whose job went away in
    /// the meantime do not count.
    fn grown(&self, intent: &Intent) -> Option<Part> {
        let launched = Payload::of(intent).slots;
        let dropped = self.wanted.as_ref().map_or(0, |wanted| launched.without(wanted).len());
        let wanted = launched.len() - dropped;
        if wanted == 0 && dropped > 0 {
            return None;
        }
        if let Some(dead) = self.crew(intent).find(|node| !node.state.is_live()) {
            return Some(self.lost_member(intent, dead));
        }
        let ready = self.crew(intent).filter(|node| self.is_ready(node)).count();
        let seen = self.crew(intent).count();
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
        if let Some(failed) = self.crew(intent).find_map(|node| self.failed_step(node)) {
            return Some(give_up(self.view, intent, Cause::BootFailed, failed));
        }
        if age >= self.view.desired.settings.boot_timeout && !self.is_left_out() {
            return Some(give_up(self.view, intent, Cause::BootTimeout, self.late(ready, wanted)));
        }
        Some(self.verdict_of_nodes())
    }

    /// The boot step that failed on a node, with its last words.
    pub(super) fn failed_step(&self, node: &Instance) -> Option<String> {
        let mut told = self.view.observed.report.iter().flat_map(|report| &report.worst);
        let worst = told.find(|told| told.exit != 0 && told.instance_id == node.id.0)?;
        let WorstNode { name, step, exit, message, .. } = worst;
        Some(format!("boot step '{step}' of {name} failed with exit code {exit}: {message}"))
    }

    /// Whether the report was too long to speak of this gang.
    fn is_left_out(&self) -> bool {
        let mut cut = self.view.observed.report.iter().filter(|report| report.cut);
        cut.any(|report| report.fleets.iter().all(|told| told.gang != self.gang))
    }

    fn await_members(&self, intent: &Intent, seen: usize, wanted: usize) -> Part {
        let settings = &self.view.desired.settings;
        if self.view.since(intent) >= settings.lookup_window {
            let detail = format!("{seen} of {wanted} instances ever became visible");
            return give_up(self.view, intent, Cause::Partial, detail);
        }
        Part::waiting(
            format!("Queue {}: {seen} of {wanted} nodes are visible", self.queue.name),
            Wait::Visible { thing: self.thing.clone() },
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
