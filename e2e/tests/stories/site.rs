//! What the stories about clusters share: the cluster, short waits, and looks at conditions.

use std::time::Duration;

use hpc_crds::{Condition, ConditionType, HpcCluster, condition};
use hpc_e2e::sim::{Resource, Sim};
use hpc_e2e::{Operator, Restart, Result, Story, await_condition};
use serde_json::{Value, json};

use crate::runner::Outcome;

/// Long enough for anything a bodiless cluster does at the lab's time scale.
pub const LONG: Duration = Duration::from_mins(3);
/// Name of the cluster.
pub const NAME: &str = "wing";

/// Flags that shorten waits as much as the lab shortens AWS' delays.
pub fn quick() -> Value {
    json!({"extraArgs": [
        "--visibility-window-seconds=2",
        "--lookup-window-seconds=6",
        "--capacity-backoff-seconds=2",
        "--finalizer-gap-seconds=1",
        "--job-poll-seconds=1",
        "--demand-poll-seconds=1",
        "--status-poll-seconds=1",
    ]})
}

/// The same with more flags behind.
fn quick_and(more: &[&str]) -> Value {
    let mut values = quick();
    if let Some(args) = values.get_mut("extraArgs").and_then(Value::as_array_mut) {
        args.extend(more.iter().map(|flag| json!(flag)));
    }
    values
}

/// The operator with short waits, in an account whose instances have no bodies.
pub async fn operator(story: &Story, args: &[&str]) -> Result<Operator> {
    story.sim().await?.configure(&json!({"bodies": false})).await?;
    story.operator(&quick_and(args), Restart::Never).await
}

/// The cluster's manifest with `change` made to its `spec.aws`.
pub fn cluster(change: impl FnOnce(&mut Value)) -> String {
    let mut cluster: Value = serde_saphyr::from_str(include_str!("cluster.yaml")).unwrap();
    change(&mut cluster["spec"]["aws"]);
    cluster.to_string()
}

/// Waits until a condition of the cluster is as `wanted` says; panics when the cluster goes.
pub async fn await_cluster(
    story: &Story,
    what: &str,
    wanted: impl Fn(&HpcCluster) -> bool + Send + Sync,
) -> Result<HpcCluster> {
    await_cluster_for(LONG, story, what, wanted).await
}

/// Waits until the cluster is Ready, for as long as real boots may take.
pub async fn await_ready_for(patience: Duration, story: &Story) -> Result<HpcCluster> {
    let ready = |found: &HpcCluster| told(found, ConditionType::Ready) == "True/Ready";
    await_cluster_for(patience, story, "Ready", ready).await
}

async fn await_cluster_for(
    patience: Duration,
    story: &Story,
    what: &str,
    wanted: impl Fn(&HpcCluster) -> bool + Send + Sync,
) -> Result<HpcCluster> {
    let holds = |found: Option<&HpcCluster>| found.is_some_and(&wanted);
    let found = await_condition(&story.clusters(), NAME, what, patience, holds).await?;
    Ok(found.expect("a watched object"))
}

/// Waits until the condition reads `status/reason`.
pub async fn await_told(
    story: &Story,
    type_: ConditionType,
    expected: &'static str,
) -> Result<Condition> {
    let what = format!("{type_}={expected}");
    let found = await_cluster(story, &what, |found| told(found, type_) == expected).await?;
    Ok(the(&found, type_).expect("it was told"))
}

/// A condition as `status/reason`; empty when it is not there.
pub fn told(cluster: &HpcCluster, type_: ConditionType) -> String {
    the(cluster, type_)
        .map_or_else(String::new, |found| format!("{}/{}", found.status, found.reason))
}

/// A condition.
pub fn the(cluster: &HpcCluster, type_: ConditionType) -> Option<Condition> {
    let conditions = &cluster.status.as_ref()?.conditions;
    condition::find(conditions, type_).cloned()
}

/// Deletes the cluster as a user does, and waits as `kubectl` does.
pub async fn delete(story: &Story) -> Result<()> {
    delete_within(LONG, story, NAME).await
}

async fn delete_within(patience: Duration, story: &Story, name: &str) -> Result<()> {
    let seconds = format!("--timeout={}s", patience.as_secs());
    story.kubectl(&["delete", "hpccluster", name, &seconds], "").await.map(drop)
}

/// Deletes the cluster and sees that nothing is left.
pub async fn leave_nothing(story: &Story) -> Result<()> {
    leave_nothing_within(LONG, story, NAME).await
}

async fn leave_nothing_within(patience: Duration, story: &Story, name: &str) -> Result<()> {
    delete_within(patience, story, name).await?;
    assert_eq!(left_over(story).await?, Vec::<String>::new());
    Ok(())
}

/// Deletes the cluster, sees that nothing is left, and stops the operator.
pub async fn end(story: &Story, served: Operator) -> Outcome {
    leave_nothing(story).await?;
    served.stop().await?;
    Ok(())
}

/// The same for a cluster of this name whose instances are alive and take time to die.
pub async fn end_of_bodies(name: &str, story: &Story, served: Operator) -> Outcome {
    leave_nothing_within(Duration::from_mins(5), story, name).await?;
    served.stop().await?;
    Ok(())
}

/// Live nodes of the queue.
pub async fn nodes(sim: &Sim) -> Result<Vec<Resource>> {
    let living = sim.living_of("instance").await?;
    Ok(living.into_iter().filter(is_node).collect())
}

/// Whether a thing is a node of the queue.
pub fn is_node(thing: &Resource) -> bool {
    let role = thing.tags.get("hpcops.dev:role");
    thing.kind == "instance" && role.is_some_and(|role| role == "queue-compute")
}

/// What is left in AWS, the document of the installation excepted.
pub async fn left_over(story: &Story) -> Result<Vec<String>> {
    let living = story.sim().await?.living().await?;
    let left = living.into_iter().filter(|thing| thing.kind != "document");
    Ok(left.map(|thing| format!("{} {}", thing.kind, thing.id)).collect())
}
