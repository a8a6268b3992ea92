//! The requests behind a head and a gang: interfaces, image, user data.

use std::collections::BTreeMap;

use crate::cloud::{InstanceType, Nic, NicKind};
use crate::intents::Payload;
use crate::names::{GANG, HEAD, HEAD_INTERFACE, NODES, STATE, queue_role, slot_tags};
use crate::node::{self, Boot, Launch, Mount, QueueNodes, Role};

use super::desired::Queue;
use super::fleets::Fleet;
use super::part::View;
use super::step::{Body, LaunchBody};
use super::storage;

/// Interfaces of one instance, the primary first.
///
/// A type with one card takes a single combined EFA interface: it can then have a public address
/// and spends one address per node. With several cards the first carries the address beside an
/// EFA without one, and each further card an EFA without one, up to the type's maximum. Drives on
/// counts *and* cards: some types have more cards than EFAs, some a first card without EFA.
pub fn nic_layout(kind: &InstanceType, efa: bool) -> Vec<Nic> {
    let primary = Nic { card: 0, device: 0, kind: NicKind::Interface };
    if !efa || kind.max_efa == 0 {
        return vec![primary];
    }
    let first = kind.cards.first();
    let efa_first = first.is_some_and(|card| card.efa);
    let room = first.is_some_and(|card| card.max_interfaces >= 2);
    let mut nics = match (efa_first, kind.cards.len() > 1 && room) {
        (false, _) => vec![primary],
        (true, false) => vec![Nic { kind: NicKind::Efa, ..primary }],
        (true, true) => vec![primary, Nic { card: 0, device: 1, kind: NicKind::EfaOnly }],
    };
    let left = usize::try_from(kind.max_efa).unwrap_or_default() - usize::from(efa_first);
    nics.extend(kind.cards.iter().skip(1).filter(|card| card.efa).take(left).map(|card| Nic {
        card: card.index,
        device: i32::from(card.max_interfaces > 1),
        kind: NicKind::EfaOnly,
    }));
    nics
}

/// The head: it takes the interface and the volume made before.
pub(super) fn head(view: &View<'_>, payload: &Payload, attempt: i32) -> Body {
    let cluster = &view.desired.cluster;
    Body::Launch(LaunchBody {
        count: 1,
        instance_type: payload.instance_type.clone(),
        image: image(view),
        subnet: cluster.head_subnet.clone(),
        groups: groups(view, HEAD),
        interface: view.interface(HEAD_INTERFACE).map(|found| found.id.clone()),
        nics: vec![],
        single_threaded: None,
        placement_group: None,
        profile: cluster.head_profile.clone(),
        key_name: cluster.key_name.clone(),
        user_data: node::user_data(&boot(view, Role::Head)),
        tags: view.tags(HEAD, attempt),
    })
}

/// A gang of nodes.
pub(super) fn gang(fleet: &Fleet<'_>, payload: &Payload, attempt: i32) -> Body {
    let (view, queue) = (fleet.view, fleet.queue);
    let cluster = &view.desired.cluster;
    let role = queue_role(&queue.name);
    let kind = view.observed.types.get(&payload.instance_type);
    let mut tags = view.tags(&role, attempt);
    tags.extend(slot_tags(&payload.slots));
    if !fleet.gang.is_empty() {
        tags.insert(GANG.to_owned(), fleet.gang.to_owned());
    }
    Body::Launch(LaunchBody {
        count: i32::try_from(payload.slots.len()).unwrap_or_default(),
        instance_type: payload.instance_type.clone(),
        image: image(view),
        subnet: payload.subnet.as_str().into(),
        groups: groups(view, NODES),
        interface: None,
        nics: kind.map(|kind| nic_layout(kind, queue.efa)).unwrap_or_default(),
        single_threaded: kind.and_then(|kind| single_threaded(kind, queue)),
        placement_group: queue.grouped.then(|| view.desired.owner.resource(&role)),
        profile: cluster.node_profile.clone(),
        key_name: cluster.key_name.clone(),
        user_data: node::user_data(&boot(
            view,
            Role::Compute(Launch {
                queue: queue.name.clone(),
                gang: fleet.gang.to_owned(),
                attempt,
                slots: payload.slots.clone(),
                multithreading: queue.multithreading,
                local_scratch: queue.local_scratch.clone(),
            }),
        )),
        tags,
    })
}

/// Cores to ask for with one thread each. A type that does not take the option has its other
/// threads switched off at boot.
fn single_threaded(kind: &InstanceType, queue: &Queue) -> Option<i32> {
    let asks = !queue.multithreading && kind.threads_settable && kind.cores < kind.vcpus;
    asks.then_some(kind.cores)
}

fn image(view: &View<'_>) -> String {
    view.observed.image.as_ref().map(|image| image.id.clone()).unwrap_or_default()
}

fn groups(view: &View<'_>, role: &str) -> Vec<crate::cloud::GroupId> {
    view.group(role).map(|group| group.id.clone()).into_iter().collect()
}

/// What a node must know to boot.
fn boot(view: &View<'_>, role: Role) -> Boot {
    let cluster = &view.desired.cluster;
    let head_ip = view.interface(HEAD_INTERFACE).map(|found| found.private_ip.clone());
    Boot {
        role,
        cluster_uid: view.desired.owner.uid.clone(),
        cluster_name: view.desired.owner.full_name(),
        region: cluster.region.clone(),
        head_ip: head_ip.unwrap_or_default(),
        state_volume: view.volumes(STATE).next().map(|volume| volume.id.0.clone()),
        storage: mounts(view),
        queues: cluster.queues.iter().map(|queue| nodes(&view.observed.types, queue)).collect(),
        image_family: cluster.image_family.clone(),
    }
}

fn mounts(view: &View<'_>) -> Vec<Mount> {
    let storages = view.desired.cluster.storages.iter();
    let found = storages.filter_map(|storage| {
        let found = storage::current(view, &storage.name)?;
        Some(Mount {
            name: storage.name.clone(),
            dns_name: found.dns_name.clone(),
            mount_name: found.mount_name.clone(),
            mount_path: storage.mount_path.clone(),
        })
    });
    found.collect()
}

/// The queue as the scheduler is told of it: the first type's numbers, equal for all its types.
fn nodes(types: &BTreeMap<String, InstanceType>, queue: &Queue) -> QueueNodes {
    let kind = queue.types.first().and_then(|name| types.get(name));
    QueueNodes {
        name: queue.name.clone(),
        standing: queue.nodes.clone(),
        most: queue.most,
        idle_seconds: queue.idle_timeout.as_secs(),
        cpus: kind.map_or(1, |kind| if queue.multithreading { kind.vcpus } else { kind.cores }),
        memory_mib: kind.map_or(1, |kind| kind.memory_mib * 95 / 100),
        efa: queue.efa,
    }
}
