//! The only writer of status, for both kinds, and of the events that tell of its turns.
//!
//! A status is written only when it differs from the stored one, with the version that was read as
//! the precondition: when somebody else wrote meanwhile, nothing is overwritten and the next pass
//! starts from what is there.

use std::fmt::Debug;

use hpc_crds::{BenchmarkRun, Condition, ConditionStatus, ConditionType, HpcCluster, condition};
use k8s_openapi::NamespaceResourceScope;
use kube::api::PostParams;
use kube::core::object::HasStatus;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::{Error, is_conflict, is_gone};

/// A kind whose status we write.
pub trait Published:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + HasStatus<Status: Clone + PartialEq>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
{
    /// The condition that sums up the others.
    const ROOT: ConditionType;

    /// The conditions of a status.
    fn conditions(status: &Self::Status) -> &[Condition];
}

impl Published for HpcCluster {
    const ROOT: ConditionType = ConditionType::Ready;

    fn conditions(status: &Self::Status) -> &[Condition] {
        &status.conditions
    }
}

impl Published for BenchmarkRun {
    const ROOT: ConditionType = ConditionType::Succeeded;

    fn conditions(status: &Self::Status) -> &[Condition] {
        &status.conditions
    }
}

/// Stores `status` when it differs from the object's, and tells of a turn of the root condition.
pub async fn publish<K: Published>(
    ctx: &Context,
    object: &K,
    status: K::Status,
) -> Result<(), Error> {
    if object.status() == Some(&status) {
        return Ok(());
    }
    let turn = turn::<K>(object.status(), &status);
    let mut next = object.clone();
    *next.status_mut() = Some(status);
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &namespace);
    #[expect(clippy::disallowed_methods, reason = "this is the one place that writes status")]
    let written = api.replace_status(&object.name_any(), &PostParams::default(), &next).await;
    match written {
        Ok(stored) => {
            let uid = object.uid().unwrap_or_default();
            ctx.memory.wrote(&uid, stored.resource_version().as_deref());
            tell(ctx, object, turn).await;
            Ok(())
        }
        Err(error) if is_gone(&error) => Ok(()),
        Err(error) if is_conflict(&error) => {
            Err(Error::Conflict { kind: kind::<K>(), name: object.name_any() })
        }
        Err(source) => Err(Error::Publish { kind: kind::<K>(), name: object.name_any(), source }),
    }
}

fn kind<K: Published>() -> String {
    K::kind(&()).into_owned()
}

/// The root condition, when its status or reason is another one now.
fn turn<K: Published>(before: Option<&K::Status>, after: &K::Status) -> Option<Condition> {
    let told = |condition: &Condition| (condition.status, condition.reason.clone());
    let after = condition::find(K::conditions(after), K::ROOT)?;
    let before = before.and_then(|status| condition::find(K::conditions(status), K::ROOT));
    (before.map(told) != Some(told(after))).then(|| after.clone())
}

/// An event for people; a lost one changes nothing.
async fn tell<K: Published>(ctx: &Context, object: &K, turn: Option<Condition>) {
    let Some(condition) = turn else { return };
    let bad = condition.status == ConditionStatus::False;
    let event = Event {
        type_: if bad { EventType::Warning } else { EventType::Normal },
        reason: condition.reason,
        note: Some(condition.message),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    if let Err(error) = ctx.recorder.publish(&event, &object.object_ref(&())).await {
        tracing::warn!(%error, "event");
    }
}
