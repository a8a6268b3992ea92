//! The status of a run: progress, cells, result, conditions.

use std::fmt;
use std::time::Duration;

use hpc_bench::{stats, text};
use hpc_crds::{
    AttemptState, AttemptStatus, BenchmarkRunStatus, CellStatus, Condition, ConditionSet,
    ConditionStatus, ConditionType, Direction, OsuBenchmark, Reason, ResultsRef, RunProgress,
    RunResult, Time, Validity,
};
use jiff::Timestamp;

use crate::{Plan, Requeue};

use super::attempts::{Tracked, in_flight};
use super::desired::Cell;
use super::step::{Outcome, Step, Submitted, Wait};
use super::{Goal, RunPlan, View, truth};

/// How soon to look again while something of ours is due.
const BUSY: Duration = Duration::from_secs(1);
/// How soon to look again while jobs run or the cluster is awaited.
const WAITING: Duration = Duration::from_secs(3);

/// The status to publish.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// What will be stored.
    pub status: BenchmarkRunStatus,
    before: Vec<Condition>,
}

/// What the Succeeded condition says while the run is not done.
pub(super) struct Verdict {
    truth: ConditionStatus,
    reason: Reason,
    message: String,
}

impl Verdict {
    pub fn unknown(reason: Reason, message: &str) -> Self {
        Self { truth: ConditionStatus::Unknown, reason, message: message.to_owned() }
    }
}

/// The whole plan.
pub(super) fn plan(
    view: &View<'_>,
    tracked: &[Tracked],
    verdict: Option<Verdict>,
    steps: Vec<Step>,
    waits: Vec<Wait>,
) -> RunPlan {
    let stored = &view.observed.object.status;
    let status = if super::is_finished(view.observed) && view.desired.goal == Goal::Present {
        stored.clone()
    } else {
        assemble(view, tracked, verdict)
    };
    let requeue = match (steps.is_empty(), waits.is_empty()) {
        (false, _) => Requeue::After(BUSY),
        (true, false) => Requeue::After(WAITING),
        (true, true) => Requeue::OnChange,
    };
    let status = RunStatus { status, before: stored.conditions.clone() };
    Plan { steps, waits, status, requeue }
}

fn assemble(view: &View<'_>, tracked: &[Tracked], verdict: Option<Verdict>) -> BenchmarkRunStatus {
    let mut status = view.observed.object.status.clone();
    status.observed_generation = view.desired.generation;
    status.cluster_uid = cluster_uid(view);
    status.attempts = tracked.iter().map(|tracked| tracked.status.clone()).collect();
    for results in tracked.iter().filter_map(Tracked::results) {
        if !status.results_refs.iter().any(|told| told.name == results.name) {
            let told = ResultsRef { name: results.name.clone(), sha256: results.sha256.clone() };
            status.results_refs.push(told);
        }
    }
    status.cells = view.desired.cells.iter().map(|cell| summary(cell, &status.attempts)).collect();
    status.progress = Some(progress(tracked));
    status.result = result(&status.cells);
    let done = tracked.iter().all(|tracked| tracked.status.state.is_final());
    if done && status.completion_time.is_none() {
        status.completion_time = Some(Time::new(view.now));
    }
    status.conditions = conditions(view, &status, verdict, done);
    status
}

/// The cluster the run is submitted to. It is noted before the first submission and again as long
/// as there was none, because a cluster made anew under its name has none of the jobs.
fn cluster_uid(view: &View<'_>) -> String {
    let status = &view.observed.object.status;
    let is_free = status.start_time.is_none() || status.cluster_uid.is_empty();
    let takes = view.desired.goal == Goal::Present && is_free && super::obstacle(view).is_none();
    let cluster = view.observed.cluster.as_ref().filter(|_| takes);
    cluster.map_or_else(|| status.cluster_uid.clone(), |cluster| cluster.uid.clone())
}

fn progress(tracked: &[Tracked]) -> RunProgress {
    let count = |is: fn(AttemptState) -> bool| {
        let number = tracked.iter().filter(|tracked| is(tracked.status.state)).count();
        i32::try_from(number).unwrap_or(i32::MAX)
    };
    let completed = count(AttemptState::is_final);
    let total = count(|_| true);
    let failed = count(|state| matches!(state, AttemptState::Failed | AttemptState::Invalid));
    let running = tracked.iter().find(|tracked| tracked.status.state == AttemptState::Running);
    let message = match running {
        Some(tracked) => format!("{} runs", tracked.attempt.id),
        None if in_flight(tracked).next().is_some() => "jobs are queued".to_owned(),
        None => String::new(),
    };
    RunProgress { completed, failed, total, summary: format!("{completed}/{total}"), message }
}

fn summary(cell: &Cell, attempts: &[AttemptStatus]) -> CellStatus {
    let all: Vec<_> = attempts.iter().filter(|attempt| attempt.cell == cell.name).collect();
    let values: Vec<f64> = all
        .iter()
        .filter(|attempt| attempt.state == AttemptState::Succeeded)
        .filter_map(|attempt| attempt.value.parse().ok())
        .collect();
    let outstanding = all.iter().any(|attempt| !attempt.state.is_final());
    let (unit, direction) = match cell.benchmark {
        OsuBenchmark::Latency => ("us", Direction::LowerIsBetter),
        OsuBenchmark::Bandwidth => ("MB/s", Direction::HigherIsBetter),
    };
    let shown = |value: Option<f64>| value.and_then(text::decimal).unwrap_or_default();
    CellStatus {
        name: cell.name.clone(),
        nodes: cell.nodes,
        benchmark: cell.benchmark,
        n: i32::try_from(values.len()).unwrap_or(i32::MAX),
        median: shown(stats::median(&values)),
        unit: unit.to_owned(),
        rsd_percent: shown(stats::rsd(&values).map(|percent| (percent * 100.0).round() / 100.0)),
        direction,
        validity: match (outstanding, values.len()) {
            (true, _) => Validity::Pending,
            (false, 0) => Validity::Invalid,
            (false, n) if n == all.len() => Validity::Valid,
            (false, _) => Validity::Partial,
        },
    }
}

/// The run in one number: the first cell that has one, with the most nodes.
fn result(cells: &[CellStatus]) -> Option<RunResult> {
    let told = cells.iter().filter(|cell| !cell.median.is_empty());
    let most = told.clone().map(|cell| cell.nodes).max()?;
    let cell = told.clone().find(|cell| cell.nodes == most)?;
    let headline = text::headline(cell.median.parse().ok()?, &cell.unit);
    Some(RunResult { headline, verdict: None })
}

fn conditions(
    view: &View<'_>,
    status: &BenchmarkRunStatus,
    verdict: Option<Verdict>,
    done: bool,
) -> Vec<Condition> {
    let before = &view.observed.object.status.conditions;
    let mut set = ConditionSet::new(before, view.desired.generation, view.now);
    if !view.desired.settings.simulated_fabric.is_empty() {
        let message = "Measured on a simulated cloud: the numbers say nothing of AWS";
        set.set(ConditionType::Simulated, ConditionStatus::True, Reason::Simulated, message);
    }
    let verdict =
        verdict.unwrap_or_else(|| if done { conclusion(status) } else { under_way(status) });
    let finished = if done { "Every attempt has ended" } else { "Attempts are outstanding" };
    let reason = if done { Reason::Completed } else { verdict.reason };
    set.set(ConditionType::Finished, truth(done), reason, finished);
    set.set(ConditionType::Succeeded, verdict.truth, verdict.reason, &verdict.message);
    let told = status.cells.iter().any(|cell| cell.n > 0);
    let (reason, message) = match (done, told) {
        (true, true) => (reason, "status.cells holds the numbers"),
        (true, false) => (Reason::NoNumbers, "Every attempt has ended, none with a valid number"),
        (false, true) => (reason, "status.cells holds the numbers so far"),
        (false, false) => (reason, "No attempt has a number yet"),
    };
    set.set(ConditionType::ResultsReady, truth(done && told), reason, message);
    if !done {
        set.set(
            ConditionType::Reconciling,
            ConditionStatus::True,
            verdict.reason,
            &verdict.message,
        );
    }
    set.into_conditions()
}

fn under_way(status: &BenchmarkRunStatus) -> Verdict {
    let progress = status.progress.clone().unwrap_or_default();
    if status.start_time.is_none() {
        return Verdict::unknown(Reason::Pending, "The attempts are stored first, then submitted");
    }
    Verdict::unknown(Reason::Running, &format!("{} attempts have ended", progress.summary))
}

fn conclusion(status: &BenchmarkRunStatus) -> Verdict {
    let progress = status.progress.clone().unwrap_or_default();
    let first = status
        .attempts
        .iter()
        .find(|attempt| matches!(attempt.state, AttemptState::Failed | AttemptState::Invalid));
    let Some(first) = first else {
        let message = format!("All {} attempts gave a valid number", progress.total);
        return Verdict { truth: ConditionStatus::True, reason: Reason::Completed, message };
    };
    let reason = match (progress.failed == progress.total, first.reason.parse()) {
        (true, Ok(reason @ (Reason::FabricMismatch | Reason::InvalidSpec))) => reason,
        (true, _) => Reason::Failed,
        (false, _) => Reason::PartiallyFailed,
    };
    let message = format!(
        "{} of {} attempts gave no valid number; {}: {} ({})",
        progress.failed, progress.total, first.id, first.reason, first.message
    );
    Verdict { truth: ConditionStatus::False, reason, message }
}

impl RunStatus {
    /// The status with what came of the steps. Pure; the same pass publishes it.
    #[must_use]
    pub fn with(mut self, outcomes: &[Outcome], now: Timestamp) -> Self {
        for outcome in outcomes {
            match outcome {
                Outcome::Submitted(answers) => {
                    for answer in answers {
                        self.note(answer, now);
                    }
                }
                Outcome::Cancelled(ids) => self.cancelled(ids),
                Outcome::Failed(failure) => self.blame(&failure.to_string(), now),
                Outcome::Done => {}
            }
        }
        self
    }

    /// What the scheduler has let go is over, whatever is said of it later.
    fn cancelled(&mut self, ids: &[String]) {
        let attempts = self.status.attempts.iter_mut();
        for attempt in attempts.filter(|attempt| ids.contains(&attempt.id)) {
            attempt.state = AttemptState::Failed;
            attempt.reason = Reason::Deleting.to_string();
            "the run was deleted".clone_into(&mut attempt.message);
        }
    }

    fn note(&mut self, answer: &Submitted, now: Timestamp) {
        let attempts = &mut self.status.attempts;
        let Some(attempt) = attempts.iter_mut().find(|attempt| attempt.id == answer.id) else {
            return;
        };
        if answer.state == "Error" {
            let message = format!("{}: {}", answer.id, answer.message);
            return self.blame(&message, now);
        }
        attempt.state = AttemptState::Submitted;
        attempt.job_id = answer.job_id.clone().unwrap_or_default();
        self.status.start_time.get_or_insert(Time::new(now));
    }

    /// A failed step shows on the run; the next pass tries it again.
    fn blame(&mut self, message: &str, now: Timestamp) {
        let assembled = std::mem::take(&mut self.status.conditions);
        let mut set = ConditionSet::new(&self.before, self.status.observed_generation, now);
        for condition in &assembled {
            if let (Some(type_), Some(reason)) = (condition.known_type(), condition.known_reason())
            {
                set.set(type_, condition.status, reason, &condition.message);
            }
        }
        set.set(
            ConditionType::Succeeded,
            ConditionStatus::Unknown,
            Reason::CloudUnavailable,
            message,
        );
        self.status.conditions = set.into_conditions();
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.status.conditions.iter();
        let words: Vec<_> =
            conditions.map(|c| format!("{}={}({})", c.type_, c.status, c.reason)).collect();
        f.write_str(&words.join(" "))?;
        let attempts = self.status.attempts.iter();
        attempts.filter(|attempt| attempt.state != AttemptState::Pending).try_for_each(|attempt| {
            write!(f, "\n  attempt {} {} {}", attempt.id, attempt.state, attempt.reason)
        })
    }
}
