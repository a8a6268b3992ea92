//! Describe, delete, tag, and what happens to file systems by themselves.

use serde::Deserialize;
use serde_json::{Value, json};

use super::request::Tag;
use super::{Lifecycle, arn, not_found, render};
use crate::agenda::Event;
use crate::call::Call;
use crate::clock::Delay;
use crate::ec2::{Page, check_tags, paginate, remove_interface};
use crate::effect::Effect;
use crate::ledger::{Kind, Tags};
use crate::wire::{ApiError, decode_json};

/// Most file systems of one page.
const PAGE: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DescribeRequest {
    #[serde(default)]
    file_system_ids: Vec<String>,
    max_results: Option<usize>,
    next_token: Option<String>,
}

/// `DescribeFileSystems`. A page may hold fewer than asked for and still have
/// a successor.
pub fn describe(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: DescribeRequest = decode_json(request)?;
    if request.file_system_ids.len() > PAGE {
        return Err(ApiError::client("BadRequest", "At most 50 file system IDs are allowed."));
    }
    let all = &call.region.fsx.file_systems;
    if let Some(id) = request.file_system_ids.iter().find(|id| !all.contains_key(*id)) {
        return Err(not_found(id));
    }
    let ids = &request.file_system_ids;
    let rows: Vec<(String, Value)> = all
        .values()
        .filter(|fs| if ids.is_empty() { fs.visible_at <= call.now } else { ids.contains(&fs.id) })
        .map(|fs| (fs.id.clone(), render(call, fs)))
        .collect();
    let most = request.max_results.unwrap_or(PAGE).clamp(1, PAGE);
    let fresh = call.now.to_string();
    let size = short_page(call, most, request.next_token.as_deref().unwrap_or(&fresh));
    let page = Page::new(Some(size), request.next_token.as_deref(), (1, PAGE))
        .map_err(|_unreadable| ApiError::client("BadRequest", "Invalid NextToken."))?;
    let (rows, next) = paginate(rows, &page, call.engine.dice, &fresh);
    let mut answer = json!({"FileSystems": rows});
    if let (Some(next), Some(members)) = (next, answer.as_object_mut()) {
        members.insert("NextToken".to_owned(), json!(next));
    }
    Ok(answer)
}

/// Every other page is short.
fn short_page(call: &Call<'_>, most: usize, key: &str) -> usize {
    let draw = call.engine.dice.number("short page", key);
    if draw.is_multiple_of(2) { most } else { most.div_ceil(2) }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DeleteRequest {
    file_system_id: String,
    #[serde(rename = "ClientRequestToken")]
    _client_request_token: Option<String>,
    lustre_configuration: Option<DeleteLustre>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DeleteLustre {
    skip_final_backup: Option<bool>,
}

/// `DeleteFileSystem`.
pub fn delete(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: DeleteRequest = decode_json(request)?;
    let id = request.file_system_id;
    let fs = call.region.fsx.file_systems.get_mut(&id).ok_or_else(|| not_found(&id))?;
    let keeps = request.lustre_configuration.and_then(|lustre| lustre.skip_final_backup);
    if keeps == Some(false) && !fs.request.lustre().deployment_type().starts_with("PERSISTENT") {
        return Err(ApiError::client(
            "BadRequest",
            "A final backup is not supported by scratch file systems.",
        ));
    }
    let already = fs.lifecycle == Lifecycle::Deleting;
    fs.lifecycle = Lifecycle::Deleting;
    if !already {
        let at = call.after(Delay::FileSystemGone, &id);
        call.schedule(at, Event::FileSystemGone(id.clone()));
    }
    Ok(json!({"FileSystemId": id, "Lifecycle": "DELETING", "LustreResponse": {}}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagRequest {
    #[serde(rename = "ResourceARN")]
    resource_arn: String,
    #[serde(rename = "Tags")]
    tags: Vec<Tag>,
}

/// `TagResource`.
pub fn tag(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: TagRequest = decode_json(request)?;
    let id = id_of(call, &request.resource_arn)?;
    let mut all = call.tags(Kind::FileSystem, &id).clone();
    all.extend(request.tags.into_iter().map(|tag| (tag.key, tag.value)));
    check_tags(&all)?;
    if let Some(tags) = call.account.ledger.tags_mut(Kind::FileSystem, &call.region.name, &id) {
        *tags = all;
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTagsRequest {
    #[serde(rename = "ResourceARN")]
    resource_arn: String,
    #[serde(rename = "MaxResults")]
    _max_results: Option<u32>,
    #[serde(rename = "NextToken")]
    _next_token: Option<String>,
}

/// `ListTagsForResource`.
pub fn list_tags(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: ListTagsRequest = decode_json(request)?;
    let id = id_of(call, &request.resource_arn)?;
    let tags: &Tags = call.tags(Kind::FileSystem, &id);
    let rows: Vec<Value> =
        tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    Ok(json!({"Tags": rows}))
}

fn id_of(call: &Call<'_>, resource: &str) -> Result<String, ApiError> {
    let found = call.region.fsx.file_systems.keys().find(|id| arn(call, id) == resource);
    found.cloned().ok_or_else(|| {
        ApiError::client("ResourceNotFound", format!("The resource '{resource}' does not exist."))
            .field("ResourceARN", resource)
    })
}

/// What happens to file systems by themselves.
pub fn handle_event(call: &mut Call<'_>, event: &Event) {
    match event {
        Event::FileSystemSettled(id) => settle(call, id),
        Event::FileSystemGone(id) => remove(call, id),
        Event::InstanceRunning(_)
        | Event::AgentOnline(_)
        | Event::InstanceTerminated(_)
        | Event::InstanceForgotten(_)
        | Event::CommandDelivered(..)
        | Event::CommandExpired(..) => {}
    }
}

fn settle(call: &mut Call<'_>, id: &str) {
    let Some(fs) = call.region.fsx.file_systems.get_mut(id) else {
        return;
    };
    if fs.lifecycle != Lifecycle::Creating {
        return;
    }
    fs.failure = fs.fate.take();
    fs.lifecycle = if fs.failure.is_some() { Lifecycle::Failed } else { Lifecycle::Available };
}

/// Turns a file system FAILED at once, whatever it was. `false` when unknown.
pub fn fail(call: &mut Call<'_>, id: &str, message: &str) -> bool {
    let Some(fs) = call.region.fsx.file_systems.get_mut(id) else {
        return false;
    };
    fs.failure = Some(message.to_owned());
    fs.lifecycle = Lifecycle::Failed;
    true
}

fn remove(call: &mut Call<'_>, id: &str) {
    let Some(fs) = call.region.fsx.file_systems.remove(id) else {
        return;
    };
    for interface in &fs.interfaces {
        remove_interface(call, interface);
    }
    call.gone(Kind::FileSystem, id);
    let path = call.engine.state_dir.join("fsx").join(&call.account.id).join(id);
    call.effects.push(Effect::Discard { path });
}
