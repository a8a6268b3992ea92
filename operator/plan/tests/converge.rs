//! The proof: from every state, with every fault, a cluster comes to what was asked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and the proof says what it visited"
)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hpc_crds::DeletionPolicy;
use hpc_plan::cloud::Kind;
use hpc_plan::cluster::{Desired, Goal, Lifecycle};
use hpc_plan::world::{FOREVER, Job, Scheduler, World};
use support::explore::{Fault, Scene, Tally, explore};
use support::{absent, cluster, owner, settle};

/// A FAILED file system is kept, and a human is asked, when it was AVAILABLE before or when the
/// status cannot prove that it was not.
fn holds_failed_data(world: &World) -> bool {
    let known = world.object.status.intents.iter().any(|intent| intent.thing == "storage/fsx");
    let mut files = world.file_systems.values();
    files.any(|found| found.lifecycle == Lifecycle::Failed && (found.ever_available || !known))
}

/// With a second fault a rollback is a restore: nobody restores a backup within the seconds for
/// which AWS hides what it has made.
fn scene(name: &str, asks: Vec<Desired>, faults: u8) -> Scene {
    Scene {
        name: name.into(),
        asks,
        world: World::new(owner()),
        faults,
        kinds: if faults == 1 {
            |fault| !matches!(fault, Fault::Restored(_))
        } else {
            |fault| !matches!(fault, Fault::StatusBack(_))
        },
        may_stall: holds_failed_data,
    }
}

fn prove(scenes: impl IntoIterator<Item = Scene>) {
    let start = Instant::now();
    let mut tally = Tally::default();
    for scene in scenes {
        let begun = Instant::now();
        let one = explore(&scene);
        println!("{}: {:?} {} states", scene.name, begun.elapsed(), one.states);
        tally.add(one);
    }
    println!("in all, in {:?}: {tally}", start.elapsed());
}

fn shapes() -> Vec<(Vec<i32>, bool)> {
    let one = (0..=2).map(|nodes| vec![nodes]);
    let two = (0..=2).flat_map(|first| (0..=2).map(move |second| vec![first, second]));
    let queues: Vec<_> = one.chain(two).collect();
    queues.iter().flat_map(|nodes| [false, true].map(|storage| (nodes.clone(), storage))).collect()
}

#[test]
fn every_shape_survives_any_one_fault_in_its_life_and_its_deletion() {
    prove(shapes().into_iter().map(|(nodes, storage)| {
        let desired = cluster(&nodes, storage);
        let name = format!("{nodes:?} nodes, file system {storage}");
        scene(&name, vec![desired.clone(), absent(&desired)], 1)
    }));
}

#[test]
fn the_smallest_whole_cluster_survives_any_two_faults() {
    let desired = cluster(&[1], true);
    prove([scene("1 node, file system", vec![desired.clone(), absent(&desired)], 2)]);
}

#[test]
fn the_largest_cluster_survives_any_two_faults() {
    let desired = cluster(&[2, 2], true);
    prove([scene("2 x 2 nodes, file system", vec![desired.clone(), absent(&desired)], 2)]);
}

/// Passes come faster than AWS shows what it has made: many may be planned beside a hidden thing.
#[test]
fn what_aws_hides_for_long_is_never_made_twice() {
    let desired = cluster(&[1], false);
    let mut world = World::new(owner());
    let pace = &mut Arc::make_mut(&mut world.catalog).pace;
    (pace.quantum, pace.hidden) = (Duration::from_secs(5), 5);
    let kinds = |fault: &Fault| {
        use Fault::{Asked, Crash, GangDies, Killed, LostAnswer, NoCapacity, Refused, Unseen};
        let ours = matches!(fault, Crash(_) | LostAnswer(_) | Unseen(_) | Fault::StatusLost);
        let aws = matches!(fault, NoCapacity(_) | GangDies | Killed(_) | Refused(_, Kind::Denied));
        ours || aws || matches!(fault, Asked(_))
    };
    let asks = vec![desired.clone(), absent(&desired)];
    prove([Scene { world, kinds, ..scene("hidden for long", asks, 2) }]);
}

#[test]
fn a_spec_edited_at_any_moment_ends_as_the_last_edit_says() {
    let small = cluster(&[1], true);
    let mut other_type = small.clone();
    other_type.cluster.queues[0].types = vec!["c5.18xlarge".into()];
    other_type.cluster.queues[0].efa = false;
    let mut other_queue = cluster(&[0, 1], false);
    other_queue.cluster.queues.remove(0);
    let asks = vec![small.clone(), cluster(&[2, 1], true), other_type, other_queue, absent(&small)];
    let kinds = |fault: &Fault| {
        use Fault::{Asked, Asleep, Crash, LostAnswer, StatusLost};
        matches!(fault, Asked(_) | Asleep(12) | Crash(_) | LostAnswer(_) | StatusLost)
    };
    prove([Scene { kinds, ..scene("edits", asks, 2) }]);
}

#[test]
fn a_cluster_paused_at_any_moment_goes_on_or_goes_away_afterwards() {
    let desired = cluster(&[1], false);
    let paused = Desired { goal: Goal::Paused, ..desired.clone() };
    let asks = vec![desired.clone(), paused, absent(&desired)];
    let kinds = |fault: &Fault| matches!(fault, Fault::Asked(_) | Fault::Crash(_));
    prove([Scene { kinds, ..scene("pauses", asks, 3) }]);
}

#[test]
fn a_deletion_gives_everything_back_but_what_is_retained() {
    let kept = |desired: &Desired| {
        let mut desired = desired.clone();
        desired.cluster.state_policy = DeletionPolicy::Retain;
        desired.cluster.storages[0].policy = DeletionPolicy::Retain;
        desired
    };
    let whole = cluster(&[2, 1], true);
    let mut world = World::new(owner());
    settle(&mut world, &whole);
    for desired in [whole.clone(), kept(&whole)] {
        let name = format!("deletion, {} state", desired.cluster.state_policy);
        prove([Scene { world: world.clone(), ..scene(&name, vec![absent(&desired)], 2) }]);
    }
}

#[test]
fn heads_that_never_answer_are_given_up_after_three() {
    let desired = cluster(&[1], true);
    for break_all in [(|world| world.fate.mute_heads = FOREVER) as fn(&mut World), |world| {
        world.fate.broken_heads = FOREVER;
    }] {
        let mut world = World::new(owner());
        break_all(&mut world);
        let kinds = |fault: &Fault| {
            matches!(fault, Fault::Crash(_) | Fault::LostAnswer(_) | Fault::Asleep(_))
        };
        let may_stall =
            |world: &World| world.live("head") == 0 && world.ledger.launched["head"] == 3;
        let asks = vec![desired.clone(), absent(&desired)];
        prove([Scene { world, kinds, may_stall, ..scene("no head ever answers", asks, 1) }]);
    }
}

#[test]
fn file_systems_that_never_come_up_are_given_up_after_three() {
    let desired = cluster(&[1], true);
    let mut world = World::new(owner());
    world.fate.failing_file_systems = FOREVER;
    let kinds =
        |fault: &Fault| matches!(fault, Fault::Crash(_) | Fault::LostAnswer(_) | Fault::Asleep(_));
    let may_stall =
        |world: &World| world.file_systems.is_empty() && world.ledger.made["storage-fsx"] == 3;
    let asks = vec![desired.clone(), absent(&desired)];
    prove([Scene { world, kinds, may_stall, ..scene("no file system comes up", asks, 1) }]);
}

/// Jobs on a queue of one node that always runs and up to three that come for them.
fn with_jobs(jobs: &[&str]) -> (Desired, World) {
    let mut desired = cluster(&[1], false);
    desired.cluster.queues[0].most = 4;
    let mut world = World::new(owner());
    let jobs =
        jobs.iter().map(|slots| Job { queue: "compute".into(), slots: slots.parse().unwrap() });
    world.scheduler = Scheduler::with(jobs.collect());
    (desired, world)
}

#[test]
fn a_queue_that_follows_its_jobs_survives_any_one_fault() {
    let scenes = [vec!["2"], vec!["2-3"], vec!["2", "3-4"]].map(|jobs| {
        let (desired, world) = with_jobs(&jobs);
        let name = format!("jobs on {jobs:?}");
        Scene { world, ..scene(&name, vec![desired.clone(), absent(&desired)], 1) }
    });
    prove(scenes);
}

#[test]
fn a_queue_that_follows_its_jobs_survives_any_two_faults() {
    let (desired, world) = with_jobs(&["2-3"]);
    prove([Scene {
        world,
        ..scene("a job of two nodes", vec![desired.clone(), absent(&desired)], 2)
    }]);
}
