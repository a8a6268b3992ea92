//! The operator dies at every call that changes AWS, before and after its effect, of a cluster's
//! creation and of its deletion. Whatever the moment: the same end, no second launch, nothing left.
//!
//! A point is (action, role, occurrence) of a clean run, and a side of the effect. The list of the
//! clean run is a committed snapshot, so that a call that appears or goes is seen in review.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hpc_crds::ConditionType;
use hpc_e2e::sim::{Call, Fault, Held, Strike, Then, When};
use hpc_e2e::{LabError, Operator, Phantom, Story, eventually};
use serde_json::json;

use crate::runner::Outcome;
use crate::site::{LONG, NAME, await_told, cluster, delete, left_over, operator};
use crate::stories;

stories![the_points_of_a_clean_run_are_those_of_the_snapshot, killed_at_any_call_it_ends_the_same,];

/// One moment to die.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    action: String,
    role: Option<String>,
    occurrence: u32,
}

impl Point {
    fn words(&self) -> String {
        format!("{} {} #{}", self.action, self.role.as_deref().unwrap_or("-"), self.occurrence)
    }

    fn of(call: &Call) -> Option<Self> {
        let ours = call.code.as_deref() == Some("OK") && call.action != "PutParameter";
        ours.then(|| Self {
            action: call.action.clone(),
            role: call.role.clone(),
            occurrence: call.occurrence,
        })
    }
}

const SNAPSHOT: &str = include_str!("kill_points.txt");

fn snapshot() -> Vec<Point> {
    let lines = SNAPSHOT.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let action = words.next().unwrap().to_owned();
            let role = Some(words.next().unwrap().to_owned()).filter(|role| role != "-");
            let occurrence = words.next().unwrap().trim_start_matches('#').parse().unwrap();
            Point { action, role, occurrence }
        })
        .collect()
}

async fn clean_run(story: &Story) -> Result<BTreeSet<Point>, LabError> {
    let served = operator(story, &[]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    await_told(story, ConditionType::Ready, "True/Ready").await?;
    delete(story).await?;
    served.stop().await?;
    Ok(sim.mutating_calls().await?.iter().filter_map(Point::of).collect())
}

async fn the_points_of_a_clean_run_are_those_of_the_snapshot(story: Arc<Story>) -> Outcome {
    let points = clean_run(&story).await?;
    let words: Vec<_> = points.iter().map(Point::words).collect();
    let expected: Vec<_> = snapshot().iter().map(Point::words).collect();
    assert_eq!(words, expected, "the committed list is e2e/tests/stories/kill_points.txt");
    Ok(())
}

/// All points with `HPCOPS_FULL`, else a tenth of them, another one for each commit's seed.
fn chosen() -> Vec<(Point, When)> {
    let points = snapshot().into_iter();
    let all: Vec<_> =
        points.flat_map(|point| [(point.clone(), When::Before), (point, When::After)]).collect();
    if std::env::var_os("HPCOPS_FULL").is_some() {
        return all;
    }
    let seed = std::env::var("HPCOPS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let tenth = |(index, _): &(usize, _)| index % 10 == seed % 10;
    all.into_iter().enumerate().filter(tenth).map(|(_, point)| point).collect()
}

async fn killed_at_any_call_it_ends_the_same(story: Arc<Story>) -> Outcome {
    let (chosen, total) = (chosen(), snapshot().len() * 2);
    let mut covered = 0;
    for (point, when) in &chosen {
        let words = format!("{} {when:?}", point.words());
        killed_at(&story, point, *when)
            .await
            .map_err(|error| format!("{words}: {}", error.chain()))?;
        covered += 1;
    }
    eprintln!("kill points: {covered}/{total}");
    Ok(())
}

/// One life of the cluster with one death of the operator.
async fn killed_at(story: &Story, point: &Point, when: When) -> Result<(), LabError> {
    let sim = story.sim().await?;
    sim.reset().await?;
    let heads = Phantom::play(sim.clone());
    let fault = Fault {
        role: point.role.clone(),
        occurrence: Some(point.occurrence),
        ..Fault::next(&point.action, Strike::Hold { when })
    };
    sim.fault(&fault).await?;
    let served = operator(story, &[]).await?;
    story.apply(&cluster(|_| ())).await?;
    let creation = is_held_before_ready(story).await?;
    let served = if let Some(held) = creation {
        let next = die(story, served, &held).await?;
        await_told(story, ConditionType::Ready, "True/Ready").await?;
        story.kubectl(&["delete", "hpccluster", NAME, "--wait=false"], "").await?;
        next
    } else {
        story.kubectl(&["delete", "hpccluster", NAME, "--wait=false"], "").await?;
        let held = sim.await_held(LONG).await?;
        die(story, served, &held).await?
    };
    let timeout = format!("--timeout={}s", LONG.as_secs());
    story.kubectl(&["wait", "--for=delete", "hpccluster", NAME, &timeout], "").await?;
    drop(heads);
    let left = left_over(story).await?;
    assert!(left.is_empty(), "left behind: {left:?}");
    let launched = sim.ledger().await?.iter().filter(|thing| thing.kind == "instance").count();
    assert_eq!(launched, 3, "instances ever made");
    served.stop().await
}

/// The call held during creation, or none when the cluster got ready without it.
async fn is_held_before_ready(story: &Story) -> Result<Option<Held>, LabError> {
    let sim = story.sim().await?;
    eventually("a call is held or the cluster is ready", LONG, async || {
        if let Some(held) = sim.held().await?.into_iter().next() {
            return Ok(Some(Some(held)));
        }
        let ready =
            story.clusters().get_opt(NAME).await.map_err(LabError::kube("read the cluster"))?;
        let is_ready = ready
            .is_some_and(|found| crate::site::told(&found, ConditionType::Ready) == "True/Ready");
        Ok(is_ready.then_some(None))
    })
    .await
}

/// The operator is killed while its call is held; the answer is lost; a new process takes over.
async fn die(story: &Story, operator: Operator, held: &Held) -> Result<Operator, LabError> {
    knows_its_token(story, held).await?;
    operator.kill().await?;
    story.sim().await?.release(held, Then::Drop).await?;
    operator.start().await?;
    operator.await_ready(Duration::from_mins(1)).await?;
    Ok(operator)
}

/// At each held create that has a token, the stored status holds it already.
async fn knows_its_token(story: &Story, held: &Held) -> Result<(), LabError> {
    let creates = ["RunInstances", "CreateVolume", "CreateNetworkInterface", "CreateFileSystem"];
    let Some(token) = held.token.as_ref().filter(|_| creates.contains(&held.action.as_str()))
    else {
        return Ok(());
    };
    let stored = story.clusters().get(NAME).await.map_err(LabError::kube("read the cluster"))?;
    let intents = stored.status.unwrap_or_default().intents;
    let known = intents.iter().any(|intent| intent.token == *token);
    assert!(known, "{held:?} is under way, but its token is not in status: {}", json!(intents));
    Ok(())
}
