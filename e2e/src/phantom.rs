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

/// A player of heads; it stops when dropped.
pub struct Phantom {
    task: JoinHandle<()>,
    script: Arc<Mutex<Script>>,
}

/// What every head plays now.
#[derive(Clone, Default)]
struct Script {
    demand: Vec<Value>,
    boot: Duration,
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
        self.script().demand.push(json!({"gang": gang, "queue": queue, "slots": slots}));
    }

    /// From now on no job wants anything.
    pub fn demand_nothing(&self) {
        self.script().demand.clear();
    }

    /// From now on nodes are reported this long after their launch.
    pub fn boots_in(&self, boot: Duration) {
        self.script().boot = boot;
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    fn script(&self) -> Script {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn report_all(play: &Play, told: &mut BTreeMap<String, Value>) -> Result<()> {
    let living = play.sim.instances().await?;
    let instances: Vec<_> = living.iter().collect();
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
    let script = play.script();
    let mut fleets = BTreeMap::<_, BTreeSet<u64>>::new();
    for node in ours {
        let (queue, slot) = (tag(node, "role").trim_start_matches("queue-"), slot_of(node));
        let launch = (queue, tag(node, "gang"), tag(node, "attempt"));
        let healthy = slot
            .filter(|slot| !play.sick.contains(&format!("{queue}-{slot}")))
            .filter(|_| has_booted(node, script.boot));
        fleets.entry(launch).or_default().extend(healthy);
    }
    let fleets = fleets.into_iter().map(|((queue, gang, attempt), ready)| {
        let attempt: i64 = attempt.parse().unwrap_or_default();
        json!({"queue": queue, "gang": gang, "attempt": attempt, "ready": ranges(&ready)})
    });
    let fleets: Vec<_> = fleets.collect();
    let (id, demand) = (&head.id, &script.demand);
    json!({"v": 1, "instanceId": id, "state": "Ready", "step": "", "fleets": fleets, "demand": demand})
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
