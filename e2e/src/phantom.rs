//! Plays the head of bodiless clusters: it reports to the SSM parameter what a real head's loop
//! would report when everything has booted. Stories about AWS alone need no more of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::{LabError, Result};
use crate::sim::{Resource, Sim};

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(100);

/// A player of heads; it stops when dropped.
pub struct Phantom(JoinHandle<()>);

impl Drop for Phantom {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Phantom {
    /// Reports every node of every cluster of the account as ready.
    pub fn play(sim: Sim) -> Self {
        Self::play_all_but(sim, [])
    }

    /// The same, but the nodes named never get ready.
    pub fn play_all_but<const N: usize>(sim: Sim, sick: [&str; N]) -> Self {
        let sick: BTreeSet<String> = sick.into_iter().map(str::to_owned).collect();
        Self(tokio::spawn(async move {
            let mut ticks = interval(LOOK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut told = BTreeMap::new();
            loop {
                ticks.tick().await;
                // A lost look changes nothing: the next one comes.
                let _ = report_all(&sim, &sick, &mut told).await;
            }
        }))
    }
}

async fn report_all(
    sim: &Sim,
    sick: &BTreeSet<String>,
    told: &mut BTreeMap<String, Value>,
) -> Result<()> {
    let living = sim.living().await?;
    let instances: Vec<_> = living.iter().filter(|thing| thing.kind == "instance").collect();
    let heads = instances.iter().filter(|thing| tag(thing, "role") == "head");
    for head in heads {
        let cluster = tag(head, "cluster-uid").to_owned();
        let report = report(head, &instances, sick);
        if told.get(&cluster) != Some(&report) {
            put(sim, &format!("/hpcops/{cluster}/demand"), &report).await?;
            told.insert(cluster, report);
        }
    }
    Ok(())
}

fn report(head: &Resource, instances: &[&Resource], sick: &BTreeSet<String>) -> Value {
    let ours = instances.iter().filter(|node| {
        tag(node, "cluster-uid") == tag(head, "cluster-uid") && tag(node, "role") != "head"
    });
    let nodes: Vec<_> = ours
        .map(|node| {
            let name = name_of(node);
            let ready = !sick.contains(&name);
            json!({"name": name, "instanceId": node.id, "ready": ready})
        })
        .collect();
    json!({"v": 1, "instanceId": head.id, "state": "Ready", "step": "", "nodes": nodes})
}

/// The name a node boots under: its gang's slots by launch index.
fn name_of(node: &Resource) -> String {
    let index = node.detail.get("launchIndex").and_then(Value::as_u64).unwrap_or_default();
    let index = usize::try_from(index).unwrap_or_default();
    tag(node, "slots").split(',').nth(index).unwrap_or_default().to_owned()
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
