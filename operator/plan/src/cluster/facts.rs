//! The part of the status that says what was observed: ids, counts, zones, what is retained.

use hpc_crds::{
    AwsStatus, HeadStatus, HpcClusterStatus, ImageStatus, IntentState, NodesStatus, QueueStatus,
    RetainedResource, StateVolumeStatus, StorageStatus, Time,
};

use crate::names::{HEAD, HEAD_INTERFACE, RETAINED, ROLE};
use crate::slots::Slots;

use super::desired::Goal;
use super::fleets::{self, Fleet};
use super::gate;
use super::growth;
use super::head::current_volume;
use super::observed::Lifecycle;
use super::part::{Parts, View};
use super::storage;

/// Everything but conditions and intents: what was observed.
pub(super) fn facts(view: &View<'_>, parts: &Parts) -> HpcClusterStatus {
    let mut status = view.observed.object.status.clone();
    status.observed_generation = view.desired.generation;
    if status.aws.is_none() && gate::blocking(view).next().is_none() {
        status.aws = view.observed.account.as_ref().map(|account| AwsStatus {
            account_id: account.id.clone(),
            partition: account.partition.clone(),
        });
    }
    if !view.observed.failures.is_empty() || view.desired.goal == Goal::Paused {
        return status;
    }
    if status.image.is_none() && view.desired.goal == Goal::Present {
        status.image = view
            .observed
            .image
            .as_ref()
            .map(|image| ImageStatus { id: image.id.clone(), name: image.name.clone() });
    }
    if parts.whole.is_none() || view.desired.goal == Goal::Absent {
        status.head = head(view);
        status.storage = storages(view);
        status.state_volume =
            current_volume(view).map(|volume| StateVolumeStatus { volume_id: volume.id.0.clone() });
        status.queues = queues(view);
        status.nodes = Some(nodes(&status.queues));
        status.retained = retained(view);
    }
    status
}

fn head(view: &View<'_>) -> Option<HeadStatus> {
    let interface = view.interface(HEAD_INTERFACE)?;
    let instance = view.instances(HEAD).find(|head| head.state.is_live());
    Some(HeadStatus {
        instance_id: instance.map(|head| head.id.0.clone()).unwrap_or_default(),
        private_ip: interface.private_ip.clone(),
        login_user: view.desired.cluster.users.first().map(|user| user.name.clone())?,
    })
}

fn storages(view: &View<'_>) -> Vec<StorageStatus> {
    let wanted = view.desired.cluster.storages.iter();
    wanted.map(|wanted| one_storage(view, &wanted.name)).collect()
}

fn one_storage(view: &View<'_>, name: &str) -> StorageStatus {
    let told = view.observed.object.status.storage.iter().find(|told| told.name == name);
    let reached = told.is_some_and(|told| told.reached_available);
    let Some(found) = storage::current(view, name) else {
        let told = told.cloned().unwrap_or_default();
        return StorageStatus { name: name.to_owned(), state: String::new(), ..told };
    };
    let available = matches!(found.lifecycle, Lifecycle::Available | Lifecycle::Updating);
    StorageStatus {
        name: name.to_owned(),
        file_system_id: found.id.0.clone(),
        mount_name: found.mount_name.clone(),
        state: found.lifecycle.to_string().to_uppercase(),
        reached_available: reached || available,
    }
}

fn queues(view: &View<'_>) -> Vec<QueueStatus> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let wanted = view.desired.cluster.queues.iter();
    let status = wanted.map(|queue| {
        let fleets: Vec<_> = fleets::every(view, queue).collect();
        let desired = fleets.iter().map(|fleet| fleet.wanted.as_ref().map_or(0, Slots::len)).sum();
        let told = view.observed.object.status.queues.iter().find(|told| told.name == queue.name);
        QueueStatus {
            name: queue.name.clone(),
            zone: fleets::zone(view, queue).unwrap_or_default().to_owned(),
            desired: count(desired),
            ready: count(fleets.iter().map(Fleet::ready).sum()),
            last_capacity_error: told.and_then(|told| told.last_capacity_error.clone()),
            next_try: next_try(view, &fleets::thing(&queue.name, ""))
                .or_else(|| growth::next_try(view, queue)),
        }
    });
    status.collect()
}

/// When a given-up launch is tried again.
fn next_try(view: &View<'_>, thing: &str) -> Option<Time> {
    let intent = view.intent(thing).filter(|intent| intent.state == IntentState::Abandoned)?;
    view.next_try(intent)
}

fn nodes(queues: &[QueueStatus]) -> NodesStatus {
    let sum = |of: fn(&QueueStatus) -> i32| queues.iter().map(of).sum();
    NodesStatus::new(sum(|queue| queue.ready), sum(|queue| queue.desired))
}

fn retained(view: &View<'_>) -> Vec<RetainedResource> {
    let name = |tags: &crate::cloud::Tags| tags.get(ROLE).cloned().unwrap_or_default();
    let observed = view.observed;
    let volumes = observed.volumes.iter().filter(|found| found.tags.contains_key(RETAINED));
    let volumes = volumes.map(|found| ("Volume", found.id.0.clone(), name(&found.tags)));
    let files = observed.file_systems.iter().filter(|found| found.tags.contains_key(RETAINED));
    let files = files.map(|found| ("FileSystem", found.id.0.clone(), name(&found.tags)));
    let groups = observed.groups.iter().filter(|found| found.tags.contains_key(RETAINED));
    let groups = groups.map(|found| ("SecurityGroup", found.id.0.clone(), name(&found.tags)));
    let all = volumes.chain(files).chain(groups);
    all.map(|(kind, id, name)| RetainedResource { kind: kind.to_owned(), id, name }).collect()
}
