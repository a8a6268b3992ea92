//! Every state a cluster can come into, each visited once, with every fault at each.
//!
//! The fair course is: a whole pass, then a tick, for ever. From each state of a course every fault
//! of [`faults`] is tried, as long as the course may have one more; what comes of it is a course of
//! its own. Two states are one when they will behave alike, so courses that meet are followed once.
//!
//! What is exhaustive: with one fault, every fault at every state of every course that shape of
//! cluster can take, every prefix and suffix of the steps of every plan as a crash, and every
//! earlier status as a rollback. With two faults the same for every pair, but that a rollback after
//! another fault goes back along the course on which its state was met first. What is not: orders
//! of the steps of one plan other than its own and its reverse, a tick between two of them, and
//! delays other than those of the world.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use hpc_crds::{ConditionType, condition};
use hpc_plan::cloud::{FileSystemId, InstanceId, Kind};
use hpc_plan::cluster::{ClusterPlan, Desired, Goal, Ill, Lifecycle, Queue, Settings, Step};
use hpc_plan::rules::{Case, unrest};
use hpc_plan::slots::Slots;
use hpc_plan::world::{Job, Ledger, Machine, Unseen, World};

use super::lawful;

/// More passes than any course needs.
const LONGEST: usize = 400;

/// A cluster to explore: what may be asked of it, the first being how it starts.
pub struct Scene {
    /// In words.
    pub name: String,
    /// What may be asked.
    pub asks: Vec<Desired>,
    /// How the world starts.
    pub world: World,
    /// Faults one course may have.
    pub faults: u8,
    /// Which of them.
    pub kinds: fn(&Fault) -> bool,
    /// How it may end though `Ready` is not True.
    pub may_stall: fn(&World) -> bool,
}

/// One thing that goes wrong, or is asked for, at one point of a course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies after these steps of the plan; nothing is published.
    Crash(Vec<usize>),
    /// The effect of this step happens, its answer is lost.
    LostAnswer(usize),
    /// This step is refused.
    Refused(usize, Kind),
    /// The stored status is gone.
    StatusLost,
    /// The stored status is the one of so many writes ago.
    StatusBack(usize),
    /// The same after a restore that took longer than AWS hides what it has made.
    Restored(usize),
    /// So many ticks without a pass.
    Asleep(u8),
    /// A pass without a tick after it.
    Hurried,
    /// One observation fails.
    Blind(Kind),
    /// One observation misses things without saying so.
    Unseen(Unseen),
    /// Something else is asked for.
    Asked(usize),
    /// A job ends.
    JobOver(usize),
    /// An instance ends.
    Killed(InstanceId),
    /// A file system turns FAILED.
    Failed(FileSystemId),
    /// Terminated instances are shown no more.
    Forgotten,
    /// There is no capacity for a while: of the first type, or of any.
    NoCapacity(bool),
    /// The next file system ends as FAILED.
    FileSystemFails,
    /// The next head's agent never comes online.
    HeadMute,
    /// The next head's boot fails.
    HeadBroken,
    /// The next gang loses a member after its launch.
    GangDies,
    /// A member of the next gang fails to boot.
    GangBroken,
    /// A machine turns sick, or AWS is about to take it.
    Ailing(InstanceId, Ill),
}

impl Fault {
    /// Whether only the operator is hit: then exactly as much is launched as without it.
    fn is_ours(&self) -> bool {
        match self {
            Self::Crash(_)
            | Self::LostAnswer(_)
            | Self::Refused(..)
            | Self::StatusLost
            | Self::StatusBack(_)
            | Self::Restored(_)
            | Self::Asleep(_)
            | Self::Hurried
            | Self::Blind(_)
            | Self::Unseen(_)
            | Self::NoCapacity(_) => true,
            Self::Asked(_)
            | Self::JobOver(_)
            | Self::Killed(_)
            | Self::Failed(_)
            | Self::Forgotten
            | Self::FileSystemFails
            | Self::HeadMute
            | Self::HeadBroken
            | Self::GangDies
            | Self::GangBroken
            | Self::Ailing(..) => false,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Crash(_) => "crash",
            Self::LostAnswer(_) => "lost answer",
            Self::Refused(..) => "refusal",
            Self::StatusLost => "status lost",
            Self::StatusBack(_) => "status rolled back",
            Self::Restored(_) => "status restored from a backup",
            Self::Asleep(_) => "operator down",
            Self::Hurried => "two passes at once",
            Self::Blind(_) => "failed read",
            Self::Unseen(_) => "read that misses things",
            Self::Asked(_) => "spec edited or deleted",
            Self::JobOver(_) => "job over",
            Self::Killed(_) => "instance died",
            Self::Failed(_) => "file system failed late",
            Self::Forgotten => "terminated not shown",
            Self::NoCapacity(_) => "no capacity",
            Self::FileSystemFails => "file system fails early",
            Self::HeadMute => "agent never online",
            Self::HeadBroken => "boot fails",
            Self::GangDies => "gang loses a member",
            Self::GangBroken => "node fails to boot",
            Self::Ailing(..) => "machine ails",
        }
    }
}

/// A state of a course.
#[derive(Clone)]
struct State {
    world: World,
    ask: usize,
    /// No fault so far but of the operator's own.
    strict: bool,
}

/// What was visited.
#[derive(Default)]
pub struct Tally {
    /// Distinct states.
    pub states: usize,
    /// Faults tried, by kind.
    pub points: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Both.
    pub fn add(&mut self, other: Self) {
        self.states += other.states;
        for (word, count) in other.points {
            *self.points.entry(word).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: usize = self.points.values().sum();
        write!(f, "{} states, {total} points", self.states)?;
        self.points.iter().try_for_each(|(word, count)| write!(f, "\n  {count:6} {word}"))
    }
}

/// Visits everything a scene can come to; panics with the course that went wrong.
pub fn explore(scene: &Scene) -> Tally {
    let mut explorer = Explorer {
        scene,
        clean: None,
        seen: HashMap::new(),
        tally: Tally::default(),
        course: vec![scene.name.clone()],
    };
    let start = State { world: scene.world.clone(), ask: 0, strict: true };
    explorer.follow(start.clone(), 0);
    explorer.follow(start, scene.faults);
    explorer.tally.states = explorer.seen.len();
    explorer.tally
}

struct Explorer<'a> {
    scene: &'a Scene,
    /// The ledger of the course without faults.
    clean: Option<Ledger>,
    /// Faults that were still to be had when a state was visited.
    seen: HashMap<u64, u8>,
    tally: Tally,
    course: Vec<String>,
}

impl Explorer<'_> {
    fn follow(&mut self, mut state: State, faults: u8) {
        let mut walked = HashSet::new();
        let depth = self.course.len();
        for _ in 0..LONGEST {
            let key = identity(&state, &self.scene.asks[0].settings);
            if self.seen.get(&key).is_some_and(|had| *had >= faults) && !walked.contains(&key) {
                self.course.truncate(depth);
                return;
            }
            assert!(walked.insert(key), "it goes round in circles{}", self.told(&state));
            self.seen.insert(key, faults);
            self.judge(&state);
            let desired = &self.scene.asks[state.ask];
            let unheld = desired.goal == Goal::Absent && !state.world.object.finalizer;
            if state.world.released || unheld {
                self.end(&state);
                self.course.truncate(depth);
                return;
            }
            self.course.push(String::new());
            let plan = self.planned(&state, desired);
            self.course.pop();
            if faults > 0 {
                self.branch(&state, &plan, faults);
            }
            let writes = state.world.writes();
            state.world.finish(desired, &plan);
            let wrote = state.world.writes() != writes;
            self.course.push(plan.to_string());
            state.world.tick();
            if identity(&state, &self.scene.asks[0].settings) == key {
                assert!(!wrote, "a fixpoint writes{}", self.told(&state));
                self.fixpoint(&state);
                self.course.truncate(depth);
                return;
            }
        }
        panic!("no end after {LONGEST} passes{}", self.told(&state));
    }

    fn planned(&self, state: &State, desired: &Desired) -> ClusterPlan {
        let lawful = std::panic::catch_unwind(|| lawful(&state.world, desired));
        lawful.unwrap_or_else(|_| panic!("unlawful{}", self.told(state)))
    }

    fn branch(&mut self, state: &State, plan: &ClusterPlan, left: u8) {
        for fault in faults(self.scene, state, plan) {
            if !(self.scene.kinds)(&fault) {
                continue;
            }
            *self.tally.points.entry(fault.word()).or_default() += 1;
            let depth = self.course.len();
            self.course.push(format!("!!! {fault:?}\n"));
            let after = suffer(self.scene, state.clone(), plan, &fault);
            self.follow(after, left - 1);
            self.course.truncate(depth);
        }
    }

    fn judge(&self, state: &State) {
        let sins = &state.world.ledger.sins;
        assert!(sins.is_empty(), "{sins:?}{}", self.told(state));
    }

    fn end(&mut self, state: &State) {
        let left = state.world.leftovers();
        assert!(left.is_empty(), "left behind: {left:?}{}", self.told(state));
        self.compare(state);
    }

    fn fixpoint(&mut self, state: &State) {
        let desired = &self.scene.asks[state.ask];
        let observed = state.world.observe();
        let plan = lawful(&state.world, desired);
        let conditions = &observed.object.status.conditions;
        let ready = condition::is_true(conditions, ConditionType::Ready);
        match desired.goal {
            Goal::Absent => panic!("the deletion hangs{}", self.told(state)),
            Goal::Paused => {}
            Goal::Present if ready => {
                let case = Case { desired, observed: &observed, plan: &plan, now: state.world.now };
                let unrest = unrest(case);
                assert!(unrest.is_empty(), "{unrest:?}{}", self.told(state));
                self.whole(state, desired);
                self.compare(state);
            }
            Goal::Present => {
                let allowed = (self.scene.may_stall)(&state.world);
                assert!(allowed, "not Ready for ever\n{plan}{}", self.told(state));
            }
        }
    }

    /// Ready means that exactly what is asked stands.
    fn whole(&self, state: &State, desired: &Desired) {
        let world = &state.world;
        assert_eq!(world.live("head"), 1, "heads{}", self.told(state));
        for queue in &desired.cluster.queues {
            let live = world.live(&format!("queue-{}", queue.name));
            let wanted = wanted(world, queue);
            assert_eq!(live, wanted, "nodes of {}{}", queue.name, self.told(state));
        }
        let queues = desired.cluster.queues.iter();
        let wanted = 1 + queues.map(|queue| wanted(world, queue)).sum::<usize>();
        let live = world.instances.values().filter(|found| found.is_live()).count();
        assert_eq!(live, wanted, "instances{}", self.told(state));
        let files = world.file_systems.values();
        let files = files.filter(|found| found.lifecycle == Lifecycle::Available).count();
        assert!(files >= desired.cluster.storages.len(), "file systems{}", self.told(state));
    }

    /// Faults of the operator's own change nothing in what was ever made.
    fn compare(&mut self, state: &State) {
        let ledger = &state.world.ledger;
        match &self.clean {
            None => self.clean = Some(ledger.clone()),
            Some(clean) if state.strict && state.ask == 0 => {
                assert_eq!(clean.launched, ledger.launched, "launches{}", self.told(state));
                assert_eq!(clean.made, ledger.made, "creates{}", self.told(state));
            }
            Some(_) => {}
        }
    }

    fn told(&self, state: &State) -> String {
        let mut course: Vec<(usize, &str)> = vec![];
        for text in self.course.iter().filter(|text| !text.is_empty()) {
            match course.last_mut() {
                Some((count, last)) if last == text => *count += 1,
                _ => course.push((1, text)),
            }
        }
        let course = course.iter().map(|(count, text)| format!("{count} x {text}"));
        let machines = state.world.instances.iter().map(|(id, found)| {
            let slot = found.slot();
            format!("{id} {} {slot:?} {} hidden {}", found.role(), found.state, found.hidden)
        });
        let (course, machines): (Vec<_>, Vec<_>) = (course.collect(), machines.collect());
        let (course, machines) = (course.join("--\n"), machines.join("\n"));
        format!("\n===== asked {}\n{course}\n===== {machines}", state.ask)
    }
}

/// Nodes that always run, and those of the jobs that the queue is large enough for, or that run.
fn wanted(world: &World, queue: &Queue) -> usize {
    let runs = |job: &&Job| {
        world.scheduler.gangs.iter().any(|gang| {
            gang.queue == job.queue && job.slots.iter().any(|slot| gang.nodes.contains_key(&slot))
        })
    };
    let fits = |job: &&Job| job.slots.iter().all(|slot| slot <= queue.most);
    let jobs = world.scheduler.jobs.iter().filter(|job| job.queue == queue.name);
    let jobs = jobs.filter(|job| fits(job) || runs(job));
    let slots: Slots = jobs.flat_map(|job| job.slots.iter()).collect();
    queue.nodes.len() + slots.without(&queue.nodes).len()
}

/// What makes two states one.
fn identity(state: &State, settings: &Settings) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hash = DefaultHasher::new();
    (state.world.fingerprint(settings), state.ask, state.strict).hash(&mut hash);
    hash.finish()
}

/// Everything that can go wrong at a state with this plan.
fn faults(scene: &Scene, state: &State, plan: &ClusterPlan) -> Vec<Fault> {
    let mut faults = crashes(plan.steps.len());
    for (at, step) in plan.steps.iter().enumerate() {
        if let Step::Create { .. } = step {
            let kinds = [Kind::Throttled, Kind::Unknown, Kind::Denied, Kind::Quota];
            faults.push(Fault::LostAnswer(at));
            faults.extend(kinds.map(|kind| Fault::Refused(at, kind)));
        } else {
            faults.push(Fault::Refused(at, Kind::Throttled));
        }
    }
    faults.push(Fault::StatusLost);
    faults.extend((1..=state.world.writes()).map(Fault::StatusBack));
    faults.extend((1..=state.world.writes()).map(Fault::Restored));
    faults.extend([Fault::Asleep(1), Fault::Asleep(12), Fault::Hurried]);
    faults.push(Fault::Blind(Kind::Throttled));
    faults.extend([Unseen::Everything, Unseen::Instances].map(Fault::Unseen));
    // A deletion cannot be taken back.
    if scene.asks[state.ask].goal != Goal::Absent {
        faults.extend((0..scene.asks.len()).filter(|ask| *ask != state.ask).map(Fault::Asked));
    }
    faults.extend(mishaps(&state.world));
    faults.extend(fates(&state.world, plan));
    faults
}

/// After any first and after any last steps; the order of the rest is the plan's own.
fn crashes(steps: usize) -> Vec<Fault> {
    let firsts = (1..=steps).map(|end| (0..end).collect());
    let lasts = (1..steps).map(|start| (start..steps).collect());
    firsts.chain(lasts).map(Fault::Crash).collect()
}

fn mishaps(world: &World) -> Vec<Fault> {
    let live = world.instances.iter().filter(|(_, found)| found.is_live());
    let ills = [Ill::Impaired, Ill::Event("instance-retirement".into())];
    let mut faults = vec![];
    for (id, _) in live {
        faults.push(Fault::Killed(id.clone()));
        faults.extend(ills.iter().map(|ill| Fault::Ailing(id.clone(), ill.clone())));
    }
    let files =
        world.file_systems.iter().filter(|(_, found)| found.lifecycle == Lifecycle::Available);
    faults.extend(files.map(|(id, _)| Fault::Failed(id.clone())));
    faults.extend((0..world.scheduler.jobs.len()).map(Fault::JobOver));
    if world.instances.values().any(Machine::is_gone) {
        faults.push(Fault::Forgotten);
    }
    faults
}

/// What becomes of the things that are made now: set when it takes effect, for set earlier it would
/// wait for that moment.
fn fates(world: &World, plan: &ClusterPlan) -> Vec<Fault> {
    let mut faults = vec![];
    let makes = |of: fn(&str) -> bool| {
        plan.steps.iter().any(|step| matches!(step, Step::Create { thing, .. } if of(thing)))
    };
    let (head, gang) = (makes(|thing| thing == "head"), makes(|thing| thing.starts_with("queue/")));
    if head {
        faults.extend([Fault::HeadMute, Fault::HeadBroken]);
    }
    if gang {
        faults.extend([Fault::GangDies, Fault::GangBroken]);
    }
    if head || gang {
        faults.extend([Fault::NoCapacity(false), Fault::NoCapacity(true)]);
    }
    let mut files = world.file_systems.values();
    if files.any(|found| found.lifecycle == Lifecycle::Creating && found.left == 1) {
        faults.push(Fault::FileSystemFails);
    }
    faults
}

/// The state after a fault.
fn suffer(scene: &Scene, mut state: State, plan: &ClusterPlan, fault: &Fault) -> State {
    // After a long absence one wrong read can cost an attempt; it is given back.
    let misled = scene.faults > 1 && matches!(fault, Fault::Unseen(_));
    state.strict &= fault.is_ours() && !misled;
    let desired = &scene.asks[state.ask];
    let world = &mut state.world;
    match fault {
        Fault::Crash(done) => {
            let steps: Vec<_> = done.iter().map(|at| plan.steps[*at].clone()).collect();
            world.act(desired, &steps);
        }
        Fault::LostAnswer(at) => {
            act_on(world, desired, plan, |world, step| world.fate.lose_answer = step == *at);
        }
        Fault::Refused(at, kind) => {
            act_on(world, desired, plan, |world, step| {
                if step == *at {
                    world.fate.refuse_next = Some(*kind);
                }
            });
        }
        Fault::StatusLost => world.lose_status(),
        Fault::StatusBack(writes) => assert!(world.rollback_status(*writes)),
        Fault::Restored(writes) => {
            (0..world.catalog.pace.hidden).for_each(|_| world.tick());
            assert!(world.rollback_status(*writes));
        }
        Fault::Asleep(ticks) => (0..*ticks).for_each(|_| world.tick()),
        Fault::Hurried => world.finish(desired, plan),
        Fault::Blind(kind) => world.fate.reads = vec![*kind],
        Fault::Unseen(what) => world.fate.unseen = Some(*what),
        Fault::Asked(ask) => state.ask = *ask,
        Fault::JobOver(job) => drop(world.scheduler.jobs.remove(*job)),
        Fault::Killed(id) => world.kill(id, "Server.InternalError"),
        Fault::Failed(id) => world.fail_file_system(id),
        Fault::Forgotten => world.forget_terminated(),
        Fault::NoCapacity(any) => {
            let types = if *any {
                vec!["c5n.18xlarge", "c5n.metal", "c5n.2xlarge"]
            } else {
                vec!["c5n.18xlarge"]
            };
            let types = types.into_iter().map(|kind| (kind.to_owned(), 6));
            world.fate.without_capacity.extend(types);
        }
        Fault::FileSystemFails => world.fate.failing_file_systems = 1,
        Fault::HeadMute => world.fate.mute_heads = 1,
        Fault::HeadBroken => world.fate.broken_heads = 1,
        Fault::GangDies => world.fate.dying_gangs = 1,
        Fault::GangBroken => world.fate.broken_gangs = 1,
        Fault::Ailing(id, ill) => {
            world.ailing.insert(id.clone(), ill.clone());
        }
    }
    state
}

/// Acts step by step, with a fate before each, and publishes.
fn act_on(
    world: &mut World,
    desired: &Desired,
    plan: &ClusterPlan,
    fate: impl Fn(&mut World, usize),
) {
    let mut outcomes = vec![];
    for (at, step) in plan.steps.iter().enumerate() {
        fate(world, at);
        outcomes.extend(world.act(desired, std::slice::from_ref(step)));
    }
    let now = world.now;
    world.publish(plan.status.clone().with(&outcomes, now).status);
}
