//! `hpc-lab bench`: the numbers the design promises, measured here at the size this machine reaches.
//! One JSON object {goal, value, pass} per row on standard output; what is going on, on standard error.

mod job_start;
mod scale;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hpc_crds::ConditionStatus;
use hpc_e2e::{
    Lab, LabError, Operator, Options, Restart, Result, Story, await_condition, eventually, osu,
    places,
};
use serde_json::json;

use crate::progress::say;

/// How long the quickstart may take here.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long nothing may be written.
const STEADY: Duration = Duration::from_mins(2);

/// A goal and what was measured.
struct Row {
    goal: &'static str,
    value: f64,
    most: f64,
}

impl Row {
    fn pass(&self) -> bool {
        self.value <= self.most
    }

    fn print(&self) {
        let value = (self.value * 100.0).round() / 100.0;
        say(&json!({"goal": self.goal, "value": value, "pass": self.pass()}).to_string());
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug, Args)]
pub struct Wishes {
    /// Only this part of the rows.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

/// Rows that are measured in one story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The quickstart, with bodies.
    Quickstart,
    /// Thousands of nodes, without.
    Scale,
}

/// Measures the rows; an error if one misses its goal.
pub async fn run(wishes: Wishes) -> Result<()> {
    let lab = Arc::new(Lab::start(Options { seed: 1, time_scale: 0.02, bodies: true }).await?);
    let mut rows = Vec::new();
    // Each row is shown as it comes: what follows may take minutes, or fail.
    let mut keep = |measured: Vec<Row>| {
        measured.iter().for_each(Row::print);
        rows.extend(measured);
    };
    let mut measured = Ok(());
    for part in [Part::Quickstart, Part::Scale] {
        if measured.is_ok() && wishes.only.is_none_or(|only| only == part) {
            measured = of(part, &lab, &mut keep).await;
        }
    }
    if let Some(lab) = Arc::into_inner(lab) {
        lab.stop().await?;
    }
    measured?;
    match rows.iter().find(|row| !row.pass()) {
        None => Ok(()),
        Some(row) => Err(LabError::missing("a goal", format!("{}: {}", row.goal, row.value))),
    }
}

/// One part in an account of its own.
async fn of(part: Part, lab: &Arc<Lab>, keep: &mut impl FnMut(Vec<Row>)) -> Result<()> {
    let story = lab.story("bench").await?;
    let measured = match part {
        Part::Quickstart => measure(&story, keep).await,
        Part::Scale => scale::measure(&story, keep).await,
    };
    story.end().await?;
    measured
}

async fn measure(story: &Story, keep: &mut impl FnMut(Vec<Row>)) -> Result<()> {
    tell("the quickstart in bodies");
    let operator = story.operator(&json!({}), Restart::Never).await?;
    let example = osu::example();
    let example = std::fs::read_to_string(&example).map_err(LabError::io("read", &example))?;
    story.apply(&example).await?;
    place_programs(story).await?;
    await_finished(story).await?;
    keep(vec![
        launch_calls(story).await?,
        job_start::measure(story).await?,
        memory(&operator, "RSS with two nodes, MB <= 40", 40.0)?,
    ]);
    tell("two minutes of nothing");
    keep(idle(story, &operator).await?.into());
    tell("restarts");
    keep(restart(&operator).await?.into());
    operator.stop().await?;
    keep(vec![binary_size()?]);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "this program speaks to its terminal")]
fn tell(line: &str) {
    eprintln!("bench: {line}");
}

fn binary_size() -> Result<Row> {
    let path = places::root().join("target/release/hpc-operator");
    let bytes = std::fs::metadata(&path).map_err(LabError::io("measure", &path))?.len();
    let value = megabytes(bytes);
    Ok(Row { goal: "stripped release binary, MB <= 25", value, most: 25.0 })
}

fn megabytes(bytes: u64) -> f64 {
    Duration::from_micros(bytes).as_secs_f64()
}

async fn place_programs(story: &Story) -> Result<()> {
    let (programs, sim) = (osu::programs().await?, story.sim().await?);
    let files = story.lab().dir().join("awssim/fsx");
    eventually("the file system exists", PATIENCE, async || {
        let ledger = sim.living().await?;
        let Some(storage) = ledger.iter().find(|resource| resource.kind == "file-system") else {
            return Ok(None);
        };
        let data = files.join(&storage.account).join(&storage.id);
        if !data.is_dir() {
            return Ok(None);
        }
        osu::place(&programs, &data.join(osu::program_path()?.below)).map(Some)
    })
    .await
}

async fn await_finished(story: &Story) -> Result<()> {
    let finished = |conditions: &[hpc_crds::Condition], wanted: &str| {
        let mut found = conditions.iter().filter(|condition| condition.type_ == wanted);
        found.any(|condition| condition.status == ConditionStatus::True)
    };
    let runs = story.runs();
    await_condition(&runs, "quickstart-osu", "is Finished", PATIENCE, |run| {
        let status = run.and_then(|run| run.status.as_ref());
        status.is_some_and(|status| finished(&status.conditions, "Finished"))
    })
    .await?;
    Ok(())
}

/// Two nodes are one gang here; a thousand nodes are one gang of the same call.
async fn launch_calls(story: &Story) -> Result<Row> {
    let calls = story.sim().await?.call_log().await?;
    let launches = calls.iter().filter(|call| call.action == "RunInstances");
    let of_queues =
        launches.filter(|call| call.role.as_deref().is_some_and(|role| role.starts_with("queue-")));
    let value = f64::from(u32::try_from(of_queues.count()).unwrap_or(u32::MAX));
    Ok(Row { goal: "RunInstances calls per gang <= 2", value, most: 2.0 })
}

fn memory(operator: &Operator, goal: &'static str, most: f64) -> Result<Row> {
    let path = format!("/proc/{}/status", operator.pid().unwrap_or_default());
    let text = std::fs::read_to_string(&path).map_err(LabError::io("read", Path::new(&path)))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(u64::MAX / 1024);
    let value = megabytes(kib * 1024);
    Ok(Row { goal, value, most })
}

async fn idle(story: &Story, operator: &Operator) -> Result<[Row; 2]> {
    let sim = story.sim().await?;
    let count = async || -> Result<(usize, usize)> {
        Ok((story.writes_of(operator)?.len(), sim.mutating_calls().await?.len()))
    };
    let before = count().await?;
    tokio::time::sleep(STEADY).await;
    let after = count().await?;
    let hourly = |before: usize, after: usize| {
        let writes = u32::try_from(after - before).unwrap_or(u32::MAX);
        f64::from(writes) * 3600.0 / STEADY.as_secs_f64()
    };
    let (kubernetes, aws) = (hourly(before.0, after.0), hourly(before.1, after.1));
    Ok([
        Row { goal: "idle Kubernetes writes per hour = 0", value: kubernetes, most: 0.0 },
        Row { goal: "idle mutating AWS calls per hour = 0", value: aws, most: 0.0 },
    ])
}

/// From the start of a process that finds a Ready cluster: until its first pass, and until both
/// objects have been passed over without an error.
async fn restart(operator: &Operator) -> Result<[Row; 2]> {
    operator.kill().await?;
    let begun = Instant::now();
    operator.start().await?;
    let first = seconds_until(operator, begun, 1).await?;
    let both = seconds_until(operator, begun, 2).await?;
    Ok([
        Row { goal: "start to first reconcile, s <= 1", value: first, most: 1.0 },
        Row { goal: "restart to convergence, s <= 10", value: both, most: 10.0 },
    ])
}

async fn seconds_until(operator: &Operator, begun: Instant, controllers: usize) -> Result<f64> {
    eventually("the operator passes over its objects", Duration::from_mins(1), async || {
        let metrics = operator.metrics().await?;
        let passes =
            metrics.lines().filter(|line| line.starts_with("hpc_operator_reconcile_total"));
        let enough = passes.filter(|line| !line.ends_with(" 0")).count() >= controllers;
        Ok(enough.then(|| begun.elapsed().as_secs_f64()))
    })
    .await
}
