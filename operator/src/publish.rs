//! Status and events, only if something changed: the only place that writes status.
//!
//! A write carries the version of the object the pass was made from. If somebody wrote in between,
//! the API server refuses it and the pass is made again from what is stored now; that is what makes
//! an intent that was stored an intent that is known.

use std::fmt::Debug;

use hpc_crds::{BenchmarkRunStatus, Condition, ConditionStatus, ConditionType, HpcClusterStatus};
use kube::api::PostParams;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::runtime::events::{Event, EventType};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Context, NAME};
use crate::controller::Error;

/// A status that speaks in conditions.
pub trait Speaks {
    /// Its conditions.
    fn conditions(&self) -> &[Condition];
}

impl Speaks for HpcClusterStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

impl Speaks for BenchmarkRunStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// Stores the status and tells of transitions. An object that is gone, or that this pass let go,
/// needs neither.
///
/// # Errors
/// When the API server refuses or does not answer; a conflict means to look again at once.
pub async fn publish<K>(ctx: &Context, object: &K, status: K::Status) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
    K::Status: Speaks + PartialEq,
{
    if ctx.memory.forget_released(object) {
        return Ok(());
    }
    let after = status.conditions().to_vec();
    if object.status() != Some(&status) {
        match store(ctx, object, status).await {
            Ok(stored) => ctx.memory.wrote(&stored),
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => return Ok(()),
            Err(source) => return Err(Error::Publish { source }),
        }
        announce(ctx, object, &after).await;
    }
    ctx.telemetry.conditions(object, &after);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes status")]
async fn store<K>(ctx: &Context, object: &K, status: K::Status) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let mut next = object.clone();
    next.meta_mut().resource_version = Some(ctx.memory.expected(object));
    next.meta_mut().managed_fields = None;
    *next.status_mut() = Some(status);
    let manager = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
    ctx.api(object).replace_status(&object.name_any(), &manager, &next).await
}

/// One event per condition that turned or got another reason. Events are best effort.
async fn announce<K>(ctx: &Context, object: &K, after: &[Condition])
where
    K: Resource<DynamicType = ()> + HasStatus,
    K::Status: Speaks,
{
    let before = object.status().map(Speaks::conditions).unwrap_or_default();
    let reference = object.object_ref(&());
    for event in after.iter().filter(|now| is_news(before, now)).map(event) {
        if let Err(error) = ctx.recorder.publish(&event, &reference).await {
            tracing::warn!(%error, "an event could not be published");
        }
    }
}

fn is_news(before: &[Condition], now: &Condition) -> bool {
    let old = before.iter().find(|old| old.type_ == now.type_);
    let word = |one: &Condition| (one.status, one.reason.clone());
    !now.is(ConditionType::Reconciling) && old.map(word) != Some(word(now))
}

fn event(condition: &Condition) -> Event {
    Event {
        type_: if is_trouble(condition) { EventType::Warning } else { EventType::Normal },
        reason: condition.reason.clone(),
        note: Some(format!("{}={}: {}", condition.type_, condition.status, condition.message)),
        action: condition.type_.clone(),
        secondary: None,
    }
}

/// Being refused or stalled is trouble; waiting is not, and neither is that a run is not over.
fn is_trouble(condition: &Condition) -> bool {
    const WAITS: [&str; 9] = [
        "Pending",
        "Creating",
        "Deleting",
        "Booting",
        "WaitingForAgent",
        "Queued",
        "Running",
        "Paused",
        "ClusterNotReady",
    ];
    let is_goal = condition.known_type().is_some_and(|type_| {
        matches!(type_, ConditionType::Ready | ConditionType::Succeeded)
            || ConditionType::CLUSTER_PARTS.contains(&type_)
    });
    let is_refused = is_goal && condition.status == ConditionStatus::False;
    condition.is(ConditionType::Stalled)
        || (is_refused && !WAITS.contains(&condition.reason.as_str()))
}
