//! What comes before everything: the finalizer, the right account, a complete observation, nobody
//! else's resources under this name, and the pause switch.

use hpc_crds::{ConditionStatus, ConditionType, Intent, Reason};

use crate::cloud::{Failure, Kind};
use crate::intents::{self, Payload, Proposal};
use crate::names::{IGNORE_PREDECESSOR, PAUSED};

use super::desired::Goal;
use super::part::{Part, Parts, Verdict, View};
use super::step::Step;
use super::wait::Wait;

/// Name, among the intents, of the note that the status was lost.
pub(super) const LOST_STATUS: &str = "status";

/// The whole plan when one of the gates is closed.
pub(super) fn check(view: &View<'_>) -> Option<Parts> {
    finalizer(view)
        .or_else(|| account(view))
        .or_else(|| reads(view))
        .or_else(|| forgotten(view))
        .or_else(|| predecessor(view))
        .or_else(|| paused(view))
}

fn finalizer(view: &View<'_>) -> Option<Parts> {
    match (view.observed.object.finalizer, view.desired.goal) {
        (true, _) => None,
        (false, Goal::Absent) => {
            Some(Parts::only(Part::new(deleting("Nothing is left to give back"))))
        }
        (false, Goal::Paused) => paused(view),
        // Not where nothing can be read, as in a region that does not exist: there nothing can be
        // made, and the object must be free to go.
        (false, Goal::Present) if !can_read(view) => None,
        (false, Goal::Present) => {
            Some(Parts::only(Part::step("The finalizer comes first", Step::AddFinalizer)))
        }
    }
}

fn can_read(view: &View<'_>) -> bool {
    view.observed.account.is_some() && blocking(view).next().is_none()
}

/// The verdict while an object goes.
pub(super) fn deleting(message: &str) -> Verdict {
    Verdict::refused(Reason::Deleting, message)
}

fn account(view: &View<'_>) -> Option<Parts> {
    let Some(account) = view.observed.account.as_ref() else {
        return unknown_account(view);
    };
    match &view.observed.object.status.aws {
        Some(known) if known.account_id == account.id => None,
        Some(known) => {
            let message = format!(
                "The credentials are of account {}, the cluster stands in {}. Give the operator \
                 credentials of account {}",
                account.id, known.account_id, known.account_id
            );
            Some(stopped(Verdict::stalled(Reason::AccountChanged, message)))
        }
        None if view.desired.goal == Goal::Paused => None,
        // Noted where nothing can be read, it would hold an object that can make nothing there.
        None if blocking(view).next().is_some() => None,
        None => Some(noted(view)),
    }
}

/// Without the account nothing is known to be ours; the failed read says why, if one did.
fn unknown_account(view: &View<'_>) -> Option<Parts> {
    view.observed.failures.is_empty().then(|| {
        let message = "The account of the credentials is not known";
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::CloudUnavailable, message);
        Parts::only(Part::new(verdict))
    })
}

/// The account goes into the status before anything is made. Where something of ours stands
/// already the status was lost, and with it what it said of launches that AWS does not show yet.
fn noted(view: &View<'_>) -> Parts {
    let verdict = Verdict::creating("The account is noted first");
    if view.desired.goal != Goal::Present || !stands(view) {
        return Parts::only(Part::new(verdict));
    }
    Parts::only(Part::storing(mark(view, LOST_STATUS), verdict))
}

fn stands(view: &View<'_>) -> bool {
    let observed = view.observed;
    !(observed.groups.is_empty()
        && observed.interfaces.is_empty()
        && observed.volumes.is_empty()
        && observed.instances.is_empty()
        && observed.file_systems.is_empty())
}

/// A note of a moment, kept among the intents.
pub(super) fn mark(view: &View<'_>, thing: &str) -> Intent {
    let proposal = Proposal {
        owner: &view.desired.owner,
        thing,
        attempt: 1,
        body_hash: intents::hash(&thing),
        payload: Payload::default(),
    };
    proposal.open(view.now)
}

/// After the status was lost nothing is made until AWS shows all that was made before.
fn forgotten(view: &View<'_>) -> Option<Parts> {
    let lost = view.intent(LOST_STATUS).filter(|_| view.desired.goal == Goal::Present)?;
    (view.since(lost) <= view.desired.settings.visibility_window).then(|| {
        let message = "The status was lost; what AWS does not show yet is waited for";
        Parts::only(Part::waiting(message, Wait::Hidden))
    })
}

fn stopped(verdict: Verdict) -> Parts {
    let because = verdict.message.clone();
    Parts::only(Part { waits: vec![Wait::Human { because }], ..Part::new(verdict) })
}

/// Reads that failed and that the goal needs. What AWS offers is nothing to one who leaves.
pub(super) fn blocking<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Failure> {
    let is_leaving = view.desired.goal == Goal::Absent;
    let failures = view.observed.failures.iter();
    failures.filter(move |failure| !(is_leaving && is_of_offer(failure)))
}

/// Reads of what could be launched and used; all others tell what exists.
fn is_of_offer(failure: &Failure) -> bool {
    matches!(
        (failure.service.as_str(), failure.operation.as_str()),
        (
            "ec2",
            "DescribeImages"
                | "DescribeInstanceTypeOfferings"
                | "DescribeInstanceTypes"
                | "DescribeSubnets"
        ) | ("ssm", "DescribeDocument" | "DescribeInstanceInformation")
    )
}

/// Decisions need a complete observation; a failed read shows on its part and nothing else moves.
fn reads(view: &View<'_>) -> Option<Parts> {
    let failure = blocking(view).next()?;
    let waits = blocking(view).cloned().map(Wait::Read).collect();
    let mut parts = match (view.desired.goal, part_of(failure)) {
        (Goal::Present, Some(part)) => Parts::refused(&[(part, failed(failure))]),
        _ => Parts::only(Part::new(failed(failure))),
    };
    match &mut parts.whole {
        Some(whole) => whole.waits = waits,
        None => parts.network.waits = waits,
    }
    Some(parts)
}

/// The part that cannot be judged without this read; none when it is all of them.
pub(super) fn part_of(failure: &Failure) -> Option<ConditionType> {
    match (failure.service.as_str(), failure.operation.as_str()) {
        ("fsx", _) => Some(ConditionType::StorageReady),
        ("ssm", _) => Some(ConditionType::HeadReady),
        (
            "ec2",
            "DescribeInstances" | "DescribeInstanceTypes" | "DescribeInstanceTypeOfferings",
        ) => Some(ConditionType::FleetsReady),
        ("ec2", _) => Some(ConditionType::NetworkReady),
        _ => None,
    }
}

/// How a failed call shows: with AWS' code and what can be done.
pub(super) fn failed(failure: &Failure) -> Verdict {
    let call = format!("{}:{}", failure.service, failure.operation);
    let words = failure.message.trim_end_matches('.');
    let said = format!("{call} answered {}: {words}", failure.code);
    let (truth, reason) = match failure.kind {
        Kind::Throttled => (ConditionStatus::Unknown, Reason::Throttled),
        Kind::Denied => (ConditionStatus::False, Reason::PermissionDenied),
        Kind::Credentials => (ConditionStatus::False, Reason::CredentialsInvalid),
        Kind::Quota => (ConditionStatus::False, Reason::QuotaExceeded),
        Kind::Capacity => (ConditionStatus::False, Reason::InsufficientCapacity),
        Kind::NotOffered => (ConditionStatus::False, Reason::NotOffered),
        Kind::Dependency => (ConditionStatus::False, Reason::DependencyMissing),
        Kind::Invalid => (ConditionStatus::False, Reason::UnsupportedConfiguration),
        Kind::NotFound
        | Kind::Exists
        | Kind::InUse
        | Kind::TokenMismatch
        | Kind::TokenSpent
        | Kind::Unknown => (ConditionStatus::Unknown, Reason::CloudUnavailable),
    };
    Verdict::new(truth, reason, format!("{said}. {}", reason.way_out()))
}

fn predecessor(view: &View<'_>) -> Option<Parts> {
    if view.desired.goal != Goal::Present {
        return None;
    }
    let ignored = view.desired.ignore_predecessor.as_ref();
    let strangers = view.observed.strangers.iter().filter(|stranger| {
        !stranger.retained
            && stranger.uid != view.desired.owner.uid
            && Some(&stranger.uid) != ignored
    });
    let found: Vec<_> = strangers.collect();
    let first = found.first()?;
    let ids: Vec<_> = found.iter().take(5).map(|stranger| stranger.id.as_str()).collect();
    let (count, uid) = (found.len(), &first.uid);
    let message = format!(
        "An earlier {} (uid {uid}) left {count} resource{}: {}. Delete what it left, or set the annotation \
         {IGNORE_PREDECESSOR}: \"{uid}\"",
        view.desired.owner.full_name(),
        if count == 1 { "" } else { "s" },
        ids.join(" "),
    );
    Some(stopped(Verdict::refused(Reason::PredecessorFound, message)))
}

fn paused(view: &View<'_>) -> Option<Parts> {
    (view.desired.goal == Goal::Paused).then(|| {
        let message = format!("Remove the annotation {PAUSED} to go on");
        stopped(Verdict::new(ConditionStatus::Unknown, Reason::Paused, message))
    })
}
