//! Time in a world: what was made becomes visible, what is coming comes, what is going goes.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{InstanceState, Lifecycle, VolumeState, WorstNode};
use crate::names::HEAD;

use super::create::take;
use super::scheduler::schedule;
use super::{FOREVER, FileServer, Machine, Told, World};

/// Everything one step further.
pub(super) fn tick(world: &mut World) {
    shown(world);
    capacity(world);
    small(world);
    file_systems(world);
    machines(world);
    if head_is_ready(world) {
        schedule(world);
    }
    report(world);
}

fn shown(world: &mut World) {
    let hidden = (world.groups.values_mut().map(|found| &mut found.hidden))
        .chain(world.placement_groups.values_mut().map(|found| &mut found.hidden))
        .chain(world.interfaces.values_mut().map(|found| &mut found.hidden))
        .chain(world.volumes.values_mut().map(|found| &mut found.hidden))
        .chain(world.instances.values_mut().map(|found| &mut found.hidden))
        .chain(world.file_systems.values_mut().map(|found| &mut found.hidden));
    hidden.for_each(|left| *left = left.saturating_sub(1));
}

fn capacity(world: &mut World) {
    let types = &mut world.fate.without_capacity;
    for left in types.values_mut().filter(|left| **left != FOREVER) {
        *left = left.saturating_sub(1);
    }
    types.retain(|_, left| *left > 0);
}

fn small(world: &mut World) {
    world.document = world.document.map(|left| left.saturating_sub(1));
    for pool in world.placement_groups.values_mut() {
        pool.coming = pool.coming.saturating_sub(1);
        pool.going = pool.going.map(|left| left.saturating_sub(1));
    }
    world.placement_groups.retain(|_, pool| pool.going != Some(0));
    for vault in world.volumes.values_mut() {
        vault.left = vault.left.saturating_sub(1);
        if vault.state == VolumeState::Creating && vault.left == 0 {
            vault.state = VolumeState::Available;
        }
    }
    world.volumes.retain(|_, vault| vault.state != VolumeState::Deleting || vault.left > 0);
}

fn file_systems(world: &mut World) {
    for found in world.file_systems.values_mut() {
        found.left = found.left.saturating_sub(1);
        if found.lifecycle == Lifecycle::Creating && found.left == 0 {
            born(found, take(&mut world.fate.failing_file_systems));
        }
    }
    world.file_systems.retain(|_, found| found.lifecycle != Lifecycle::Deleting || found.left > 0);
}

fn born(found: &mut FileServer, fails: bool) {
    if fails {
        found.lifecycle = Lifecycle::Failed;
        found.failure = Some("There is no capacity in this zone".to_owned());
    } else {
        found.lifecycle = Lifecycle::Available;
        found.ever_available = true;
    }
}

fn machines(world: &mut World) {
    let ids: Vec<_> = world.instances.keys().cloned().collect();
    for id in ids {
        let attached = world.volumes.values().any(|vault| vault.user.as_ref() == Some(&id));
        let agent = world.agent_ticks();
        let (boot, ready) = (world.catalog.pace.boot, head_is_ready(world));
        let Some(machine) = world.instances.get_mut(&id) else {
            continue;
        };
        machine.left = machine.left.saturating_sub(1);
        match machine.state {
            InstanceState::Pending if machine.left == 0 => arrive(machine),
            InstanceState::Running => {
                machine.up = machine.up.saturating_add(1).min(agent);
                let may_boot = if machine.role() == HEAD { attached } else { ready };
                machine.booted = machine.booted.saturating_add(u8::from(may_boot)).min(boot);
            }
            InstanceState::ShuttingDown if machine.left == 0 => {
                machine.enter(InstanceState::Terminated, 0);
            }
            InstanceState::Pending
            | InstanceState::ShuttingDown
            | InstanceState::Terminated
            | InstanceState::Stopped => {}
        }
        if machine.is_gone() {
            world.release(&id);
        }
    }
}

fn arrive(machine: &mut Machine) {
    if machine.doomed {
        machine.state_reason = Some("Server.InsufficientInstanceCapacity".to_owned());
        machine.enter(InstanceState::Terminated, 0);
    } else {
        machine.enter(InstanceState::Running, 0);
    }
}

impl World {
    /// Ticks from running to an online agent.
    pub(super) fn agent_ticks(&self) -> u8 {
        self.catalog.pace.agent.saturating_add(self.fate.slow_agent)
    }

    /// Whether a node has come up and lives.
    pub(super) fn has_come_up(&self, node: &Machine) -> bool {
        self.has_booted(node) && !node.broken
    }

    /// Whether the boot of an instance is over.
    pub(super) fn has_booted(&self, machine: &Machine) -> bool {
        machine.state == InstanceState::Running && machine.booted >= self.catalog.pace.boot
    }
}

fn head_is_ready(world: &World) -> bool {
    world
        .instances
        .values()
        .any(|found| found.role() == HEAD && !found.broken && world.has_booted(found))
}

/// A head that boots or runs writes what it knows; a dead one's last words stay.
fn report(world: &mut World) {
    let heads = world.instances.iter().filter(|(_, found)| found.role() == HEAD && !found.mute);
    let mut heads =
        heads.filter(|(_, found)| found.state == InstanceState::Running && found.booted > 0);
    let Some((id, head)) = heads.next() else {
        return;
    };
    let state = match (world.has_booted(head), head.broken) {
        (true, true) => "Failed",
        (true, false) => "Ready",
        (false, _) => "Booting",
    };
    let mut told = Told {
        head: id.clone(),
        state: state.to_owned(),
        ready: BTreeMap::new(),
        left: BTreeMap::new(),
        failed: vec![],
        demand: vec![],
        queues: vec![],
    };
    if state == "Ready" {
        told.ready = nodes(world, |node| !node.away);
        told.left = nodes(world, |node| node.away);
        told.failed = failed(world);
        told.demand = world.scheduler.demand();
        told.queues.clone_from(&world.scheduler.numbers);
    }
    world.parameter = Some(told);
}

fn nodes(
    world: &World,
    are: impl Fn(&Machine) -> bool,
) -> BTreeMap<(String, String, i32), BTreeSet<i32>> {
    let mut found: BTreeMap<_, BTreeSet<i32>> = BTreeMap::new();
    for node in world.instances.values().filter(|node| world.has_come_up(node) && are(node)) {
        if let Some(slot) = node.slot() {
            found.entry(node.launch()).or_default().insert(slot);
        }
    }
    found
}

fn failed(world: &World) -> Vec<WorstNode> {
    let nodes = world.instances.iter().filter(|(_, node)| node.broken && world.has_booted(node));
    let failed = nodes.filter_map(|(id, node)| {
        Some(WorstNode {
            name: format!("{}-{}", node.launch().0, node.slot()?),
            instance_id: id.0.clone(),
            step: "storage".to_owned(),
            exit: 32,
            message: "mount.lustre: no such device".to_owned(),
        })
    });
    failed.collect()
}
