//! From parts to the status, and from the outcome of the steps back into it.

use std::fmt;
use std::time::Duration;

use hpc_crds::{
    CapacityError, Condition, ConditionSet, ConditionStatus, ConditionType, HpcClusterStatus,
    Intent, Reason,
};
use jiff::Timestamp;

use crate::cloud::{Failure, Kind};
use crate::intents::{self, Cause, Payload};
use crate::{Plan, Requeue};

use super::desired::Goal;
use super::facts::facts;
use super::observed::Outcome;
use super::part::{Part, Parts, Verdict, View};
use super::wait::Wait;
use super::{ClusterPlan, fleets, gate, growth, leaving};

/// How soon to look again while something is under way.
const BUSY: Duration = Duration::from_secs(2);
/// How soon to look again at what only a human can change.
const STUCK: Duration = Duration::from_mins(1);
/// Mark of an intent whose token AWS knows with another body.
pub(super) const MISMATCH: &str = "TokenMismatch";

/// The status to publish, with the conditions it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterStatus {
    /// What will be stored.
    pub status: HpcClusterStatus,
    /// Conditions as stored before this pass, so that transition times are kept.
    before: Vec<Condition>,
}

/// The whole plan from its parts.
pub(super) fn assemble(view: &View<'_>, parts: Parts) -> ClusterPlan {
    let mut status = facts(view, &parts);
    status.conditions = conditions(view, &parts);
    let all: Vec<Part> = match parts.whole {
        Some(whole) => vec![whole],
        None => vec![parts.network, parts.storage, parts.head, parts.fleets],
    };
    let requeue = requeue(&all);
    let leaves = |part: &Part| part.waits.iter().any(|wait| matches!(wait, Wait::Leaving { .. }));
    let listens = view.desired.can_grow() || all.iter().any(leaves);
    let requeue = if listens { listening(view, requeue) } else { requeue };
    let mut plan = Plan { steps: vec![], waits: vec![], status: wrap(view, status), requeue };
    for part in all {
        plan.steps.extend(part.steps);
        plan.waits.extend(part.waits);
        store(&mut plan.status.status.intents, part.intents, &part.forget);
    }
    if view.desired.settings.dry_run { rehearse(view, plan) } else { plan }
}

fn wrap(view: &View<'_>, status: HpcClusterStatus) -> ClusterStatus {
    ClusterStatus { status, before: view.observed.object.status.conditions.clone() }
}

/// Tells what would be done, and does nothing.
fn rehearse(view: &View<'_>, mut plan: ClusterPlan) -> ClusterPlan {
    let would: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    let would = if would.is_empty() { "do nothing".to_owned() } else { would.join("; ") };
    let mut set = ConditionSet::new(&plan.status.before, view.desired.generation, view.now);
    let message = format!("--dry-run: the operator would {would}");
    set.set(ConditionType::Ready, ConditionStatus::Unknown, Reason::DryRun, &message);
    for part in ConditionType::CLUSTER_PARTS {
        set.keep(part);
    }
    plan.status.status.conditions = set.into_conditions();
    plan.status.status.intents.clone_from(&view.observed.object.status.intents);
    plan.steps.clear();
    plan.requeue = Requeue::After(STUCK);
    plan
}

/// How soon to look again. What only a human can change is looked at seldom, a back-off is slept
/// through, and the rest is under way.
fn requeue(parts: &[Part]) -> Requeue {
    let idle = |part: &Part| part.steps.is_empty() && part.waits.is_empty() && part.is_ready();
    if parts.iter().all(idle) {
        return Requeue::OnChange;
    }
    let steps = parts.iter().any(|part| !part.steps.is_empty() || !part.intents.is_empty());
    let stalled = parts.iter().any(|part| part.verdict.stalled);
    let waits: Vec<_> = parts.iter().flat_map(|part| &part.waits).map(patience).collect();
    let soonest = waits.into_iter().min().unwrap_or(if stalled { STUCK } else { BUSY });
    Requeue::After(if steps { BUSY } else { soonest })
}

/// While a job can make nodes come, or keeps nodes that are to leave, the head is heard all the
/// time: its report alone, unless there is more to look at anyway.
fn listening(view: &View<'_>, requeue: Requeue) -> Requeue {
    let poll = view.desired.settings.demand_poll;
    match requeue {
        Requeue::After(wait) if wait <= BUSY.max(poll) => Requeue::After(wait.min(poll)),
        Requeue::After(wait) => Requeue::OnReport { poll, most: Some(wait) },
        Requeue::OnChange | Requeue::OnReport { .. } => Requeue::OnReport { poll, most: None },
    }
}

/// How long a wait is left alone.
fn patience(wait: &Wait) -> Duration {
    match wait {
        Wait::Human { .. }
        | Wait::NewerIntent { .. }
        | Wait::HeadFirst { .. }
        | Wait::Leaving { .. } => STUCK,
        Wait::Retry { seconds, .. }
        | Wait::Remembered { seconds, .. }
        | Wait::SecondLook { seconds } => Duration::from_secs(seconds + 1).clamp(BUSY, STUCK),
        Wait::Read(_)
        | Wait::Intent { .. }
        | Wait::Visible { .. }
        | Wait::LookUp { .. }
        | Wait::FileSystem { .. }
        | Wait::FileSystemGone { .. }
        | Wait::Volume { .. }
        | Wait::PlacementGroup { .. }
        | Wait::Document
        | Wait::FormerHead
        | Wait::HeadInstance
        | Wait::Agent { .. }
        | Wait::HeadBoot { .. }
        | Wait::Nodes { .. }
        | Wait::Terminating { .. }
        | Wait::Gone { .. }
        | Wait::Marked { .. }
        | Wait::Scheduler { .. }
        | Wait::Hidden => BUSY,
    }
}

/// Puts intents in place of those of the same thing, in a stable order. Another version's intent
/// is carried as it is, whatever a part says.
fn store(stored: &mut Vec<Intent>, new: Vec<Intent>, forget: &[String]) {
    let strange: Vec<_> = stored.iter().filter(|old| !intents::is_known(old)).collect();
    let ours = |intent: &Intent| strange.iter().all(|old| old.thing != intent.thing);
    let new: Vec<_> = new.into_iter().filter(ours).collect();
    stored.retain(|old| {
        let replaced = new.iter().any(|intent| intent.thing == old.thing);
        !intents::is_known(old) || !(forget.contains(&old.thing) || replaced)
    });
    stored.extend(new);
    stored.sort_by(|a, b| a.thing.cmp(&b.thing));
}

fn conditions(view: &View<'_>, parts: &Parts) -> Vec<Condition> {
    let before = &view.observed.object.status.conditions;
    let mut set = ConditionSet::new(before, view.desired.generation, view.now);
    simulated(view, &mut set);
    growth(view, &mut set);
    if let Some(whole) = &parts.whole {
        for part in ConditionType::CLUSTER_PARTS {
            keep(&mut set, part, whole);
        }
        state(&mut set, ConditionType::Ready, &whole.verdict);
        progress(&mut set, whole.verdict.stalled.then_some(&whole.verdict));
    } else {
        let each = [&parts.network, &parts.storage, &parts.head, &parts.fleets];
        for (part, type_) in each.iter().zip(ConditionType::CLUSTER_PARTS) {
            if part.kept && set.get(type_).is_some() {
                set.keep(type_);
            } else {
                state(&mut set, type_, &part.verdict);
            }
        }
        root(&mut set);
        let stalled = each.iter().map(|part| &part.verdict).find(|verdict| verdict.stalled);
        progress(&mut set, stalled);
    }
    set.into_conditions()
}

/// A part while only the whole is judged: as it was, or going with it.
fn keep(set: &mut ConditionSet<'_>, part: ConditionType, whole: &Part) {
    if whole.verdict.reason == Reason::Deleting {
        state(set, part, &gate::deleting("The cluster is being deleted"));
    } else if set.get(part).is_none() {
        state(set, part, &Part::pending().verdict);
    }
}

fn state(set: &mut ConditionSet<'_>, type_: ConditionType, verdict: &Verdict) {
    set.set(type_, verdict.truth, verdict.reason, &verdict.message);
}

fn root(set: &mut ConditionSet<'_>) {
    let success =
        (Reason::Ready, "The head accepts jobs, storage is mounted, every queue has its nodes");
    set.set_root(ConditionType::Ready, &ConditionType::CLUSTER_PARTS, success);
}

fn simulated(view: &View<'_>, set: &mut ConditionSet<'_>) {
    let fabric = &view.desired.settings.simulated_fabric;
    if !fabric.is_empty() {
        let message = format!("AWS is simulated and the {fabric} provider stands in for EFA");
        set.set(ConditionType::Simulated, ConditionStatus::True, Reason::Simulated, &message);
    }
}

/// Only while the queues cannot grow as jobs want it, and while nodes leave.
fn growth(view: &View<'_>, set: &mut ConditionSet<'_>) {
    if view.desired.goal != Goal::Present || !view.observed.failures.is_empty() {
        return;
    }
    if let Some(verdict) = growth::blocked(view) {
        state(set, ConditionType::GrowthBlocked, &verdict);
    }
    if let Some(verdict) = leaving::verdict(view) {
        state(set, ConditionType::NodesLeaving, &verdict);
    }
}

/// Stalled while only a human can help, else Reconciling until Ready.
fn progress(set: &mut ConditionSet<'_>, stalled: Option<&Verdict>) {
    let ready = set.get(ConditionType::Ready).cloned();
    if let Some(verdict) = stalled {
        let message = verdict.message.clone();
        set.set(ConditionType::Stalled, ConditionStatus::True, verdict.reason, &message);
        return;
    }
    if let Some(ready) = ready.filter(|ready| ready.status != ConditionStatus::True) {
        let reason = ready.known_reason().unwrap_or(Reason::Pending);
        set.set(ConditionType::Reconciling, ConditionStatus::True, reason, &ready.message);
    }
}

impl ClusterStatus {
    /// The status with what came of the steps: answered intents, refusals, throttles. Pure; the
    /// same pass publishes it.
    #[must_use]
    pub fn with(mut self, outcomes: &[Outcome], now: Timestamp) -> Self {
        for outcome in outcomes {
            self.note(outcome, now);
        }
        let failures = outcomes.iter().filter_map(|outcome| {
            let failure = outcome.result.as_ref().err()?;
            (!is_ordinary(failure)).then_some((outcome.part, failure))
        });
        let failures: Vec<_> = failures.collect();
        if !failures.is_empty() {
            self.blame(&failures, now);
        }
        self
    }

    fn note(&mut self, outcome: &Outcome, now: Timestamp) {
        let Some(token) = &outcome.token else { return };
        let intents = &mut self.status.intents;
        let Some(intent) = intents.iter_mut().find(|intent| intent.token == *token) else {
            return;
        };
        match &outcome.result {
            Ok(ids) => *intent = intents::acted(intent, ids.clone(), now),
            Err(failure) if failure.kind == Kind::TokenMismatch => {
                MISMATCH.clone_into(&mut intent.reason);
            }
            Err(failure) => {
                if let Some(cause) = Cause::of(failure.kind) {
                    let detail = format!("{}: {}", failure.code, failure.message);
                    let refused = intents::abandon(intent, cause, detail, now);
                    *intent = refused.clone();
                    self.remember_capacity(&refused, failure);
                }
            }
        }
    }

    fn remember_capacity(&mut self, intent: &Intent, failure: &Failure) {
        let queue =
            self.status.queues.iter_mut().find(|queue| {
                fleets::place(&intent.thing).is_some_and(|(name, _)| name == queue.name)
            });
        if let (Some(queue), Kind::Capacity) = (queue, failure.kind) {
            let payload = Payload::of(intent);
            queue.last_capacity_error = Some(CapacityError {
                type_: payload.instance_type,
                zone: payload.zone,
                code: failure.code.clone(),
                message: failure.message.clone(),
            });
        }
    }

    fn blame(&mut self, failures: &[(ConditionType, &Failure)], now: Timestamp) {
        let assembled = std::mem::take(&mut self.status.conditions);
        let mut set = ConditionSet::new(&self.before, self.status.observed_generation, now);
        for condition in &assembled {
            if let (Some(type_), Some(reason)) = (condition.known_type(), condition.known_reason())
            {
                set.set(type_, condition.status, reason, &condition.message);
            }
        }
        for (part, failure) in failures {
            state(&mut set, *part, &gate::failed(failure));
        }
        if failures.iter().all(|(part, _)| *part != ConditionType::Ready) {
            root(&mut set);
        }
        progress(&mut set, None);
        self.status.conditions = set.into_conditions();
    }
}

/// Failures that are part of the way: the next observation shows what they mean.
const fn is_ordinary(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        Kind::NotFound | Kind::InUse | Kind::Exists | Kind::TokenSpent | Kind::TokenMismatch
    )
}

impl fmt::Display for ClusterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.status.conditions.iter();
        let words: Vec<_> =
            conditions.map(|c| format!("{}={}({})", c.type_, c.status, c.reason)).collect();
        f.write_str(&words.join(" "))?;
        for intent in &self.status.intents {
            let Intent { thing, attempt, state, reason, .. } = intent;
            write!(f, "\n  intent {thing} #{attempt} {state}")?;
            if !reason.is_empty() {
                write!(f, " ({reason})")?;
            }
        }
        Ok(())
    }
}
