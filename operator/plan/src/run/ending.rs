//! What ends an attempt that has no output to judge, and what of a run may still be running.

use std::time::Duration;

use hpc_crds::{AttemptState, AttemptStatus, Reason, Time};

use super::attempts::Attempt;
use super::desired::Goal;
use super::evaluate::{BOUNDS, cut};
use super::observed::{ClusterSeen, Phase, Poll};
use super::{Observed, View};

/// How long a ready head may not know an attempt that was submitted. A head that was just replaced
/// needs some of it to mount the shared storage.
const UNKNOWN_LIMIT: Duration = Duration::from_mins(10);

/// Ends the attempt when nothing can come of it any more. A run that is being deleted only asks
/// what must be cancelled.
pub(super) fn close(view: &View<'_>, attempt: &Attempt, status: &mut AttemptStatus) {
    if view.desired.goal != Goal::Present {
        return;
    }
    watch(view, status);
    let end =
        refused(view, attempt).or_else(|| elsewhere(view)).or_else(|| forgotten(view, status));
    if let Some((reason, message)) = end {
        status.state = AttemptState::Failed;
        status.reason = reason.to_string();
        status.message = cut(&message);
        status.unknown_since = None;
    }
}

/// A launch that cannot be made as asked: no pass would ever find it otherwise.
fn refused(view: &View<'_>, attempt: &Attempt) -> Option<(Reason, String)> {
    let launch = attempt.launch(view)?;
    let error = launch.environment().err().or_else(|| launch.expectation(BOUNDS).err())?;
    let message = format!("spec.application.osu: {error}. Create another run with it");
    Some((Reason::InvalidSpec, message))
}

/// The cluster was made anew under its name: the scheduler that had the jobs is gone.
fn elsewhere(view: &View<'_>) -> Option<(Reason, String)> {
    let status = &view.observed.object.status;
    let cluster = view.observed.cluster.as_ref()?;
    let moved = status.start_time.is_some() && !is_own(view.observed, cluster);
    moved.then(|| {
        let message = format!(
            "the run started on the HPCCluster '{}' of uid {}, which is gone; now its uid is {}. Create the run again",
            view.desired.cluster, status.cluster_uid, cluster.uid
        );
        (Reason::JobLost, message)
    })
}

/// Notes since when a ready head does not know an attempt it was given.
fn watch(view: &View<'_>, status: &mut AttemptStatus) {
    let Some(poll) = view.observed.polls.get(&status.id) else { return };
    let is_ready = view.observed.cluster.as_ref().is_some_and(|cluster| cluster.ready);
    if is_ready && is_unheard_of(poll) && status.state != AttemptState::Pending {
        status.unknown_since.get_or_insert(Time::new(view.now));
    } else {
        status.unknown_since = None;
    }
}

fn forgotten(view: &View<'_>, status: &AttemptStatus) -> Option<(Reason, String)> {
    let since = status.unknown_since?.timestamp();
    let past = Duration::try_from(view.now.duration_since(since)).unwrap_or_default();
    let minutes = UNKNOWN_LIMIT.as_secs() / 60;
    (past > UNKNOWN_LIMIT).then(|| {
        let message = format!(
            "for {minutes} minutes neither the scheduler nor the shared storage has known the job. Create the run again"
        );
        (Reason::JobLost, message)
    })
}

/// Whether the head looked and found no trace of the attempt. When its scheduler does not answer,
/// nothing is known.
fn is_unheard_of(poll: &Poll) -> bool {
    poll.phase == Phase::Unknown && poll.reason == "NotSubmitted"
}

/// Whether a scheduler that died has forgotten the attempt before it started.
pub(super) fn is_forgotten(poll: &Poll) -> bool {
    poll.phase == Phase::Unknown && poll.reason == "NotStarted"
}

/// Whether the run's jobs are on this cluster, as far as the status says.
pub(super) fn is_own(observed: &Observed, cluster: &ClusterSeen) -> bool {
    let noted = &observed.object.status.cluster_uid;
    noted.is_empty() || *noted == cluster.uid
}

/// Attempts of a run that goes which may be in the scheduler. One stored as Pending may have been
/// submitted by a pass whose answer was lost, but never before the cluster was noted.
pub(super) fn open(view: &View<'_>) -> Vec<String> {
    let status = &view.observed.object.status;
    if status.cluster_uid.is_empty() && status.start_time.is_none() {
        return vec![];
    }
    let open = status.attempts.iter().filter(|told| !told.state.is_final());
    let may_run = open.filter(|told| may_run(view.observed.polls.get(&told.id)));
    may_run.map(|told| told.id.clone()).collect()
}

fn may_run(poll: Option<&Poll>) -> bool {
    let Some(poll) = poll else { return true };
    match poll.phase {
        Phase::Queued | Phase::Running => true,
        Phase::Unknown => !is_unheard_of(poll),
        Phase::Finished | Phase::Lost => false,
    }
}
