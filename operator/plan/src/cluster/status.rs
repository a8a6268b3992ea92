//! From parts to the status, and from the outcome of the steps back into it.

use std::fmt;
use std::time::Duration;

use hpc_crds::{
    AwsStatus, CapacityError, Condition, ConditionSet, ConditionStatus, ConditionType, HeadStatus,
    HpcClusterStatus, ImageStatus, Intent, IntentState, NodesStatus, QueueStatus, Reason,
    RetainedResource, StateVolumeStatus, StorageStatus, Time,
};
use jiff::Timestamp;

use crate::cloud::{Failure, Kind};
use crate::intents::{self, Cause, Payload};
use crate::names::{HEAD, HEAD_INTERFACE, RETAINED, ROLE};
use crate::{Plan, Requeue};

use super::desired::{DEFAULT_USER, Goal};
use super::fleets::{self, Fleet};
use super::head::current_volume;
use super::observed::{Lifecycle, Outcome};
use super::part::{Part, Parts, Verdict, View};
use super::{ClusterPlan, gate, storage};

/// How soon to look again while something is under way.
const BUSY: Duration = Duration::from_secs(2);
/// How soon to look again at what only a human can change.
const STUCK: Duration = Duration::from_secs(60);
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
    let mut plan = Plan {
        steps: vec![],
        waits: vec![],
        status: wrap(view, status),
        requeue,
    };
    for part in all {
        plan.steps.extend(part.steps);
        plan.waits.extend(part.waits);
        store(&mut plan.status.status.intents, part.intents, &part.forget);
    }
    if view.desired.settings.dry_run {
        rehearse(view, plan)
    } else {
        plan
    }
}

fn wrap(view: &View<'_>, status: HpcClusterStatus) -> ClusterStatus {
    ClusterStatus {
        status,
        before: view.observed.object.status.conditions.clone(),
    }
}

/// Tells what would be done, and does nothing.
fn rehearse(view: &View<'_>, mut plan: ClusterPlan) -> ClusterPlan {
    let would: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    let would = if would.is_empty() {
        "do nothing".to_owned()
    } else {
        would.join("; ")
    };
    let mut set = ConditionSet::new(&plan.status.before, view.desired.generation, view.now);
    let message = format!("--dry-run: the operator would {would}");
    set.set(
        ConditionType::Ready,
        ConditionStatus::Unknown,
        Reason::DryRun,
        &message,
    );
    for part in ConditionType::CLUSTER_PARTS {
        set.keep(part);
    }
    plan.status.status.conditions = set.into_conditions();
    plan.status
        .status
        .intents
        .clone_from(&view.observed.object.status.intents);
    plan.steps.clear();
    plan.requeue = Requeue::After(STUCK);
    plan
}

fn requeue(parts: &[Part]) -> Requeue {
    let busy = |part: &Part| !part.steps.is_empty() || !part.waits.is_empty() || !part.is_ready();
    let stuck = parts
        .iter()
        .all(|part| part.is_ready() || part.verdict.stalled);
    match (parts.iter().any(busy), stuck) {
        (false, _) => Requeue::OnChange,
        (true, true) => Requeue::After(STUCK),
        (true, false) => Requeue::After(BUSY),
    }
}

/// Puts intents in place of those of the same thing, in a stable order.
fn store(stored: &mut Vec<Intent>, new: Vec<Intent>, forget: &[String]) {
    stored.retain(|old| {
        !forget.contains(&old.thing) && !new.iter().any(|intent| intent.thing == old.thing)
    });
    stored.extend(new);
    stored.sort_by(|a, b| a.thing.cmp(&b.thing));
}

fn conditions(view: &View<'_>, parts: &Parts) -> Vec<Condition> {
    let before = &view.observed.object.status.conditions;
    let mut set = ConditionSet::new(before, view.desired.generation, view.now);
    simulated(view, &mut set);
    if let Some(whole) = &parts.whole {
        for part in ConditionType::CLUSTER_PARTS {
            set.keep(part);
        }
        state(&mut set, ConditionType::Ready, &whole.verdict);
        progress(&mut set, whole.verdict.stalled.then_some(&whole.verdict));
    } else {
        let each = [&parts.network, &parts.storage, &parts.head, &parts.fleets];
        for (part, type_) in each.iter().zip(ConditionType::CLUSTER_PARTS) {
            state(&mut set, type_, &part.verdict);
        }
        root(&mut set);
        let stalled = each
            .iter()
            .map(|part| &part.verdict)
            .find(|verdict| verdict.stalled);
        progress(&mut set, stalled);
    }
    set.into_conditions()
}

fn state(set: &mut ConditionSet<'_>, type_: ConditionType, verdict: &Verdict) {
    set.set(type_, verdict.truth, verdict.reason, &verdict.message);
}

fn root(set: &mut ConditionSet<'_>) {
    let success = (
        Reason::Ready,
        "The head accepts jobs, storage is mounted, every queue has its nodes",
    );
    set.set_root(ConditionType::Ready, &ConditionType::CLUSTER_PARTS, success);
}

fn simulated(view: &View<'_>, set: &mut ConditionSet<'_>) {
    let fabric = &view.desired.settings.simulated_fabric;
    if !fabric.is_empty() {
        let message = format!("AWS is simulated and the {fabric} provider stands in for EFA");
        set.set(
            ConditionType::Simulated,
            ConditionStatus::True,
            Reason::Simulated,
            &message,
        );
    }
}

/// Stalled while only a human can help, else Reconciling until Ready.
fn progress(set: &mut ConditionSet<'_>, stalled: Option<&Verdict>) {
    let ready = set.get(ConditionType::Ready).cloned();
    if let Some(verdict) = stalled {
        let message = verdict.message.clone();
        set.set(
            ConditionType::Stalled,
            ConditionStatus::True,
            verdict.reason,
            &message,
        );
        return;
    }
    if let Some(ready) = ready.filter(|ready| ready.status != ConditionStatus::True) {
        let reason = ready.known_reason().unwrap_or(Reason::Pending);
        set.set(
            ConditionType::Reconciling,
            ConditionStatus::True,
            reason,
            &ready.message,
        );
    }
}

/// Everything but conditions and intents: what was observed.
fn facts(view: &View<'_>, parts: &Parts) -> HpcClusterStatus {
    let mut status = view.observed.object.status.clone();
    status.observed_generation = view.desired.generation;
    if status.aws.is_none() {
        status.aws = view.observed.account.as_ref().map(|account| AwsStatus {
            account_id: account.id.clone(),
            partition: account.partition.clone(),
        });
    }
    if !view.observed.failures.is_empty() || view.desired.goal == Goal::Paused {
        return status;
    }
    if status.image.is_none() && view.desired.goal == Goal::Present {
        status.image = view.observed.image.as_ref().map(|image| ImageStatus {
            id: image.id.clone(),
            name: image.name.clone(),
        });
    }
    if parts.whole.is_none() || view.desired.goal == Goal::Absent {
        status.head = head(view);
        status.storage = storages(view);
        status.state_volume = current_volume(view).map(|volume| StateVolumeStatus {
            volume_id: volume.id.0.clone(),
        });
        status.queues = queues(view);
        status.nodes = Some(nodes(&status.queues));
        status.retained = retained(view);
    }
    status
}

fn head(view: &View<'_>) -> Option<HeadStatus> {
    let interface = view.interface(HEAD_INTERFACE)?;
    let instance = view.instances(HEAD).find(|head| head.state.is_live());
    Some(HeadStatus {
        instance_id: instance.map(|head| head.id.0.clone()).unwrap_or_default(),
        private_ip: interface.private_ip.clone(),
        login_user: DEFAULT_USER.0.to_owned(),
    })
}

fn storages(view: &View<'_>) -> Vec<StorageStatus> {
    let wanted = view.desired.cluster.storages.iter();
    wanted
        .map(|wanted| one_storage(view, &wanted.name))
        .collect()
}

fn one_storage(view: &View<'_>, name: &str) -> StorageStatus {
    let told = view
        .observed
        .object
        .status
        .storage
        .iter()
        .find(|told| told.name == name);
    let reached = told.is_some_and(|told| told.reached_available);
    let Some(found) = storage::current(view, name) else {
        let told = told.cloned().unwrap_or_default();
        return StorageStatus {
            name: name.to_owned(),
            state: String::new(),
            ..told
        };
    };
    let available = matches!(found.lifecycle, Lifecycle::Available | Lifecycle::Updating);
    StorageStatus {
        name: name.to_owned(),
        file_system_id: found.id.0.clone(),
        mount_name: found.mount_name.clone(),
        state: found.lifecycle.to_string().to_uppercase(),
        reached_available: reached || available,
    }
}

fn queues(view: &View<'_>) -> Vec<QueueStatus> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let wanted = view.desired.cluster.queues.iter();
    let status = wanted.map(|queue| {
        let fleet = Fleet::new(view, queue);
        let told = view
            .observed
            .object
            .status
            .queues
            .iter()
            .find(|told| told.name == queue.name);
        QueueStatus {
            name: queue.name.clone(),
            zone: fleet.zone().unwrap_or_default().to_owned(),
            desired: count(queue.nodes.len()),
            ready: count(fleet.ready()),
            last_capacity_error: told.and_then(|told| told.last_capacity_error.clone()),
            next_try: next_try(view, &fleets::thing(&queue.name)),
        }
    });
    status.collect()
}

/// When a given-up launch is tried again.
fn next_try(view: &View<'_>, thing: &str) -> Option<Time> {
    let intent = view
        .intent(thing)
        .filter(|intent| intent.state == IntentState::Abandoned)?;
    let first = view.desired.settings.capacity_backoff;
    let wait = intents::backoff(first, Payload::of(intent).round, &view.desired.owner);
    intent
        .changed_at
        .timestamp()
        .checked_add(wait)
        .ok()
        .map(Time::new)
}

fn nodes(queues: &[QueueStatus]) -> NodesStatus {
    let sum = |of: fn(&QueueStatus) -> i32| queues.iter().map(of).sum();
    NodesStatus::new(sum(|queue| queue.ready), sum(|queue| queue.desired))
}

fn retained(view: &View<'_>) -> Vec<RetainedResource> {
    let name = |tags: &crate::cloud::Tags| tags.get(ROLE).cloned().unwrap_or_default();
    let observed = view.observed;
    let volumes = observed
        .volumes
        .iter()
        .filter(|found| found.tags.contains_key(RETAINED));
    let volumes = volumes.map(|found| ("Volume", found.id.0.clone(), name(&found.tags)));
    let files = observed
        .file_systems
        .iter()
        .filter(|found| found.tags.contains_key(RETAINED));
    let files = files.map(|found| ("FileSystem", found.id.0.clone(), name(&found.tags)));
    let groups = observed
        .groups
        .iter()
        .filter(|found| found.tags.contains_key(RETAINED));
    let groups = groups.map(|found| ("SecurityGroup", found.id.0.clone(), name(&found.tags)));
    let all = volumes.chain(files).chain(groups);
    all.map(|(kind, id, name)| RetainedResource {
        kind: kind.to_owned(),
        id,
        name,
    })
    .collect()
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
                MISMATCH.clone_into(&mut intent.reason)
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
        let queue = self
            .status
            .queues
            .iter_mut()
            .find(|queue| fleets::thing(&queue.name) == intent.thing);
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
        if failures
            .iter()
            .all(|(part, _)| *part != ConditionType::Ready)
        {
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
        let words: Vec<_> = conditions
            .map(|c| format!("{}={}({})", c.type_, c.status, c.reason))
            .collect();
        f.write_str(&words.join(" "))?;
        for intent in &self.status.intents {
            let Intent {
                thing,
                attempt,
                state,
                reason,
                ..
            } = intent;
            write!(f, "\n  intent {thing} #{attempt} {state}")?;
            if !reason.is_empty() {
                write!(f, " ({reason})")?;
            }
        }
        Ok(())
    }
}
