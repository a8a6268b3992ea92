//! Stories of queues that follow their jobs: a job's nodes come as one gang, leave with it, and what
//! cannot be had is answered.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use hpc_crds::ConditionType;
use hpc_plan::cluster::{Desired, Step};
use hpc_plan::world::{FOREVER, Job, World};
use insta::assert_snapshot;
use support::diary::{diary, says, told, until};
use support::{cluster, owner, pass, settle};

/// A cluster of one node that always runs and up to three more, standing.
fn standing() -> (World, Desired) {
    let (mut world, mut desired) = (World::new(owner()), cluster(&[1], false));
    desired.cluster.queues[0].most = 4;
    settle(&mut world, &desired);
    (world, desired)
}

fn job(slots: &str) -> Job {
    Job { queue: "compute".into(), slots: slots.parse().unwrap() }
}

#[test]
fn the_nodes_of_a_job_come_as_one_gang_and_leave_with_it() {
    let (mut world, desired) = standing();
    world.scheduler.jobs = vec![job("2-4")];
    let grown = diary(&mut world, &desired);
    world.scheduler.jobs.clear();
    assert_snapshot!(format!("{grown}=== the job is over\n{}", diary(&mut world, &desired)));
}

#[test]
fn a_job_that_cannot_be_had_is_answered_and_asked_for_again() {
    let (mut world, desired) = standing();
    for kind in ["c5n.18xlarge", "c5n.metal"] {
        world.fate.without_capacity.insert(kind.into(), 8);
    }
    world.scheduler.jobs = vec![job("2-3")];
    assert_snapshot!(diary(&mut world, &desired));
}

#[test]
fn what_keeps_a_queue_from_growing_is_told_and_the_cluster_stays_ready() {
    let (world, desired) = standing();
    let mut world = world.without_capacity("c5n.18xlarge").without_capacity("c5n.metal");
    world.scheduler.jobs = vec![job("2-3")];
    until(&mut world, &desired, says(ConditionType::GrowthBlocked, "True/InsufficientCapacity"));
    assert!(says(ConditionType::Ready, "True/Ready")(&world), "{}", told(&world));
    assert_snapshot!(told(&world));
}

/// Two jobs that can never be had: one asks AWS, ever more seldom, the other is answered from memory.
#[test]
fn without_capacity_launches_are_tried_ever_more_seldom() {
    let (world, desired) = standing();
    let mut world = world.without_capacity("c5n.18xlarge").without_capacity("c5n.metal");
    world.scheduler.jobs = vec![job("2"), job("3-4")];
    let mut tries = vec![];
    for tick in 0..240 {
        let plan = pass(&mut world, &desired);
        let sends = |step: &Step| matches!(step, Step::Create { .. });
        tries.extend(plan.steps.iter().filter(|step| sends(step)).map(|_| tick));
        world.tick();
    }
    let (early, late) = tries.split_at(tries.len() / 2);
    assert!(tries.len() < 48, "{} launches in 40 minutes", tries.len());
    assert!(early[early.len() - 1] < 110 && late.len() > 3, "{tries:?}");
}

/// A refused gang leaves nothing, and a smaller one is not held back by it.
#[test]
fn a_smaller_gang_is_tried_although_a_larger_one_was_refused() {
    let (mut world, desired) = standing();
    world.fate.without_capacity.insert("c5n.metal".into(), FOREVER);
    world.fate.without_capacity.insert("c5n.18xlarge".into(), 6);
    world.scheduler.jobs = vec![job("2-4")];
    until(&mut world, &desired, says(ConditionType::GrowthBlocked, "True/InsufficientCapacity"));
    assert_eq!(world.live("queue-compute"), 1);
    world.fate.without_capacity.remove("c5n.18xlarge");
    world.scheduler.jobs = vec![job("2")];
    until(&mut world, &desired, |world| world.live("queue-compute") == 2);
}

/// A report too long for its parameter leaves gangs out; that is no word about them.
#[test]
fn a_gang_that_the_report_has_no_room_for_keeps_its_nodes() {
    let (mut world, desired) = standing();
    world.scheduler.jobs = vec![job("2"), job("3-4")];
    settle(&mut world, &desired);
    assert_eq!(world.live("queue-compute"), 4);
    world.fate.room_in_report = Some(1);
    for _ in 0..150 {
        pass(&mut world, &desired);
        world.tick();
    }
    assert_eq!(world.live("queue-compute"), 4);
    world.fate.room_in_report = None;
    world.scheduler.jobs.clear();
    settle(&mut world, &desired);
    assert_eq!(world.live("queue-compute"), 1);
}
