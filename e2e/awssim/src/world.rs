//! The state of simulated AWS: accounts, their regions, and who a key is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::agenda::Agenda;
use crate::bucket::Buckets;
use crate::calls::{Caller, Calls};
use crate::capacity::Capacity;
use crate::catalog::Types;
use crate::clock::{Clock, Delay, iso};
use crate::dice::Dice;
use crate::ec2::Ec2;
use crate::fault::Faults;
use crate::fsx::Fsx;
use crate::ledger::Ledger;
use crate::quota::Quotas;
use crate::ssm::Ssm;

/// What never changes while a simulator runs.
#[derive(Debug)]
pub struct Engine {
    /// The one clock.
    pub clock: Clock,
    /// All chance.
    pub dice: Dice,
    /// Instance types.
    pub types: Arc<Types>,
    /// Where volumes and file systems keep their data.
    pub state_dir: PathBuf,
    /// Where the simulator listens.
    pub listen: SocketAddr,
    /// Whether new accounts give their instances bodies.
    pub bodies: bool,
}

/// Who holds an access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// 12-digit account.
    pub account: String,
    /// Set for the credentials of an instance profile.
    pub instance_id: Option<String>,
}

impl Principal {
    /// How the call log names it.
    pub fn caller(&self) -> Caller {
        if self.instance_id.is_some() { Caller::Instance } else { Caller::Account }
    }
}

/// Everything that changes.
#[derive(Debug, Default)]
pub struct State {
    worlds: BTreeMap<String, World>,
    keys: BTreeMap<String, Principal>,
}

/// One account.
#[derive(Debug)]
pub struct World {
    /// What is not bound to a region.
    pub account: Account,
    /// What is.
    pub regions: BTreeMap<String, Region>,
}

/// The part of an account that is not bound to a region.
#[derive(Debug)]
pub struct Account {
    /// 12 digits.
    pub id: String,
    /// All resources ever made.
    pub ledger: Ledger,
    /// All calls.
    pub calls: Calls,
    /// Armed faults.
    pub faults: Faults,
    /// Denied IAM actions.
    pub denied: BTreeSet<String>,
    /// Quotas.
    pub quotas: Quotas,
    /// Capacity pools.
    pub capacity: Capacity,
    /// Switches of the control API.
    pub settings: Settings,
    /// What real AWS accepts but no operator should ask for.
    pub warnings: Vec<Value>,
    /// Scripted answers of bodiless instances.
    pub responders: Vec<crate::ssm::Responder>,
    ids: u64,
}

/// Switches of an account.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether new instances get bodies.
    pub bodies: bool,
    /// Whether agents of new instances ever register.
    pub agents: bool,
    /// Whether token buckets refuse calls.
    pub throttling: bool,
    /// Known instance profiles.
    pub instance_profiles: BTreeSet<String>,
    /// Known key pairs.
    pub key_pairs: BTreeSet<String>,
    /// Ranges that replace [`Delay::range`].
    pub delays: BTreeMap<String, (f64, f64)>,
}

/// One region of an account.
#[derive(Debug)]
pub struct Region {
    /// For example `us-east-1`.
    pub name: String,
    /// EC2.
    pub ec2: Ec2,
    /// FSx.
    pub fsx: Fsx,
    /// SSM.
    pub ssm: Ssm,
    /// Token buckets.
    pub buckets: Buckets,
    /// What will happen.
    pub agenda: Agenda,
}

impl State {
    /// Who this access key is; a key never seen is an account of its own.
    pub fn principal(&mut self, access_key: &str) -> Principal {
        self.keys
            .entry(access_key.to_owned())
            .or_insert_with(|| Principal { account: derive_account(access_key), instance_id: None })
            .clone()
    }

    /// Makes a key belong to an account.
    pub fn assign(&mut self, access_key: &str, principal: Principal) {
        self.keys.insert(access_key.to_owned(), principal);
    }

    /// The keys of people (not of instances) and their accounts.
    pub fn keys(&self) -> BTreeMap<&str, &str> {
        self.keys
            .iter()
            .filter(|(_, principal)| principal.instance_id.is_none())
            .map(|(key, principal)| (key.as_str(), principal.account.as_str()))
            .collect()
    }

    /// Forgets the keys of an account's instances.
    pub fn forget_instance_keys(&mut self, account: &str) {
        self.keys.retain(|_, who| who.account != account || who.instance_id.is_none());
    }

    /// The account with this id, made when needed.
    pub fn world(&mut self, account: &str, engine: &Engine) -> &mut World {
        self.worlds.entry(account.to_owned()).or_insert_with(|| World::new(account, engine))
    }

    /// Account and region of an instance.
    pub fn locate(&self, instance_id: &str) -> Option<(String, String)> {
        self.worlds.iter().find_map(|(account, world)| {
            let holds = |region: &&Region| region.ec2.instances.contains_key(instance_id);
            let region = world.regions.values().find(holds)?;
            Some((account.clone(), region.name.clone()))
        })
    }

    /// All accounts.
    pub fn worlds(&mut self) -> &mut BTreeMap<String, World> {
        &mut self.worlds
    }
}

/// Twelve digits from an access key, always the same.
pub fn derive_account(access_key: &str) -> String {
    let number = Dice::new(0).number("account", access_key) % 900_000_000_000;
    (100_000_000_000 + number).to_string()
}

impl World {
    fn new(account: &str, engine: &Engine) -> Self {
        Self {
            account: Account {
                id: account.to_owned(),
                ledger: Ledger::default(),
                calls: Calls::default(),
                faults: Faults::default(),
                denied: BTreeSet::new(),
                quotas: Quotas::default(),
                capacity: Capacity::default(),
                settings: Settings::new(engine.bodies),
                warnings: Vec::new(),
                responders: Vec::new(),
                ids: 0,
            },
            regions: BTreeMap::new(),
        }
    }

    /// A region of this account, made when needed, split from the rest.
    pub fn split(&mut self, region: &str) -> (&mut Account, &mut Region) {
        let region = self.regions.entry(region.to_owned()).or_insert_with(|| Region::new(region));
        (&mut self.account, region)
    }
}

impl Account {
    /// A fresh id with this prefix, for example `i-0…` of 17 hex digits.
    pub fn new_id(&mut self, prefix: &str, dice: Dice) -> String {
        self.ids += 1;
        let key = format!("{} {}", self.id, self.ids);
        format!("{prefix}-0{:016x}", dice.number("id", &key))
    }

    /// A fresh UUID-like id.
    pub fn new_uuid(&mut self, dice: Dice) -> String {
        self.ids += 1;
        let key = format!("{} {}", self.id, self.ids);
        let (a, b) = (dice.number("uuid a", &key), dice.number("uuid b", &key));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }

    /// Notes something real AWS lets pass but that cannot work.
    pub fn warn(&mut self, now: Timestamp, code: &str, resource: &str, message: &str) {
        self.warnings.push(json!({
            "time": iso(now), "code": code, "resource": resource, "message": message,
        }));
    }

    /// When something begun now is done.
    pub fn after(&self, engine: &Engine, now: Timestamp, delay: Delay, key: &str) -> Timestamp {
        let name = delay.name();
        let duration = match self.settings.delays.get(&name) {
            Some((shortest, longest)) => {
                engine.clock.scaled(shortest + (longest - shortest) * engine.dice.unit(&name, key))
            }
            None => engine.clock.delay(engine.dice, delay, key),
        };
        now.saturating_add(duration).unwrap_or(Timestamp::MAX)
    }
}

impl Settings {
    fn new(bodies: bool) -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            bodies,
            agents: true,
            throttling: true,
            instance_profiles: names(&["hpcops-head", "hpcops-node"]),
            key_pairs: names(&["cfd-key"]),
            delays: BTreeMap::new(),
        }
    }
}

impl Region {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ec2: Ec2::new(name),
            fsx: Fsx::default(),
            ssm: Ssm::default(),
            buckets: Buckets::default(),
            agenda: Agenda::default(),
        }
    }
}
