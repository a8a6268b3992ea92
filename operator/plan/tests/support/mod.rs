//! Clusters to plan for, small and with short waits, and a pass that asserts the rules.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

pub mod diary;
pub mod explore;

use std::time::Duration;

use hpc_crds::DeletionPolicy;
use hpc_plan::cluster::{
    Cluster, ClusterPlan, Desired, Goal, Queue, Settings, Storage, User, plan,
};
use hpc_plan::names::Owner;
use hpc_plan::rules::{Case, violations};
use hpc_plan::slots::Slots;
use hpc_plan::world::World;

/// The owner of every cluster here.
pub fn owner() -> Owner {
    Owner {
        installation: "lab".into(),
        uid: "7f4e1d9a".into(),
        namespace: "cfd".into(),
        name: "wing".into(),
    }
}

/// Waits of a few ticks of ten seconds, in the order of the real ones.
pub fn settings() -> Settings {
    Settings {
        installation: "lab".into(),
        agent_timeout: Duration::from_secs(40),
        boot_timeout: Duration::from_mins(1),
        visibility_window: Duration::from_secs(30),
        lookup_window: Duration::from_secs(50),
        capacity_backoff: Duration::from_secs(10),
        demand_poll: Duration::from_secs(10),
        finalizer_gap: Duration::from_secs(5),
        ..Settings::default()
    }
}

/// A queue of EFA nodes in a placement group, with a second type to fall back to.
pub fn queue(name: &str, nodes: i32) -> Queue {
    Queue {
        name: name.into(),
        types: vec!["c5n.18xlarge".into(), "c5n.metal".into()],
        nodes: Slots::span(1, nodes),
        most: nodes,
        idle_timeout: Duration::from_mins(10),
        efa: true,
        grouped: true,
        multithreading: false,
        local_scratch: "/local".into(),
    }
}

/// A file system that goes with its cluster.
pub fn scratch() -> Storage {
    Storage {
        name: "fsx".into(),
        mount_path: "/fsx".into(),
        policy: DeletionPolicy::Delete,
        deployment_type: "SCRATCH_2",
        capacity_gib: 1200,
        per_unit_throughput: None,
        version: "2.15".into(),
    }
}

/// A cluster with these numbers of nodes in its queues, and a file system or none.
pub fn cluster(nodes: &[i32], storage: bool) -> Desired {
    let names = ["compute", "large"];
    let queues = names.iter().zip(nodes).map(|(name, nodes)| queue(name, *nodes));
    Desired {
        owner: owner(),
        generation: 1,
        goal: Goal::Present,
        cluster: Cluster {
            region: "us-east-1".into(),
            head_subnet: "subnet-a".into(),
            compute_subnets: vec!["subnet-a".into()],
            head_profile: "hpc-head".into(),
            node_profile: "hpc-node".into(),
            image_family: "AmazonLinux2023".into(),
            image_id: None,
            head_type: "c5n.2xlarge".into(),
            state_gib: 50,
            state_policy: DeletionPolicy::Delete,
            queues: queues.collect(),
            storages: storage.then(scratch).into_iter().collect(),
            key_name: None,
            ssh_cidrs: vec![],
            tags: [].into(),
            users: vec![User { name: "hpc".into(), uid: 4001, keys: vec![] }],
        },
        settings: settings(),
        ignore_predecessor: None,
    }
}

/// The same cluster on its way out.
pub fn absent(desired: &Desired) -> Desired {
    Desired { goal: Goal::Absent, ..desired.clone() }
}

/// The plan of this moment, after every rule was asserted on it.
pub fn lawful(world: &World, desired: &Desired) -> ClusterPlan {
    let observed = world.observe();
    let plan = plan(desired, &observed, world.now);
    let case = Case { desired, observed: &observed, plan: &plan, now: world.now };
    let broken = violations(case);
    assert!(broken.is_empty(), "{broken:#?}\n{plan}");
    plan
}

/// One whole pass under the rules.
pub fn pass(world: &mut World, desired: &Desired) -> ClusterPlan {
    let plan = lawful(world, desired);
    world.finish(desired, &plan);
    plan
}

/// Passes and ticks until a pass and a tick change nothing any more.
pub fn settle(world: &mut World, desired: &Desired) {
    for _ in 0..200 {
        let before = world.fingerprint(&desired.settings);
        pass(world, desired);
        world.tick();
        if world.fingerprint(&desired.settings) == before {
            return;
        }
    }
    panic!("it never settles");
}
