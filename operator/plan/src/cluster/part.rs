//! The shape every part of a cluster's plan shares, and the view it is made from.

use std::time::Duration;

use hpc_crds::{ConditionStatus, ConditionType, Intent, Reason, Time};
use jiff::Timestamp;

use crate::cloud::{SubnetId, Tags};
use crate::intents::{self, Payload};
use crate::names::{ATTEMPT, ROLE};

use super::desired::Desired;
use super::observed::{FileSystem, Group, Instance, Interface, Observed, Subnet, Volume};
use super::step::Step;
use super::wait::Wait;

/// Everything a part may look at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub desired: &'a Desired,
    pub observed: &'a Observed,
    pub now: Timestamp,
}

/// What a part says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub truth: ConditionStatus,
    pub reason: Reason,
    pub message: String,
    /// Nothing more will be tried until a human changes something.
    pub stalled: bool,
}

impl Verdict {
    pub fn new(truth: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { truth, reason, message: message.into(), stalled: false }
    }

    pub fn ready(message: impl Into<String>) -> Self {
        Self::new(ConditionStatus::True, Reason::Ready, message)
    }

    pub fn creating(message: impl Into<String>) -> Self {
        Self::new(ConditionStatus::Unknown, Reason::Creating, message)
    }

    pub fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ConditionStatus::False, reason, message)
    }

    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { stalled: true, ..Self::refused(reason, message) }
    }

    /// Of two verdicts on one part the worse; of equal ones the first.
    fn worse(self, other: Self) -> Self {
        let rank = |verdict: &Self| match verdict.truth {
            ConditionStatus::False => 2 + u8::from(verdict.stalled),
            ConditionStatus::Unknown => 1,
            ConditionStatus::True => 0,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Steps, waits, intents and verdict of one part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub steps: Vec<Step>,
    pub waits: Vec<Wait>,
    /// Intents to store, each in place of an earlier one of its thing.
    pub intents: Vec<Intent>,
    /// Things whose intent is forgotten.
    pub forget: Vec<String>,
    pub verdict: Verdict,
    /// Nothing was learnt: the condition stays as it was.
    pub kept: bool,
}

impl Part {
    pub fn new(verdict: Verdict) -> Self {
        Self { steps: vec![], waits: vec![], intents: vec![], forget: vec![], verdict, kept: false }
    }

    pub fn ready(message: impl Into<String>) -> Self {
        Self::new(Verdict::ready(message))
    }

    pub fn pending() -> Self {
        Self::new(Verdict::new(
            ConditionStatus::Unknown,
            Reason::Pending,
            "waits for what comes before it",
        ))
    }

    pub fn kept() -> Self {
        Self { kept: true, ..Self::pending() }
    }

    pub fn waiting(message: impl Into<String>, wait: Wait) -> Self {
        Self { waits: vec![wait], ..Self::new(Verdict::creating(message)) }
    }

    pub fn step(message: impl Into<String>, step: Step) -> Self {
        Self { steps: vec![step], ..Self::new(Verdict::creating(message)) }
    }

    pub fn storing(intent: Intent, verdict: Verdict) -> Self {
        let wait = Wait::Intent { thing: intent.thing.clone(), attempt: intent.attempt };
        Self { intents: vec![intent], waits: vec![wait], ..Self::new(verdict) }
    }

    pub fn is_ready(&self) -> bool {
        self.verdict.truth == ConditionStatus::True
    }

    /// Both, with the worse verdict.
    pub fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.waits.extend(other.waits);
        self.intents.extend(other.intents);
        self.forget.extend(other.forget);
        self.verdict = self.verdict.worse(other.verdict);
        self
    }

    /// All of them; ready with `message` when each is.
    pub fn all(parts: impl IntoIterator<Item = Self>, message: impl Into<String>) -> Self {
        parts.into_iter().fold(Self::ready(message), Self::and)
    }
}

/// The parts of a whole cluster.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub network: Part,
    pub storage: Part,
    pub head: Part,
    pub fleets: Part,
    /// Stands for the whole when the parts have nothing to say of their own (deletion, a stop).
    pub whole: Option<Part>,
}

impl Parts {
    /// One part for all.
    pub fn only(whole: Part) -> Self {
        let pending = Part::pending;
        Self {
            network: pending(),
            storage: pending(),
            head: pending(),
            fleets: pending(),
            whole: Some(whole),
        }
    }

    /// What is known of some parts; the others stay as they were, and nothing moves.
    pub fn refused(faults: &[(ConditionType, Verdict)]) -> Self {
        let of = |part: ConditionType| {
            faults
                .iter()
                .filter(|(at, _)| *at == part)
                .map(|(_, verdict)| Part::new(verdict.clone()))
                .reduce(Part::and)
                .unwrap_or_else(Part::kept)
        };
        Self {
            network: of(ConditionType::NetworkReady),
            storage: of(ConditionType::StorageReady),
            head: of(ConditionType::HeadReady),
            fleets: of(ConditionType::FleetsReady),
            whole: None,
        }
    }
}

impl<'a> View<'a> {
    /// The intent of a thing, when this build may act on it.
    pub fn intent(&self, thing: &str) -> Option<&'a Intent> {
        self.stored(thing).filter(|intent| intents::is_known(intent))
    }

    /// The intent of a thing that another version wrote.
    pub fn strange(&self, thing: &str) -> Option<&'a Intent> {
        self.stored(thing).filter(|intent| !intents::is_known(intent))
    }

    /// The intent of a thing, whoever wrote it.
    pub fn stored(&self, thing: &str) -> Option<&'a Intent> {
        let mut intents = self.observed.object.status.intents.iter();
        intents.find(|intent| intent.thing == thing)
    }

    pub fn group(&self, role: &str) -> Option<&'a Group> {
        let name = self.desired.owner.resource(role);
        self.observed.groups.iter().find(|group| group.name == name)
    }

    pub fn subnet(&self, id: &SubnetId) -> Option<&'a Subnet> {
        self.observed.subnets.iter().find(|subnet| subnet.id == *id)
    }

    pub fn instances(&self, role: &str) -> impl Iterator<Item = &'a Instance> {
        with_role(&self.observed.instances, role, |instance| &instance.tags)
    }

    pub fn file_systems(&self, role: &str) -> impl Iterator<Item = &'a FileSystem> {
        with_role(&self.observed.file_systems, role, |file_system| &file_system.tags)
    }

    pub fn volumes(&self, role: &str) -> impl Iterator<Item = &'a Volume> {
        with_role(&self.observed.volumes, role, |volume| &volume.tags)
    }

    pub fn interface(&self, role: &str) -> Option<&'a Interface> {
        with_role(&self.observed.interfaces, role, |interface| &interface.tags).next()
    }

    pub fn tags(&self, role: &str, attempt: i32) -> Tags {
        let mut tags = self.desired.owner.tags(role, &self.desired.cluster.tags);
        tags.insert(ATTEMPT.to_owned(), attempt.to_string());
        tags
    }

    pub fn since(&self, intent: &Intent) -> Duration {
        intents::age(intent, self.now)
    }

    /// The wait after an attempt that was given up at the end of its ladder.
    pub fn backoff(&self, intent: &Intent) -> Duration {
        let first = self.desired.settings.capacity_backoff;
        intents::backoff(first, Payload::of(intent).round, &self.desired.owner)
    }

    /// When that wait is over.
    pub fn next_try(&self, intent: &Intent) -> Option<Time> {
        intent.changed_at.timestamp().checked_add(self.backoff(intent)).ok().map(Time::new)
    }
}

fn with_role<'a, T>(
    all: &'a [T],
    role: &str,
    tags: impl Fn(&T) -> &Tags,
) -> impl Iterator<Item = &'a T> {
    all.iter().filter(move |item| tags(item).get(ROLE).is_some_and(|value| value == role))
}

/// The attempt a resource was made in; 0 when it is not told.
pub(crate) fn attempt_of(tags: &Tags) -> i32 {
    tags.get(ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or_default()
}
