//! What invariant 2 relies on: the apiserver refuses a write of status that was planned on an older
//! object, even from a manager that forces conflicts.

use std::sync::Arc;

use hpc_crds::HpcCluster;
use hpc_e2e::{Story, places};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::runner::Outcome;
use crate::stories;

stories![
    a_stale_status_write_is_refused_and_a_fresh_one_works,
    a_new_object_says_that_nobody_has_seen_it,
    an_equal_status_write_changes_nothing,
];

/// The quickstart's cluster under a name of its own.
async fn created(
    story: &Story,
    name: &str,
) -> Result<HpcCluster, Box<dyn std::error::Error + Send + Sync>> {
    let text = std::fs::read_to_string(places::root().join("examples/quickstart.yaml"))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let mut cluster: HpcCluster = serde_json::from_value(objects[0].clone())?;
    cluster.metadata.name = Some(name.to_owned());
    cluster.metadata.namespace = Some(story.namespace().to_owned());
    Ok(story.clusters().create(&PostParams::default(), &cluster).await?)
}

/// Writes status as the operator does: applied, forced, on the version it was planned on.
#[expect(clippy::disallowed_methods, reason = "this is the write whose refusal is under test")]
async fn write(
    story: &Story,
    name: &str,
    version: Option<&str>,
    seen: i64,
) -> kube::Result<HpcCluster> {
    let mut metadata = json!({"name": name});
    if let Some(version) = version {
        metadata["resourceVersion"] = version.into();
    }
    let status = json!({
        "apiVersion": "hpcops.dev/v1alpha1", "kind": "HPCCluster", "metadata": metadata,
        "status": {"observedGeneration": seen},
    });
    let params = PatchParams::apply("hpcops").force();
    story.clusters().patch_status(name, &params, &Patch::Apply(&status)).await
}

async fn a_stale_status_write_is_refused_and_a_fresh_one_works(story: Arc<Story>) -> Outcome {
    let planned_on = created(&story, "stale").await?.resource_version();
    let other = write(&story, "stale", None, 0).await?;
    assert_ne!(other.resource_version(), planned_on);
    match write(&story, "stale", planned_on.as_deref(), 1).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, &*status.reason), (409, "Conflict"));
        }
        other => panic!("a write on an old version must conflict, got {other:?}"),
    }
    let fresh = write(&story, "stale", other.resource_version().as_deref(), 1).await?;
    assert_eq!(fresh.status.map(|status| status.observed_generation), Some(1));
    Ok(())
}

async fn a_new_object_says_that_nobody_has_seen_it(story: Arc<Story>) -> Outcome {
    let cluster = created(&story, "unseen").await?;
    assert_eq!(cluster.status.map(|status| status.observed_generation), Some(-1));
    Ok(())
}

async fn an_equal_status_write_changes_nothing(story: Arc<Story>) -> Outcome {
    created(&story, "equal").await?;
    let first = write(&story, "equal", None, 3).await?;
    let again = write(&story, "equal", first.resource_version().as_deref(), 3).await?;
    assert_eq!(first.resource_version(), again.resource_version());
    Ok(())
}
