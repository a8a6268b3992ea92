//! File systems. Data is never deleted implicitly: a FAILED one goes only when the status proves
//! that it was never AVAILABLE.

use hpc_crds::{Intent, IntentState, Reason};

use crate::cloud::{FileSystemId, Token};
use crate::intents::{Cause, Payload};
use crate::names::{MOUNTED, digest, storage_role};

use super::desired::Storage;
use super::making::{Absence, Making, give_up, settle};
use super::observed::{FileSystem, Lifecycle};
use super::part::{Part, Verdict, View, attempt_of};
use super::step::{Body, FileSystemBody, Resource, Step};
use super::wait::Wait;

/// All file systems of the cluster.
pub(super) fn storage(view: &View<'_>) -> Part {
    let parts = view.desired.cluster.storages.iter().map(|storage| one(view, storage));
    Part::all(parts, "All file systems are available")
}

/// Name of a file system among the intents.
pub(super) fn thing(storage: &str) -> String {
    format!("storage/{storage}")
}

/// The file system that counts: the one of the latest attempt that is not going away.
pub(super) fn current<'a>(view: &View<'a>, storage: &str) -> Option<&'a FileSystem> {
    view.file_systems(&storage_role(storage))
        .filter(|found| found.lifecycle != Lifecycle::Deleting)
        .max_by_key(|found| attempt_of(&found.tags))
}

fn one(view: &View<'_>, storage: &Storage) -> Part {
    let thing = thing(&storage.name);
    let Some(found) = current(view, &storage.name) else {
        return make(view, storage, &thing);
    };
    let message = format!("Storage {}: {} is {}", storage.name, found.id, found.lifecycle);
    match found.lifecycle {
        Lifecycle::Available | Lifecycle::Updating if found.mount_name.is_empty() => {
            Part::waiting(message, Wait::Visible { thing })
        }
        Lifecycle::Available | Lifecycle::Updating if !found.tags.contains_key(MOUNTED) => {
            Part::step(message, mark_mounted(&found.id))
        }
        Lifecycle::Available | Lifecycle::Updating => Part {
            intents: settle(view, &thing, attempt_of(&found.tags)).into_iter().collect(),
            ..Part::ready(message)
        },
        Lifecycle::Creating => Part::waiting(
            message,
            Wait::FileSystem { name: storage.name.clone(), lifecycle: found.lifecycle },
        ),
        Lifecycle::Failed | Lifecycle::Misconfigured => failed(view, storage, found),
        Lifecycle::Deleting => Part::pending(),
    }
}

/// From here on it may hold data, which is written down where the data is before anything mounts
/// it: a status that is lost or rolled back cannot make us forget it.
fn mark_mounted(id: &FileSystemId) -> Step {
    Step::TagRetained {
        resource: Resource::FileSystem(id.clone(), Token(String::new())),
        tags: [(MOUNTED.to_owned(), "true".to_owned())].into(),
    }
}

fn make(view: &View<'_>, storage: &Storage, thing: &str) -> Part {
    let role = storage_role(&storage.name);
    if held_data(view, storage) {
        let message = format!(
            "Storage {}: its file system is gone; it is not made again because it held data. \
             Create another cluster to start with an empty one",
            storage.name
        );
        return Part::new(Verdict::stalled(Reason::FileSystemFailed, message));
    }
    let going = view.file_systems(&role).any(|found| found.lifecycle == Lifecycle::Deleting);
    if going {
        let wait = Wait::FileSystemGone { name: storage.name.clone() };
        return Part::waiting(format!("Storage {}: the failed one goes", storage.name), wait);
    }
    let seen = view.file_systems(&role).map(|found| attempt_of(&found.tags)).max();
    let seen = seen.unwrap_or_default();
    let making = Making { seen, ..Making::new(thing, vec![Payload::default()], Absence::Unproven) };
    making.pursue(view, |_, attempt| body(view, storage, attempt))
}

fn held_data(view: &View<'_>, storage: &Storage) -> bool {
    let told = view.observed.object.status.storage.iter().find(|told| told.name == storage.name);
    told.is_some_and(|told| told.reached_available)
}

fn body(view: &View<'_>, storage: &Storage, attempt: i32) -> Body {
    let role = storage_role(&storage.name);
    Body::FileSystem(FileSystemBody {
        subnet: view.desired.cluster.head_subnet.clone(),
        groups: view.group(&role).map(|group| group.id.clone()).into_iter().collect(),
        deployment_type: storage.deployment_type.to_owned(),
        capacity_gib: storage.capacity_gib,
        per_unit_throughput: storage.per_unit_throughput,
        version: storage.version.clone(),
        tags: view.tags(&role, attempt),
    })
}

fn failed(view: &View<'_>, storage: &Storage, found: &FileSystem) -> Part {
    let words = found.failure.clone().unwrap_or_else(|| found.lifecycle.to_string());
    let message = format!("Storage {}: {} failed: {words}", storage.name, found.id);
    match proof_of_emptiness(view, storage, found) {
        None => Part::new(Verdict::stalled(
            Reason::FileSystemFailed,
            format!("{message}. It is kept because it may hold data; delete it by hand to go on"),
        )),
        Some(intent) if intent.state == IntentState::Abandoned => Part {
            steps: vec![delete(&found.id, "it failed before it was ever available")],
            ..Part::new(Verdict::refused(Reason::FileSystemFailed, message))
        },
        Some(intent) => give_up(view, intent, Cause::Failed, words),
    }
}

/// The intent that proves that this very file system was never AVAILABLE, if one does.
pub(super) fn proof_of_emptiness<'a>(
    view: &View<'a>,
    storage: &Storage,
    found: &FileSystem,
) -> Option<&'a Intent> {
    let intent = view.intent(&thing(&storage.name))?;
    let same = intent.attempt == attempt_of(&found.tags);
    let unsettled = match intent.state {
        IntentState::Open | IntentState::Acted | IntentState::Abandoned => true,
        IntentState::Settled => false,
    };
    let held = held_data(view, storage) || found.tags.contains_key(MOUNTED);
    (same && unsettled && !held).then_some(intent)
}

/// The deletion of a file system; its token makes a repeat harmless.
pub(super) fn delete(id: &FileSystemId, because: &str) -> Step {
    let token = Token(digest(&["delete", id.as_str()]));
    Step::Delete { resource: Resource::FileSystem(id.clone(), token), because: because.to_owned() }
}
