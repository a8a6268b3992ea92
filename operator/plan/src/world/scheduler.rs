//! The scheduler of a world, as far as its demand goes: jobs want nodes, resumed nodes belong to a
//! gang, what cannot be had is powered down and asked for again under another name.
//!
//! What it keeps lies on the state volume, so it outlives the head.

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::Time;
use jiff::Timestamp;
use serde::Deserialize;

use crate::cluster::{Demand, Desired, Numbers, Queue, Step};
use crate::names::{GANG, HEAD, queue_role};
use crate::slots::Slots;

use super::{Machine, World};

/// A job that runs until somebody ends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Its queue.
    pub queue: String,
    /// The nodes it was given.
    pub slots: Slots,
}

/// Nodes resumed together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gang {
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: String,
    /// Its nodes, and how each fares.
    pub nodes: BTreeMap<i32, Power>,
}

/// How a resumed node fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    /// It has so many ticks left to come up.
    Coming(u8),
    /// It has come up.
    Up,
}

/// Ticks a node has to come up: longer than the operator waits for it.
const RESUME_TIMEOUT: u8 = 40;

/// Jobs, and what was resumed for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scheduler {
    /// Jobs that are not over.
    pub jobs: Vec<Job>,
    /// Nodes that are powered up or on their way.
    pub gangs: Vec<Gang>,
    /// Resumptions so far.
    pub turns: u32,
    /// The numbers of the queues: those the head booted with until it is told others.
    pub numbers: Vec<Numbers>,
    /// Before which time nothing more is asked for.
    held: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    answers: Vec<Answer>,
    queues: Vec<Numbers>,
    leave: Vec<Leave>,
}

#[derive(Deserialize)]
struct Leave {
    queue: String,
    gang: String,
    attempt: i32,
    slots: Slots,
    hard: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    gang: String,
    next_try: Option<Time>,
}

impl Scheduler {
    /// A scheduler with these jobs waiting.
    pub fn with(jobs: Vec<Job>) -> Self {
        Self { jobs, ..Self::default() }
    }

    /// A head boots with the numbers of that moment.
    pub(super) fn boot_with(&mut self, desired: &Desired, step: &Step) {
        if matches!(step, Step::Create { thing, .. } if thing == HEAD) {
            self.numbers = desired.cluster.queues.iter().map(Queue::numbers).collect();
        }
    }

    /// Whether a queue has these nodes.
    fn has(&self, queue: &str, slots: &Slots) -> bool {
        let numbers = self.numbers.iter().find(|numbers| numbers.name == queue);
        numbers.is_some_and(|numbers| slots.iter().all(|slot| slot <= numbers.most))
    }

    fn is_standing(&self, queue: &str, slot: i32) -> bool {
        let mut numbers = self.numbers.iter();
        numbers.any(|numbers| numbers.name == queue && numbers.standing.contains(slot))
    }

    /// What it asks for.
    pub fn demand(&self) -> Vec<Demand> {
        let gangs = self.gangs.iter();
        gangs
            .map(|gang| Demand {
                gang: gang.name.clone(),
                queue: gang.queue.clone(),
                slots: gang.nodes.keys().copied().collect(),
            })
            .collect()
    }

    /// Seconds until it asks again; what it was told before does not make two worlds differ.
    pub(super) fn left(&self, now: Timestamp) -> i64 {
        self.held.map_or(0, |held| held.duration_since(now).as_secs().max(0))
    }

    fn asked(&self, queue: &str) -> Slots {
        let gangs = self.gangs.iter().filter(|gang| gang.queue == queue);
        gangs.flat_map(|gang| gang.nodes.keys().copied()).collect()
    }
}

/// One look of the scheduler at its nodes and at what it was told.
pub(super) fn schedule(world: &mut World) {
    hear(world);
    notice(world);
    let scheduler = &mut world.scheduler;
    for gang in &mut scheduler.gangs {
        let wanted = |slot: i32| {
            scheduler.jobs.iter().any(|job| job.queue == gang.queue && job.slots.contains(slot))
        };
        gang.nodes.retain(|slot, _| wanted(*slot));
    }
    scheduler.gangs.retain(|gang| !gang.nodes.is_empty());
    resume(world);
}

/// What cannot be had is powered down.
fn hear(world: &mut World) {
    let told = world.notes.get(&world.owner.answers());
    let told = told.and_then(|text| serde_json::from_str(text).ok());
    let Some(Said { answers, queues, leave }) = told else { return };
    if !queues.is_empty() {
        world.scheduler.numbers = queues;
    }
    for leave in leave {
        send_away(world, &leave);
    }
    let refused: BTreeMap<_, _> =
        answers.into_iter().map(|answer| (answer.gang, answer.next_try)).collect();
    let scheduler = &mut world.scheduler;
    let heard = scheduler.gangs.iter().filter_map(|gang| refused.get(&gang.name));
    let held = heard.filter_map(|time| time.map(Time::timestamp)).max();
    scheduler.held = scheduler.held.max(held);
    scheduler.gangs.retain(|gang| !refused.contains_key(&gang.name));
}

/// Takes nodes out of use: at once with their jobs, or those without one.
fn send_away(world: &mut World, leave: &Leave) {
    let busy: Slots = world
        .scheduler
        .jobs
        .iter()
        .filter(|job| job.queue == leave.queue && !leave.hard)
        .flat_map(|job| job.slots.iter())
        .collect();
    let idle = leave.slots.without(&busy);
    let launch = (leave.queue.clone(), leave.gang.clone(), leave.attempt);
    for node in world.instances.values_mut().filter(|node| node.launch() == launch) {
        node.away |= node.slot().is_some_and(|slot| idle.contains(slot));
    }
    for gang in world.scheduler.gangs.iter_mut().filter(|gang| gang.name == leave.gang) {
        gang.nodes.retain(|slot, _| !idle.contains(*slot));
    }
}

/// Nodes that have come up, and nodes that are lost after that or never came.
fn notice(world: &mut World) {
    let up: BTreeSet<_> = world
        .instances
        .values()
        .filter(|found| world.has_come_up(found) && !found.away)
        .filter_map(|found| Some((found.role().to_owned(), gang_of(found), found.slot()?)))
        .collect();
    for gang in &mut world.scheduler.gangs {
        let role = queue_role(&gang.queue);
        gang.nodes.retain(|slot, power| {
            let is_up = up.contains(&(role.clone(), gang.name.clone(), *slot));
            let lost = !is_up && matches!(power, Power::Up | Power::Coming(0));
            *power = match (is_up, *power) {
                (true, _) | (false, Power::Up) => Power::Up,
                (false, Power::Coming(left)) => Power::Coming(left.saturating_sub(1)),
            };
            !lost
        });
    }
}

fn gang_of(machine: &Machine) -> String {
    machine.tags.get(GANG).cloned().unwrap_or_default()
}

fn resume(world: &mut World) {
    let scheduler = &mut world.scheduler;
    if scheduler.left(world.now) > 0 {
        return;
    }
    for job in scheduler.jobs.clone() {
        let missing = job.slots.without(&scheduler.asked(&job.queue));
        let missing = missing.iter().filter(|slot| !scheduler.is_standing(&job.queue, *slot));
        let missing: Slots = missing.collect();
        if !scheduler.has(&job.queue, &missing) {
            continue;
        }
        if !missing.is_empty() {
            scheduler.turns += 1;
            let name = format!("{}-1", scheduler.turns);
            let nodes = missing.iter().map(|slot| (slot, Power::Coming(RESUME_TIMEOUT)));
            let nodes = nodes.collect();
            scheduler.gangs.push(Gang { name, queue: job.queue, nodes });
        }
    }
}
