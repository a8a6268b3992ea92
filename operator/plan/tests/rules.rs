//! Every rule bites: a sound plan is changed in one way, and the rule says so.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use hpc_crds::{Intent, IntentState};
use hpc_plan::cloud::{Kind, Token};
use hpc_plan::cluster::{Body, ClusterPlan, Desired, Goal, Observed, Resource, Step};
use hpc_plan::names::{ATTEMPT, CLUSTER_UID, MOUNTED};
use hpc_plan::rules::{Case, violations};
use hpc_plan::world::World;
use support::{absent, cluster, lawful, owner, pass, settle};

/// A plan with everything it was made from, to be spoilt.
struct Spoilt {
    desired: Desired,
    observed: Observed,
    plan: ClusterPlan,
    world: World,
}

impl Spoilt {
    /// After so many passes and ticks of a cluster that is built.
    fn after(passes: usize) -> Self {
        let (desired, mut world) = (cluster(&[2], true), World::new(owner()));
        for _ in 0..passes {
            pass(&mut world, &desired);
            world.tick();
        }
        Self::of(world, desired)
    }

    /// Once it stands.
    fn standing() -> Self {
        let (desired, mut world) = (cluster(&[2], true), World::new(owner()));
        settle(&mut world, &desired);
        Self::of(world, desired)
    }

    /// Once the finalizer may go.
    fn gone() -> Self {
        let (desired, mut world) = (cluster(&[], false), World::new(owner()));
        settle(&mut world, &desired);
        let desired = absent(&desired);
        for _ in 0..60 {
            if lawful(&world, &desired).steps == [Step::RemoveFinalizer] {
                return Self::of(world, desired);
            }
            pass(&mut world, &desired);
            world.tick();
        }
        panic!("the finalizer never goes");
    }

    fn of(world: World, desired: Desired) -> Self {
        let (observed, plan) = (world.observe(), lawful(&world, &desired));
        Self { desired, observed, plan, world }
    }

    /// When the next plan creates this thing.
    fn creating(thing: &str) -> Self {
        let all = (0..40).map(Self::after);
        let mut with = all.filter(|spoilt| spoilt.create(thing).is_some());
        with.next().expect("it is created some time")
    }

    fn create(&self, wanted: &str) -> Option<usize> {
        let mut steps = self.plan.steps.iter();
        steps.position(|step| matches!(step, Step::Create { thing, .. } if thing == wanted))
    }

    fn body(&mut self, thing: &str) -> &mut Body {
        let at = self.create(thing).expect("a create");
        let Step::Create { body, .. } = &mut self.plan.steps[at] else { panic!("a create") };
        body
    }

    fn stored(&mut self, thing: &str) -> &mut Intent {
        let mut intents = self.observed.object.status.intents.iter_mut();
        intents.find(|intent| intent.thing == thing).expect("a stored intent")
    }

    fn broken(&self) -> Vec<String> {
        let Self { desired, observed, plan, world } = self;
        violations(Case { desired, observed, plan, now: world.now })
    }
}

/// Spoils a plan and expects the rule that says so, in its words.
fn check(mut spoilt: Spoilt, spoil: impl Fn(&mut Spoilt), words: &str) {
    assert_eq!(spoilt.broken(), Vec::<String>::new(), "before it was spoilt");
    spoil(&mut spoilt);
    let broken = spoilt.broken();
    assert!(broken.iter().any(|rule| rule.contains(words)), "{words}: {broken:#?}");
}

#[test]
fn a_create_needs_its_stored_open_intent() {
    let create = || Spoilt::creating("head");
    let words = "head is created though no stored intent says so";
    check(create(), |plan| plan.observed.object.status.intents.clear(), words);
    check(create(), |plan| plan.stored("head").state = IntentState::Abandoned, words);
    check(create(), |plan| plan.stored("head").body_hash = "0".into(), words);
    check(create(), |plan| plan.stored("head").token = "0".repeat(40), words);
    let random = |spoilt: &mut Spoilt| {
        let mut intents = spoilt.plan.status.status.intents.iter_mut();
        intents.next().unwrap().token = Token("f".repeat(40)).0;
    };
    check(create(), random, "is not derived from its names");
}

#[test]
fn a_create_says_whose_it_is() {
    for tag in [CLUSTER_UID, ATTEMPT] {
        let untag = |spoilt: &mut Spoilt| {
            let Body::Launch(body) = spoilt.body("head") else { panic!("a launch") };
            body.tags.remove(tag);
        };
        check(Spoilt::creating("head"), untag, "untagged: create head");
    }
}

#[test]
fn a_resource_has_one_step_in_a_plan() {
    let twice = |spoilt: &mut Spoilt| spoilt.plan.steps.push(spoilt.plan.steps[0].clone());
    check(Spoilt::after(1), twice, "2 steps on hpcops-7f4e1d9a-head");
}

#[test]
fn the_finalizer_goes_last_and_late() {
    let standing = |spoilt: &mut Spoilt| spoilt.plan.steps.push(Step::RemoveFinalizer);
    check(Spoilt::standing(), standing, "from an object that stays");
    check(Spoilt::standing(), standing, "the finalizer goes, sg-");
    for (note, words) in [("finalizer", "without an earlier look"), ("deletion", "would show")] {
        let forget = |spoilt: &mut Spoilt| {
            spoilt.observed.object.status.intents.retain(|intent| intent.thing != note);
        };
        check(Spoilt::gone(), forget, words);
        let just_now = |spoilt: &mut Spoilt| {
            let now = spoilt.world.now.into();
            spoilt.stored(note).changed_at = now;
        };
        check(Spoilt::gone(), just_now, words);
    }
}

#[test]
fn only_what_is_seen_as_ours_is_touched() {
    let end = |spoilt: &mut Spoilt| {
        let instances = vec![spoilt.observed.instances[0].id.clone()];
        spoilt.plan.steps.push(Step::Terminate { instances, because: String::new() });
        spoilt.observed.instances[0].tags.insert(CLUSTER_UID.into(), "another".into());
    };
    check(Spoilt::standing(), end, "not seen as ours: terminate");
    let delete = |spoilt: &mut Spoilt| {
        let resource = Resource::Group("sg-unseen".into());
        spoilt.plan.steps.push(Step::Delete { resource, because: String::new() });
    };
    check(Spoilt::standing(), delete, "not seen as ours: delete security group sg-unseen");
}

#[test]
fn data_is_deleted_only_when_somebody_said_so() {
    let delete = |spoilt: &mut Spoilt| {
        let id = spoilt.observed.file_systems[0].id.clone();
        let resource = Resource::FileSystem(id, Token(String::new()));
        spoilt.plan.steps.push(Step::Delete { resource, because: String::new() });
    };
    check(Spoilt::standing(), delete, "may hold data and is deleted");
    let failed = |spoilt: &mut Spoilt| {
        spoilt.observed.file_systems[0].lifecycle = hpc_plan::cluster::Lifecycle::Failed;
        spoilt.observed.object.status.storage.clear();
        spoilt.stored("storage/fsx").state = IntentState::Abandoned;
        assert!(spoilt.observed.file_systems[0].tags.contains_key(MOUNTED));
        delete(spoilt);
    };
    check(Spoilt::standing(), failed, "may hold data and is deleted");
}

#[test]
fn a_partial_gang_goes_back() {
    let given_up = |spoilt: &mut Spoilt| {
        spoilt.stored("queue/compute").state = IntentState::Abandoned;
        let intent = spoilt.stored("queue/compute").clone();
        spoilt.plan.status.status.intents = vec![intent];
    };
    check(Spoilt::standing(), given_up, "2 nodes of the partial gang of queue/compute are kept");
}

#[test]
fn what_is_stopped_does_nothing() {
    let stops: [fn(&mut Spoilt); 5] = [
        |spoilt| spoilt.observed.account.as_mut().unwrap().id = "999988887777".into(),
        |spoilt| spoilt.observed.account = None,
        |spoilt| spoilt.desired.settings.dry_run = true,
        |spoilt| spoilt.desired.goal = Goal::Paused,
        |spoilt| {
            let mut world = World::new(owner());
            world.fate.reads = vec![Kind::Throttled];
            spoilt.observed.failures = world.observe().failures;
        },
    ];
    for stop in stops {
        check(Spoilt::after(1), stop, "stopped, yet: create security group");
    }
}

#[test]
fn launches_keep_the_limits_together() {
    let count = |spoilt: &mut Spoilt| spoilt.desired.settings.max_instances = 2;
    check(Spoilt::creating("queue/compute"), count, "2 launches pass --max-instances 2");
    let cost = |spoilt: &mut Spoilt| spoilt.desired.settings.max_hourly_cost = 2_999_999;
    check(Spoilt::creating("queue/compute"), cost, "2 launches pass --max-hourly-cost");
    let large = |spoilt: &mut Spoilt| {
        let Body::Launch(body) = spoilt.body("head") else { panic!("a launch") };
        body.user_data = format!("{}eHg=", "eHh4".repeat(5461));
    };
    check(Spoilt::creating("head"), large, "16385 bytes of user data");
}

#[test]
fn an_intent_of_another_version_is_carried() {
    let newer = |spoilt: &mut Spoilt| spoilt.stored("state").version = 2;
    check(Spoilt::standing(), newer, "the intent of state of version 2 is not carried");
}
