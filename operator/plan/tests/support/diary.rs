//! What happens to a cluster and what is told of it, in the words a user reads.

use std::fmt::Write;

use hpc_crds::{ConditionType, condition};
use hpc_plan::cluster::Desired;
use hpc_plan::node::document;
use hpc_plan::world::World;

use super::pass;

/// Passes and ticks until `Ready` is what the caller waits for; panics after many.
pub fn until(world: &mut World, desired: &Desired, holds: impl Fn(&World) -> bool) {
    for _ in 0..150 {
        pass(world, desired);
        if holds(world) {
            return;
        }
        world.tick();
    }
    panic!("never\n{}", told(world));
}

/// Whether a condition has this status and reason, written `False/BootTimeout`.
pub fn says(type_: ConditionType, wanted: &str) -> impl Fn(&World) -> bool {
    move |world| {
        let found = condition::find(&world.object.status.conditions, type_);
        found.is_some_and(|found| format!("{}/{}", found.status, found.reason) == wanted)
    }
}

/// The conditions that are not as they should be, and what the status says of the queues.
pub fn told(world: &World) -> String {
    let mut text = String::new();
    for found in &world.object.status.conditions {
        let (type_, status, reason) = (&found.type_, found.status, &found.reason);
        let _ = writeln!(text, "{type_} {status}/{reason}: {}", found.message);
    }
    for queue in &world.object.status.queues {
        let (name, ready, desired) = (&queue.name, queue.ready, queue.desired);
        let _ = write!(text, "queue {name} {ready}/{desired}");
        if let Some(error) = &queue.last_capacity_error {
            let (type_, zone, code) = (&error.type_, &error.zone, &error.code);
            let _ = write!(text, ", last capacity error {type_} {zone} {code}");
        }
        if let Some(time) = queue.next_try {
            let left = time.timestamp().duration_since(world.now).as_secs();
            let _ = write!(text, ", next try in {left}s");
        }
        text.push('\n');
    }
    text
}

/// Every pass that says something new, with the seconds since the start, until nothing changes.
pub fn diary(world: &mut World, desired: &Desired) -> String {
    let (start, mut text, mut last) = (world.now, String::new(), String::new());
    for _ in 0..150 {
        let before = world.fingerprint(&desired.settings);
        let plan = lasting(&pass(world, desired).to_string());
        if plan != last {
            let _ = writeln!(text, "--- {}s\n{plan}", world.now.duration_since(start).as_secs());
        }
        last = plan;
        world.tick();
        if world.released || world.fingerprint(&desired.settings) == before {
            return text;
        }
    }
    panic!("it never ends\n{text}");
}

/// The name of the SSM document changes with the scripts in it; the stories do not.
pub fn lasting(text: &str) -> String {
    text.replace(&document("lab").name, "hpcops-lab-HASH")
}

/// Whether the cluster is Ready.
pub fn ready(world: &World) -> bool {
    says(ConditionType::Ready, "True/Ready")(world)
}
