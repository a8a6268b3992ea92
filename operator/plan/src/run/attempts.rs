//! Attempts: which there are, what is known of each, and what to do about it.

use hpc_bench::osu::{Fabric, Launch, RUN};
use hpc_crds::{AttemptState, AttemptStatus, Reason, Time};
use jiff::Timestamp;

use crate::node;

use super::View;
use super::desired::{Cell, Desired, program};
use super::ending;
use super::evaluate::{Judgement, evaluate};
use super::observed::{Exit, Head, Phase, Poll};
use super::step::{Results, Step, Submission};

/// Minutes after which the scheduler ends a job that hangs.
const TIME_LIMIT_MINUTES: i32 = 60;

/// One execution of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Job name and folder name, derived from the run's uid.
    pub id: String,
    /// The cell.
    pub cell: Cell,
    /// From 1.
    pub repeat: i32,
}

/// Folder of an attempt on the shared storage at `mount`.
pub fn folder(mount: &str, desired: &Desired, id: &str) -> String {
    format!("{mount}/.hpcops/{}/{id}", desired.prefix())
}

impl Attempt {
    /// All attempts, interleaved: each round visits every cell once, so a drift of the machine
    /// falls on all cells alike.
    pub fn all(desired: &Desired) -> Vec<Self> {
        let prefix = desired.prefix();
        let rounds = (1..=desired.repeats)
            .flat_map(|repeat| desired.cells.iter().map(move |cell| (repeat, cell)));
        rounds
            .map(|(repeat, cell)| Self {
                id: format!("{prefix}-{}-{repeat}", cell.name),
                cell: cell.clone(),
                repeat,
            })
            .collect()
    }

    /// How the attempt is started; `None` while the cluster is not known well enough.
    pub(super) fn launch(&self, view: &View<'_>) -> Option<Launch> {
        let cluster = view.observed.cluster.as_ref()?;
        let stand_in = &view.desired.settings.simulated_fabric;
        let is_simulated = !stand_in.is_empty();
        Some(Launch {
            mpi_prefix: node::mpi_prefix(&cluster.image_family, &view.desired.mpi)?,
            program_path: view.desired.program_path.clone(),
            benchmark: program(self.cell.benchmark),
            arguments: view.desired.arguments.clone(),
            hosts: u32::try_from(self.cell.nodes).ok()?,
            fabric: if view.queue()?.efa { Fabric::Efa } else { Fabric::Tcp },
            stand_in: is_simulated.then(|| stand_in.clone()),
            shared_processors: is_simulated,
        })
    }

    /// What the head is told.
    pub(super) fn submission(&self, view: &View<'_>) -> Option<Submission> {
        let launch = self.launch(view)?;
        let mount = view.observed.cluster.as_ref()?.storage_path.as_deref()?;
        Some(Submission {
            id: self.id.clone(),
            folder: folder(mount, view.desired, &self.id),
            user: view.user()?.to_owned(),
            queue: view.queue()?.name.clone(),
            nodes: self.cell.nodes,
            ranks_per_node: launch.ranks_per_host().ok()?,
            time_limit_minutes: TIME_LIMIT_MINUTES,
            script: RUN.to_owned(),
            environment: launch.environment().ok()?,
        })
    }
}

/// An attempt with everything known of it in this pass.
pub(super) struct Tracked {
    pub attempt: Attempt,
    /// As it will be stored.
    pub status: AttemptStatus,
    /// What its output means, once it is here.
    judgement: Option<Judgement>,
    is_stored: bool,
    is_ended: bool,
}

/// Every attempt of the run. Final ones are carried as they are: they are never looked at again.
pub(super) fn track(view: &View<'_>) -> Vec<Tracked> {
    let stored = &view.observed.object.status.attempts;
    let attempts = Attempt::all(view.desired).into_iter();
    attempts
        .map(|attempt| {
            let told = stored.iter().find(|told| told.id == attempt.id).cloned();
            let status = told.unwrap_or_else(|| fresh(&attempt));
            if status.state.is_final() {
                return Tracked::ended(attempt, status);
            }
            Tracked::follow(view, attempt, status)
        })
        .collect()
}

/// Attempts the scheduler may still hold.
pub(super) fn in_flight(tracked: &[Tracked]) -> impl Iterator<Item = &Tracked> {
    tracked.iter().filter(|tracked| match tracked.status.state {
        AttemptState::Submitted | AttemptState::Running => true,
        AttemptState::Pending
        | AttemptState::Succeeded
        | AttemptState::Failed
        | AttemptState::Invalid => false,
    })
}

fn fresh(attempt: &Attempt) -> AttemptStatus {
    AttemptStatus {
        id: attempt.id.clone(),
        cell: attempt.cell.name.clone(),
        repeat: attempt.repeat,
        ..AttemptStatus::default()
    }
}

impl Tracked {
    /// One of which nothing more is to be read.
    const fn ended(attempt: Attempt, status: AttemptStatus) -> Self {
        Self { attempt, status, judgement: None, is_stored: true, is_ended: true }
    }

    fn follow(view: &View<'_>, attempt: Attempt, mut status: AttemptStatus) -> Self {
        let poll = view.observed.polls.get(&attempt.id);
        if let Some(poll) = poll {
            note(&mut status, poll);
        }
        ending::close(view, &attempt, &mut status);
        if status.state.is_final() {
            return Self::ended(attempt, status);
        }
        let is_ended = poll.is_some_and(|poll| matches!(poll.phase, Phase::Finished | Phase::Lost));
        let output = view.observed.outputs.get(&attempt.id).filter(|_| is_ended);
        let judgement =
            output.zip(poll).and_then(|(output, poll)| evaluate(view, &attempt, poll, output));
        let stored = |judged: &Judgement| view.observed.results.contains(&judged.results.name);
        let is_stored = judgement.as_ref().is_some_and(stored);
        // The number is told only once its evidence is stored under a name the status can point at.
        if let Some(judged) = judgement.as_ref().filter(|_| is_stored) {
            judged.conclude(&mut status);
        }
        Self { attempt, status, judgement, is_stored, is_ended }
    }

    /// Reads the output once the job has ended.
    pub fn fetch(&self, view: &View<'_>, head: &Head) -> Option<Step> {
        let mount = view.observed.cluster.as_ref()?.storage_path.as_deref()?;
        let wanted = self.is_ended && self.judgement.is_none() && !self.status.state.is_final();
        wanted.then(|| Step::Fetch {
            head: head.clone(),
            id: self.attempt.id.clone(),
            folder: folder(mount, view.desired, &self.attempt.id),
        })
    }

    /// Stores what the output means.
    pub fn store(&self) -> Option<Step> {
        let judged = self.judgement.as_ref().filter(|_| !self.is_stored)?;
        Some(Step::Store(judged.results.clone()))
    }

    /// The results that exist for it now.
    pub fn results(&self) -> Option<&Results> {
        self.judgement.as_ref().filter(|_| self.is_stored).map(|judged| &judged.results)
    }
}

/// What the head's answer changes before the output is here.
fn note(status: &mut AttemptStatus, poll: &Poll) {
    if let Some(job) = &poll.job_id {
        status.job_id.clone_from(job);
    }
    match poll.phase {
        Phase::Queued => status.state = AttemptState::Submitted,
        Phase::Running | Phase::Finished => status.state = AttemptState::Running,
        // A stored attempt the head has never heard of was not submitted: it stays Pending.
        Phase::Lost if status.state == AttemptState::Pending => {}
        Phase::Lost => {
            status.state = AttemptState::Running;
            status.reason = Reason::JobLost.to_string();
        }
        // Given to a head that died before its scheduler had written it down: it is given again.
        Phase::Unknown if ending::is_forgotten(poll) => {
            status.state = AttemptState::Pending;
            status.job_id.clear();
        }
        Phase::Unknown => {}
    }
    if let Some(exit) = &poll.exit {
        times(status, exit);
    }
}

fn times(status: &mut AttemptStatus, exit: &Exit) {
    status.started_at = instant(exit.started_at);
    status.finished_at = instant(exit.finished_at);
}

/// A node's epoch seconds; `None` for what is no time.
fn instant(seconds: f64) -> Option<Time> {
    if !(1.0..1e11).contains(&seconds) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds within the checked range")]
    let whole = seconds as i64;
    Timestamp::from_second(whole).ok().map(Time::new)
}
