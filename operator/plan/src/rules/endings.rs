//! What may end and what may not: the finalizer, resources of others, data, partial gangs.

use hpc_crds::{DeletionPolicy, Intent, IntentState};

use super::Case;
use crate::cloud::{FileSystemId, Tags};
use crate::cluster::{
    FileSystem, Goal, Instance, InstanceState, Lifecycle, Observed, Queue, Report, ReportedFleet,
    Resource, Step,
};
use crate::intents;
use crate::names::{
    ATTEMPT, GANG, HEAD, MOUNTED, RETAINED, ROLE, queue_role, slots_of, storage_role,
};

pub(super) fn the_finalizer_goes_last(case: Case<'_>) -> Vec<String> {
    if !case.plan.steps.contains(&Step::RemoveFinalizer) {
        return vec![];
    }
    let mut broken: Vec<_> = left(case.observed)
        .into_iter()
        .map(|id| format!("the finalizer goes, {id} is there"))
        .collect();
    if case.plan.steps.len() > 1 {
        broken.push("the finalizer goes beside other steps".to_owned());
    }
    if case.desired.goal != Goal::Absent {
        broken.push("the finalizer goes from an object that stays".to_owned());
    }
    let gap = case.desired.settings.finalizer_gap;
    let looked = case
        .intent("finalizer")
        .is_some_and(|look| look.state == IntentState::Open && intents::age(look, case.now) >= gap);
    if !looked {
        broken.push("the finalizer goes without an earlier look".to_owned());
    }
    let window = case.desired.settings.visibility_window;
    let waited =
        case.intent("deletion").is_some_and(|began| intents::age(began, case.now) >= window);
    if !waited {
        broken.push("the finalizer goes before all that was made would show".to_owned());
    }
    broken
}

/// Everything seen that is not to outlive the object.
fn left(observed: &Observed) -> Vec<String> {
    let stays = |tags: &Tags| tags.contains_key(RETAINED);
    let groups = observed.groups.iter().filter(|found| !stays(&found.tags));
    let volumes = observed.volumes.iter().filter(|found| !stays(&found.tags));
    let files = observed.file_systems.iter().filter(|found| !stays(&found.tags));
    let machines =
        observed.instances.iter().filter(|found| found.state != InstanceState::Terminated);
    groups
        .map(|found| found.id.to_string())
        .chain(volumes.map(|found| found.id.to_string()))
        .chain(files.map(|found| found.id.to_string()))
        .chain(machines.map(|found| found.id.to_string()))
        .chain(observed.interfaces.iter().map(|found| found.id.to_string()))
        .chain(observed.placement_groups.iter().map(|found| found.name.clone()))
        .chain(observed.parameter_exists.then(|| "the parameter".to_owned()))
        .chain(observed.notes.keys().cloned())
        .collect()
}

pub(super) fn only_ours_is_touched(case: Case<'_>) -> Vec<String> {
    let observed = case.observed;
    let known = |step: &Step| match step {
        Step::Terminate { instances, .. } => instances.iter().all(|id| {
            let found = observed.instances.iter().find(|found| found.id == *id);
            found.is_some_and(|found| case.is_ours(&found.tags))
        }),
        Step::Delete { resource, .. } | Step::TagRetained { resource, .. } => owned(case, resource),
        Step::Authorize { group, .. } | Step::Revoke { group, .. } => {
            owned(case, &Resource::Group(group.clone()))
        }
        Step::AttachVolume { volume, .. } => owned(case, &Resource::Volume(volume.clone())),
        Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::CreateGroup { .. }
        | Step::CreatePlacementGroup { .. }
        | Step::CreateDocument { .. }
        | Step::Create { .. } => true,
        Step::Answer { parameter, .. } => case.desired.owner.may_tell(parameter),
    };
    let foreign = case.plan.steps.iter().filter(|step| !known(step));
    foreign.map(|step| format!("not seen as ours: {step}")).collect()
}

fn owned(case: Case<'_>, resource: &Resource) -> bool {
    let observed = case.observed;
    let tags = match resource {
        Resource::Group(id) => {
            observed.groups.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::Interface(id) => {
            observed.interfaces.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::Volume(id) => {
            observed.volumes.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::FileSystem(id, _) => file_system(observed, id).map(|found| &found.tags),
        Resource::PlacementGroup(name) => {
            return observed.placement_groups.iter().any(|found| found.name == *name);
        }
        Resource::Parameter(name) => {
            return case.desired.owner.owns(name);
        }
    };
    tags.is_some_and(|tags| case.is_ours(tags))
}

fn file_system<'a>(observed: &'a Observed, id: &FileSystemId) -> Option<&'a FileSystem> {
    observed.file_systems.iter().find(|found| found.id == *id)
}

pub(super) fn data_is_kept(case: Case<'_>) -> Vec<String> {
    let deleted = case.plan.steps.iter().filter_map(|step| {
        let Step::Delete { resource, .. } = step else { return None };
        Some(resource)
    });
    let lost = deleted.filter(|resource| match resource {
        Resource::FileSystem(id, _) => !may_go(case, id),
        Resource::Volume(_) => {
            case.desired.goal != Goal::Absent
                || case.desired.cluster.state_policy != DeletionPolicy::Delete
        }
        Resource::Group(_)
        | Resource::PlacementGroup(_)
        | Resource::Interface(_)
        | Resource::Parameter(_) => false,
    });
    lost.map(|resource| format!("{resource} may hold data and is deleted")).collect()
}

/// Asked for, or FAILED and, as the status says, never AVAILABLE.
fn may_go(case: Case<'_>, id: &FileSystemId) -> bool {
    let Some(found) = file_system(case.observed, id) else {
        return false;
    };
    let mut storages = case.desired.cluster.storages.iter();
    let role = found.tags.get(ROLE);
    let wanted = storages.find(|storage| Some(&storage_role(&storage.name)) == role);
    let asked = case.desired.goal == Goal::Absent
        && wanted.is_some_and(|storage| storage.policy == DeletionPolicy::Delete);
    let name = wanted.map_or("", |storage| storage.name.as_str());
    let mut told = case.observed.object.status.storage.iter();
    let reached = told.any(|told| told.name == name && told.reached_available);
    let unfit = matches!(found.lifecycle, Lifecycle::Failed | Lifecycle::Misconfigured);
    let stored = case.intent(&format!("storage/{name}"));
    let unsettled = stored.is_some_and(|intent| intent.state != IntentState::Settled);
    let mounted = found.tags.contains_key(MOUNTED);
    asked || (unfit && !reached && !mounted && unsettled)
}

/// A gang that was given up goes; one that lost a member before it was whole is given up.
pub(super) fn no_partial_gang_is_kept(case: Case<'_>) -> Vec<String> {
    if case.is_stopped() || !case.observed.object.finalizer {
        return vec![];
    }
    let ended = case.terminated();
    let intents = case.observed.object.status.intents.iter().filter(|intent| is_gang(intent));
    let kept = intents.filter_map(|intent| {
        let nodes = case.observed.instances.iter();
        let gang: Vec<_> = nodes.filter(|node| is_of(node, intent)).collect();
        let live = gang.iter().filter(|node| node.state.is_live() && !ended.contains(&node.id));
        let live = live.count();
        let lost = gang.iter().any(|node| !node.state.is_live() && !is_dropped(case, node));
        let partial = lost && !is_outdated(case, intent);
        let broken = match intent.state {
            IntentState::Abandoned => !is_taken(case, intent),
            IntentState::Acted => partial && !is_given_up(case, intent),
            IntentState::Open | IntentState::Settled => false,
        };
        (live > 0 && broken).then_some((live, &intent.thing))
    });
    kept.map(|(live, thing)| format!("{live} nodes of the partial gang of {thing} are kept"))
        .collect()
}

/// A node that always runs and that the scheduler uses is asked to leave before it ends.
pub(super) fn nothing_in_use_is_taken(case: Case<'_>) -> Vec<String> {
    let Some(report) = report(case).filter(|_| case.desired.goal == Goal::Present) else {
        return vec![];
    };
    let ended = case.terminated();
    let nodes = case.observed.instances.iter().filter(|node| ended.contains(&node.id));
    let taken = nodes.filter(|node| {
        let stands = |queue: &Queue| node.tags.get(ROLE) == Some(&queue_role(&queue.name));
        let queue = case.desired.cluster.queues.iter().find(|queue| stands(queue));
        let is_told = |told: &[ReportedFleet]| {
            queue.is_some_and(|queue| told.iter().any(|told| is_of_launch(node, queue, told)))
        };
        is_told(&report.fleets) && !is_told(&report.left) && !may_end(case, node)
    });
    taken.map(|node| format!("{} is in use and ended", node.id)).collect()
}

fn is_of_launch(node: &Instance, queue: &Queue, told: &ReportedFleet) -> bool {
    let slot = slots_of(&node.tags).nth(node.launch_index);
    let attempt = node.tags.get(ATTEMPT).and_then(|attempt| attempt.parse::<i32>().ok());
    let here = slot.is_some_and(|slot| told.ready.contains(slot));
    told.queue == queue.name
        && told.gang.is_empty()
        && !node.tags.contains_key(GANG)
        && told.attempt == attempt.unwrap_or_default()
        && here
}

/// Of an attempt that was given up, or beside another that has its number.
fn may_end(case: Case<'_>, node: &Instance) -> bool {
    let slot = |node: &Instance| slots_of(&node.tags).nth(node.launch_index);
    let role = node.tags.get(ROLE);
    let mut others = case.observed.instances.iter().filter(|other| other.id != node.id);
    let doubled = others.any(|other| {
        other.state.is_live() && other.tags.get(ROLE) == role && slot(other) == slot(node)
    });
    let mut intents = case.observed.object.status.intents.iter();
    let given_up =
        intents.any(|intent| intent.state == IntentState::Abandoned && is_of(node, intent));
    doubled || given_up
}

/// What the head that lives says while it is up.
fn report(case: Case<'_>) -> Option<&Report> {
    let is_head = |found: &&Instance| found.tags.get(ROLE).is_some_and(|role| role == HEAD);
    let mut heads = case.observed.instances.iter().filter(|found| found.state.is_live());
    let head = heads.find(is_head)?;
    let report = case.observed.report.as_ref()?;
    (report.state == "Ready" && report.instance_id == head.id.0).then_some(report)
}

/// A refused attempt that had worked after all is taken back.
fn is_taken(case: Case<'_>, intent: &Intent) -> bool {
    let mut after = case.plan.status.status.intents.iter();
    after.any(|now| {
        let stands = matches!(now.state, IntentState::Acted | IntentState::Settled);
        now.thing == intent.thing && now.attempt == intent.attempt && stands
    })
}

fn is_given_up(case: Case<'_>, intent: &Intent) -> bool {
    let mut after = case.plan.status.status.intents.iter();
    after.any(|now| now.thing == intent.thing && now.state == IntentState::Abandoned)
}

/// A later attempt than the stored one is seen: the status was rolled back, and what it calls under
/// way is over.
fn is_outdated(case: Case<'_>, intent: &Intent) -> bool {
    let gang = case.observed.instances.iter().filter(|node| is_for(node, &intent.thing));
    let mut attempts = gang.filter_map(|node| node.tags.get(ATTEMPT)?.parse::<i32>().ok());
    attempts.any(|attempt| attempt > intent.attempt)
}

fn is_gang(intent: &Intent) -> bool {
    intent.version == intents::VERSION && intent.thing.starts_with("queue/")
}

/// Whether a node was launched for a thing: `queue/NAME`, or `queue/NAME/GANG`.
fn is_for(node: &Instance, thing: &str) -> bool {
    let role = node.tags.get(ROLE).map_or("", String::as_str).replacen("queue-", "queue/", 1);
    let place = node.tags.get(GANG).map_or_else(|| role.clone(), |gang| format!("{role}/{gang}"));
    place == thing
}

/// Whether the scheduler no longer wants a node of a job: then it may end alone.
fn is_dropped(case: Case<'_>, node: &Instance) -> bool {
    let Some((report, gang)) = report(case).zip(node.tags.get(GANG)) else { return false };
    let slot = slots_of(&node.tags).nth(node.launch_index);
    let mut asked = report.demand.iter().filter(|asked| asked.gang == *gang).peekable();
    let is_told = !report.cut || asked.peek().is_some();
    is_told && !slot.is_some_and(|slot| asked.any(|asked| asked.slots.contains(slot)))
}

fn is_of(node: &Instance, intent: &Intent) -> bool {
    is_for(node, &intent.thing)
        && node.tags.get(ATTEMPT).is_some_and(|attempt| *attempt == intent.attempt.to_string())
}
