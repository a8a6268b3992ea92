//! Plays the head of bodiless clusters: it reports to the SSM parameter what a real head's loop
//! would report when everything has booted. Stories about AWS alone need no more of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::{LabError, Result};
use crate::sim::{Resource, Sim};

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(100);

/// A player of heads; it stops when dropped.
pub struct Phantom {
    task: JoinHandle<()>,
    demand: Arc<Mutex<Vec<Value>>>,
}

impl Drop for Phantom {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Phantom {
    /// Reports every node of every cluster of the account as ready.
    pub fn play(sim: Sim) -> Self {
        Self::play_all_but(sim, [])
    }

    /// The same, but the nodes named never get ready.
    pub fn play_all_but<const N: usize>(sim: Sim, sick: [&str; N]) -> Self {
        let demand = Arc::<Mutex<Vec<Value>>>::default();
        let play = Play {
            sim,
            sick: sick.into_iter().map(str::to_owned).collect(),
            demand: Arc::clone(&demand),
        };
        Self { task: tokio::spawn(play.run()), demand }
    }

    /// From now on every scheduler wants these nodes of a queue for a job's gang, and no others.
    pub fn demand(&self, gang: &str, queue: &str, slots: &str) {
        let wanted = json!({"gang": gang, "queue": queue, "slots": slots});
        *self.demand.lock().unwrap_or_else(PoisonError::into_inner) = vec![wanted];
    }

    /// From now on no job wants anything.
    pub fn demand_nothing(&self) {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What is played, and by what script.
struct Play {
    sim: Sim,
    sick: BTreeSet<String>,
    demand: Arc<Mutex<Vec<Value>>>,
}

impl Play {
    async fn run(self) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = BTreeMap::new();
        loop {
            ticks.tick().await;
            // A lost look changes nothing: the next one comes.
            let _ = report_all(&self, &mut told).await;
        }
    }

    fn wanted(&self) -> Vec<Value> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn report_all(play: &Play, told: &mut BTreeMap<String, Value>) -> Result<()> {
    let living = play.sim.living().await?;
    let instances: Vec<_> = living.iter().filter(|thing| thing.kind == "instance").collect();
    let heads = instances.iter().filter(|thing| tag(thing, "role") == "head");
    for head in heads {
        let cluster = tag(head, "cluster-uid").to_owned();
        let report = report(head, &instances, play);
        if told.get(&cluster) != Some(&report) {
            put(&play.sim, &format!("/hpcops/{cluster}/demand"), &report).await?;
            told.insert(cluster, report);
        }
    }
    Ok(())
}

fn report(head: &Resource, instances: &[&Resource], play: &Play) -> Value {
    let ours = instances.iter().filter(|node| {
        tag(node, "cluster-uid") == tag(head, "cluster-uid") && tag(node, "role") != "head"
    });
    let mut fleets = BTreeMap::<_, BTreeSet<u64>>::new();
    for node in ours {
        let (queue, slot) = (tag(node, "role").trim_start_matches("queue-"), slot_of(node));
        let launch = (queue, tag(node, "gang"), tag(node, "attempt"));
        let healthy = slot.filter(|slot| !play.sick.contains(&format!("{queue}-{slot}")));
        fleets.entry(launch).or_default().extend(healthy);
    }
    let fleets = fleets.into_iter().map(|((queue, gang, attempt), ready)| {
        let attempt: i64 = attempt.parse().unwrap_or_default();
        let ready: Vec<_> = ready.iter().map(u64::to_string).collect();
        json!({"queue": queue, "gang": gang, "attempt": attempt, "ready": ready.join(",")})
    });
    let fleets: Vec<_> = fleets.collect();
    let (id, demand) = (&head.id, play.wanted());
    json!({"v": 1, "instanceId": id, "state": "Ready", "step": "", "fleets": fleets, "demand": demand})
}

/// The number a node boots under: its gang's slots by launch index.
fn slot_of(node: &Resource) -> Option<u64> {
    let index = node.detail.get("launchIndex").and_then(Value::as_u64).unwrap_or_default();
    let words = tag(node, "slots").split(',').filter_map(|word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse::<u64>().ok()?..=last.parse().ok()?)
    });
    words.flatten().nth(usize::try_from(index).ok()?)
}

fn tag<'a>(thing: &'a Resource, name: &str) -> &'a str {
    thing.tags.get(&format!("hpcops.dev:{name}")).map_or("", String::as_str)
}

/// `PutParameter` as the head sends it; the simulator checks that it is signed, not the signature.
async fn put(sim: &Sim, name: &str, report: &Value) -> Result<()> {
    let failed = |source: reqwest::Error| LabError::Sim {
        what: "PutParameter".to_owned(),
        source: source.into(),
    };
    let scope = format!("{}/20260101/us-east-1/ssm/aws4_request", sim.access_key());
    let signature = "0".repeat(64);
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-target, Signature={signature}"
    );
    let body =
        json!({"Name": name, "Type": "String", "Overwrite": true, "Value": report.to_string()});
    let answer = reqwest::Client::new()
        .post(sim.url())
        .header("authorization", signed)
        .header("x-amz-target", "AmazonSSM.PutParameter")
        .header("x-amz-date", "20260101T000000Z")
        .header("content-type", "application/x-amz-json-1.1")
        .body(body.to_string())
        .send()
        .await
        .map_err(failed)?;
    answer.error_for_status().map(drop).map_err(failed)
}
