//! What to do for a BenchmarkRun now: submit what is stored, ask for what is under way, read what
//! ended, and say what it means.
//!
//! An attempt listed in the stored status is the intent: only a pass that reads it there submits
//! it, and its id, derived from the run's uid, makes a second submission harmless on the node.

mod attempts;
mod desired;
mod ending;
mod evaluate;
mod observed;
mod status;
mod step;

pub use attempts::{Attempt, folder};
pub use desired::{Cell, Desired, Goal, Settings};
pub use observed::*;
pub use status::RunStatus;
pub use step::*;

use hpc_crds::{AttemptState, ConditionStatus, ConditionType, Reason};
use jiff::Timestamp;

use crate::Plan;
use attempts::{Tracked, in_flight, track};
use status::Verdict;

/// Attempts handed to the scheduler at a time; it runs them one after the other.
const WINDOW: usize = 8;

/// The plan of a run.
pub type RunPlan = Plan<Step, Wait, RunStatus>;

/// Everything a part of the plan may look at.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    desired: &'a Desired,
    observed: &'a Observed,
    now: Timestamp,
}

/// What to do now for this run, and what it waits for. Total.
pub fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> RunPlan {
    let view = View { desired, observed, now };
    let tracked = track(&view);
    if !observed.object.finalizer {
        return unheld(&view, &tracked);
    }
    match desired.goal {
        Goal::Absent => release(&view, &tracked),
        Goal::Present if is_finished(observed) || is_over(&tracked) => {
            status::plan(&view, &tracked, None, vec![], vec![])
        }
        Goal::Present => match obstacle(&view) {
            Some((verdict, wait)) => {
                status::plan(&view, &tracked, Some(verdict), vec![], vec![wait])
            }
            None => proceed(&view, &tracked),
        },
    }
}

fn is_finished(observed: &Observed) -> bool {
    hpc_crds::condition::is_true(&observed.object.status.conditions, ConditionType::Finished)
}

/// Whatever stands before a run does not matter once nothing of it is to be done.
fn is_over(tracked: &[Tracked]) -> bool {
    tracked.iter().all(|tracked| tracked.status.state.is_final())
}

fn unheld(view: &View<'_>, tracked: &[Tracked]) -> RunPlan {
    let steps = match view.desired.goal {
        Goal::Present => vec![Step::AddFinalizer],
        Goal::Absent => vec![],
    };
    status::plan(view, tracked, None, steps, vec![])
}

/// Cancels what may be under way, unless its cluster is gone or going: then nothing is left to
/// cancel. While the head is being replaced its jobs live on, so the next head is waited for.
fn release(view: &View<'_>, tracked: &[Tracked]) -> RunPlan {
    let (steps, waits) = cancel(view);
    let verdict = Verdict::unknown(Reason::Deleting, &cancelling(&steps, &waits));
    status::plan(view, tracked, Some(verdict), steps, waits)
}

/// What a deletion is at. A head whose agent is lost lets a command wait for a minute before it is
/// known to have failed, so what it waits for is told before.
fn cancelling(steps: &[Step], waits: &[Wait]) -> String {
    if let Some(Step::Cancel { head, ids }) = steps.first() {
        return format!(
            "{} jobs are being cancelled through head {}. While its SSM agent does not answer, this \
             is tried again; deleting the HPCCluster ends it as well",
            ids.len(),
            head.instance
        );
    }
    match waits.first() {
        Some(Wait::Head { name }) => format!(
            "Jobs are cancelled as soon as the head of HPCCluster '{name}' can be asked; its condition \
             HeadReady says what it waits for"
        ),
        Some(wait) => format!("Whether jobs are left to cancel is not known: {wait}"),
        None => "Jobs are being cancelled".to_owned(),
    }
}

fn cancel(view: &View<'_>) -> (Vec<Step>, Vec<Wait>) {
    let ids = ending::open(view);
    let standing = |cluster: &&ClusterSeen| {
        !cluster.deleting && ending::is_own(view.observed, cluster) && !ids.is_empty()
    };
    match (&view.observed.cluster, view.observed.failures.first()) {
        // Whether the cluster is gone is not known.
        (None, Some(failure)) if !ids.is_empty() => (vec![], vec![Wait::Read(failure.clone())]),
        (cluster, _) => match cluster.as_ref().filter(standing).map(|cluster| &cluster.head) {
            Some(Some(head)) => {
                let waits = vec![Wait::Jobs { open: ids.len() }];
                (vec![Step::Cancel { head: head.clone(), ids }], waits)
            }
            Some(None) => (vec![], vec![Wait::Head { name: view.desired.cluster.clone() }]),
            None => (vec![Step::RemoveFinalizer], vec![]),
        },
    }
}

/// What stands before the first attempt, with the way out.
fn obstacle(view: &View<'_>) -> Option<(Verdict, Wait)> {
    if let Some(failure) = view.observed.failures.first() {
        let verdict = Verdict::unknown(Reason::CloudUnavailable, &failure.to_string());
        return Some((verdict, Wait::Read(failure.clone())));
    }
    let name = &view.desired.cluster;
    let wait = || Wait::Cluster { name: name.clone() };
    let Some(cluster) = &view.observed.cluster else {
        let message =
            format!("spec.clusterRef.name: no HPCCluster '{name}' in this namespace. Create it");
        return Some((Verdict::unknown(Reason::ClusterNotFound, &message), wait()));
    };
    if cluster.deleting {
        let message =
            format!("HPCCluster '{name}' is being deleted. Create the cluster and the run again");
        return Some((Verdict::unknown(Reason::ClusterDeleting, &message), wait()));
    }
    let under_way = view.observed.object.status.start_time.is_some();
    if !cluster.ready && !under_way {
        let message = format!("HPCCluster '{name}' is not ready: {}", cluster.message);
        return Some((Verdict::unknown(Reason::ClusterNotReady, &message), wait()));
    }
    unfit(view, cluster).map(|(reason, message)| (Verdict::unknown(reason, &message), wait()))
}

/// Whether the cluster can hold the run at all.
fn unfit(view: &View<'_>, cluster: &ClusterSeen) -> Option<(Reason, String)> {
    if cluster.storage_path.is_none() {
        let message =
            "jobs need shared storage: create another cluster with an entry in spec.aws.storage";
        return Some((Reason::StorageMissing, message.to_owned()));
    }
    let Some(queue) = view.queue() else {
        let asked = view.desired.queue.as_deref().unwrap_or_default();
        let names: Vec<_> = cluster.queues.iter().map(|queue| queue.name.as_str()).collect();
        let message = format!(
            "spec.matrix.queue: HPCCluster '{}' has no queue '{asked}', only: {}. Delete the run and \
             create it with one of these",
            view.desired.cluster,
            names.join(", ")
        );
        return Some((Reason::QueueNotFound, message));
    };
    if view.user().is_none() {
        let asked = view.desired.run_as.as_deref().unwrap_or_default();
        let message = format!(
            "spec.runAs: the cluster has no user '{asked}', it has '{}'. Name one of them",
            cluster.users.join("', '")
        );
        return Some((Reason::UserNotFound, message));
    }
    let most = view.desired.cells.iter().map(|cell| cell.nodes).max().unwrap_or_default();
    (most > queue.nodes).then(|| {
        let message = format!(
            "spec.matrix.nodes: {most} nodes are asked, queue '{}' has {}. Ask for fewer, or create another cluster with a larger queue",
            queue.name, queue.nodes
        );
        (Reason::TooFewNodes, message)
    })
}

fn proceed(view: &View<'_>, tracked: &[Tracked]) -> RunPlan {
    let (mut steps, mut waits) = (vec![], vec![]);
    let noted = !view.observed.object.status.cluster_uid.is_empty();
    if !noted {
        waits.push(Wait::Noted { name: view.desired.cluster.clone() });
    }
    if let Some(head) = view.observed.cluster.as_ref().and_then(|cluster| cluster.head.clone()) {
        steps.extend(submit(view, tracked, &head).filter(|_| noted));
        steps.extend(tracked.iter().filter_map(|tracked| tracked.fetch(view, &head)));
    }
    steps.extend(tracked.iter().filter_map(Tracked::store));
    let open = in_flight(tracked).count();
    if open > 0 {
        waits.push(Wait::Jobs { open });
    }
    status::plan(view, tracked, None, steps, waits)
}

/// Submits what is stored as Pending, as far as the window allows.
fn submit(view: &View<'_>, tracked: &[Tracked], head: &Head) -> Option<Step> {
    let stored = |tracked: &&Tracked| {
        let stored = &view.observed.object.status.attempts;
        let found = stored.iter().find(|stored| stored.id == tracked.attempt.id);
        found.is_some_and(|stored| stored.state == AttemptState::Pending)
            && tracked.status.state == AttemptState::Pending
    };
    let room = WINDOW.saturating_sub(in_flight(tracked).count());
    let next = tracked.iter().filter(stored).take(room);
    let attempts: Vec<_> = next.filter_map(|tracked| tracked.attempt.submission(view)).collect();
    (!attempts.is_empty()).then(|| Step::Submit { head: head.clone(), attempts })
}

impl View<'_> {
    /// Whose jobs the run's are.
    pub fn user(&self) -> Option<&str> {
        let users = &self.observed.cluster.as_ref()?.users;
        let found = match &self.desired.run_as {
            Some(name) => users.iter().find(|user| *user == name),
            None => users.first(),
        };
        found.map(String::as_str)
    }

    /// The queue the run uses.
    pub fn queue(&self) -> Option<&QueueSeen> {
        let cluster = self.observed.cluster.as_ref()?;
        match &self.desired.queue {
            Some(name) => cluster.queues.iter().find(|queue| queue.name == *name),
            None => cluster.queues.first(),
        }
    }
}

/// Whether a stored condition says so.
pub(crate) fn truth(claim: bool) -> ConditionStatus {
    if claim { ConditionStatus::True } else { ConditionStatus::False }
}
