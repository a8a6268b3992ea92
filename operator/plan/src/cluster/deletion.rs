//! Giving everything back, in the order AWS demands: jobs' machines, then what they hung on, then
//! groups, and the finalizer only after two looks that found nothing.

use hpc_crds::{DeletionPolicy, IntentState};

use crate::cloud::{GroupId, Peer, Rule, Tags};
use crate::intents::{self, Cause};
use crate::names::{HEAD_INTERFACE, RETAINED, ROLE, storage_role};

use super::desired::Storage;
use super::gate::{LOST_STATUS, deleting, mark};
use super::observed::{FileSystem, Group, InstanceState, Lifecycle, Volume, VolumeState};
use super::part::{Part, View};
use super::step::{Resource, Step};
use super::storage;
use super::wait::Wait;

/// Name of the second look among the intents.
const FINALIZER: &str = "finalizer";
/// Name, among the intents, of the note when the deletion began.
const DELETION: &str = "deletion";

/// What to do for an object that goes.
pub(super) fn deletion(view: &View<'_>) -> Part {
    let mut part = stages(view);
    if view.intent(DELETION).is_none() {
        part.intents.push(mark(view, DELETION));
    }
    part
}

fn stages(view: &View<'_>) -> Part {
    let first = merge([open_intents(view), instances(view)]);
    if !is_clean(&first) {
        return first.and_forget_look(view);
    }
    let things = merge([
        file_systems(view),
        volumes(view),
        interface(view),
        placement_groups(view),
        parameter(view),
    ]);
    if !is_clean(&things) {
        return things.and_forget_look(view);
    }
    let groups = merge([groups(view), unseen(view)]);
    if is_clean(&groups) { last_looks(view) } else { groups.and_forget_look(view) }
}

/// What was made just before the deletion began may not be shown yet, and what has a name instead
/// of a token left no intent: nothing is believed gone until all of it would show.
fn unseen(view: &View<'_>) -> Part {
    let window = view.desired.settings.visibility_window;
    match view.intent(DELETION) {
        Some(began) if view.since(began) > window => clean(),
        Some(_) | None => Part { waits: vec![Wait::Hidden], ..clean() },
    }
}

fn merge(parts: impl IntoIterator<Item = Part>) -> Part {
    parts.into_iter().fold(Part::new(deleting("Everything is being given back")), Part::and)
}

fn is_clean(part: &Part) -> bool {
    part.steps.is_empty() && part.waits.is_empty() && part.intents.is_empty()
}

impl Part {
    /// Something is left, so an earlier clean look does not count.
    fn and_forget_look(mut self, view: &View<'_>) -> Self {
        if view.intent(FINALIZER).is_some() {
            self.forget.push(FINALIZER.to_owned());
        }
        let waits: Vec<_> = self.waits.iter().map(ToString::to_string).take(3).collect();
        if !waits.is_empty() {
            self.verdict.message = format!("Waits for: {}", waits.join("; "));
        }
        self
    }
}

/// Nothing may be launched any more. What was launched already shows in time.
fn open_intents(view: &View<'_>) -> Part {
    let intents = view.observed.object.status.intents.iter();
    let open = intents.filter(|intent| {
        let note = [FINALIZER, DELETION, LOST_STATUS].contains(&intent.thing.as_str());
        intents::is_known(intent) && intent.state == IntentState::Open && !note
    });
    merge(open.map(|intent| {
        let detail = "the object is being deleted";
        let called_off = intents::abandon(intent, Cause::Deleting, detail, view.now);
        Part::storing(called_off, deleting("Open launches are being called off"))
    }))
}

fn clean() -> Part {
    Part::new(deleting(""))
}

fn instances(view: &View<'_>) -> Part {
    let live = view.observed.instances.iter().filter(|found| found.state.is_live());
    let live: Vec<_> = live.map(|found| found.id.clone()).collect();
    let going = view.observed.instances.iter();
    let going = going.filter(|found| found.state == InstanceState::ShuttingDown).count();
    let mut part = clean();
    if !live.is_empty() {
        let because = "the cluster is being deleted".to_owned();
        part.waits.push(Wait::Terminating { count: live.len() });
        part.steps.push(Step::Terminate { instances: live, because });
    } else if going > 0 {
        part.waits.push(Wait::Terminating { count: going });
    }
    part
}

fn file_systems(view: &View<'_>) -> Part {
    merge(view.observed.file_systems.iter().map(|found| match found.lifecycle {
        Lifecycle::Deleting => gone(&found.id),
        _ if keeps(view, found) => retain(
            &found.tags,
            Resource::FileSystem(found.id.clone(), crate::cloud::Token(String::new())),
        ),
        // Neither can be deleted nor used yet: FSx takes the call once it has settled.
        Lifecycle::Creating => gone(&found.id),
        Lifecycle::Available
        | Lifecycle::Failed
        | Lifecycle::Updating
        | Lifecycle::Misconfigured => {
            let step = storage::delete(&found.id, "the cluster is being deleted");
            Part { steps: vec![step], ..gone(&found.id) }
        }
    }))
}

fn gone(what: &impl ToString) -> Part {
    Part { waits: vec![Wait::Gone { what: what.to_string() }], ..clean() }
}

/// Whether a file system outlives the cluster. One the spec no longer names is kept: nobody said
/// that its data may go.
fn keeps(view: &View<'_>, found: &FileSystem) -> bool {
    let mut storages = view.desired.cluster.storages.iter();
    let role = found.tags.get(ROLE);
    let named = storages.find(|storage| Some(&storage_role(&storage.name)) == role);
    let Some(storage) = named else { return true };
    storage.policy == DeletionPolicy::Retain && !is_empty(view, storage, found)
}

fn is_empty(view: &View<'_>, storage: &Storage, found: &FileSystem) -> bool {
    let unfit = matches!(found.lifecycle, Lifecycle::Failed | Lifecycle::Misconfigured);
    unfit && storage::proof_of_emptiness(view, storage, found).is_some()
}

fn retain(tags: &Tags, resource: Resource) -> Part {
    if tags.contains_key(RETAINED) {
        return clean();
    }
    let tags = [(RETAINED.to_owned(), "true".to_owned())].into();
    let waits = vec![Wait::Marked { what: resource.to_string() }];
    Part { steps: vec![Step::TagRetained { resource, tags }], waits, ..clean() }
}

fn volumes(view: &View<'_>) -> Part {
    let keep = view.desired.cluster.state_policy == DeletionPolicy::Retain;
    merge(view.observed.volumes.iter().map(|found| match found.state {
        VolumeState::Deleting => gone(&found.id),
        _ if keep => retain(&found.tags, Resource::Volume(found.id.clone())),
        VolumeState::Available | VolumeState::Error => delete_volume(found),
        VolumeState::Creating | VolumeState::InUse => gone(&found.id),
    }))
}

fn delete_volume(found: &Volume) -> Part {
    let because = "the cluster is being deleted".to_owned();
    let step = Step::Delete { resource: Resource::Volume(found.id.clone()), because };
    Part { steps: vec![step], ..gone(&found.id) }
}

fn interface(view: &View<'_>) -> Part {
    let ours = view.observed.interfaces.iter();
    let ours = ours.filter(|found| found.tags.get(ROLE).is_some_and(|role| role == HEAD_INTERFACE));
    merge(ours.map(|found| {
        if found.in_use {
            return gone(&found.id);
        }
        delete(Resource::Interface(found.id.clone()))
    }))
}

fn delete(resource: Resource) -> Part {
    let waits = vec![Wait::Gone { what: resource.to_string() }];
    let because = "the cluster is being deleted".to_owned();
    Part { steps: vec![Step::Delete { resource, because }], waits, ..clean() }
}

fn placement_groups(view: &View<'_>) -> Part {
    merge(view.observed.placement_groups.iter().map(|found| {
        if found.deleting {
            return gone(&found.name);
        }
        delete(Resource::PlacementGroup(found.name.clone()))
    }))
}

fn parameter(view: &View<'_>) -> Part {
    let owner = &view.desired.owner;
    let report = view.observed.parameter_exists.then(|| owner.parameter());
    let notes = view.observed.notes.keys().cloned();
    merge(report.into_iter().chain(notes).map(|name| delete(Resource::Parameter(name))))
}

/// Groups go last, and first the rules by which they hold one another. A retained file system
/// keeps its own group.
fn groups(view: &View<'_>) -> Part {
    let (kept, ours): (Vec<_>, Vec<_>) =
        view.observed.groups.iter().partition(|group| holds_retained(view, group));
    let going: Vec<_> = ours.iter().map(|group| &group.id).collect();
    let revokes = view.observed.groups.iter().flat_map(|group| revoke(group, &going));
    let revokes: Vec<_> = revokes.collect();
    if !revokes.is_empty() {
        let waits = vec![Wait::Gone { what: "rules between security groups".to_owned() }];
        return Part { steps: revokes, waits, ..clean() };
    }
    let marks = kept.iter().map(|group| retain(&group.tags, Resource::Group(group.id.clone())));
    merge(marks.chain(ours.iter().map(|group| delete(Resource::Group(group.id.clone())))))
}

fn holds_retained(view: &View<'_>, group: &Group) -> bool {
    let role = group.tags.get(ROLE);
    view.observed.file_systems.iter().any(|found| found.tags.get(ROLE) == role)
}

/// Rules of one group that name another group on its way out.
fn revoke(group: &Group, going: &[&GroupId]) -> Vec<Step> {
    let names_other = |rule: &&Rule| match &rule.peer {
        Peer::Group(other) => *other != group.id && going.contains(&other),
        Peer::Cidr(_) => false,
    };
    let (ins, outs): (Vec<_>, Vec<_>) = group
        .rules
        .iter()
        .filter(names_other)
        .cloned()
        .partition(|rule| rule.direction == crate::cloud::Direction::Ingress);
    let steps = [ins, outs].into_iter().filter(|rules| !rules.is_empty());
    steps.map(|rules| Step::Revoke { group: group.id.clone(), rules }).collect()
}

/// One clean look is stored; a second one, later, lets the object go.
fn last_looks(view: &View<'_>) -> Part {
    let gap = view.desired.settings.finalizer_gap;
    match view.intent(FINALIZER) {
        None => {
            let verdict = deleting("Nothing is left; a second look follows");
            let wait = Wait::SecondLook { seconds: gap.as_secs() };
            Part { waits: vec![wait], ..Part::storing(mark(view, FINALIZER), verdict) }
        }
        // Stored times are whole seconds, so a full second more makes the gap certain.
        Some(first) if view.since(first) < gap + std::time::Duration::from_secs(1) => {
            let left = gap.saturating_sub(view.since(first)).as_secs();
            let wait = Wait::SecondLook { seconds: left };
            Part {
                waits: vec![wait],
                ..Part::new(deleting("Nothing is left; a second look follows"))
            }
        }
        Some(_) => {
            Part { steps: vec![Step::RemoveFinalizer], ..Part::new(deleting("Nothing is left")) }
        }
    }
}
