//! How a thing with a token comes into being: propose, see it stored, act, see it, settle.
//!
//! The one place where the life of an intent is decided; heads, gangs, volumes, interfaces and file
//! systems all go through it.

use hpc_crds::{Intent, IntentState, Reason};

use crate::cloud::Token;
use crate::intents::{self, Cause, Payload, Proposal};

use super::desired::MAX_ATTEMPTS;
use super::part::{Part, Verdict, View};
use super::status::MISMATCH;
use super::step::{Body, Step};
use super::wait::Wait;

/// The attempt before the last one that a status can hold; nothing but a forged tag comes near it.
const MOST_ATTEMPTS: i32 = 999_999;

/// A thing that is wanted and not seen.
pub(super) struct Making<'a> {
    /// Its name among the intents.
    pub thing: &'a str,
    /// Highest attempt number seen on resources of it, gone ones included.
    pub seen: i32,
    /// Ways to make it, best first; at least one.
    pub rungs: Vec<Payload>,
    /// What absence means once it was seen whole.
    pub absence: Absence,
    /// What the first attempt takes over from earlier ones of its kind.
    pub first: Payload,
    /// The ladder is walked once; somebody else asks again.
    pub once: bool,
    /// After too many failures in a row one node alone is tried, ever more seldom, instead of
    /// asking a human: what breaks nodes often ends without us.
    pub probes: bool,
}

/// What it means that a thing is not in the observation although it was seen whole before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It ended: instances are still shown, as terminated, and their interfaces stay in use.
    Ended,
    /// Nothing yet: one empty answer proves nothing, and making another would double data.
    Unproven,
}

impl<'a> Making<'a> {
    /// A thing of which nothing was ever seen, tried for as long as it is wanted.
    pub fn new(thing: &'a str, rungs: Vec<Payload>, absence: Absence) -> Self {
        Self {
            thing,
            seen: 0,
            rungs,
            absence,
            first: Payload::default(),
            once: false,
            probes: false,
        }
    }

    /// What to do about it now. `body` is the whole request of one attempt.
    pub fn pursue(&self, view: &View<'_>, body: impl Fn(&Payload, i32) -> Body) -> Part {
        match view.stored(self.thing) {
            None => self.propose(view, &self.first, body),
            Some(intent) if !intents::is_known(intent) => newer(intent),
            Some(intent) => match intent.state {
                IntentState::Open => self.resume(view, intent, body),
                IntentState::Acted => self.await_sight(view, intent),
                IntentState::Settled if self.absence == Absence::Unproven => {
                    self.lose_sight(view, intent)
                }
                IntentState::Settled => self.propose(view, &self.first, body),
                IntentState::Abandoned => self.retry(view, intent, body),
            },
        }
    }

    fn propose(
        &self,
        view: &View<'_>,
        after: &Payload,
        body: impl Fn(&Payload, i32) -> Body,
    ) -> Part {
        let stored = view.intent(self.thing).map_or(0, |intent| intent.attempt);
        let attempt = stored.max(self.seen).clamp(0, MOST_ATTEMPTS) + 1;
        let Some(rung) = self.rungs.get(after.rung).or_else(|| self.rungs.first()) else {
            return Part::pending();
        };
        let payload = Payload {
            rung: after.rung,
            round: after.round,
            failures: after.failures,
            slots: if self.is_probe(after) { rung.slots.first() } else { rung.slots.clone() },
            ..rung.clone()
        };
        let body_hash = intents::hash(&body(&payload, attempt));
        let proposal =
            Proposal { owner: &view.desired.owner, thing: self.thing, attempt, body_hash, payload };
        let verdict = Verdict::creating(format!("{} is about to be created", self.thing));
        Part::storing(proposal.open(view.now), verdict)
    }

    /// The token is stored: act on it, unless the request would be another one today.
    fn resume(
        &self,
        view: &View<'_>,
        intent: &Intent,
        body: impl Fn(&Payload, i32) -> Body,
    ) -> Part {
        let payload = Payload::of(intent);
        let body = body(&payload, intent.attempt);
        let creating = format!("{} is being created", self.thing);
        if self.is_same(intent, &payload, &body) && intent.reason != MISMATCH {
            let token = Token(intent.token.clone());
            let thing = self.thing.to_owned();
            return Part::step(creating, Step::Create { token, thing, body });
        }
        if view.since(intent) < view.desired.settings.lookup_window {
            return Part::waiting(creating, Wait::LookUp { thing: self.thing.to_owned() });
        }
        give_up(view, intent, Cause::Superseded, "the request changed before it was answered")
    }

    /// It was there and is not shown now: from here the look-up window runs.
    fn lose_sight(&self, view: &View<'_>, intent: &Intent) -> Part {
        let verdict = Verdict::creating(format!("{} is not shown by AWS any more", self.thing));
        Part::storing(intents::turn(intent, IntentState::Acted, view.now), verdict)
    }

    fn await_sight(&self, view: &View<'_>, intent: &Intent) -> Part {
        if view.since(intent) < view.desired.settings.lookup_window {
            let wait = Wait::Visible { thing: self.thing.to_owned() };
            return Part::waiting(format!("{} is not visible yet", self.thing), wait);
        }
        let ids = intent.resource_ids.join(" ");
        give_up(view, intent, Cause::Vanished, format!("{ids} never became visible"))
    }

    /// An attempt was given up: the next rung at once, or the first one again after a back-off.
    fn retry(
        &self,
        view: &View<'_>,
        intent: &Intent,
        body: impl Fn(&Payload, i32) -> Body,
    ) -> Part {
        let failed = Payload::of(intent);
        let (cause, detail) = Cause::read(intent);
        if !self.is_same(intent, &failed, &body(&failed, intent.attempt)) {
            return self.propose(view, &self.first, body);
        }
        let next = self.next(&failed, cause);
        if self.once && next.round > failed.round {
            let wait = Wait::Scheduler { thing: self.thing.to_owned() };
            return Part { waits: vec![wait], ..Part::new(refusal(cause, detail.to_owned())) };
        }
        if is_over(&next, cause) && !self.probes {
            return Part {
                waits: vec![Wait::Human { because: intent.reason.clone() }],
                ..Part::new(spent(self.thing, cause, detail))
            };
        }
        let settings = &view.desired.settings;
        let wait = if next.round > failed.round && has_backoff(cause) {
            view.backoff(intent)
        } else {
            std::time::Duration::ZERO
        };
        let shows = settings.visibility_window + std::time::Duration::from_secs(1);
        let hidden = intents::may_have_worked(intent);
        let wait = if hidden { wait.max(shows) } else { wait };
        let left = wait.saturating_sub(view.since(intent)).as_secs();
        if left == 0 {
            return self.propose(view, &next, body);
        }
        let because = cause.map_or_else(String::new, |cause| cause.to_string());
        let way_out = reason_of(cause).0.way_out();
        let (thing, limit) = (self.thing, wait.as_secs());
        let probe = if self.is_probe(&next) {
            format!("; after {} failures in a row one node alone is tried", next.failures)
        } else {
            String::new()
        };
        let message = format!("{thing}: {detail}{probe}; next try within {limit}s. {way_out}");
        Part {
            waits: vec![Wait::Retry { thing: self.thing.to_owned(), seconds: left, because }],
            ..Part::new(refusal(cause, message))
        }
    }

    /// Whether the attempt after this one only finds out whether nodes come up again.
    const fn is_probe(&self, after: &Payload) -> bool {
        self.probes && after.failures >= MAX_ATTEMPTS
    }

    /// Whether what an attempt asks for is still asked for: such a place, and slots that are free.
    fn is_wanted(&self, payload: &Payload) -> bool {
        self.rungs.iter().any(|rung| {
            let place =
                |of: &Payload| (of.instance_type.clone(), of.subnet.clone(), of.zone.clone());
            place(rung) == place(payload)
                && payload.slots.iter().all(|slot| rung.slots.contains(slot))
        })
    }

    /// Whether the request would be the same today; what failed for another one counts no more.
    fn is_same(&self, intent: &Intent, payload: &Payload, body: &Body) -> bool {
        self.is_wanted(payload) && intents::hash(body) == intent.body_hash
    }

    fn next(&self, failed: &Payload, cause: Option<Cause>) -> Payload {
        let further = failed.rung < self.rungs.len().saturating_sub(1);
        let further = further && matches!(cause, Some(Cause::Capacity | Cause::NotOffered));
        let failures = failed.failures.saturating_add(i32::from(reason_of(cause).1));
        Payload {
            rung: if further { failed.rung + 1 } else { 0 },
            round: failed.round.saturating_add(i32::from(!further)),
            failures,
            ..Payload::default()
        }
    }
}

/// The intent given up, and the part that says so. What it may have made is cleaned up by a pass
/// that reads this.
pub(super) fn give_up(
    view: &View<'_>,
    intent: &Intent,
    cause: Cause,
    detail: impl Into<String>,
) -> Part {
    let detail = detail.into();
    let verdict = refusal(Some(cause), format!("{}: {detail}", intent.thing));
    Part::storing(intents::abandon(intent, cause, detail, view.now), verdict)
}

/// The intent of a thing that is seen whole, as settled, when it is not yet.
pub(super) fn settle(view: &View<'_>, thing: &str, attempt: i32) -> Option<Intent> {
    let intent = view.intent(thing)?;
    let unsettled = match intent.state {
        IntentState::Open | IntentState::Acted => true,
        IntentState::Abandoned => intent.attempt == attempt,
        IntentState::Settled => false,
    };
    unsettled.then(|| intents::turn(intent, IntentState::Settled, view.now))
}

/// A newer operator's intent: carried as it is, not acted on.
pub(super) fn newer(intent: &Intent) -> Part {
    let (thing, version) = (intent.thing.clone(), intent.version);
    let way_out = Reason::UnknownIntent.way_out();
    let message =
        format!("{thing} has an intent of version {version} of a newer operator. {way_out}");
    Part {
        waits: vec![Wait::NewerIntent { thing, version }],
        ..Part::new(Verdict::stalled(Reason::UnknownIntent, message))
    }
}

/// Whether the next attempt would be one too many. Lack of capacity, quota and permission can end
/// without us, so they are probed for ever, ever more slowly.
fn is_over(next: &Payload, cause: Option<Cause>) -> bool {
    next.failures >= MAX_ATTEMPTS && reason_of(cause).1
}

fn has_backoff(cause: Option<Cause>) -> bool {
    !matches!(cause, Some(Cause::Spent | Cause::Superseded | Cause::Deleting))
}

fn spent(thing: &str, cause: Option<Cause>, detail: &str) -> Verdict {
    let reason = reason_of(cause).0;
    let (way_out, then) = (reason.way_out(), Reason::RetriesExhausted.way_out());
    let message =
        format!("{thing}: {detail}; given up after {MAX_ATTEMPTS} attempts. {way_out} {then}");
    Verdict::stalled(reason, message)
}

/// Giving up what nobody wants any more is no failure.
fn refusal(cause: Option<Cause>, message: String) -> Verdict {
    let reason = reason_of(cause).0;
    if reason == Reason::Creating {
        Verdict::creating(message)
    } else {
        Verdict::refused(reason, message)
    }
}

/// The reason a cause shows as, and whether attempts that end so are counted and bounded.
pub(super) const fn reason_of(cause: Option<Cause>) -> (Reason, bool) {
    match cause {
        Some(Cause::Capacity | Cause::Partial) => (Reason::InsufficientCapacity, false),
        Some(Cause::Quota) => (Reason::QuotaExceeded, false),
        Some(Cause::Denied) => (Reason::PermissionDenied, false),
        Some(Cause::NotOffered) => (Reason::NotOffered, false),
        Some(Cause::Invalid) => (Reason::UnsupportedConfiguration, true),
        Some(Cause::Dependency) => (Reason::DependencyMissing, false),
        Some(Cause::BootTimeout) => (Reason::BootTimeout, true),
        Some(Cause::BootFailed) => (Reason::BootFailed, true),
        Some(Cause::Failed) => (Reason::FileSystemFailed, true),
        Some(Cause::Vanished) => (Reason::LostInstances, true),
        Some(Cause::Spent | Cause::Superseded | Cause::Deleting) | None => {
            (Reason::Creating, false)
        }
    }
}
