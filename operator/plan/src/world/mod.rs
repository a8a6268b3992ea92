//! A pure model of AWS and of the Kubernetes object around one cluster.
//!
//! It backs the exhaustive proof of the planner and is the cloud of the shell's own tests. It is
//! small, deterministic, cloneable and comparable ([`World::fingerprint`]), so that every state a
//! cluster can be in is visited once. It keeps its own account of what must never happen
//! ([`Ledger::sins`]): what the planner cannot see, because AWS hides it, is still counted here.

mod apply;
mod catalog;
mod create;
mod delete;
mod fingerprint;
mod observe;
mod scheduler;
mod things;
mod tick;

pub use catalog::{Catalog, Pace};
pub use scheduler::{Gang, Job, Power, Scheduler};
pub use things::{
    Answered, Count, FileServer, Hidden, Ledger, Machine, Net, Pool, Port, Told, Vault,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use hpc_crds::{DeletionPolicy, HpcClusterStatus};
use jiff::{SignedDuration, Timestamp};

use crate::cloud::{Failure, FileSystemId, GroupId, InstanceId, InterfaceId, Kind, VolumeId};
use crate::cluster::{
    ClusterPlan, Desired, Goal, Ill, InstanceState, Lifecycle, Object, Outcome, Resource, Step,
    Stranger, plan,
};
use crate::names::{Owner, storage_role};

/// A number of ticks that does not run out.
pub const FOREVER: u8 = u8::MAX;

/// One cluster's corner of AWS, and its object in Kubernetes.
#[derive(Clone, Debug)]
pub struct World {
    /// What never changes: types, subnets, prices, how long things take.
    pub catalog: Arc<Catalog>,
    /// Whose cluster it is.
    pub owner: Owner,
    /// The time every party reads.
    pub now: Timestamp,
    /// Finalizer and stored status.
    pub object: Object,
    /// Whether the finalizer was taken off: a deleted object is gone with it.
    pub released: bool,
    /// Account of the credentials.
    pub account: String,
    /// Security groups.
    pub groups: BTreeMap<GroupId, Net>,
    /// Placement groups by name.
    pub placement_groups: BTreeMap<String, Pool>,
    /// Network interfaces made on their own.
    pub interfaces: BTreeMap<InterfaceId, Port>,
    /// Volumes made on their own.
    pub volumes: BTreeMap<VolumeId, Vault>,
    /// What EC2 says of instances that are not well.
    pub ailing: BTreeMap<InstanceId, Ill>,
    /// Instances, terminated ones included.
    pub instances: BTreeMap<InstanceId, Machine>,
    /// File systems.
    pub file_systems: BTreeMap<FileSystemId, FileServer>,
    /// Ticks until the SSM document is active; `None` while there is none.
    pub document: Option<u8>,
    /// The head's parameter.
    pub parameter: Option<Told>,
    /// What the head was told, by parameter.
    pub notes: BTreeMap<String, String>,
    /// The head's scheduler.
    pub scheduler: Scheduler,
    /// Resources of other objects of this name.
    pub strangers: Vec<Stranger>,
    /// Tokens AWS has seen, with their zone.
    pub tokens: BTreeMap<(String, String), Answered>,
    /// What goes wrong, and when.
    pub fate: Fate,
    /// What was ever done, and what must never have been.
    pub ledger: Ledger,
    history: Vec<Arc<HpcClusterStatus>>,
}

/// What goes wrong in a world. The default is a good day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fate {
    /// Types there is no capacity for, and for how many ticks more; [`FOREVER`] never ends.
    pub without_capacity: BTreeMap<String, u8>,
    /// The effect of the next create happens, its answer does not arrive.
    pub lose_answer: bool,
    /// The next call fails so, without effect.
    pub refuse_next: Option<Kind>,
    /// The next calls of an action that fail, each without effect.
    pub refusals: Vec<(String, Kind)>,
    /// The next observation that cannot read, and why.
    pub reads: Vec<Kind>,
    /// What the next observation misses, without an error.
    pub unseen: Option<Unseen>,
    /// File systems in creation that end as FAILED, so many of the next.
    pub failing_file_systems: u8,
    /// Heads whose agent never comes online, so many of the next.
    pub mute_heads: u8,
    /// Heads whose boot fails, so many of the next.
    pub broken_heads: u8,
    /// Gangs one of whose members fails to boot, so many of the next.
    pub broken_gangs: u8,
    /// Ticks more that an agent takes.
    pub slow_agent: u8,
    /// Gangs one of whose members ends for lack of capacity after the launch, so many of the next.
    pub dying_gangs: u8,
    /// Launches beyond which the head's report is cut.
    pub room_in_report: Option<usize>,
}

/// What an observation can miss though nothing says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unseen {
    /// Every list is empty.
    Everything,
    /// The list of instances is empty.
    Instances,
}

impl World {
    /// A world in which nothing was made yet and all goes well.
    pub fn new(owner: Owner) -> Self {
        Self {
            catalog: Arc::new(Catalog::small()),
            owner,
            now: Timestamp::from_second(1_800_000_000).unwrap_or_default(),
            object: Object::default(),
            released: false,
            account: "111122223333".to_owned(),
            groups: BTreeMap::new(),
            placement_groups: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            volumes: BTreeMap::new(),
            ailing: BTreeMap::new(),
            instances: BTreeMap::new(),
            file_systems: BTreeMap::new(),
            document: None,
            parameter: None,
            notes: BTreeMap::new(),
            scheduler: Scheduler::default(),
            strangers: Vec::new(),
            tokens: BTreeMap::new(),
            fate: Fate::default(),
            ledger: Ledger::default(),
            history: Vec::new(),
        }
    }

    /// No instance of this type can be had.
    #[must_use]
    pub fn without_capacity(mut self, instance_type: &str) -> Self {
        let types = &mut self.fate.without_capacity;
        types.insert(instance_type.to_owned(), FOREVER);
        self
    }

    /// Observe, plan, act, publish: one whole pass.
    pub fn pass(&mut self, desired: &Desired) -> ClusterPlan {
        let plan = self.plan(desired);
        self.finish(desired, &plan);
        plan
    }

    /// The plan of this moment.
    pub fn plan(&self, desired: &Desired) -> ClusterPlan {
        plan(desired, &self.observe(), self.now)
    }

    /// Carries out a plan and publishes its status. A read that failed for it is used up.
    pub fn finish(&mut self, desired: &Desired, plan: &ClusterPlan) {
        self.fate.reads.clear();
        self.fate.unseen = None;
        let outcomes = self.act(desired, &plan.steps);
        let now = self.now;
        self.publish(plan.status.clone().with(&outcomes, now).status);
    }

    /// Carries out steps, as far as the caller lets it.
    pub fn act(&mut self, desired: &Desired, steps: &[Step]) -> Vec<Outcome> {
        let outcomes = steps.iter().map(|step| {
            self.watch_data(desired, step);
            self.scheduler.boot_with(desired, step);
            Outcome::of(step, self.apply(step))
        });
        outcomes.collect()
    }

    /// Stores a status, as the only one that does; `false` when it is what was stored already.
    pub fn publish(&mut self, status: HpcClusterStatus) -> bool {
        if self.object.status == status {
            return false;
        }
        let before = std::mem::replace(&mut self.object.status, status);
        self.history.push(Arc::new(before));
        self.ledger.writes.0 += 1;
        true
    }

    /// The stored status is gone, as after a restore without the subresource.
    pub fn lose_status(&mut self) {
        self.object.status = HpcClusterStatus::default();
    }

    /// The stored status is the one `back` writes ago; `false` when there is none so old.
    pub fn rollback_status(&mut self, back: usize) -> bool {
        let at = self.history.len().checked_sub(back);
        let Some(old) = at.and_then(|at| self.history.get(at)) else {
            return false;
        };
        self.object.status = HpcClusterStatus::clone(old);
        self.history.truncate(self.history.len() - back);
        true
    }

    /// Writes of the status so far that a rollback can undo.
    pub fn writes(&self) -> usize {
        self.history.len()
    }

    /// Time passes and everything under way comes a step further.
    pub fn tick(&mut self) {
        let quantum = SignedDuration::try_from(self.catalog.pace.quantum).unwrap_or_default();
        self.now = self.now.checked_add(quantum).unwrap_or(self.now);
        tick::tick(self);
    }

    /// An instance ends without anybody asking.
    pub fn kill(&mut self, id: &InstanceId, reason: &str) {
        if let Some(machine) = self.instances.get_mut(id) {
            machine.state_reason = Some(reason.to_owned());
            machine.enter(InstanceState::Terminated, 0);
            self.release(id);
        }
    }

    /// AWS stops showing what ended.
    pub fn forget_terminated(&mut self) {
        self.instances.retain(|_, machine| machine.state != InstanceState::Terminated);
    }

    /// A file system turns FAILED, whatever it was.
    pub fn fail_file_system(&mut self, id: &FileSystemId) {
        if let Some(found) = self.file_systems.get_mut(id) {
            found.lifecycle = Lifecycle::Failed;
            found.failure = Some("File system failed".to_owned());
        }
    }

    /// Live instances of a role, visible or not.
    pub fn live(&self, role: &str) -> usize {
        self.instances.values().filter(|found| found.is_live() && found.role() == role).count()
    }

    /// What is left of ours that nobody said to keep, visible or not; the SSM document is shared.
    pub fn leftovers(&self) -> Vec<String> {
        let groups = self.groups.iter().filter(|(_, found)| !found.is_retained());
        let groups = groups.map(|(id, _)| id.to_string());
        let machines = self.instances.iter().filter(|(_, found)| !found.is_gone());
        let machines = machines.map(|(id, _)| id.to_string());
        let volumes = self.volumes.iter().filter(|(_, found)| !found.is_retained());
        let volumes = volumes.map(|(id, _)| id.to_string());
        let files = self.file_systems.iter().filter(|(_, found)| !found.is_retained());
        let files = files.map(|(id, _)| id.to_string());
        groups
            .chain(self.placement_groups.keys().cloned())
            .chain(self.interfaces.keys().map(ToString::to_string))
            .chain(machines)
            .chain(volumes)
            .chain(files)
            .chain(self.parameter.iter().map(|_| "parameter".to_owned()))
            .chain(self.notes.keys().cloned())
            .collect()
    }

    /// Whether anything will change without the operator.
    pub fn is_moving(&self) -> bool {
        let mut later = self.clone();
        later.tick();
        later.body_print() != self.body_print()
    }

    /// Notes the deletion of a file system that may hold data and that nobody said to delete.
    fn watch_data(&mut self, desired: &Desired, step: &Step) {
        let Step::Delete { resource: Resource::FileSystem(id, _), .. } = step else {
            return;
        };
        let Some(found) = self.file_systems.get(id) else {
            return;
        };
        let mut storages = desired.cluster.storages.iter();
        let wanted = storages.find(|storage| storage_role(&storage.name) == found.role());
        let allowed = desired.goal == Goal::Absent
            && wanted.is_some_and(|storage| storage.policy == DeletionPolicy::Delete);
        if found.used && !allowed {
            self.ledger.sin(format!("data of {id} was deleted though nobody said so"));
        }
    }

    fn refusal(&mut self, action: &str) -> Option<Failure> {
        let as_told = |kind: Kind| failure(kind, action, &kind.to_string(), "as the test wants it");
        if let Some(kind) = self.fate.refuse_next.take() {
            return Some(as_told(kind));
        }
        let at = self.fate.refusals.iter().position(|(refused, _)| refused == action)?;
        Some(as_told(self.fate.refusals.remove(at).1))
    }
}

fn failure(kind: Kind, action: &str, code: &str, message: &str) -> Failure {
    Failure {
        kind,
        service: catalog::service(action).to_owned(),
        operation: action.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
    }
}
