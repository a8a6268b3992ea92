//! The head: its interface and state volume first, then the machine, its agent and its boot.
//!
//! Interface and volume outlive the machine, so a replaced head keeps its address, homes and jobs'
//! records.

use hpc_crds::IntentState;

use crate::intents::{Cause, Payload};
use crate::names::{HEAD, HEAD_INTERFACE, STATE};

use super::making::{Absence, Making, give_up, newer, settle};
use super::observed::{Interface, Volume, VolumeState};
use super::part::{Part, View, attempt_of};
use super::preflight::{self, Ask};
use super::step::{Body, InterfaceBody, Step, VolumeBody};
use super::wait::Wait;
use super::{ailing, boot, launch};

/// Interface, volume, machine, agent, boot.
pub(super) fn head(view: &View<'_>, storage_ready: bool) -> Part {
    let (interface, interface_part) = interface(view);
    let (volume, volume_part) = state_volume(view);
    let made = interface_part.and(volume_part);
    let (Some(interface), Some(volume)) = (interface, volume) else {
        return made;
    };
    let lives = view.instances(HEAD).any(|head| head.state.is_live());
    if storage_ready || lives {
        machine(view, interface, volume).and(made)
    } else {
        Part::pending().and(made)
    }
}

fn interface<'a>(view: &View<'a>) -> (Option<&'a Interface>, Part) {
    let found = view.interface(HEAD_INTERFACE);
    let part = match found {
        Some(found) => {
            let attempt = attempt_of(&found.tags);
            seen(view, (HEAD_INTERFACE, attempt), "The head's interface exists")
        }
        None => Making::new(HEAD_INTERFACE, vec![Payload::default()], Absence::Unproven).pursue(
            view,
            |_, attempt| {
                Body::Interface(InterfaceBody {
                    subnet: view.desired.cluster.head_subnet.clone(),
                    groups: view.group(HEAD).map(|group| group.id.clone()).into_iter().collect(),
                    description: format!("hpcops {} head", view.desired.owner.full_name()),
                    tags: view.tags(HEAD_INTERFACE, attempt),
                })
            },
        ),
    };
    (found, part)
}

/// The state volume that counts; one that is on its way out does not.
pub(super) fn current_volume<'a>(view: &View<'a>) -> Option<&'a Volume> {
    view.volumes(STATE)
        .filter(|volume| volume.state != VolumeState::Deleting)
        .max_by_key(|volume| attempt_of(&volume.tags))
}

fn state_volume<'a>(view: &View<'a>) -> (Option<&'a Volume>, Part) {
    let zone = view.subnet(&view.desired.cluster.head_subnet).map(|subnet| subnet.zone.clone());
    let Some(found) = current_volume(view) else {
        let payload = Payload { zone: zone.unwrap_or_default(), ..Payload::default() };
        let making = Making::new(STATE, vec![payload], Absence::Unproven);
        let part = making.pursue(view, |payload, attempt| {
            Body::Volume(VolumeBody {
                zone: payload.zone.clone(),
                size_gib: view.desired.cluster.state_gib,
                tags: view.tags(STATE, attempt),
            })
        });
        return (None, part);
    };
    match found.state {
        VolumeState::Available | VolumeState::InUse => {
            (Some(found), seen(view, (STATE, attempt_of(&found.tags)), "The state volume exists"))
        }
        VolumeState::Creating | VolumeState::Deleting | VolumeState::Error => {
            let wait = Wait::Volume { state: found.state };
            (None, Part::waiting(format!("The state volume is {}", found.state), wait))
        }
    }
}

/// A part that is whole, its attempt settled.
pub(super) fn seen(view: &View<'_>, (thing, attempt): (&str, i32), message: &str) -> Part {
    Part { intents: settle(view, thing, attempt).into_iter().collect(), ..Part::ready(message) }
}

fn machine(view: &View<'_>, interface: &Interface, volume: &Volume) -> Part {
    let mut live: Vec<_> = view.instances(HEAD).filter(|head| head.state.is_live()).collect();
    live.sort_by_key(|head| attempt_of(&head.tags));
    let Some(current) = live.pop() else {
        return launch(view, interface, volume);
    };
    if let Some(strange) = view.strange(HEAD) {
        return newer(strange);
    }
    let surplus = live.iter().map(|head| head.id.clone()).collect::<Vec<_>>();
    let part = ailing::retire(view, current).unwrap_or_else(|| boot::boot(view, current, volume));
    if surplus.is_empty() {
        return part;
    }
    let because = format!("{} has taken over as head", current.id);
    part.and(Part::step(
        "A former head is being ended",
        Step::Terminate { instances: surplus, because },
    ))
}

fn launch(view: &View<'_>, interface: &Interface, volume: &Volume) -> Part {
    let intent = view.intent(HEAD);
    if interface.in_use || volume.attached_to.is_some() {
        let sent = intent.is_some_and(|intent| intent.state == IntentState::Acted);
        let wait = if sent { Wait::Visible { thing: HEAD.to_owned() } } else { Wait::FormerHead };
        return Part::waiting("Interface or volume of the head is in use", wait);
    }
    if let Some(part) = died_young(view) {
        return part;
    }
    let head_type = &view.desired.cluster.head_type;
    let ask = Ask { thing: HEAD, types: std::slice::from_ref(head_type), count: 1 };
    if let Some(excess) = preflight::over_limit(view, &ask) {
        return Part::new(excess);
    }
    let seen = view.instances(HEAD).map(|head| attempt_of(&head.tags)).max();
    let payload = Payload { instance_type: head_type.clone(), ..Payload::default() };
    let seen = seen.unwrap_or_default();
    let making = Making { seen, ..Making::new(HEAD, vec![payload], Absence::Ended) };
    making.pursue(view, |payload, attempt| launch::head(view, payload, attempt))
}

/// A head that ended before it was ever ready: its attempt is over at once.
fn died_young(view: &View<'_>) -> Option<Part> {
    let intent = view.intent(HEAD).filter(|intent| intent.state == IntentState::Acted)?;
    let mut ended = view.instances(HEAD).filter(|head| attempt_of(&head.tags) == intent.attempt);
    let ended = ended.next()?;
    let code = ended.state_reason.as_deref().unwrap_or("no reason told");
    let cause = Cause::of_end(code, Cause::Vanished);
    let detail = format!("{} ended before it was ready ({code})", ended.id);
    Some(give_up(view, intent, cause, detail))
}
