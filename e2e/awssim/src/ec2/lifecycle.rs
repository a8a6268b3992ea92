//! How instances come and go.

use super::Fate;
use super::body::body_spec;
use super::instance::{Agent, Instance, InstanceState};
use super::{interface, volume};
use crate::agenda::Event;
use crate::call::Call;
use crate::capacity::Pool;
use crate::clock::{Delay, iso};
use crate::effect::Effect;
use crate::ledger::Kind;

/// Begins the end of an instance; nothing happens to one that already goes.
pub fn terminate_by_id(call: &mut Call<'_>, id: &str, why: &Fate) {
    let at = call.after(Delay::Terminated, id);
    let stamp = iso(call.now);
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated) {
        return;
    }
    instance.state = InstanceState::ShuttingDown;
    instance.reason = Some(why.clone());
    instance.transition = format!("User initiated ({stamp})");
    instance.agent = Agent::Unregistered;
    let has_body = instance.has_body;
    call.schedule(at, Event::InstanceTerminated(id.to_owned()));
    if has_body {
        call.effects.push(Effect::Kill { instance_id: id.to_owned() });
    }
}

/// Takes an instance down at once, for a reason of AWS's own.
pub fn fail(call: &mut Call<'_>, id: &str, why: &Fate) {
    terminate_by_id(call, id, why);
    if let Some(instance) = call.region.ec2.instances.get_mut(id) {
        instance.transition.clone_from(&why.message);
    }
    finish(call, id);
}

/// What happens to instances by themselves.
pub fn handle_event(call: &mut Call<'_>, event: &Event) {
    match event {
        Event::InstanceRunning(id) => start(call, id),
        Event::InstanceTerminated(id) => finish(call, id),
        Event::InstanceForgotten(id) => {
            call.region.ec2.instances.remove(id);
        }
        Event::AgentOnline(id) => register_agent(call, id),
        Event::FileSystemSettled(_)
        | Event::FileSystemGone(_)
        | Event::CommandDelivered(..)
        | Event::CommandExpired(..) => {}
    }
}

fn start(call: &mut Call<'_>, id: &str) {
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if instance.state != InstanceState::Pending {
        return;
    }
    if let Some(fate) = instance.fate.clone() {
        return fail(call, id, &fate);
    }
    instance.state = InstanceState::Running;
    let instance = instance.clone();
    if instance.has_body {
        let spec = body_spec(call, &instance).map(Box::new);
        call.effects.extend(spec.map(Effect::Start));
    } else {
        let at = call.after(Delay::Agent, id);
        call.schedule(at, Event::AgentOnline(id.to_owned()));
    }
}

/// An agent registers only with a profile's credentials.
fn register_agent(call: &mut Call<'_>, id: &str) {
    let now = call.now;
    if let Some(instance) = call.region.ec2.instances.get_mut(id) {
        let may = instance.is_up() && instance.profile.is_some();
        if may && !matches!(instance.agent, Agent::Online(_) | Agent::Barred) {
            instance.agent = Agent::Online(now);
        }
    }
}

fn finish(call: &mut Call<'_>, id: &str) {
    let Some(instance) = call.region.ec2.instances.get_mut(id) else {
        return;
    };
    if instance.state == InstanceState::Terminated {
        return;
    }
    instance.state = InstanceState::Terminated;
    let instance = instance.clone();
    call.gone(Kind::Instance, id);
    let pool = Pool {
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        market: instance.market.to_owned(),
    };
    call.account.capacity.give_back(&pool);
    release_interfaces(call, &instance);
    release_volumes(call, id);
    let at = call.after(Delay::Forgotten, id);
    call.schedule(at, Event::InstanceForgotten(id.to_owned()));
}

fn release_interfaces(call: &mut Call<'_>, instance: &Instance) {
    for nic in &instance.interfaces {
        let Some(interface) = call.region.ec2.interfaces.get_mut(nic) else {
            continue;
        };
        let goes = interface.attachment.take().is_some_and(|at| at.delete_on_termination);
        if goes {
            interface::remove(call, nic);
        }
    }
}

fn release_volumes(call: &mut Call<'_>, instance_id: &str) {
    let instance = call.region.ec2.instances.get_mut(instance_id);
    let attached = instance.map(|instance| std::mem::take(&mut instance.volumes));
    for id in attached.unwrap_or_default() {
        let Some(volume) = call.region.ec2.volumes.get_mut(&id) else { continue };
        let goes = volume.attachment.take().is_some_and(|at| at.delete_on_termination);
        if goes {
            volume::remove(call, &id);
        }
    }
}
