//! Our finalizer on an object: a patch of metadata alone, refused when the object changed since it
//! was read. The spec is never written.

use std::fmt::Debug;

use hpc_plan::cloud::{Failure, Kind};
use hpc_plan::names::FINALIZER;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::context::Context;

/// Puts it on.
pub async fn add<K>(ctx: &Context, object: &K) -> Result<(), Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let others = object.finalizers().iter().filter(|name| *name != FINALIZER).cloned();
    let stored = set(ctx, object, others.chain([FINALIZER.to_owned()]).collect()).await?;
    ctx.memory.wrote(&stored);
    Ok(())
}

/// Takes it off: if no other one is left, the object is gone.
pub async fn remove<K>(ctx: &Context, object: &K) -> Result<(), Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let others = object.finalizers().iter().filter(|name| *name != FINALIZER).cloned();
    match set(ctx, object, others.collect()).await {
        Ok(_) => ctx.memory.released(object),
        Err(gone) if gone.kind == Kind::NotFound => ctx.memory.released(object),
        Err(refused) => return Err(refused),
    }
    Ok(())
}

async fn set<K>(ctx: &Context, object: &K, finalizers: Vec<String>) -> Result<K, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let expected = ctx.memory.expected(object);
    let metadata = json!({"resourceVersion": expected, "finalizers": finalizers});
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let api = ctx.api(object);
    let patched = api.patch(&object.name_any(), &PatchParams::default(), &patch).await;
    patched.map_err(|error| failure("PatchFinalizers", &error))
}

/// A failed call to Kubernetes in the words the planner knows.
pub fn failure(operation: &str, error: &kube::Error) -> Failure {
    let (kind, code) = if let kube::Error::Api(status) = error {
        (kind(status.code), status.reason.clone())
    } else {
        (Kind::Unknown, "Unreachable".to_owned())
    };
    Failure {
        kind,
        service: "kubernetes".to_owned(),
        operation: operation.to_owned(),
        code,
        message: error.to_string().chars().take(300).collect(),
    }
}

const fn kind(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Denied,
        404 => Kind::NotFound,
        409 => Kind::InUse,
        429 => Kind::Throttled,
        _ => Kind::Unknown,
    }
}
