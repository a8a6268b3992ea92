//! What is in a world, with the clocks that move it.

use std::collections::{BTreeMap, BTreeSet};

use crate::cloud::{GroupId, InstanceId, InterfaceId, Rule, Tags};
use crate::cluster::attempt_of;
use crate::cluster::{Demand, InstanceState, Lifecycle, Numbers, VolumeState, WorstNode};
use crate::names::{GANG, RETAINED, ROLE, slots_of};

/// Ticks for which AWS does not show a thing yet.
pub type Hidden = u8;

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Net {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: BTreeSet<Rule>,
    /// Its tags.
    pub tags: Tags,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Its tags.
    pub tags: Tags,
    /// Ticks until it is usable.
    pub coming: u8,
    /// Ticks until it is gone, once deleted.
    pub going: Option<u8>,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Its groups.
    pub groups: Vec<GroupId>,
    /// Its tags.
    pub tags: Tags,
    /// The instance it is attached to.
    pub user: Option<InstanceId>,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vault {
    /// Where it stands.
    pub state: VolumeState,
    /// Ticks until it goes on from there.
    pub left: u8,
    /// The instance it is attached to.
    pub user: Option<InstanceId>,
    /// Its tags.
    pub tags: Tags,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileServer {
    /// Where it stands.
    pub lifecycle: Lifecycle,
    /// Ticks until it goes on from there.
    pub left: u8,
    /// FSx's words when it failed.
    pub failure: Option<String>,
    /// Whether it ever was AVAILABLE.
    pub ever_available: bool,
    /// Whether an instance was launched since, and so may have written to it.
    pub used: bool,
    /// Its groups.
    pub groups: Vec<GroupId>,
    /// Its tags.
    pub tags: Tags,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// An instance.
#[expect(clippy::struct_excessive_bools, reason = "each is a fate of its own")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Where it stands.
    pub state: InstanceState,
    /// Ticks until it goes on from there.
    pub left: u8,
    /// Why it ended.
    pub state_reason: Option<String>,
    /// Its place in its launch.
    pub index: i32,
    /// Token of its launch.
    pub token: String,
    /// Its groups.
    pub groups: Vec<GroupId>,
    /// Its placement group.
    pub pool: Option<String>,
    /// The interface made before it, when it has one.
    pub port: Option<InterfaceId>,
    /// Ticks it has been running, up to what its agent needs.
    pub up: u8,
    /// Ticks of its boot, up to its end.
    pub booted: u8,
    /// It will end before it runs.
    pub doomed: bool,
    /// Its agent never comes online.
    pub mute: bool,
    /// Its boot fails.
    pub broken: bool,
    /// The scheduler has powered it down.
    pub away: bool,
    /// Its tags.
    pub tags: Tags,
    /// Not shown yet.
    pub hidden: Hidden,
}

/// What the head wrote to its parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Told {
    /// The head that wrote it.
    pub head: InstanceId,
    /// `Booting`, `Ready`, `Failed`.
    pub state: String,
    /// Nodes that are ready, by queue, gang and attempt.
    pub ready: BTreeMap<(String, String, i32), BTreeSet<i32>>,
    /// Nodes that always run and that the scheduler has powered down, alike.
    pub left: BTreeMap<(String, String, i32), BTreeSet<i32>>,
    /// Nodes whose boot failed.
    pub failed: Vec<WorstNode>,
    /// What its scheduler wants.
    pub demand: Vec<Demand>,
    /// The numbers of its queues.
    pub queues: Vec<Numbers>,
}

/// What AWS remembers of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answered {
    /// Digest of the request.
    pub digest: String,
    /// What it made.
    pub ids: Vec<String>,
}

/// What was ever done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// Instances ever launched, by role.
    pub launched: BTreeMap<String, u32>,
    /// File systems, volumes and interfaces ever made, by role.
    pub made: BTreeMap<String, u32>,
    /// What must never happen and did.
    pub sins: BTreeSet<String>,
    /// Mutating calls to AWS.
    pub calls: Count,
    /// Writes of the status.
    pub writes: Count,
}

/// A number that does not make two worlds differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count(pub u32);

impl PartialEq for Count {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Count {}

impl std::hash::Hash for Count {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Ledger {
    /// Notes what must never happen.
    pub fn sin(&mut self, what: String) {
        self.sins.insert(what);
    }

    /// Counts a thing made in a role, and tells which it is.
    pub fn count(&mut self, role: &str) -> u32 {
        let made = self.made.entry(role.to_owned()).or_default();
        *made += 1;
        *made
    }
}

macro_rules! tagged {
    ($($thing:ty)*) => {$(
        impl $thing {
            /// What it is for.
            pub fn role(&self) -> &str {
                self.tags.get(ROLE).map_or("", String::as_str)
            }

            /// Whether it was marked to outlive its object.
            pub fn is_retained(&self) -> bool {
                self.tags.contains_key(RETAINED)
            }
        }
    )*};
}

tagged! { Net Pool Port Vault FileServer Machine }

impl Machine {
    /// Whether it bills or may come back.
    pub const fn is_live(&self) -> bool {
        self.state.is_live()
    }

    /// Whether nothing of it is left.
    pub fn is_gone(&self) -> bool {
        self.state == InstanceState::Terminated
    }

    /// Its number in its queue; none for a head.
    pub fn slot(&self) -> Option<i32> {
        slots_of(&self.tags).nth(self.index)
    }

    /// Queue, gang and attempt it was launched for.
    pub fn launch(&self) -> (String, String, i32) {
        let queue = self.role().strip_prefix("queue-").unwrap_or_default().to_owned();
        let gang = self.tags.get(GANG).cloned().unwrap_or_default();
        (queue, gang, attempt_of(&self.tags))
    }

    /// Another state, for so many ticks.
    pub const fn enter(&mut self, state: InstanceState, ticks: u8) {
        self.state = state;
        self.left = ticks;
    }
}
