//! The reading half of the control API. Without an account it tells of all.

use serde_json::{Map, Value, json};

use super::{Refusal, Scene};
use crate::catalog::{images, subnets, vpc_id};
use crate::clock::Delay;
use crate::world::World;
use crate::{ec2, fsx, ssm};

impl Scene<'_> {
    /// What `pick` gives for the named account or for each.
    fn each<T>(&self, pick: impl Fn(&World) -> T) -> Vec<T> {
        let mut state = self.shared.state();
        let worlds = state.worlds();
        let asked = |id: &&String| self.account.as_ref().is_none_or(|account| account == *id);
        worlds.iter().filter(|(id, _)| asked(id)).map(|(_, world)| pick(world)).collect()
    }

    fn concatenated(&self, pick: impl Fn(&World) -> Value) -> Value {
        let lists = self.each(pick).into_iter().filter_map(|list| list.as_array().cloned());
        Value::Array(lists.flatten().collect())
    }
}

/// Every resource ever made, or those of `?kind=`, or with `?alive=true` those that exist.
pub fn ledger(scene: &Scene<'_>) -> Value {
    let kind = scene.asked.parameter("kind");
    let alive = scene.asked.parameter("alive").is_some_and(|asked| asked == "true");
    scene.concatenated(|world| {
        let account = &world.account;
        account.ledger.render(&account.id, |entry| {
            let of_kind = kind.as_ref().is_none_or(|kind| entry.kind.name() == kind);
            of_kind && !(alive && entry.deleted_at.is_some())
        })
    })
}

/// Counts per action and code, added up over accounts.
pub fn calls(scene: &Scene<'_>) -> Value {
    let caller = scene.asked.parameter("caller");
    let mut sum = Map::new();
    for counts in scene.each(|world| world.account.calls.counts(caller.as_deref())) {
        let Value::Object(actions) = counts else {
            continue;
        };
        for (action, codes) in actions {
            add(sum.entry(action).or_insert_with(|| json!({})), &codes);
        }
    }
    Value::Object(sum)
}

fn add(total: &mut Value, codes: &Value) {
    let (Some(total), Some(codes)) = (total.as_object_mut(), codes.as_object()) else {
        return;
    };
    for (code, count) in codes {
        let before = total.get(code).and_then(Value::as_u64).unwrap_or(0);
        total.insert(code.clone(), json!(before + count.as_u64().unwrap_or(0)));
    }
}

/// The ordered call log.
pub fn log(scene: &Scene<'_>) -> Value {
    let caller = scene.asked.parameter("caller");
    scene.concatenated(|world| world.account.calls.log(caller.as_deref()))
}

/// Raw requests.
pub fn requests(scene: &Scene<'_>) -> Value {
    scene.concatenated(|world| world.account.calls.requests())
}

/// What real AWS would let pass but cannot work.
pub fn warnings(scene: &Scene<'_>) -> Value {
    scene.concatenated(|world| Value::Array(world.account.warnings.clone()))
}

/// Armed faults.
pub fn faults(scene: &Scene<'_>) -> Value {
    scene.concatenated(|world| json!(world.account.faults.list()))
}

/// Ids of instances whose body lives.
pub fn bodies(scene: &Scene<'_>) -> Value {
    json!(scene.shared.machines().map(|machines| machines.running()).unwrap_or_default())
}

/// The process that is PID 1 of a body, for those who log in by `nsenter`.
pub fn body(scene: &Scene<'_>, id: &str) -> Result<Value, Refusal> {
    let pid = scene.shared.machines().and_then(|machines| machines.pid(id));
    let pid = pid.ok_or_else(|| Refusal::not_found(format!("no body of {id} lives")))?;
    Ok(json!({"pid": pid}))
}

/// Seed, scale, fixed ids, and the switches of each account.
pub fn config(scene: &Scene<'_>) -> Value {
    let engine = &scene.shared.engine;
    let delays: Map<String, Value> =
        Delay::ALL.iter().map(|delay| (delay.name(), json!(delay.range()))).collect();
    let accounts: Vec<Value> = scene.each(account);
    let region = scene.region();
    let subnets: Vec<Value> = subnets(&region)
        .into_iter()
        .map(|s| json!({"id": s.id, "zone": s.zone.name, "zoneId": s.zone.id, "cidr": s.cidr}))
        .collect();
    let images: Vec<Value> = images()
        .into_iter()
        .map(|i| json!({"id": i.id, "name": i.name, "architecture": i.architecture}))
        .collect();
    json!({
        "seed": engine.dice.seed(),
        "timeScale": engine.clock.scale(),
        "delays": delays,
        "vpc": vpc_id(&region),
        "subnets": subnets,
        "images": images,
        "actions": {
            "ec2": ec2::actions(), "fsx": fsx::actions(), "ssm": ssm::actions(),
            "sts": ["GetCallerIdentity"],
        },
        "keys": scene.shared.state().keys(),
        "accounts": accounts,
    })
}

fn account(world: &World) -> Value {
    let account = &world.account;
    let settings = &account.settings;
    let buckets: Map<String, Value> = world
        .regions
        .iter()
        .map(|(name, region)| (name.clone(), json!(region.buckets.levels())))
        .collect();
    json!({
        "id": account.id,
        "bodies": settings.bodies,
        "agents": settings.agents,
        "throttling": settings.throttling,
        "instanceProfiles": settings.instance_profiles,
        "keyPairs": settings.key_pairs,
        "delays": settings.delays,
        "denied": account.denied,
        "quotas": account.quotas.all(),
        "capacity": account.capacity.render(),
        "buckets": buckets,
    })
}
