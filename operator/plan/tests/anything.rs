//! Whatever is observed, the planner answers, and its answer keeps the rules.
//!
//! Statuses can be forged and AWS can show anything: no observation may make it panic or do what no
//! plan may do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;

use hpc_crds::{
    AwsStatus, ConditionSet, ConditionStatus, ConditionType, HpcClusterStatus, Intent, IntentState,
    QueueStatus, Reason, StorageStatus, Time,
};
use hpc_plan::cloud::{Direction, Failure, Kind, Peer, Rule, Tags, Traffic};
use hpc_plan::cluster::{
    Account, Ailing, Demand, Desired, FileSystem, Goal, Group, Ill, Instance, InstanceState,
    Interface, Lifecycle, Numbers, Object, Observed, Outcome, PlacementGroup, Report,
    ReportedFleet, Step, Stranger, Volume, VolumeState, WorstNode, plan,
};
use hpc_plan::intents::Payload;
use hpc_plan::names::{ATTEMPT, GANG, MOUNTED, RETAINED, SLOTS};
use hpc_plan::rules::{Case, violations};
use hpc_plan::slots::Slots;
use hpc_plan::world::World;
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use support::{cluster, owner, settle};

const NOW: i64 = 1_800_000_000;

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(words).prop_map(str::to_owned)
}

fn role() -> impl Strategy<Value = String> {
    one_of(&[
        "head",
        "nodes",
        "head-interface",
        "state",
        "storage-fsx",
        "storage-old",
        "queue-compute",
        "queue-large",
        "queue-old",
        "",
        "queue-",
        "ü",
    ])
}

fn thing() -> impl Strategy<Value = String> {
    one_of(&[
        "head",
        "head-interface",
        "state",
        "storage/fsx",
        "storage/old",
        "queue/compute",
        "queue/large",
        "queue/old",
        "finalizer",
        "deletion",
        "status",
        "",
        "/",
        "queue/",
        "queue/compute/7-1",
        "queue/compute/8-1",
        "queue/large/9-1",
    ])
}

/// Tags of ours, with anything an attempt, slots or marks can be.
fn tags() -> impl Strategy<Value = Tags> {
    let attempt = one_of(&["1", "2", "3", "", "x", "-1", "2147483647", "99999999999"]);
    let slots = one_of(&["1", "1-2", "2", "2-3", "", ",,", "x", "1-999999"]);
    let gang = one_of(&["7-1", "8-1", "", "/"]);
    let mark = || option::weighted(0.2, Just("true".to_owned()));
    let gang = option::weighted(0.4, gang);
    (role(), option::of(attempt), option::of(slots), gang, mark(), mark()).prop_map(
        |(role, attempt, slots, gang, retained, mounted)| {
            let mut tags = owner().tags(&role, &Tags::new());
            let more = [
                (ATTEMPT, attempt),
                (SLOTS, slots),
                (GANG, gang),
                (RETAINED, retained),
                (MOUNTED, mounted),
            ];
            let more = more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            tags.extend(more);
            tags
        },
    )
}

fn id(prefix: &'static str) -> impl Strategy<Value = String> {
    (0..6_u8).prop_map(move |nth| format!("{prefix}-{nth}"))
}

fn time() -> impl Strategy<Value = Time> {
    let times = prop_oneof![
        9 => (NOW - 2000)..(NOW + 100),
        1 => select(vec![0, i64::from(i32::MAX), 253_402_207_200, -62_135_596_800]),
    ];
    times.prop_map(|second| Time::new(Timestamp::from_second(second).unwrap()))
}

fn slots() -> impl Strategy<Value = Slots> {
    vec(1..6_i32, 0..4).prop_map(|slots| slots.into_iter().collect())
}

fn payload() -> impl Strategy<Value = String> {
    let sound =
        (0..5_usize, -2..20_i32, 0..5_i32, slots()).prop_map(|(rung, round, failures, slots)| {
            let payload = Payload {
                rung,
                round,
                failures,
                instance_type: "c5n.18xlarge".into(),
                subnet: "subnet-a".into(),
                zone: "us-east-1a".into(),
                slots,
            };
            serde_json::to_string(&payload).unwrap()
        });
    prop_oneof![5 => sound, 1 => one_of(&["", "{}", "[", "null", r#"{"round":2147483647}"#])]
}

fn state() -> impl Strategy<Value = IntentState> {
    use IntentState::{Abandoned, Acted, Open, Settled};
    select(vec![Open, Acted, Settled, Abandoned])
}

fn reason() -> impl Strategy<Value = String> {
    one_of(&[
        "",
        "Capacity: none",
        "Denied: x",
        "Partial: x",
        "BootTimeout: x",
        "Failed: x",
        "Spent: ",
        "Deleting: x",
        "Superseded: x",
        "Vanished: x",
        "TokenMismatch",
        "ü",
        ": ",
        "New: x",
    ])
}

prop_compose! {
    /// An intent of this build has the token its names give; one of another build has any.
    fn intent()(
        version in select(vec![1, 1, 1, 2, 0]),
        thing in thing(),
        attempt in prop_oneof![9 => 1..5_i32, 1 => select(vec![0, -1, i32::MAX])],
        body_hash in one_of(&["", "0123456789abcdef"]),
        (state, payload, reason) in (state(), payload(), reason()),
        resource_ids in vec(id("i"), 0..3),
        changed_at in time(),
    ) -> Intent {
        let mut intent = Intent {
            version, thing, attempt, body_hash, state, payload, resource_ids, changed_at, reason,
            token: String::new(),
        };
        intent.token = owner().token(&intent.thing, &Payload::of(&intent).zone, attempt).0;
        intent
    }
}

fn status() -> impl Strategy<Value = HpcClusterStatus> {
    let account = option::weighted(0.9, one_of(&["111122223333", "111122223333", "999988887777"]));
    let storage = option::of((id("fs"), any::<bool>()));
    let queue = option::of(one_of(&["compute", "large", "old"]));
    (account, vec(intent(), 0..6), storage, queue, any::<bool>()).prop_map(
        |(account, mut intents, storage, queue, told)| {
            intents.sort_by(|a, b| a.thing.cmp(&b.thing));
            intents.dedup_by(|a, b| a.thing == b.thing);
            let now = Timestamp::from_second(NOW).unwrap();
            let mut set = ConditionSet::new(&[], 1, now);
            if told {
                set.set(ConditionType::Ready, ConditionStatus::False, Reason::Deleting, "x");
            }
            HpcClusterStatus {
                conditions: set.into_conditions(),
                aws: account.map(|account_id| AwsStatus { account_id, partition: "aws".into() }),
                intents,
                storage: Vec::from_iter(storage.map(|(file_system_id, reached_available)| {
                    StorageStatus {
                        name: "fsx".into(),
                        file_system_id,
                        reached_available,
                        ..StorageStatus::default()
                    }
                })),
                queues: Vec::from_iter(
                    queue.map(|name| QueueStatus { name, ..QueueStatus::default() }),
                ),
                ..HpcClusterStatus::default()
            }
        },
    )
}

fn rule() -> impl Strategy<Value = Rule> {
    let peer = prop_oneof![
        id("sg").prop_map(|id| Peer::Group(id.as_str().into())),
        Just(Peer::Cidr("0.0.0.0/0".into())),
    ];
    let direction = select(vec![Direction::Ingress, Direction::Egress]);
    let traffic = prop_oneof![Just(Traffic::All), Just(Traffic::Tcp(988, 988))];
    (direction, traffic, peer).prop_map(|(direction, traffic, peer)| Rule {
        direction,
        traffic,
        peer,
    })
}

/// Ids are unique in an answer of AWS.
fn unique<T>(mut all: Vec<T>, id: impl Fn(&T) -> String) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|item| seen.insert(id(item)));
    all
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let group =
        (id("sg"), role(), vec(rule(), 0..3), tags()).prop_map(|(id, role, rules, tags)| Group {
            id: id.as_str().into(),
            name: owner().resource(&role),
            rules,
            tags,
        });
    vec(group, 0..5).prop_map(|all| unique(all, |group| group.id.0.clone()))
}

fn instances() -> impl Strategy<Value = Vec<Instance>> {
    let state = select(vec![
        InstanceState::Pending,
        InstanceState::Running,
        InstanceState::ShuttingDown,
        InstanceState::Terminated,
        InstanceState::Stopped,
    ]);
    let zone = one_of(&["us-east-1a", "us-east-1b", ""]);
    let reason = option::of(one_of(&[
        "Server.InsufficientInstanceCapacity",
        "Client.UserInitiatedShutdown",
    ]));
    let instance = (id("i"), zone, state, reason, -1..3_i32, tags()).prop_map(
        |(id, zone, state, state_reason, launch_index, tags)| Instance {
            id: id.as_str().into(),
            instance_type: "c5n.18xlarge".into(),
            zone,
            state,
            state_reason,
            private_ip: None,
            launch_index,
            token: None,
            tags,
        },
    );
    prop_oneof![Just(vec![]), vec(instance, 0..6)]
        .prop_map(|all| unique(all, |found| found.id.0.clone()))
}

fn file_systems() -> impl Strategy<Value = Vec<FileSystem>> {
    let lifecycle = select(vec![
        Lifecycle::Creating,
        Lifecycle::Available,
        Lifecycle::Failed,
        Lifecycle::Updating,
        Lifecycle::Deleting,
        Lifecycle::Misconfigured,
    ]);
    let file_system = (id("fs"), lifecycle, one_of(&["", "abcdefgh"]), tags()).prop_map(
        |(id, lifecycle, mount_name, tags)| FileSystem {
            id: id.as_str().into(),
            lifecycle,
            failure: None,
            dns_name: String::new(),
            mount_name,
            tags,
        },
    );
    vec(file_system, 0..4).prop_map(|all| unique(all, |found| found.id.0.clone()))
}

fn volumes() -> impl Strategy<Value = Vec<Volume>> {
    let state = select(vec![
        VolumeState::Creating,
        VolumeState::Available,
        VolumeState::InUse,
        VolumeState::Deleting,
        VolumeState::Error,
    ]);
    let volume =
        (id("vol"), state, option::of(id("i")), tags()).prop_map(|(id, state, user, tags)| {
            Volume {
                id: id.as_str().into(),
                state,
                attached_to: user.map(|id| id.as_str().into()),
                tags,
            }
        });
    vec(volume, 0..4).prop_map(|all| unique(all, |found| found.id.0.clone()))
}

fn interfaces() -> impl Strategy<Value = Vec<Interface>> {
    let interface = (id("eni"), any::<bool>(), tags()).prop_map(|(id, in_use, tags)| Interface {
        id: id.as_str().into(),
        private_ip: "10.0.0.10".into(),
        in_use,
        tags,
    });
    vec(interface, 0..3).prop_map(|all| unique(all, |found| found.id.0.clone()))
}

fn pools() -> impl Strategy<Value = Vec<PlacementGroup>> {
    let pool = (role(), any::<bool>(), any::<bool>()).prop_map(|(role, available, deleting)| {
        PlacementGroup { name: owner().resource(&role), available, deleting }
    });
    vec(pool, 0..3).prop_map(|all| unique(all, |found| found.name.clone()))
}

fn report() -> impl Strategy<Value = Report> {
    let gang = || one_of(&["", "7-1", "8-1", "9-1"]);
    let queue = || one_of(&["compute", "large", "x", ""]);
    let fleet = || {
        (queue(), gang(), -1..4_i32, slots())
            .prop_map(|(queue, gang, attempt, ready)| ReportedFleet { queue, gang, attempt, ready })
    };
    let numbers = (queue(), slots(), -1..5_i32).prop_map(|(name, standing, most)| Numbers {
        name,
        standing,
        most,
        idle_seconds: 600,
    });
    let worst = (id("i"), -1..2_i32).prop_map(|(instance_id, exit)| WorstNode {
        name: "compute-1".into(),
        instance_id,
        step: "storage".into(),
        exit,
        message: "\"queues\":[ ü".into(),
    });
    let more = (vec(fleet(), 0..3), vec(numbers, 0..3), vec(worst, 0..3));
    let demand =
        (gang(), queue(), slots()).prop_map(|(gang, queue, slots)| Demand { gang, queue, slots });
    let state = one_of(&["Ready", "Failed", "Booting", "", "?"]);
    (id("i"), state, vec(fleet(), 0..4), vec(demand, 0..3), any::<bool>(), more).prop_map(
        |(instance_id, state, fleets, demand, cut, (left, queues, worst))| Report {
            instance_id,
            state,
            fleets,
            demand,
            cut,
            left,
            queues,
            worst,
            ..Report::default()
        },
    )
}

fn ailing() -> impl Strategy<Value = Ailing> {
    let ill = select(vec![Ill::Impaired, Ill::Event("instance-stop".into())]);
    (id("i"), ill).prop_map(|(id, ill)| Ailing { id: id.as_str().into(), ill })
}

fn failure() -> impl Strategy<Value = Failure> {
    let kind = select(vec![
        Kind::NotFound,
        Kind::Exists,
        Kind::Capacity,
        Kind::Quota,
        Kind::Throttled,
        Kind::Denied,
        Kind::Credentials,
        Kind::NotOffered,
        Kind::Invalid,
        Kind::Dependency,
        Kind::InUse,
        Kind::TokenMismatch,
        Kind::TokenSpent,
        Kind::Unknown,
    ]);
    let call = (
        one_of(&["ec2", "fsx", "ssm", "sts", "?"]),
        one_of(&["DescribeInstances", "RunInstances", ""]),
    );
    (kind, call).prop_map(|(kind, (service, operation))| Failure {
        kind,
        service,
        operation,
        code: "Code".into(),
        message: "ü".repeat(400),
    })
}

prop_compose! {
    fn observed()(
        (finalizer, status, account, failures, fits) in (
            prop::bool::weighted(0.9), status(), prop::bool::weighted(0.9),
            prop_oneof![9 => Just(vec![]), 1 => vec(failure(), 1..3)], prop::bool::weighted(0.9)),
        (groups, placement_groups, interfaces, volumes) in (groups(), pools(), interfaces(), volumes()),
        (instances, file_systems, report, online, ailing) in (
            instances(), file_systems(), option::of(report()), vec(id("i"), 0..3), vec(ailing(), 0..3)),
        (document_ready, parameter_exists, stranger, live, cost) in (
            any::<bool>(), any::<bool>(), prop::bool::weighted(0.1),
            select(vec![0, 3, 19, i64::MAX]), select(vec![0, 1_000_000, i64::MAX])),
    ) -> Observed {
        let whole = World::new(owner()).observe();
        Observed {
            object: Object { finalizer, status },
            account: account.then(|| Account { id: "111122223333".into(), partition: "aws".into() }),
            failures,
            subnets: if fits { whole.subnets } else { vec![] },
            types: if fits { whole.types } else { BTreeMap::new() },
            strangers: Vec::from_iter(stranger.then(|| Stranger {
                id: "i-9".into(), uid: "0ld".into(), retained: false,
            })),
            groups, placement_groups, interfaces, volumes, instances, file_systems,
            document_ready, parameter_exists, report, ailing,
            agents_online: online.iter().map(|id| id.as_str().into()).collect(),
            installation_instances: live,
            installation_hourly_cost: cost,
            ..whole
        }
    }
}

fn desired() -> impl Strategy<Value = Desired> {
    let goal = select(vec![Goal::Present, Goal::Present, Goal::Absent, Goal::Paused]);
    (
        goal,
        select(vec![vec![], vec![0], vec![2], vec![1, 1]]),
        any::<bool>(),
        prop::bool::weighted(0.1),
        0..3_i32,
    )
        .prop_map(|(goal, nodes, storage, dry_run, more)| {
            let mut desired = Desired { goal, ..cluster(&nodes, storage) };
            desired.cluster.queues.iter_mut().for_each(|queue| queue.most += more);
            desired.settings.dry_run = dry_run;
            desired
        })
}

/// The observation, each of its fields as it is or as it would be in a cluster that stands.
fn mixed(anything: Observed, desired: &Desired, sound: [bool; 6]) -> Observed {
    let standing = standing(desired);
    let [network, making, machines, storage, status, reports] = sound;
    let mut mixed = anything;
    if network {
        mixed.groups = standing.groups;
        mixed.placement_groups = standing.placement_groups;
        mixed.document_ready = true;
        mixed.subnets = standing.subnets;
        mixed.types = standing.types;
        mixed.failures = vec![];
    }
    if making {
        mixed.interfaces = standing.interfaces;
        mixed.volumes = standing.volumes;
    }
    if making && !machines {
        let free = mixed.interfaces.iter_mut().map(|found| &mut found.in_use);
        free.for_each(|in_use| *in_use = false);
        let free = mixed.volumes.iter_mut().map(|found| &mut found.attached_to);
        free.for_each(|user| *user = None);
    }
    if machines {
        mixed.instances = standing.instances;
    }
    if storage {
        mixed.file_systems = standing.file_systems;
    }
    if status {
        mixed.object = standing.object;
    }
    if reports {
        mixed.agents_online = standing.agents_online;
        mixed.report = standing.report;
    }
    mixed
}

/// What is seen of a cluster that stands as asked.
fn standing(desired: &Desired) -> Observed {
    thread_local! {
        static STANDING: RefCell<BTreeMap<String, Observed>> = RefCell::default();
    }
    let mut present = desired.clone();
    (present.goal, present.settings.dry_run) = (Goal::Present, false);
    let key = format!("{:?}", present.cluster);
    STANDING.with_borrow_mut(|all| {
        let whole = || {
            let mut world = World::new(owner());
            settle(&mut world, &present);
            world.observe()
        };
        all.entry(key).or_insert_with(whole).clone()
    })
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Three passes over the same view of AWS: what the first stores, the next may act on.
    #[test]
    fn whatever_is_observed_the_plan_keeps_the_rules(
        anything in observed(), desired in desired(), answers in vec(option::of(failure()), 8),
        sound in [prop::bool::weighted(0.8), prop::bool::weighted(0.5), prop::bool::weighted(0.2),
            prop::bool::weighted(0.5), prop::bool::weighted(0.2), prop::bool::weighted(0.5)],
    ) {
        let mut observed = mixed(anything, &desired, sound);
        let mut now = Timestamp::from_second(NOW).unwrap();
        for _ in 0..3 {
            let plan = plan(&desired, &observed, now);
            let case = Case { desired: &desired, observed: &observed, plan: &plan, now };
            let broken = violations(case);
            prop_assert!(broken.is_empty(), "{broken:#?}\n{plan}\n{observed:#?}");
            now = now.checked_add(SignedDuration::from_secs(1)).unwrap();
            let outcomes = plan.steps.iter().zip(answers.iter().cloned()).map(|(step, answer)| {
                Outcome::of(step, answer.map_or_else(|| Ok(vec!["x-1".into()]), Err))
            });
            let outcomes: Vec<_> = outcomes.collect();
            observed.object.status = plan.status.with(&outcomes, now).status;
            observed.object.finalizer |= plan.steps.contains(&Step::AddFinalizer);
        }
    }
}
