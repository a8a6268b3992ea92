//! Stories of a run against a site that remembers: a scheduler, its folders, the stored status.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::{
    AttemptState, BenchmarkRun, BenchmarkRunSpec, BenchmarkRunStatus, ConditionType, condition,
};
use hpc_plan::run::{
    ClusterSeen, Desired, Exit, Goal, Head, Object, Observed, Outcome, Phase, Poll, QueueSeen,
    RunPlan, Settings, Step, Submitted, plan,
};
use jiff::Timestamp;
use serde_json::json;

const LATENCY: &[u8] = include_bytes!("data/run/latency-2n.log");
const BANDWIDTH: &[u8] = include_bytes!("data/run/bw-2n.log");

/// A cluster, its scheduler and the Kubernetes object, as far as a run sees them.
#[derive(Clone)]
struct Site {
    desired: Desired,
    finalizer: bool,
    status: BenchmarkRunStatus,
    cluster: Option<ClusterSeen>,
    /// Attempts the scheduler knows, and how often each was started.
    jobs: BTreeMap<String, Job>,
    /// Attempts that a scheduler was given and that it died with, before they started.
    forgotten: BTreeSet<String>,
    fetched: BTreeSet<String>,
    results: BTreeMap<String, BTreeMap<String, String>>,
    /// What jobs end with: exit code and output by program.
    ends: fn(&str) -> (i32, Vec<u8>),
    second: i64,
    /// Whether the head says nothing of any attempt.
    mute: bool,
    cancels: u32,
}

#[derive(Clone, Default)]
struct Job {
    starts: u32,
    age: u32,
    lost: bool,
}

/// Where the operator dies within a pass.
#[derive(Clone, Copy, PartialEq)]
enum Crash {
    Never,
    BeforeAct,
    AfterStep(usize),
    BeforePublish,
}

fn well(id: &str) -> (i32, Vec<u8>) {
    (0, if id.contains("latency") { LATENCY.to_vec() } else { BANDWIDTH.to_vec() })
}

fn run(repeats: i32, nodes: &[i32]) -> BenchmarkRun {
    let spec: BenchmarkRunSpec = serde_json::from_value(json!({
        "clusterRef": {"name": "wing"},
        "application": {"osu": {"programPath": "/opt/osu"}},
        "matrix": {"nodes": nodes},
        "repeats": {"count": repeats},
    }))
    .unwrap();
    let mut run = BenchmarkRun::new("osu", spec);
    run.metadata.namespace = Some("cfd".into());
    run.metadata.uid = Some("5a1e".into());
    run.metadata.generation = Some(1);
    run
}

fn settings() -> Settings {
    Settings { installation: "lab".into(), simulated_fabric: "tcp".into() }
}

fn site() -> Site {
    Site {
        desired: Desired::new(&run(2, &[2]), &settings()),
        finalizer: false,
        status: BenchmarkRunStatus::default(),
        cluster: Some(cluster()),
        jobs: BTreeMap::new(),
        forgotten: BTreeSet::new(),
        fetched: BTreeSet::new(),
        results: BTreeMap::new(),
        ends: well,
        second: 1_000,
        mute: false,
        cancels: 0,
    }
}

fn cluster() -> ClusterSeen {
    ClusterSeen {
        uid: "c1".into(),
        ready: true,
        head: Some(Head { region: "us-east-1".into(), instance: "i-head".into() }),
        storage_path: Some("/fsx".into()),
        queues: vec![QueueSeen { name: "compute".into(), nodes: 2, efa: true }],
        users: vec!["hpc".into(), "alice".into()],
        image_family: "AmazonLinux2023".into(),
        ..ClusterSeen::default()
    }
}

impl Site {
    fn observe(&self) -> Observed {
        let known = self.jobs.iter().map(|(id, job)| (id.clone(), self.poll(id, job)));
        let polls = self.unheard_of().chain(known).filter(|_| !self.mute);
        let outputs = self.fetched.iter().map(|id| (id.clone(), (self.ends)(id).1));
        Observed {
            object: Object { finalizer: self.finalizer, status: self.status.clone() },
            cluster: self.cluster.clone(),
            polls: polls.collect(),
            outputs: outputs.collect(),
            results: self.results.keys().cloned().collect(),
            failures: vec![],
        }
    }

    /// As the head answers for what it finds no trace of.
    fn unheard_of(&self) -> impl Iterator<Item = (String, Poll)> {
        let asked = self.status.attempts.iter().filter(|told| {
            let pending = told.state == AttemptState::Pending && self.desired.goal == Goal::Present;
            !told.state.is_final() && !pending && !self.jobs.contains_key(&told.id)
        });
        asked.map(|told| {
            let forgotten = self.forgotten.contains(&told.id);
            let reason = if forgotten { "NotStarted" } else { "NotSubmitted" }.to_owned();
            (told.id.clone(), Poll { id: told.id.clone(), reason, ..Poll::default() })
        })
    }

    fn poll(&self, id: &str, job: &Job) -> Poll {
        let phase = match (job.lost, job.age) {
            (true, _) => Phase::Lost,
            (_, 0) => Phase::Queued,
            (_, 1) => Phase::Running,
            _ => Phase::Finished,
        };
        let exit = (phase == Phase::Finished).then(|| Exit {
            code: (self.ends)(id).0,
            started_at: 1_010.5,
            finished_at: 1_020.25,
            job_id: String::new(),
            hosts: vec!["compute-1".into(), "compute-2".into()],
        });
        Poll { id: id.into(), phase, job_id: Some("7".into()), exit, ..Poll::default() }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).unwrap()
    }

    /// One pass; `false` when it changed nothing at all.
    fn pass(&mut self, crash: Crash) -> bool {
        let observed = self.observe();
        let plan = plan(&self.desired, &observed, self.now());
        check_rules(&observed, &plan);
        let before = (self.status.clone(), plan.steps.len());
        if crash == Crash::BeforeAct {
            return true;
        }
        let mut outcomes = vec![];
        for (index, step) in plan.steps.iter().enumerate() {
            outcomes.push(self.act(step));
            if crash == Crash::AfterStep(index) {
                return true;
            }
        }
        if crash != Crash::BeforePublish {
            self.status = plan.status.with(&outcomes, self.now()).status;
        }
        self.tick();
        before != (self.status.clone(), 0)
    }

    fn tick(&mut self) {
        self.second += 1;
        for job in self.jobs.values_mut() {
            job.age += 1;
        }
    }

    fn act(&mut self, step: &Step) -> Outcome {
        match step {
            Step::AddFinalizer => self.finalizer = true,
            Step::RemoveFinalizer => self.finalizer = false,
            Step::Submit { attempts, .. } => {
                let answers = attempts.iter().map(|attempt| self.submit(&attempt.id));
                return Outcome::Submitted(answers.collect());
            }
            Step::Fetch { id, .. } => {
                self.fetched.insert(id.clone());
            }
            Step::Cancel { ids, .. } => {
                self.cancels += 1;
                for id in ids {
                    self.jobs.entry(id.clone()).or_default().lost = true;
                }
                return Outcome::Cancelled(ids.clone());
            }
            Step::Store(results) => {
                self.results.insert(results.name.clone(), results.data.clone());
            }
        }
        Outcome::Done
    }

    /// As the node does it: a folder that has a job is not given a second one.
    fn submit(&mut self, id: &str) -> Submitted {
        let known = self.jobs.contains_key(id);
        let job = self.jobs.entry(id.to_owned()).or_default();
        job.starts += u32::from(!known);
        let state = if known { "Exists" } else { "Submitted" };
        Submitted {
            id: id.into(),
            state: state.into(),
            job_id: Some("7".into()),
            message: String::new(),
        }
    }

    /// Passes until nothing changes any more; the fetched outputs of a dead operator are gone.
    fn settle(&mut self) {
        for _ in 0..60 {
            if !self.pass(Crash::Never) && self.jobs.values().all(|job| job.age > 2 || job.lost) {
                return;
            }
        }
        panic!("no fixpoint:\n{}", plan(&self.desired, &self.observe(), self.now()));
    }

    /// One pass at a time until the first attempt is with the scheduler.
    fn until_submitted(mut self) -> Self {
        while self.jobs.is_empty() {
            self.pass(Crash::Never);
        }
        self
    }

    /// Passes of the deletion, as long as the object is held.
    fn delete(&mut self, passes: u32) {
        self.desired.goal = Goal::Absent;
        for _ in 0..passes {
            if self.finalizer {
                self.pass(Crash::Never);
            }
        }
    }

    /// What each attempt ended with.
    fn ends_told(&self) -> BTreeSet<(String, &str)> {
        let attempts = self.status.attempts.iter();
        attempts.map(|attempt| (attempt.state.to_string(), attempt.reason.as_str())).collect()
    }

    fn told(&self) -> String {
        let condition = condition::find(&self.status.conditions, ConditionType::Succeeded).unwrap();
        format!("{}/{} {}", condition.status, condition.reason, condition.message)
    }
}

/// What no plan of a run may do.
fn check_rules(observed: &Observed, plan: &RunPlan) {
    let stored = &observed.object.status.attempts;
    for step in &plan.steps {
        if let Step::Submit { attempts, .. } = step {
            for attempt in attempts {
                let is_stored = stored.iter().any(|told| told.id == attempt.id);
                assert!(is_stored, "{} is submitted before it is stored", attempt.id);
                assert_ne!(attempt.user, "root");
            }
        }
    }
    for told in &plan.status.status.results_refs {
        let exists = observed.results.contains(&told.name);
        assert!(exists, "the status points at {} which does not exist", told.name);
    }
    for attempt in &plan.status.status.attempts {
        let valued = attempt.value.is_empty() || attempt.state == AttemptState::Succeeded;
        assert!(valued, "{} has a number without being valid", attempt.id);
    }
}

#[test]
fn a_run_ends_with_its_medians_and_their_proof() {
    let mut site = site();
    site.settle();
    assert_eq!(site.told(), "True/Completed All 4 attempts gave a valid number");
    let cells: Vec<_> = site
        .status
        .cells
        .iter()
        .map(|cell| {
            format!("{} n={} {} {} {}", cell.name, cell.n, cell.median, cell.unit, cell.validity)
        })
        .collect();
    insta::assert_snapshot!(cells.join("\n"));
    assert_eq!(site.status.progress.as_ref().unwrap().summary, "4/4");
    assert_eq!(site.status.results_refs.len(), 4);
    assert!(site.status.result.as_ref().unwrap().headline.len() <= 9);
    let proof = site.results.values().next().unwrap();
    assert!(proof["attempt.json"].contains("\"simulated\": true"));
    let steady = plan(&site.desired, &site.observe(), site.now());
    assert!(steady.steps.is_empty());
    assert_eq!(steady.status.status, site.status, "a finished run is not written again");
}

#[test]
fn an_operator_that_dies_anywhere_runs_no_attempt_twice() {
    let mut points = 0;
    let mut clean = site();
    for _ in 0..30 {
        for crash in
            [Crash::BeforeAct, Crash::AfterStep(0), Crash::AfterStep(1), Crash::BeforePublish]
        {
            let mut site = clean.clone();
            site.pass(crash);
            site.fetched.clear();
            site.settle();
            points += 1;
            assert!(site.jobs.values().all(|job| job.starts == 1), "an attempt ran twice");
            assert_eq!(site.told(), "True/Completed All 4 attempts gave a valid number");
        }
        clean.pass(Crash::Never);
    }
    println!("crash points: {points}");
}

#[test]
fn what_stands_before_a_run_is_told_with_the_way_out() {
    let check = |change: fn(&mut Site), expected: &str| {
        let mut site = site();
        site.finalizer = true;
        change(&mut site);
        site.pass(Crash::Never);
        assert_eq!(site.told(), expected);
        assert!(site.jobs.is_empty());
    };
    check(
        |site| site.cluster = None,
        "Unknown/ClusterNotFound spec.clusterRef.name: no HPCCluster 'wing' in this namespace. Create it",
    );
    check(
        |site| site.cluster.as_mut().unwrap().ready = false,
        "Unknown/ClusterNotReady HPCCluster 'wing' is not ready: ",
    );
    check(
        |site| site.cluster.as_mut().unwrap().storage_path = None,
        "Unknown/StorageMissing jobs need shared storage: create another cluster with an entry in spec.aws.storage",
    );
    check(
        |site| site.cluster.as_mut().unwrap().queues[0].nodes = 1,
        "Unknown/TooFewNodes spec.matrix.nodes: 2 nodes are asked, queue 'compute' has 1. Ask for fewer, or create another cluster with a larger queue",
    );
    check(
        |site| site.desired.queue = Some("gpu".into()),
        "Unknown/QueueNotFound spec.matrix.queue: HPCCluster 'wing' has no queue 'gpu', only: compute. Delete the run and create it with one of these",
    );
    check(
        |site| site.desired.run_as = Some("carol".into()),
        "Unknown/UserNotFound spec.runAs: the cluster has no user 'carol', it has 'hpc', 'alice'. Name one of them",
    );
}

#[test]
fn attempts_without_proof_have_no_number_and_say_why() {
    let check = |change: fn(&mut Site), state: AttemptState, reason: &str, whole: &str| {
        let mut site = site();
        change(&mut site);
        site.settle();
        let attempt = &site.status.attempts[0];
        assert_eq!(
            (attempt.state, attempt.reason.as_str()),
            (state, reason),
            "{}",
            attempt.message
        );
        assert_eq!(attempt.value, "");
        assert!(site.told().starts_with(whole), "{}", site.told());
        let proof = site.results.values().next().unwrap();
        assert!(proof["log-tail.txt"].lines().count() <= 50);
    };
    check(
        |site| site.ends = |_| (64, b"hpcops: refused: no mpirun\n".to_vec()),
        AttemptState::Failed,
        "ExitCode",
        "False/Failed 4 of 4 attempts gave no valid number",
    );
    check(
        |site| site.ends = |id| (0, well(id).1[..5_000].to_vec()),
        AttemptState::Failed,
        "IncompleteLog",
        "False/Failed",
    );
    check(
        |site| site.desired.settings.simulated_fabric.clear(),
        AttemptState::Invalid,
        "FabricMismatch",
        "False/FabricMismatch",
    );
}

#[test]
fn a_lost_job_is_told_and_the_others_count() {
    let mut site = site().until_submitted();
    let first = site.jobs.keys().next().unwrap().clone();
    site.jobs.get_mut(&first).unwrap().lost = true;
    site.settle();
    let lost = site.status.attempts.iter().find(|attempt| attempt.id == first).unwrap();
    assert_eq!((lost.state, lost.reason.as_str()), (AttemptState::Failed, "JobLost"));
    assert!(site.told().starts_with("False/PartiallyFailed 1 of 4 attempts"), "{}", site.told());
}

#[test]
fn a_deleted_run_cancels_its_jobs_and_never_hangs_on_a_cluster_that_goes() {
    let site = site().until_submitted();
    for jobless in [false, true] {
        let mut site = site.clone();
        if jobless {
            site.cluster.as_mut().unwrap().deleting = true;
        }
        site.delete(4);
        assert!(!site.finalizer);
        let cancelled = site.jobs.values().all(|job| job.lost);
        assert_eq!(cancelled, !jobless, "jobs are cancelled unless the cluster goes");
    }
}

#[test]
fn a_deletion_does_not_cancel_what_the_head_never_heard_of() {
    let mut site = site();
    while site.status.cluster_uid.is_empty() {
        site.pass(Crash::Never);
    }
    site.delete(2);
    assert!(!site.finalizer, "it waits for jobs nobody submitted");
    assert_eq!(site.cancels, 0);
}

#[test]
fn a_deletion_cancels_once_what_the_head_says_nothing_of() {
    let mut site = site().until_submitted();
    site.mute = true;
    site.delete(10);
    assert!(!site.finalizer);
    assert_eq!(site.cancels, 1);
    assert!(site.jobs.values().all(|job| job.lost));
}

#[test]
fn a_deletion_waits_for_the_head_that_replaces_another_and_cancels_there() {
    let mut site = site().until_submitted();
    let head = site.cluster.as_mut().unwrap().head.take();
    site.mute = true;
    site.delete(5);
    assert!(site.finalizer, "it is let go while its jobs run");
    site.cluster.as_mut().unwrap().head = head;
    site.delete(2);
    assert!(!site.finalizer);
    assert!(site.jobs.values().all(|job| job.lost));
}

#[test]
fn a_deletion_does_not_take_a_failed_read_for_a_cluster_that_is_gone() {
    let mut site = site().until_submitted();
    site.desired.goal = Goal::Absent;
    let mut observed = site.observe();
    observed.cluster = None;
    observed.failures = vec![hpc_plan::cloud::Failure {
        kind: hpc_plan::cloud::Kind::Unknown,
        service: "kubernetes".into(),
        operation: "GetCluster".into(),
        code: "503".into(),
        message: String::new(),
    }];
    let plan = plan(&site.desired, &observed, site.now());
    assert_eq!(plan.steps, vec![]);
}

#[test]
fn a_run_that_never_met_a_ready_cluster_is_let_go_at_once() {
    let mut site = site();
    let cluster = site.cluster.as_mut().unwrap();
    (cluster.ready, cluster.head) = (false, None);
    for _ in 0..3 {
        site.pass(Crash::Never);
    }
    assert!(!site.status.attempts.is_empty());
    site.delete(1);
    assert!(!site.finalizer);
}

#[test]
fn arguments_that_cannot_be_launched_end_the_run_before_it_submits_anything() {
    let mut site = site();
    site.desired.arguments = vec!["-m".into(), "foo".into()];
    site.settle();
    assert!(site.jobs.is_empty());
    assert_eq!(site.ends_told(), [("Failed".to_owned(), "InvalidSpec")].into());
    let told = site.told();
    assert!(told.starts_with("False/InvalidSpec 4 of 4 attempts gave no valid number"), "{told}");
    let sentence = r#"argument "foo" is not a message size: use -m MAX or -m MIN:MAX in bytes. Create another run"#;
    assert!(told.contains(sentence), "{told}");
}

#[test]
fn jobs_of_a_cluster_that_was_made_anew_are_lost() {
    let mut site = site().until_submitted();
    site.jobs.clear();
    site.cluster.as_mut().unwrap().uid = "c2".into();
    site.settle();
    assert!(site.jobs.is_empty(), "numbers of two clusters are not mixed");
    assert_eq!(site.ends_told(), [("Failed".to_owned(), "JobLost")].into());
    assert!(site.told().contains("of uid c1, which is gone"), "{}", site.told());
}

#[test]
fn a_run_that_submitted_nothing_goes_on_with_the_cluster_made_anew() {
    let mut site = site();
    while site.status.cluster_uid.is_empty() {
        site.pass(Crash::Never);
    }
    site.cluster.as_mut().unwrap().uid = "c2".into();
    site.settle();
    assert_eq!(site.status.cluster_uid, "c2");
    assert_eq!(site.told(), "True/Completed All 4 attempts gave a valid number");
}

#[test]
fn what_a_dead_head_had_not_written_down_is_submitted_again_and_runs_once() {
    let mut site = site().until_submitted();
    let (id, job) = site.jobs.pop_first().unwrap();
    assert_eq!(job.starts, 1);
    site.forgotten.insert(id.clone());
    site.settle();
    assert_eq!(site.jobs[&id].starts, 1, "once by the scheduler that lives");
    assert_eq!(site.told(), "True/Completed All 4 attempts gave a valid number");
}

#[test]
fn a_job_that_left_no_trace_is_lost_after_ten_minutes_of_a_ready_head() {
    let mut site = site().until_submitted();
    let gone = site.jobs.pop_first().unwrap().0;
    let state =
        |site: &Site| site.status.attempts.iter().find(|told| told.id == gone).unwrap().clone();
    for minute in 0..=9 {
        site.pass(Crash::Never);
        assert!(!state(&site).state.is_final(), "given up after {minute} minutes");
        site.second += 60;
    }
    site.settle();
    assert_eq!(
        (state(&site).state, state(&site).reason.as_str()),
        (AttemptState::Failed, "JobLost")
    );
    assert!(site.told().starts_with("False/PartiallyFailed 1 of 4 attempts"), "{}", site.told());
}
