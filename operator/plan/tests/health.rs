//! Stories of nodes and heads that fail: what is sick leaves and comes again, nothing that works is
//! taken from a job, and what cannot come up is tried ever more seldom.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use hpc_crds::ConditionType;
use hpc_plan::cloud::InstanceId;
use hpc_plan::cluster::{Body, Desired, Ill, Step};
use hpc_plan::slots::Slots;
use hpc_plan::world::{FOREVER, Job, Machine, World};
use insta::assert_snapshot;
use support::diary::{diary, ready, says, told, until};
use support::{cluster, owner, pass, settle};

/// A cluster of so many nodes that always run and four at most, standing.
fn standing(nodes: i32) -> (World, Desired) {
    let (mut world, desired) = (World::new(owner()), sized(nodes, 4));
    settle(&mut world, &desired);
    (world, desired)
}

fn sized(nodes: i32, most: i32) -> Desired {
    let mut desired = cluster(&[nodes], false);
    desired.cluster.queues[0].most = most;
    desired
}

fn job(slots: &str) -> Job {
    Job { queue: "compute".into(), slots: slots.parse().unwrap() }
}

fn node(world: &World, slot: i32) -> InstanceId {
    let mut live = world.instances.iter().filter(|(_, found)| found.is_live());
    live.find(|(_, found)| found.slot() == Some(slot)).unwrap().0.clone()
}

fn head(world: &World) -> InstanceId {
    let mut live = world.instances.iter().filter(|(_, found)| found.is_live());
    live.find(|(_, found)| found.role() == "head").unwrap().0.clone()
}

fn slots(world: &World) -> String {
    let live = world.instances.values().filter(|found| found.is_live());
    live.filter_map(Machine::slot).collect::<Slots>().to_string()
}

#[test]
fn a_queue_made_smaller_under_a_job_keeps_its_nodes_until_the_job_is_over() {
    let (mut world, desired) = standing(1);
    world.scheduler.jobs = vec![job("2-4")];
    settle(&mut world, &desired);
    let small = sized(1, 2);
    let shrunk = diary(&mut world, &small);
    assert_eq!(slots(&world), "1-4");
    assert!(ready(&world), "{}", told(&world));
    world.scheduler.jobs = vec![job("3")];
    settle(&mut world, &small);
    assert_eq!(slots(&world), "1,3", "what the job has it keeps");
    world.scheduler.jobs = vec![job("3-4"), job("2")];
    settle(&mut world, &small);
    assert_eq!(slots(&world), "1-3", "what the queue no longer has does not come");
    world.scheduler.jobs.clear();
    assert_snapshot!(format!("{shrunk}=== the jobs are over\n{}", diary(&mut world, &small)));
    assert_eq!(slots(&world), "1");
}

#[test]
fn nodes_that_always_run_leave_with_their_jobs_when_there_are_to_be_fewer() {
    let (mut world, _) = standing(3);
    world.scheduler.jobs = vec![job("3")];
    let fewer = sized(1, 1);
    settle(&mut world, &fewer);
    assert_eq!(slots(&world), "1,3", "{}", told(&world));
    assert!(says(ConditionType::NodesLeaving, "True/QueueShrinks")(&world), "{}", told(&world));
    world.scheduler.jobs.clear();
    settle(&mut world, &fewer);
    assert_eq!(slots(&world), "1", "{}", told(&world));
}

#[test]
fn a_node_that_came_for_a_job_stands_for_one_that_is_to_run_always() {
    let (mut world, desired) = standing(1);
    world.scheduler.jobs = vec![job("2")];
    settle(&mut world, &desired);
    let came = node(&world, 2);
    let more = sized(3, 4);
    settle(&mut world, &more);
    assert_eq!((slots(&world).as_str(), node(&world, 2)), ("1-3", came));
    world.scheduler.jobs.clear();
    settle(&mut world, &more);
    assert_eq!(slots(&world), "1-3");
    assert!(world.ledger.sins.is_empty(), "{:?}", world.ledger.sins);
}

#[test]
fn a_sick_node_is_taken_off_its_job_and_replaced_once() {
    let (mut world, desired) = standing(2);
    let sick = node(&world, 2);
    world.scheduler.jobs = vec![job("2")];
    world.ailing.insert(sick.clone(), Ill::Impaired);
    assert_snapshot!(diary(&mut world, &desired));
    assert!(node(&world, 2) != sick && slots(&world) == "1-2");
    assert_eq!(world.ledger.launched["queue-compute"], 3);
}

#[test]
fn a_node_that_aws_is_about_to_take_leaves_when_its_job_is_over() {
    let (mut world, desired) = standing(2);
    let old = node(&world, 2);
    world.scheduler.jobs = vec![job("2")];
    let event = "instance-retirement not before 2027-01-20T00:00:00Z";
    world.ailing.insert(old.clone(), Ill::Event(event.into()));
    settle(&mut world, &desired);
    assert_eq!(node(&world, 2), old);
    assert_snapshot!(told(&world));
    world.scheduler.jobs.clear();
    settle(&mut world, &desired);
    assert!(node(&world, 2) != old && ready(&world));
    assert_eq!(world.ledger.launched["queue-compute"], 3);
}

#[test]
fn nodes_that_fail_to_boot_are_tried_one_at_a_time_and_ever_more_seldom() {
    let (mut world, desired) = (World::new(owner()), sized(4, 4));
    world.fate.broken_gangs = FOREVER;
    let mut tries = vec![];
    for tick in 0..240 {
        let plan = pass(&mut world, &desired);
        let sizes = plan.steps.iter().filter_map(|step| {
            let Step::Create { body: Body::Launch(body), thing, .. } = step else { return None };
            thing.starts_with("queue/").then_some(body.count)
        });
        tries.extend(sizes.map(|size| (tick, size)));
        world.tick();
    }
    assert_eq!(tries.iter().map(|(_, size)| *size).take(5).collect::<Vec<_>>(), [4, 4, 4, 1, 1]);
    assert!(tries.len() < 20, "{tries:?}");
    let last = &tries[tries.len() - 2..];
    assert!(last[1].0 - last[0].0 >= 50, "{tries:?}");
    assert_snapshot!(told(&world));
    world.fate.broken_gangs = 0;
    until(&mut world, &desired, ready);
    assert_eq!(slots(&world), "1-4");
}

/// The boot deadline of the model is one minute: a step that fails is noticed before.
#[test]
fn a_failed_boot_step_is_noticed_at_once_with_its_words() {
    let (mut world, desired) = (World::new(owner()), sized(2, 2));
    world.fate.broken_gangs = 1;
    until(&mut world, &desired, says(ConditionType::FleetsReady, "False/BootFailed"));
    assert_snapshot!(told(&world));
    until(&mut world, &desired, ready);
}

#[test]
fn a_head_that_is_sick_or_of_another_type_is_replaced_and_takes_over_its_address_and_volume() {
    for change in [
        (|world, _| {
            let head = head(world);
            world.ailing.insert(head, Ill::Impaired);
        }) as fn(&mut World, &mut Desired),
        |_, desired| desired.cluster.head_type = "c5.18xlarge".into(),
    ] {
        let (mut world, mut desired) = standing(1);
        world.scheduler.jobs = vec![job("2-3")];
        settle(&mut world, &desired);
        let (old, ports, vaults) = (
            head(&world),
            world.interfaces.len(),
            world.volumes.keys().cloned().collect::<Vec<_>>(),
        );
        change(&mut world, &mut desired);
        settle(&mut world, &desired);
        assert!(head(&world) != old && ready(&world), "{}", told(&world));
        assert_eq!(world.interfaces.len(), ports);
        assert_eq!(world.volumes.keys().cloned().collect::<Vec<_>>(), vaults);
        assert_eq!(world.ledger.launched["queue-compute"], 3, "the nodes went on");
    }
}

#[test]
fn a_head_that_would_pass_a_limit_stays_and_says_so() {
    let (mut world, mut desired) = standing(1);
    let old = head(&world);
    desired.cluster.head_type = "c5.18xlarge".into();
    desired.settings.max_hourly_cost = 1;
    until(&mut world, &desired, says(ConditionType::HeadReady, "False/LimitExceeded"));
    assert_eq!(head(&world), old);
}
