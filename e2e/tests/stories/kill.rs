//! The operator dies at every call that changes AWS, before and after its effect, in every life a
//! cluster can lead. Whatever the moment: the same end, no second launch, nothing left.
//!
//! A point is (action, role, occurrence) of a clean run, and a side of the effect; each is a story
//! of its own. The list of the clean run is a committed snapshot, so that a call that appears or
//! goes is seen in review. A new life is one entry of [`lives::LIVES`] and one list.

mod lives;
mod point;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hpc_e2e::sim::{Fault, Held, Strike, Then, When};
use hpc_e2e::{LabError, Operator, Phantom, Story};
use serde_json::json;

use crate::runner::{Case, Outcome};
use crate::site::{LONG, NAME, operator};
use lives::{LIVES, Life};
use point::Point;

/// How many points were survived.
static COVERED: AtomicUsize = AtomicUsize::new(0);

/// Each life without a death, and the deaths chosen.
pub fn stories() -> Vec<Case> {
    LIVES.iter().flat_map(|life| [clean(life)].into_iter().chain(deaths(life))).collect()
}

/// Points survived, of all.
pub fn coverage() -> String {
    let total: usize = LIVES.iter().map(|life| Point::list(life.points).len() * 2).sum();
    format!("kill points: {}/{total}", COVERED.load(Ordering::Relaxed))
}

fn clean(life: &'static Life) -> Case {
    Case {
        name: format!("{}::{}::its_calls_are_those_of_the_list", module_path!(), life.name),
        tell: Rc::new(move |story| Box::pin(calls_of(life, story))),
    }
}

fn deaths(life: &'static Life) -> impl Iterator<Item = Case> {
    let chosen = chosen(life.points).into_iter();
    chosen.map(move |(point, when)| Case {
        name: format!("{}::{}::killed_{when:?}_{point}", module_path!(), life.name),
        tell: Rc::new(move |story| Box::pin(killed_at(life, point.clone(), when, story))),
    })
}

/// All points with `HPCOPS_FULL`, else a tenth of them, another one for each commit's seed.
fn chosen(list: &str) -> Vec<(Point, When)> {
    let points = Point::list(list).into_iter();
    let all = points.flat_map(|point| [(point.clone(), When::Before), (point, When::After)]);
    if std::env::var_os("HPCOPS_FULL").is_some() {
        return all.collect();
    }
    let seed = std::env::var("HPCOPS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    all.enumerate().filter(|(index, _)| index % 10 == seed % 10).map(|(_, it)| it).collect()
}

async fn calls_of(life: &Life, story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let heads = Arc::new(Phantom::play(sim.clone()));
    (life.lead)(Arc::clone(&story), Arc::clone(&heads)).await?;
    served.stop().await?;
    drop(heads);
    let calls = sim.mutating_calls().await?;
    let mut words: Vec<_> = calls.iter().filter_map(Point::of).map(|it| it.to_string()).collect();
    words.sort();
    let expected: Vec<_> = Point::list(life.points).iter().map(Point::to_string).collect();
    assert_eq!(words, expected, "the committed list is e2e/tests/stories/kill/{}.txt", life.name);
    Ok(())
}

/// One life of the cluster with one death of the operator.
async fn killed_at(life: &Life, point: Point, when: When, story: Arc<Story>) -> Outcome {
    let sim = story.sim().await?;
    let heads = Arc::new(Phantom::play(sim.clone()));
    let fault = Fault {
        role: point.role.clone(),
        occurrence: Some(point.occurrence),
        ..Fault::next(&point.action, Strike::Hold { when })
    };
    sim.fault(&fault).await?;
    let served = operator(&story, &[]).await?;
    let death = async {
        let held = sim.await_held(LONG).await?;
        die(&story, NAME, &served, &held).await.map_err(Into::into)
    };
    futures::try_join!((life.lead)(Arc::clone(&story), Arc::clone(&heads)), death)?;
    drop(heads);
    let launched = sim.ledger().await?.iter().filter(|thing| thing.kind == "instance").count();
    assert_eq!(launched, life.launches, "instances ever made");
    served.stop().await?;
    COVERED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The operator is killed while its call is held; the answer is lost; a new process takes over.
pub async fn die(
    story: &Story,
    cluster: &str,
    operator: &Operator,
    held: &Held,
) -> Result<(), LabError> {
    knows_its_token(story, cluster, held).await?;
    operator.kill().await?;
    story.sim().await?.release(held, Then::Drop).await?;
    operator.start().await?;
    operator.await_ready(Duration::from_mins(1)).await
}

/// At each held create that has a token, the stored status holds it already.
async fn knows_its_token(story: &Story, cluster: &str, held: &Held) -> Result<(), LabError> {
    let creates = ["RunInstances", "CreateVolume", "CreateNetworkInterface", "CreateFileSystem"];
    let Some(token) = held.token.as_ref().filter(|_| creates.contains(&held.action.as_str()))
    else {
        return Ok(());
    };
    let stored = story.clusters().get(cluster).await.map_err(LabError::kube("read the cluster"))?;
    let intents = stored.status.unwrap_or_default().intents;
    let known = intents.iter().any(|intent| intent.token == *token);
    assert!(known, "{held:?} is under way, but its token is not in status: {}", json!(intents));
    Ok(())
}
