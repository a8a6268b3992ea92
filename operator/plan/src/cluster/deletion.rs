//! Giving everything back, in the order AWS demands: jobs' machines, then what they hung on, then
//! groups, and the finalizer only after two looks that found nothing.

use hpc_crds::{DeletionPolicy, Intent, IntentState};

use crate::cloud::{GroupId, Peer, Rule, Tags};
use crate::intents::{self, Cause, Payload, Proposal};
use crate::names::{HEAD_INTERFACE, RETAINED, ROLE, storage_role};

use super::gate::deleting;
use super::observed::{FileSystem, Group, InstanceState, Lifecycle, Volume, VolumeState};
use super::part::{Part, View, attempt_of};
use super::step::{Resource, Step};
use super::storage;
use super::wait::Wait;

/// Name of the second look among the intents.
const FINALIZER: &str = "finalizer";

/// What to do for an object that goes.
pub(super) fn deletion(view: &View<'_>) -> Part {
    let parts = [open_intents(view), instances(view)];
    let first = merge(parts);
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
    let groups = groups(view);
    if is_clean(&groups) {
        last_looks(view)
    } else {
        groups.and_forget_look(view)
    }
}

fn merge(parts: impl IntoIterator<Item = Part>) -> Part {
    parts.into_iter().fold(
        Part::new(deleting("Everything is being given back")),
        Part::and,
    )
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

/// Nothing may be launched any more, and what may have been must have had time to be seen.
fn open_intents(view: &View<'_>) -> Part {
    let intents = view.observed.object.status.intents.iter();
    merge(
        intents
            .filter(|intent| intent.thing != FINALIZER)
            .map(|intent| match intent.state {
                IntentState::Open => Part::storing(
                    intents::abandon(
                        intent,
                        Cause::Deleting,
                        "the object is being deleted",
                        view.now,
                    ),
                    deleting("Open launches are being called off"),
                ),
                IntentState::Acted if !is_seen(view, intent) => look_up(view, intent),
                IntentState::Abandoned if Cause::read(intent).0 == Some(Cause::Deleting) => {
                    look_up(view, intent)
                }
                IntentState::Acted | IntentState::Settled | IntentState::Abandoned => clean(),
            }),
    )
}

fn clean() -> Part {
    Part::new(deleting(""))
}

fn look_up(view: &View<'_>, intent: &Intent) -> Part {
    if view.since(intent) > view.desired.settings.visibility_window {
        return clean();
    }
    let wait = Wait::LookUp {
        thing: intent.thing.clone(),
    };
    Part {
        waits: vec![wait],
        ..clean()
    }
}

/// Whether any resource an intent made is in the observation.
fn is_seen(view: &View<'_>, intent: &Intent) -> bool {
    let observed = view.observed;
    let ids = observed.instances.iter().map(|found| found.id.as_str());
    let ids = ids.chain(observed.volumes.iter().map(|found| found.id.as_str()));
    let ids = ids.chain(observed.interfaces.iter().map(|found| found.id.as_str()));
    let mut ids = ids.chain(observed.file_systems.iter().map(|found| found.id.as_str()));
    ids.any(|id| intent.resource_ids.iter().any(|made| made == id))
}

fn instances(view: &View<'_>) -> Part {
    let live = view
        .observed
        .instances
        .iter()
        .filter(|found| found.state.is_live());
    let live: Vec<_> = live.map(|found| found.id.clone()).collect();
    let going = view.observed.instances.iter();
    let going = going
        .filter(|found| found.state == InstanceState::ShuttingDown)
        .count();
    let mut part = clean();
    if !live.is_empty() {
        let because = "the cluster is being deleted".to_owned();
        part.waits.push(Wait::Terminating { count: live.len() });
        part.steps.push(Step::Terminate {
            instances: live,
            because,
        });
    } else if going > 0 {
        part.waits.push(Wait::Terminating { count: going });
    }
    part
}

fn file_systems(view: &View<'_>) -> Part {
    merge(
        view.observed
            .file_systems
            .iter()
            .map(|found| match found.lifecycle {
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
                    Part {
                        steps: vec![step],
                        ..gone(&found.id)
                    }
                }
            }),
    )
}

fn gone(what: &impl ToString) -> Part {
    Part {
        waits: vec![Wait::Gone {
            what: what.to_string(),
        }],
        ..clean()
    }
}

/// Whether a file system outlives the cluster. One the spec no longer names is kept: nobody said
/// that its data may go.
fn keeps(view: &View<'_>, found: &FileSystem) -> bool {
    let mut storages = view.desired.cluster.storages.iter();
    let role = found.tags.get(ROLE);
    let named = storages.find(|storage| Some(&storage_role(&storage.name)) == role);
    let Some(storage) = named else { return true };
    let intent = view.intent(&storage::thing(&storage.name));
    let given_up = intent.is_some_and(|intent| {
        intent.state == IntentState::Abandoned && intent.attempt == attempt_of(&found.tags)
    });
    let empty = given_up && found.lifecycle == Lifecycle::Failed;
    storage.policy == DeletionPolicy::Retain && !empty
}

fn retain(tags: &Tags, resource: Resource) -> Part {
    if tags.contains_key(RETAINED) {
        return clean();
    }
    let tags = [(RETAINED.to_owned(), "true".to_owned())].into();
    let waits = vec![Wait::Gone {
        what: format!("{resource} (it is being marked as retained)"),
    }];
    Part {
        steps: vec![Step::TagRetained { resource, tags }],
        waits,
        ..clean()
    }
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
    let step = Step::Delete {
        resource: Resource::Volume(found.id.clone()),
        because,
    };
    Part {
        steps: vec![step],
        ..gone(&found.id)
    }
}

fn interface(view: &View<'_>) -> Part {
    let ours = view.observed.interfaces.iter();
    let ours = ours.filter(|found| {
        found
            .tags
            .get(ROLE)
            .is_some_and(|role| role == HEAD_INTERFACE)
    });
    merge(ours.map(|found| {
        if found.in_use {
            return gone(&found.id);
        }
        delete(Resource::Interface(found.id.clone()))
    }))
}

fn delete(resource: Resource) -> Part {
    let waits = vec![Wait::Gone {
        what: resource.to_string(),
    }];
    let because = "the cluster is being deleted".to_owned();
    Part {
        steps: vec![Step::Delete { resource, because }],
        waits,
        ..clean()
    }
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
    if view.observed.parameter_exists {
        delete(Resource::Parameter(view.desired.owner.parameter()))
    } else {
        clean()
    }
}

/// Groups go last, and first the rules by which they hold one another. A retained file system
/// keeps its own group.
fn groups(view: &View<'_>) -> Part {
    let (kept, ours): (Vec<_>, Vec<_>) = view
        .observed
        .groups
        .iter()
        .partition(|group| holds_retained(view, group));
    let going: Vec<_> = ours.iter().map(|group| &group.id).collect();
    let revokes = view
        .observed
        .groups
        .iter()
        .flat_map(|group| revoke(group, &going));
    let revokes: Vec<_> = revokes.collect();
    if !revokes.is_empty() {
        let waits = vec![Wait::Gone {
            what: "rules between security groups".to_owned(),
        }];
        return Part {
            steps: revokes,
            waits,
            ..clean()
        };
    }
    let marks = kept
        .iter()
        .map(|group| retain(&group.tags, Resource::Group(group.id.clone())));
    merge(
        marks.chain(
            ours.iter()
                .map(|group| delete(Resource::Group(group.id.clone()))),
        ),
    )
}

fn holds_retained(view: &View<'_>, group: &Group) -> bool {
    let role = group.tags.get(ROLE);
    view.observed
        .file_systems
        .iter()
        .any(|found| found.tags.get(ROLE) == role)
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
    steps
        .map(|rules| Step::Revoke {
            group: group.id.clone(),
            rules,
        })
        .collect()
}

/// One clean look is stored; a second one, later, lets the object go.
fn last_looks(view: &View<'_>) -> Part {
    let gap = view.desired.settings.finalizer_gap;
    match view.intent(FINALIZER) {
        None => {
            let proposal = Proposal {
                owner: &view.desired.owner,
                thing: FINALIZER,
                attempt: 1,
                body_hash: intents::hash(&FINALIZER),
                payload: Payload::default(),
            };
            let verdict = deleting("Nothing is left; a second look follows");
            let wait = Wait::SecondLook {
                seconds: gap.as_secs(),
            };
            Part {
                waits: vec![wait],
                ..Part::storing(proposal.open(view.now), verdict)
            }
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
        Some(_) => Part {
            steps: vec![Step::RemoveFinalizer],
            ..Part::new(deleting("Nothing is left"))
        },
    }
}
