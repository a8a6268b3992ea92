//! The lab's own control plane does what the stories rely on.

use std::sync::Arc;
use std::time::Duration;

use hpc_e2e::{ControlPlane, Story, await_condition};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::runner::Outcome;
use crate::stories;

stories![
    it_starts_and_leaves_no_process,
    a_deleted_owner_takes_its_objects_along,
    a_deleted_namespace_goes,
    writes_are_counted_by_who_made_them,
];

const SOON: Duration = Duration::from_secs(30);

async fn it_starts_and_leaves_no_process(_story: Arc<Story>) -> Outcome {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(dir.path()).await?;
    let processes = control_plane.identities();
    assert_eq!(processes.len(), 3);
    assert!(processes.iter().all(|process| process.is_alive()));
    control_plane.stop().await?;
    assert!(!processes.iter().any(|process| process.is_alive()));
    Ok(())
}

fn config_map(value: serde_json::Value) -> Result<ConfigMap, serde_json::Error> {
    serde_json::from_value(value)
}

async fn a_deleted_owner_takes_its_objects_along(story: Arc<Story>) -> Outcome {
    let maps: Api<ConfigMap> = Api::namespaced(story.client(), story.namespace());
    let owner = config_map(json!({"metadata": {"name": "owner"}}))?;
    let owner = maps.create(&PostParams::default(), &owner).await?;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.uid(), "blockOwnerDeletion": true,
    });
    let dependant =
        config_map(json!({"metadata": {"name": "dependant", "ownerReferences": [reference]}}))?;
    maps.create(&PostParams::default(), &dependant).await?;
    maps.delete("owner", &DeleteParams::default()).await?;
    await_condition(&maps, "dependant", "is collected", SOON, |map| map.is_none()).await?;
    Ok(())
}

async fn a_deleted_namespace_goes(story: Arc<Story>) -> Outcome {
    let namespaces: Api<Namespace> = Api::all(story.client());
    let name = format!("{}-gone", story.namespace());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(story.client(), &name);
    await_condition(&accounts, "default", "is made", SOON, |account| account.is_some()).await?;
    namespaces.delete(&name, &DeleteParams::default()).await?;
    await_condition(&namespaces, &name, "is gone", SOON, |gone| gone.is_none()).await?;
    Ok(())
}

async fn writes_are_counted_by_who_made_them(story: Arc<Story>) -> Outcome {
    let audit = story.lab().control_plane().audit();
    let maps: Api<ConfigMap> = Api::namespaced(story.client(), story.namespace());
    let map = config_map(json!({"metadata": {"name": "written"}}))?;
    maps.create(&PostParams::default(), &map).await?;
    maps.get("written").await?;
    let mine = |writes: Vec<hpc_e2e::audit::Write>| {
        let here = writes.into_iter().filter(|w| w.object_ref.namespace == story.namespace());
        here.filter(|w| w.object_ref.resource == "configmaps").map(|w| w.verb).collect::<Vec<_>>()
    };
    assert_eq!(mine(audit.writes_by("admin")?), ["create"]);
    assert_eq!(mine(audit.writes_by("system:serviceaccount:nobody:nobody")?), [""; 0]);
    Ok(())
}
