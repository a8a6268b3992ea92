//! The changing half of the control API: one account at a time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Refusal, Scene, account_id};
use crate::call::Call;
use crate::capacity::Pool;
use crate::clock::Delay;
use crate::ec2::{self, Agent, Fate, Health, PlannedFate};
use crate::effect::Effect;
use crate::fault::Fault;
use crate::hold::Then;
use crate::ssm::Responder;
use crate::world::Principal;

impl Scene<'_> {
    fn change<T>(&self, change: impl FnOnce(&mut Call<'_>) -> T) -> Result<T, Refusal> {
        let account = self.account()?;
        Ok(self.shared.work(&account, &self.region(), change))
    }
}

fn done() -> Value {
    json!({"ok": true})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    id: u64,
    then: Then,
}

/// Lets a parked call go on or drops it.
pub fn release(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let release: Release = scene.asked.decode()?;
    if scene.shared.holds.release(release.id, release.then) {
        return Ok(done());
    }
    Err(Refusal::not_found(format!("no call {} is held", release.id)))
}

/// Arms a fault.
pub fn arm(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let fault: Fault = scene.asked.decode()?;
    let account = match &fault.account {
        Some(name) => account_id(scene.shared, name),
        None => scene.account()?,
    };
    scene.shared.work(&account, &scene.region(), |call| call.account.faults.arm(fault));
    Ok(done())
}

/// Disarms all faults.
pub fn disarm(scene: &Scene<'_>) -> Result<Value, Refusal> {
    scene.change(|call| call.account.faults.clear())?;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CapacityChange {
    #[serde(rename = "type")]
    instance_type: Option<String>,
    zone: Option<String>,
    market: Option<String>,
    free: Option<u32>,
    fail_after_launch: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    count: u32,
    code: String,
    #[serde(default)]
    message: String,
}

/// Sets a pool (`free` null is plentiful), in one zone or all, or lets the
/// next launches fail after their answer.
pub fn capacity(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: CapacityChange = scene.asked.decode()?;
    if let Some(failure) = wanted.fail_after_launch {
        let fate = Fate { code: failure.code, message: failure.message };
        let planned =
            PlannedFate { instance_type: wanted.instance_type, count: failure.count, fate };
        scene.change(|call| call.region.ec2.fates.push(planned))?;
        return Ok(done());
    }
    let instance_type = wanted.instance_type.ok_or_else(|| Refusal::bad("type is missing"))?;
    let market = wanted.market.unwrap_or_else(|| "on-demand".to_owned());
    scene.change(|call| {
        let all = call.region.ec2.network.zones.iter().map(|zone| zone.name.clone()).collect();
        let zones: Vec<String> = wanted.zone.map_or(all, |zone| vec![zone]);
        for zone in zones {
            let pool = Pool { instance_type: instance_type.clone(), zone, market: market.clone() };
            call.account.capacity.set(pool, wanted.free);
        }
    })?;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FsxChange {
    id: Option<String>,
    message: String,
    count: Option<usize>,
}

/// Makes a file system FAILED now, or the next ones when they settle.
pub fn fsx(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: FsxChange = scene.asked.decode()?;
    let Some(id) = wanted.id else {
        let count = wanted.count.unwrap_or(1);
        scene.change(|call| {
            call.region.fsx.failures.extend(vec![wanted.message; count]);
        })?;
        return Ok(done());
    };
    if scene.change(|call| crate::fsx::fail(call, &id, &wanted.message))? {
        return Ok(done());
    }
    Err(Refusal::not_found(format!("no file system {id}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InstanceChange {
    code: Option<String>,
    message: Option<String>,
    agent: Option<AgentChange>,
    #[serde(default)]
    impaired: bool,
    event: Option<EventChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventChange {
    code: String,
    #[serde(default)]
    description: String,
    /// Seconds from now until AWS acts.
    in_seconds: u32,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum AgentChange {
    Online,
    Lost,
    Never,
}

/// Ends an instance, or changes its agent or its health.
pub fn instance(scene: &Scene<'_>, id: &str, verb: &str) -> Result<Value, Refusal> {
    let wanted: InstanceChange = scene.asked.decode()?;
    let place = scene.shared.state().locate(id);
    let (account, region) = place.ok_or_else(|| Refusal::not_found(format!("no instance {id}")))?;
    let why = Fate {
        code: wanted.code.unwrap_or_else(|| "Server.InternalError".to_owned()),
        message: wanted
            .message
            .unwrap_or_else(|| "Server.InternalError: Internal error on launch".to_owned()),
    };
    let agent = wanted.agent.unwrap_or(AgentChange::Lost);
    scene.shared.work(&account, &region, |call| match verb {
        "terminate" => ec2::terminate_by_id(call, id, &why),
        "fail" => ec2::fail(call, id, &why),
        "health" => change_health(call, id, wanted.impaired, wanted.event),
        _ => change_agent(call, id, agent),
    });
    if ["terminate", "fail", "health", "agent"].contains(&verb) {
        return Ok(done());
    }
    Err(Refusal::not_found(format!("no verb {verb}: terminate, fail, health or agent")))
}

/// What `DescribeInstanceStatus` says from now on.
fn change_health(call: &mut Call<'_>, id: &str, impaired: bool, event: Option<EventChange>) {
    let now = call.now;
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    let event = event.map(|event| {
        let at = now + SignedDuration::from_secs(event.in_seconds.into());
        (event.code, event.description, at)
    });
    instance.health = Health { impaired_since: impaired.then_some(now), event };
}

fn change_agent(call: &mut Call<'_>, id: &str, wanted: AgentChange) {
    let now = call.now;
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    match wanted {
        AgentChange::Online => instance.agent = Agent::Online(now),
        AgentChange::Lost => instance.agent = Agent::Lost(now),
        AgentChange::Never => instance.agent = Agent::Barred,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyChange {
    access_key: String,
    account_id: String,
}

/// Makes an access key belong to another account.
pub fn account(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: KeyChange = scene.asked.decode()?;
    if wanted.account_id.len() != 12 || !wanted.account_id.chars().all(|c| c.is_ascii_digit()) {
        return Err(Refusal::bad("accountId must be 12 digits"));
    }
    let principal = Principal { account: wanted.account_id, instance_id: None };
    scene.shared.state().assign(&wanted.access_key, principal);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deny {
    actions: BTreeSet<String>,
}

/// Replaces the denied IAM actions; an empty list allows all.
pub fn deny(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: Deny = scene.asked.decode()?;
    scene.change(|call| call.account.denied = wanted.actions)?;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaChange {
    name: String,
    value: u64,
}

/// Sets a quota.
pub fn quota(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: QuotaChange = scene.asked.decode()?;
    let known = scene.change(|call| call.account.quotas.set(&wanted.name, wanted.value))?;
    if known { Ok(done()) } else { Err(Refusal::bad(format!("no quota {}", wanted.name))) }
}

/// Adds a scripted answer of bodiless instances.
pub fn responder(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let responder: Responder = scene.asked.decode()?;
    scene.change(|call| call.account.responders.push(responder))?;
    Ok(done())
}

/// Forgets all scripted answers.
pub fn forget_responders(scene: &Scene<'_>) -> Result<Value, Refusal> {
    scene.change(|call| call.account.responders.clear())?;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigChange {
    bodies: Option<bool>,
    agents: Option<bool>,
    throttling: Option<bool>,
    instance_profiles: Option<BTreeSet<String>>,
    key_pairs: Option<BTreeSet<String>>,
    delays: Option<BTreeMap<String, (f64, f64)>>,
}

/// Changes the switches of an account.
pub fn config(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let wanted: ConfigChange = scene.asked.decode()?;
    let names: Vec<String> = Delay::ALL.iter().map(|delay| delay.name()).collect();
    let unknown = wanted.delays.iter().flat_map(BTreeMap::keys).find(|name| !names.contains(name));
    if let Some(name) = unknown {
        return Err(Refusal::bad(format!("no delay {name}: {}", names.join(", "))));
    }
    scene.change(|call| {
        let settings = &mut call.account.settings;
        settings.bodies = wanted.bodies.unwrap_or(settings.bodies);
        settings.agents = wanted.agents.unwrap_or(settings.agents);
        settings.throttling = wanted.throttling.unwrap_or(settings.throttling);
        if let Some(profiles) = wanted.instance_profiles {
            settings.instance_profiles = profiles;
        }
        if let Some(pairs) = wanted.key_pairs {
            settings.key_pairs = pairs;
        }
        if let Some(delays) = wanted.delays {
            settings.delays = delays;
        }
    })?;
    Ok(done())
}

/// Forgets an account: its bodies die, its parked calls are dropped.
pub fn reset(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let account = scene.account()?;
    scene.shared.holds.drop_all(&account);
    let mut effects: Vec<Effect> = {
        let mut state = scene.shared.state();
        state.forget_instance_keys(&account);
        let world = state.worlds().remove(&account);
        let regions = world.into_iter().flat_map(|world| world.regions.into_values());
        regions
            .flat_map(|region| region.ec2.instances.into_values())
            .filter(|instance| instance.has_body)
            .map(|instance| Effect::Kill { instance_id: instance.id })
            .collect()
    };
    let folder = |name: &str| scene.shared.engine.state_dir.join(name).join(&account);
    effects.extend(["fsx", "volumes"].map(|name| Effect::Discard { path: folder(name) }));
    scene.shared.perform(effects);
    Ok(done())
}
