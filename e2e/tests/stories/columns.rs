//! `kubectl get` of both kinds fits a terminal of 80 columns, with names of 14 characters and the
//! longest words a status can hold.

use std::sync::Arc;

use hpc_e2e::{Story, places};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use strum::IntoEnumIterator;

use crate::runner::Outcome;
use crate::stories;

stories![both_tables_fit_eighty_columns];

const CLUSTER: &str = "fourteen-chars";
const RUN: &str = "fourteen-runs0";

async fn both_tables_fit_eighty_columns(story: Arc<Story>) -> Outcome {
    let text = std::fs::read_to_string(places::root().join("examples/quickstart.yaml"))?;
    let text = text.replace("quickstart-osu", RUN).replace("quickstart", CLUSTER);
    story.apply(&text).await?;
    let longest = longest_reason();
    let cluster = json!({"status": {
        "observedGeneration": 1,
        "conditions": [condition("Ready", &longest)],
        "nodes": {"desired": 16, "ready": 16, "summary": "16/16"},
    }});
    let run = json!({"status": {
        "observedGeneration": 1,
        "conditions": [condition("Succeeded", &longest)],
        "progress": {"completed": 256, "failed": 0, "total": 256, "summary": "256/256"},
        "result": {"headline": "12345.6us"},
    }});
    patch(&story, CLUSTER, RUN, &cluster, &run).await?;
    for (kinds, expected) in [("hpcclusters", CLUSTER), ("benchmarkruns", RUN)] {
        let table = story.kubectl(&["get", kinds], "").await?;
        assert!(table.contains(expected) && table.contains(&longest), "{table}");
        let widest = table.lines().map(str::len).max().unwrap_or_default();
        assert!(widest <= 80, "{widest} columns:\n{table}");
    }
    Ok(())
}

/// The longest word that a STATUS column can show.
fn longest_reason() -> String {
    let reasons = hpc_crds::Reason::iter().map(|reason| reason.to_string());
    reasons.max_by_key(String::len).unwrap_or_default()
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": "Unknown", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    })
}

#[expect(clippy::disallowed_methods, reason = "the story plays the operator")]
async fn patch(
    story: &Story,
    cluster: &str,
    run: &str,
    cluster_status: &Value,
    run_status: &Value,
) -> kube::Result<()> {
    let params = PatchParams::default();
    let clusters = story.clusters();
    clusters.patch_status(cluster, &params, &Patch::Merge(cluster_status)).await?;
    story.runs().patch_status(run, &params, &Patch::Merge(run_status)).await?;
    Ok(())
}
