//! Plays the head of bodiless clusters: it reports to the SSM parameter what a real head's loop
//! would report when everything has booted. Stories about AWS alone need no more of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::error::{LabError, Result};
use crate::sim::{Resource, Sim};

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(100);

/// What a story has the heads say, from now on.
#[derive(Default)]
struct Script {
    /// What jobs want.
    demand: Vec<Value>,
    /// Nodes whose boot fails.
    broken: BTreeSet<String>,
    /// How long a node boots.
    boot: Duration,
}

/// A player of heads; it stops when dropped.
pub struct Phantom {
    task: JoinHandle<()>,
    script: Arc<Mutex<Script>>,
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
        let script = Arc::<Mutex<Script>>::default();
        let play = Play {
            sim,
            sick: sick.into_iter().map(str::to_owned).collect(),
            script: Arc::clone(&script),
        };
        Self { task: tokio::spawn(play.run()), script }
    }

    /// From now on every scheduler wants these nodes of a queue for a job's gang, and no others.
    pub fn demand(&self, gang: &str, queue: &str, slots: &str) {
        self.demand_nothing();
        self.demand_more(gang, queue, slots);
    }

    /// From now on these nodes are wanted as well.
    pub fn demand_more(&self, gang: &str, queue: &str, slots: &str) {
        let wanted = json!({"gang": gang, "queue": queue, "slots": slots});
        lock(&self.script).demand.push(wanted);
    }

    /// From now on no job wants anything.
    pub fn demand_nothing(&self) {
        lock(&self.script).demand.clear();
    }

    /// From now on nodes are reported this long after their launch.
    pub fn boots_in(&self, boot: Duration) {
        lock(&self.script).boot = boot;
    }

    /// From now on a boot step fails on the nodes named, and on no others.
    pub fn break_nodes(&self, names: &[&str]) {
        lock(&self.script).broken = names.iter().map(|name| (*name).to_owned()).collect();
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is played, and by what script.
struct Play {
    sim: Sim,
    sick: BTreeSet<String>,
    script: Arc<Mutex<Script>>,
}

impl Play {
    async fn run(self) {
        let mut told = BTreeMap::new();
        loop {
            let begun = Instant::now();
            // A lost look changes nothing: the next one comes.
            let _ = report_all(&self, &mut told).await;
            // Thousands of nodes must not keep the machine busy with looking at them.
            sleep(LOOK.max(begun.elapsed() * 5)).await;
        }
    }
}

async fn report_all(play: &Play, told: &mut BTreeMap<String, Value>) -> Result<()> {
    let living = play.sim.living_of("instance").await?;
    let told_to_heads = play.sim.living_of("parameter").await?;
    let instances: Vec<_> = living.iter().collect();
    let heads = instances.iter().filter(|thing| tag(thing, "role") == "head");
    for head in heads {
        let cluster = tag(head, "cluster-uid").to_owned();
        let name = format!("/hpcops/{cluster}/answers");
        let is_told = told_to_heads.iter().any(|thing| thing.id == name);
        let leaving = if is_told { leaving(&play.sim, &name).await? } else { vec![] };
        let report = report(head, &instances, &leaving, play);
        if told.get(&cluster) != Some(&report) {
            put(&play.sim, &format!("/hpcops/{cluster}/demand"), &report).await?;
            told.insert(cluster, report);
        }
    }
    Ok(())
}

/// Queue, gang and attempt of a launch.
type Launch = (String, String, i64);

/// The nodes of a cluster by launch, as a report lists them.
#[derive(Default)]
struct Nodes(BTreeMap<Launch, BTreeSet<u64>>);

impl Nodes {
    fn add(&mut self, launch: &Launch, slot: u64) {
        self.0.entry(launch.clone()).or_default().insert(slot);
    }

    fn told(&self) -> Vec<Value> {
        let nodes = self.0.iter().map(|((queue, gang, attempt), slots)| {
            json!({"queue": queue, "gang": gang, "attempt": attempt, "ready": ranges(slots)})
        });
        nodes.collect()
    }
}

/// Which nodes have to leave; no job keeps one.
async fn leaving(sim: &Sim, name: &str) -> Result<Vec<Value>> {
    let answer = call(sim, "GetParameter", &json!({"Name": name})).await?;
    let text = answer.pointer("/Parameter/Value").and_then(Value::as_str).unwrap_or("{}");
    let said: Value =
        serde_json::from_str(text).map_err(LabError::malformed("what heads are told"))?;
    Ok(said.get("leave").and_then(Value::as_array).cloned().unwrap_or_default())
}

fn has_left(leaving: &[Value], (queue, gang, attempt): &Launch, slot: u64) -> bool {
    leaving.iter().any(|entry| {
        let slots = entry.get("slots").and_then(Value::as_str).unwrap_or_default();
        entry.get("queue") == Some(&json!(queue))
            && entry.get("gang") == Some(&json!(gang))
            && entry.get("attempt") == Some(&json!(attempt))
            && numbers(slots).any(|number| number == slot)
    })
}

fn report(head: &Resource, instances: &[&Resource], leaving: &[Value], play: &Play) -> Value {
    let ours = instances.iter().filter(|node| {
        tag(node, "cluster-uid") == tag(head, "cluster-uid") && tag(node, "role") != "head"
    });
    let script = lock(&play.script);
    let (mut fleets, mut left, mut worst) = (Nodes::default(), Nodes::default(), vec![]);
    for node in ours {
        let queue = tag(node, "role").trim_start_matches("queue-").to_owned();
        let attempt = tag(node, "attempt").parse().unwrap_or_default();
        let Some(slot) = slot_of(node) else { continue };
        let name = format!("{queue}-{slot}");
        let launch = (queue, tag(node, "gang").to_owned(), attempt);
        if script.broken.contains(&name) {
            worst.push(json!({"name": name, "instanceId": node.id, "step": "storage", "exit": 32,
                "message": "mount.lustre: no such device"}));
        } else if has_left(leaving, &launch, slot) {
            left.add(&launch, slot);
        } else if !play.sick.contains(&name) && has_booted(node, script.boot) {
            fleets.add(&launch, slot);
        }
    }
    json!({"v": 1, "instanceId": head.id, "state": "Ready", "step": "", "worst": worst,
        "fleets": fleets.told(), "left": left.told(), "demand": script.demand})
}

#[expect(clippy::disallowed_methods, reason = "the lab's nodes boot by the machine's clock")]
fn has_booted(node: &Resource, boot: Duration) -> bool {
    let launched = node.created_at.parse::<jiff::Timestamp>().unwrap_or(jiff::Timestamp::MIN);
    SystemTime::now().duration_since(launched.into()).is_ok_and(|age| age >= boot)
}

/// Numbers as a head writes them: `1-3,5`.
fn ranges(numbers: &BTreeSet<u64>) -> String {
    let mut words: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match words.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => words.push((*number, *number)),
        }
    }
    let word = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    words.iter().map(word).collect::<Vec<_>>().join(",")
}

/// The number a node boots under: its gang's slots by launch index.
fn slot_of(node: &Resource) -> Option<u64> {
    let index = node.detail.get("launchIndex").and_then(Value::as_u64).unwrap_or_default();
    numbers(tag(node, "slots")).nth(usize::try_from(index).ok()?)
}

/// The numbers that `1-3,7` names.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(',').filter_map(|word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse::<u64>().ok()?..=last.parse().ok()?)
    });
    words.flatten()
}

fn tag<'a>(thing: &'a Resource, name: &str) -> &'a str {
    thing.tags.get(&format!("hpcops.dev:{name}")).map_or("", String::as_str)
}

/// As the head sends it.
async fn put(sim: &Sim, name: &str, report: &Value) -> Result<()> {
    let body =
        json!({"Name": name, "Type": "String", "Overwrite": true, "Value": report.to_string()});
    call(sim, "PutParameter", &body).await.map(drop)
}

/// A call of the parameter store; the simulator checks that it is signed, not the signature.
async fn call(sim: &Sim, action: &str, body: &Value) -> Result<Value> {
    let failed =
        |source: reqwest::Error| LabError::Sim { what: action.to_owned(), source: source.into() };
    let scope = format!("{}/20260101/us-east-1/ssm/aws4_request", sim.access_key());
    let signature = "0".repeat(64);
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-target, Signature={signature}"
    );
    let answer = reqwest::Client::new()
        .post(sim.url())
        .header("authorization", signed)
        .header("x-amz-target", format!("AmazonSSM.{action}"))
        .header("x-amz-date", "20260101T000000Z")
        .header("content-type", "application/x-amz-json-1.1")
        .body(body.to_string())
        .send()
        .await
        .map_err(failed)?;
    let text = answer.error_for_status().map_err(failed)?.text().await.map_err(failed)?;
    serde_json::from_str(&text).map_err(LabError::malformed(action.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn numbers_are_told_as_ranges() {
        for (numbers, text) in [
            (vec![], ""),
            (vec![3], "3"),
            (vec![1, 2, 3, 5], "1-3,5"),
            ((1..=1000).collect(), "1-1000"),
        ] {
            assert_eq!(ranges(&numbers.into_iter().collect()), text);
        }
    }
}
