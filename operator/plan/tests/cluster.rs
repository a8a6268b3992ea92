//! Stories of a cluster: what is planned, what is told, in the words a user reads.
//!
//! Each story is a snapshot of printed plans or of the conditions with their messages, so that a
//! changed word shows in review.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::fmt::Write;
use std::sync::Arc;

use hpc_crds::{ConditionType, DeletionPolicy, HpcCluster, HpcClusterSpec, condition};
use hpc_plan::cloud::{Failure, Kind};
use hpc_plan::cluster::{
    Desired, Goal, Instance, InstanceState, Observed, Step, Stranger, User, plan,
};
use hpc_plan::names::PAUSED;
use hpc_plan::world::{Catalog, FOREVER, World};
use insta::assert_snapshot;
use support::diary::{diary, lasting, ready, says, told, until};
use support::{absent, cluster, lawful, owner, pass, settle};

/// A new world, and a cluster of one node without a file system asked for in it.
fn small() -> (World, Desired) {
    (World::new(owner()), cluster(&[1], false))
}

#[test]
fn a_cluster_is_built_layer_by_layer() {
    let mut world = World::new(owner());
    assert_snapshot!(diary(&mut world, &cluster(&[2], true)));
}

#[test]
fn a_deletion_gives_back_layer_by_layer() {
    let (mut world, desired) = (World::new(owner()), cluster(&[2], true));
    settle(&mut world, &desired);
    assert_snapshot!(diary(&mut world, &absent(&desired)));
    assert_eq!(world.leftovers(), Vec::<String>::new());
}

#[test]
fn a_deletion_marks_what_is_retained_and_leaves_it() {
    let (mut world, mut desired) = (World::new(owner()), cluster(&[1], true));
    desired.cluster.state_policy = DeletionPolicy::Retain;
    desired.cluster.storages[0].policy = DeletionPolicy::Retain;
    settle(&mut world, &desired);
    assert_snapshot!(diary(&mut world, &absent(&desired)));
    let kept: Vec<_> = world.object.status.retained.iter().map(|kept| kept.kind.as_str()).collect();
    assert_eq!(kept, ["Volume", "FileSystem", "SecurityGroup"]);
    assert_eq!((world.volumes.len(), world.file_systems.len(), world.groups.len()), (1, 1, 1));
}

#[test]
fn a_steady_cluster_is_left_alone() {
    let (mut world, desired) = (World::new(owner()), cluster(&[2, 2], true));
    settle(&mut world, &desired);
    let (calls, writes) = (world.ledger.calls.0, world.ledger.writes.0);
    for _ in 0..100 {
        pass(&mut world, &desired);
        world.tick();
    }
    assert_eq!((world.ledger.calls.0, world.ledger.writes.0), (calls, writes));
}

#[test]
fn a_head_whose_agent_never_comes_is_replaced_twice_and_then_told() {
    let (mut world, desired) = small();
    world.fate.mute_heads = FOREVER;
    until(&mut world, &desired, says(ConditionType::HeadReady, "False/BootTimeout"));
    assert_snapshot!("agent_never_first", told(&world));
    until(&mut world, &desired, says(ConditionType::Stalled, "True/BootTimeout"));
    assert_snapshot!("agent_never_last", told(&world));
    assert_eq!((world.live("head"), world.ledger.launched["head"]), (0, 3));
}

#[test]
fn another_spec_is_tried_again_after_giving_up() {
    let (mut world, mut desired) = small();
    world.fate.mute_heads = 3;
    until(&mut world, &desired, says(ConditionType::Stalled, "True/BootTimeout"));
    desired.cluster.head_profile = "hpc-head-with-ssm".into();
    until(&mut world, &desired, ready);
    assert_eq!((world.live("head"), world.ledger.launched["head"]), (1, 4));
}

#[test]
fn a_late_agent_is_waited_for() {
    let (mut world, desired) = small();
    world.fate.slow_agent = 2;
    until(&mut world, &desired, says(ConditionType::HeadReady, "Unknown/WaitingForAgent"));
    assert_snapshot!(told(&world));
    until(&mut world, &desired, says(ConditionType::HeadReady, "True/Ready"));
    assert_eq!(world.ledger.launched["head"], 1);
}

#[test]
fn a_boot_that_fails_is_told_with_its_step_and_last_words() {
    let (mut world, desired) = small();
    world.fate.broken_heads = 1;
    until(&mut world, &desired, says(ConditionType::HeadReady, "False/BootFailed"));
    assert_snapshot!(told(&world));
    until(&mut world, &desired, ready);
    assert_eq!((world.live("head"), world.ledger.launched["head"]), (1, 2));
}

#[test]
fn the_second_type_is_taken_when_there_is_none_of_the_first() {
    let (world, desired) = small();
    let mut world = world.without_capacity("c5n.18xlarge");
    until(&mut world, &desired, ready);
    assert_snapshot!(told(&world));
    let mut nodes = world.instances.values().filter(|found| found.role() == "queue-compute");
    assert!(nodes.all(|node| node.instance_type == "c5n.metal"));
}

#[test]
fn without_any_capacity_nothing_runs_and_the_next_try_is_told() {
    let (world, desired) = small();
    let mut world = world.without_capacity("c5n.18xlarge").without_capacity("c5n.metal");
    until(&mut world, &desired, |world| {
        let tries = &world.object.status.intents;
        says(ConditionType::FleetsReady, "False/InsufficientCapacity")(world)
            && tries.iter().any(|intent| intent.thing == "queue/compute" && intent.attempt == 4)
    });
    world.tick();
    pass(&mut world, &desired);
    assert_snapshot!(told(&world));
    assert_eq!(world.live("queue-compute"), 0);
    world.fate.without_capacity.clear();
    until(&mut world, &desired, ready);
}

#[test]
fn a_gang_that_loses_a_member_to_capacity_is_given_back_whole() {
    let (mut world, desired) = (World::new(owner()), cluster(&[2], false));
    world.fate.dying_gangs = 1;
    until(&mut world, &desired, says(ConditionType::FleetsReady, "False/InsufficientCapacity"));
    assert_snapshot!(told(&world));
    until(&mut world, &desired, ready);
    let ended = world.instances.values().filter(|found| found.state == InstanceState::Terminated);
    assert_eq!((ended.count(), world.ledger.launched["queue-compute"]), (2, 4));
}

#[test]
fn a_lost_node_of_a_whole_gang_is_replaced_alone() {
    let (mut world, desired) = (World::new(owner()), cluster(&[2], false));
    settle(&mut world, &desired);
    let mut nodes = world
        .instances
        .iter()
        .filter(|(_, found)| found.role() == "queue-compute" && found.slot() == Some(2));
    let node = nodes.next().expect("a node").0.clone();
    world.kill(&node, "Server.InternalError");
    assert_snapshot!(diary(&mut world, &desired));
    assert_eq!(world.ledger.launched["queue-compute"], 3);
}

/// At scale AWS shows new instances without an address, a zone or a type for a while.
#[test]
fn nodes_whose_record_is_not_complete_yet_are_left_alone() {
    type Blank = fn(&mut Instance);
    let (mut world, desired) = (World::new(owner()), cluster(&[2], false));
    settle(&mut world, &desired);
    let blanks: [Blank; 4] = [
        |node| node.private_ip = None,
        |node| node.zone.clear(),
        |node| node.instance_type.clear(),
        |node| node.token = None,
    ];
    for blank in blanks {
        let mut observed = world.observe();
        observed.instances.iter_mut().filter(|node| node.token.is_some()).for_each(blank);
        let plan = plan(&desired, &observed, world.now);
        assert_eq!((plan.steps, plan.waits), (vec![], vec![]));
    }
}

#[test]
fn a_throttled_launch_waits_and_goes_on() {
    let (mut world, desired) = small();
    until(&mut world, &desired, says(ConditionType::HeadReady, "True/Ready"));
    world.fate.refusals = vec![("RunInstances".into(), Kind::Throttled)];
    until(&mut world, &desired, says(ConditionType::FleetsReady, "Unknown/Throttled"));
    assert_snapshot!(told(&world));
    until(&mut world, &desired, ready);
}

#[test]
fn a_file_system_that_fails_early_is_made_again_three_times_at_most() {
    let (mut world, desired) = (World::new(owner()), cluster(&[1], true));
    world.fate.failing_file_systems = FOREVER;
    until(&mut world, &desired, says(ConditionType::StorageReady, "False/FileSystemFailed"));
    assert_snapshot!("file_system_early_first", told(&world));
    until(&mut world, &desired, says(ConditionType::Stalled, "True/FileSystemFailed"));
    assert_snapshot!("file_system_early_last", told(&world));
    assert_eq!((world.file_systems.len(), world.ledger.made["storage-fsx"]), (0, 3));
}

#[test]
fn a_file_system_that_fails_late_is_kept_and_a_human_asked() {
    let (mut world, desired) = (World::new(owner()), cluster(&[1], true));
    settle(&mut world, &desired);
    let id = world.file_systems.keys().next().expect("a file system").clone();
    world.fail_file_system(&id);
    until(&mut world, &desired, says(ConditionType::Stalled, "True/FileSystemFailed"));
    assert_snapshot!(told(&world));
    assert_eq!(world.file_systems.len(), 1);
}

/// What a spec or a cloud that does not fit is told before anything is launched.
#[test]
fn what_cannot_be_built_is_refused_before_any_launch() {
    type Change = fn(&mut Desired, &mut Catalog);
    let table: [(&str, Change); 10] = [
        ("no EFA", |desired, _| desired.cluster.queues[0].types = vec!["c5.18xlarge".into()]),
        ("unequal types", |desired, _| {
            desired.cluster.queues[0].types = vec!["c5n.18xlarge".into(), "c5n.2xlarge".into()];
            desired.cluster.queues[0].efa = false;
        }),
        ("unknown type", |desired, _| desired.cluster.head_type = "c9.huge".into()),
        ("not offered to the head", |_, catalog| {
            catalog.offered.retain(|(kind, _)| kind != "c5n.2xlarge");
        }),
        ("not offered to the queue", |_, catalog| {
            catalog.offered.retain(|(kind, _)| kind == "c5n.2xlarge");
        }),
        ("subnet gone", |_, catalog| catalog.subnets.clear()),
        ("no image", |_, catalog| catalog.image = None),
        ("an Arm head", |desired, catalog| {
            let head = catalog.types.get_mut(&desired.cluster.head_type).unwrap();
            head.architecture = "arm64".into();
            catalog.image.as_mut().unwrap().architecture = "arm64".into();
        }),
        ("too many instances", |desired, _| desired.settings.max_instances = 1),
        ("too dear", |desired, _| desired.settings.max_hourly_cost = 1),
    ];
    let mut text = String::new();
    for (story, change) in table {
        let (mut world, mut desired) = small();
        change(&mut desired, Arc::make_mut(&mut world.catalog));
        for _ in 0..5 {
            pass(&mut world, &desired);
            world.tick();
        }
        let (calls, told) = (world.ledger.calls.0, told(&world));
        let _ = writeln!(text, "## {story}: {calls} calls\n{told}");
    }
    assert_snapshot!(text);
}

/// What AWS refuses shows on the part, with its code and the way out.
#[test]
fn a_refused_call_shows_on_its_part() {
    let table = [
        ("CreateSecurityGroup", Kind::Denied),
        ("CreateFileSystem", Kind::Quota),
        ("CreateVolume", Kind::Credentials),
        ("RunInstances", Kind::Denied),
        ("RunInstances", Kind::Dependency),
        ("RunInstances", Kind::NotOffered),
        ("RunInstances", Kind::Unknown),
    ];
    let mut text = String::new();
    for (action, kind) in table {
        let (mut world, desired) = (World::new(owner()), cluster(&[1], true));
        world.fate.refusals = vec![(action.into(), kind)];
        until(&mut world, &desired, |world| world.fate.refusals.is_empty());
        let _ = writeln!(text, "## {action} {kind}\n{}", told(&world));
        until(&mut world, &desired, ready);
    }
    assert_snapshot!(text);
}

/// A read that failed shows on its part; nothing else is judged and nothing moves.
#[test]
fn a_failed_read_moves_nothing() {
    let (mut world, desired) = small();
    settle(&mut world, &desired);
    let calls = world.ledger.calls.0;
    world.fate.reads = vec![Kind::Denied];
    let plan = pass(&mut world, &desired);
    assert_snapshot!(format!("{plan}\n{}", told(&world)));
    assert_eq!(world.ledger.calls.0, calls);
}

/// A read that failed as AWS says it.
fn failed(kind: Kind, service: &str, operation: &str) -> Failure {
    let (service, operation) = (service.to_owned(), operation.to_owned());
    Failure { kind, service, operation, code: kind.to_string(), message: "Not today.".into() }
}

#[test]
fn a_deletion_stops_on_no_read_but_those_of_what_it_gives_back() {
    let (mut world, desired) = small();
    settle(&mut world, &desired);
    let plan_without = |service: &str, operation: &str| {
        let failures = vec![failed(Kind::Denied, service, operation)];
        let observed = Observed { failures, ..world.observe() };
        plan(&absent(&desired), &observed, world.now)
    };
    for operation in [
        "DescribeImages",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeSubnets",
    ] {
        assert!(!plan_without("ec2", operation).steps.is_empty(), "{operation} stops it");
    }
    for operation in ["DescribeDocument", "DescribeInstanceInformation"] {
        assert!(!plan_without("ssm", operation).steps.is_empty(), "{operation} stops it");
    }
    for (service, operation) in [
        ("ec2", "DescribeInstances"),
        ("ec2", "DescribeVolumes"),
        ("ec2", "DescribeNetworkInterfaces"),
        ("ec2", "DescribeSecurityGroups"),
        ("ec2", "DescribePlacementGroups"),
        ("fsx", "DescribeFileSystems"),
        ("ssm", "GetParametersByPath"),
        ("sts", "GetCallerIdentity"),
    ] {
        assert_eq!(plan_without(service, operation).steps, vec![], "{operation} is needed");
    }
}

#[test]
fn an_object_is_not_held_where_nothing_can_be_read_and_so_nothing_made() {
    let (mut world, desired) = small();
    let silent = |kind, world: &World| {
        let failures = vec![failed(kind, "sts", "GetCallerIdentity")];
        Observed { account: None, failures, ..world.observe() }
    };
    let free = plan(&desired, &silent(Kind::Unknown, &world), world.now);
    assert_eq!(free.steps, vec![], "no finalizer is put on it");
    assert_eq!(world.plan(&desired).steps, [Step::AddFinalizer]);
    settle(&mut world, &desired);
    let kept = plan(&absent(&desired), &silent(Kind::Unknown, &world), world.now);
    assert_eq!(kept.steps, vec![], "what was made is not left behind");
}

#[test]
fn an_account_is_not_noted_where_nothing_can_be_read() {
    let (mut world, desired) = small();
    world.object.finalizer = true;
    let failures = vec![failed(Kind::Denied, "ec2", "DescribeInstances")];
    let observed = Observed { failures, ..world.observe() };
    let held = plan(&desired, &observed, world.now);
    assert_eq!(held.status.status.aws, None, "it could not be deleted any more");
}

#[test]
fn what_aws_says_and_what_can_be_done_are_two_sentences() {
    let (mut world, desired) = small();
    settle(&mut world, &desired);
    let failures = vec![failed(Kind::Denied, "ec2", "DescribeInstances")];
    let observed = Observed { failures, ..world.observe() };
    let status = plan(&desired, &observed, world.now).status.status;
    let ready = condition::find(&status.conditions, ConditionType::Ready).unwrap();
    assert!(ready.message.contains("Denied: Not today. Allow the action"), "{}", ready.message);
}

#[test]
fn a_pause_is_meant_however_it_is_spelt() {
    let goal = |value: &str| {
        let mut object = HpcCluster::new("wing", HpcClusterSpec::default());
        object.metadata.annotations = Some([(PAUSED.to_owned(), value.to_owned())].into());
        Desired::new(&object, &hpc_plan::cluster::Settings::default()).goal
    };
    assert_eq!(["true", "True", "TRUE"].map(goal), [Goal::Paused; 3]);
    assert_eq!(["false", ""].map(goal), [Goal::Present; 2]);
}

#[test]
fn credentials_of_another_account_stop_everything() {
    let (mut world, desired) = small();
    settle(&mut world, &desired);
    let calls = world.ledger.calls.0;
    world.account = "999988887777".into();
    for asked in [desired.clone(), absent(&desired)] {
        pass(&mut world, &asked);
        world.tick();
    }
    assert_snapshot!(told(&world));
    assert_eq!(world.ledger.calls.0, calls);
}

#[test]
fn a_predecessor_stops_the_first_launch_until_somebody_decides() {
    let (mut world, mut desired) = small();
    world.strangers = vec![Stranger { id: "i-9".into(), uid: "0ld".into(), retained: false }];
    for _ in 0..5 {
        pass(&mut world, &desired);
        world.tick();
    }
    assert_snapshot!(told(&world));
    assert_eq!(world.ledger.calls.0, 0);
    desired.ignore_predecessor = Some("0ld".into());
    until(&mut world, &desired, ready);
}

#[test]
fn what_a_predecessor_retained_stops_nothing() {
    let (mut world, desired) = small();
    world.strangers = vec![Stranger { id: "fs-9".into(), uid: "0ld".into(), retained: true }];
    until(&mut world, &desired, ready);
}

#[test]
fn a_paused_cluster_is_told_and_left_alone() {
    let (mut world, desired) = small();
    let paused = Desired { goal: Goal::Paused, ..desired.clone() };
    for _ in 0..4 {
        pass(&mut world, &desired);
        world.tick();
    }
    let calls = world.ledger.calls.0;
    for _ in 0..4 {
        pass(&mut world, &paused);
        world.tick();
    }
    assert_snapshot!(told(&world));
    assert_eq!(world.ledger.calls.0, calls);
    until(&mut world, &desired, ready);
}

#[test]
fn a_dry_run_tells_what_it_would_do_and_does_nothing() {
    let (mut world, mut desired) = small();
    desired.settings.dry_run = true;
    world.object.finalizer = true;
    for _ in 0..3 {
        pass(&mut world, &desired);
        world.tick();
    }
    assert_snapshot!(lasting(&told(&world)));
    assert_eq!((world.ledger.calls.0, world.object.status.intents.len()), (0, 0));
}

/// Two queues of two nodes and a head: each limit is kept by all launches together.
#[test]
fn limits_hold_over_all_launches_together() {
    type Limit = fn(&mut Desired, &mut Catalog);
    let table: [(&str, Limit, i64); 4] = [
        ("instances", |desired, _| desired.settings.max_instances = 4, 3),
        ("cost", |desired, _| desired.settings.max_hourly_cost = 4_000_000, 3),
        ("instances of others", |_, catalog| catalog.other_instances = 17, 3),
        (
            "no price",
            |_, catalog| {
                catalog.prices.remove("c5n.metal");
            },
            1,
        ),
    ];
    let mut text = String::new();
    for (story, limit, most) in table {
        let (mut world, mut desired) = (World::new(owner()), cluster(&[2, 2], false));
        // Later than what is checked before anything is made.
        until(&mut world, &desired, |world| !world.groups.is_empty());
        limit(&mut desired, Arc::make_mut(&mut world.catalog));
        for _ in 0..30 {
            pass(&mut world, &desired);
            world.tick();
        }
        let launched: u32 = world.ledger.launched.values().sum();
        assert_eq!(i64::from(launched), most, "{story}");
        let _ = writeln!(text, "## {story}\n{}", told(&world));
    }
    assert_snapshot!(text);
}

/// An intent of a newer operator, at any thing, in any state, survives whatever is asked.
#[test]
fn an_intent_of_a_newer_operator_is_carried_untouched() {
    let (mut world, desired) = (World::new(owner()), cluster(&[1], true));
    for passes in 0..14 {
        for _ in 0..passes {
            pass(&mut world, &desired);
            world.tick();
        }
        let things: Vec<_> = (0..world.object.status.intents.len()).collect();
        for at in things {
            let mut newer = world.clone();
            let intent = &mut newer.object.status.intents[at];
            (intent.version, intent.payload) = (2, r#"{"of":"later"}"#.into());
            let carried = intent.clone();
            for asked in [&desired, &absent(&desired)] {
                for _ in 0..12 {
                    lawful(&newer, asked);
                    pass(&mut newer, asked);
                    newer.tick();
                }
            }
            assert!(newer.object.status.intents.contains(&carried));
            assert_eq!(newer.ledger.sins.len(), 0, "{:?}", newer.ledger.sins);
        }
        world = World::new(owner());
    }
    until(&mut world, &desired, |world| {
        world.object.status.intents.iter().any(|intent| intent.thing == "queue/compute")
    });
    for intent in &mut world.object.status.intents {
        intent.version = 2;
    }
    pass(&mut world, &desired);
    assert_snapshot!(told(&world));
}

/// The spec changes between the record of a launch and the call: the launch is looked up, and then
/// given up; what it may have made is found by its tags.
#[test]
fn a_spec_edited_in_flight_never_sends_the_old_token_with_another_request() {
    let (mut world, desired) = small();
    until(&mut world, &desired, |world| {
        world.object.status.intents.iter().any(|intent| intent.thing == "head")
    });
    let mut edited = desired.clone();
    edited.cluster.head_type = "c5.18xlarge".into();
    assert_snapshot!(diary(&mut world, &edited));
    assert_eq!(world.ledger.launched["head"], 1);
}

/// The same when the call was made and its answer was lost: what came of it is adopted.
#[test]
fn a_launch_whose_answer_was_lost_is_adopted_though_the_spec_changed() {
    let (mut world, desired) = small();
    until(&mut world, &desired, |world| {
        world.object.status.intents.iter().any(|intent| intent.thing == "head")
    });
    let plan = lawful(&world, &desired);
    let creates: Vec<_> =
        plan.steps.into_iter().filter(|step| matches!(step, Step::Create { .. })).collect();
    world.act(&desired, &creates);
    let mut edited = desired.clone();
    edited.cluster.key_name = Some("another".into());
    until(&mut world, &edited, ready);
    assert_eq!((world.live("head"), world.ledger.launched["head"]), (1, 1));
}

#[test]
fn users_whose_keys_have_no_room_are_refused_before_anything_is_made() {
    let (mut world, mut desired) = (World::new(owner()), cluster(&[1], false));
    let key = |index: usize| {
        format!("ssh-rsa {}", hpc_plan::names::digest(&[&index.to_string()]).repeat(20))
    };
    desired.cluster.users = (0..32)
        .map(|index| User {
            name: format!("user{index}"),
            uid: 5000 + i32::try_from(index).unwrap(),
            keys: (0..4).map(|other| key(100 * index + other)).collect(),
        })
        .collect();
    settle(&mut world, &desired);
    assert!(told(&world).contains(
        "HeadReady False/UnsupportedConfiguration: spec.users: the names and keys of 32 users do not fit"
    ), "{}", told(&world));
    assert_eq!(world.notes.len() + world.instances.len(), 0);
}

#[test]
fn users_that_change_are_told_to_the_head_and_nothing_else_moves() {
    let (mut world, mut desired) = (World::new(owner()), cluster(&[1], false));
    settle(&mut world, &desired);
    desired.cluster.users.push(User { name: "bob".into(), uid: 4002, keys: vec![] });
    let plan = pass(&mut world, &desired);
    let steps: Vec<_> = plan.steps.iter().map(ToString::to_string).collect();
    let users = r#"[{"keys":[],"name":"hpc","uid":4001},{"keys":[],"name":"bob","uid":4002}]"#;
    assert_eq!(steps, [format!("tell the head of users: {{\"users\":{users},\"v\":1}}")]);
    assert!(pass(&mut world, &desired).steps.is_empty());
}
