//! Putting our finalizer on an object and taking it off, each guarded by the version that was read.

use std::fmt::Debug;

use hpc_plan::cloud::Failure;
use hpc_plan::names::FINALIZER;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::is_gone;
use crate::run::kubernetes;

/// Adds the finalizer.
pub async fn add<K>(client: &Client, object: &K) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    replace(client, object, finalizers).await
}

/// Removes the finalizer; an object that is gone already is fine.
pub async fn remove<K>(client: &Client, object: &K) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let others = object.finalizers().iter().filter(|name| *name != FINALIZER);
    replace(client, object, others.cloned().collect()).await
}

async fn replace<K>(client: &Client, object: &K, finalizers: Vec<String>) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "finalizers": finalizers,
    }});
    match api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(error) if is_gone(&error) => Ok(()),
        Err(error) => Err(kubernetes("patch", &error)),
    }
}
