//! The head: its interface and state volume first, then the machine, its agent and its boot.
//!
//! Interface and volume outlive the machine, so a replaced head keeps its address, homes and jobs'
//! records.

use hpc_crds::{ConditionStatus, IntentState, Reason};

use crate::cloud::VolumeId;
use crate::intents::{Cause, Payload};
use crate::names::{HEAD, HEAD_INTERFACE, STATE};

use super::launch;
use super::making::{Absence, Making, give_up, settle};
use super::observed::{Instance, InstanceState, Interface, Report, Volume, VolumeState};
use super::part::{Part, Verdict, View, attempt_of};
use super::preflight;
use super::step::{Body, InterfaceBody, Step, VolumeBody};
use super::wait::Wait;

/// Device name asked for the state volume; the node finds it by the volume's id.
const STATE_DEVICE: &str = "/dev/sdf";

/// Interface, volume, machine, agent, boot.
pub(super) fn head(view: &View<'_>, storage_ready: bool) -> Part {
    let (interface, interface_part) = interface(view);
    let (volume, volume_part) = state_volume(view);
    let made = interface_part.and(volume_part);
    match (interface, volume) {
        (Some(interface), Some(volume)) if storage_ready => {
            made.and(machine(view, interface, volume))
        }
        (Some(_), Some(_)) => made.and(Part::pending()),
        _ => made,
    }
}

fn interface<'a>(view: &View<'a>) -> (Option<&'a Interface>, Part) {
    let found = view.interface(HEAD_INTERFACE);
    let part = match found {
        Some(_) => seen(view, HEAD_INTERFACE, "The head's interface exists"),
        None => Making {
            thing: HEAD_INTERFACE,
            seen: 0,
            rungs: vec![Payload::default()],
            absence: Absence::Unproven,
        }
        .pursue(view, |_, attempt| {
            Body::Interface(InterfaceBody {
                subnet: view.desired.cluster.head_subnet.clone(),
                groups: view
                    .group(HEAD)
                    .map(|group| group.id.clone())
                    .into_iter()
                    .collect(),
                description: format!("hpcops {} head", view.desired.owner.full_name()),
                tags: view.tags(HEAD_INTERFACE, attempt),
            })
        }),
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
    let zone = view
        .subnet(&view.desired.cluster.head_subnet)
        .map(|subnet| subnet.zone.clone());
    let Some(found) = current_volume(view) else {
        let payload = Payload {
            zone: zone.unwrap_or_default(),
            ..Payload::default()
        };
        let making = Making {
            thing: STATE,
            seen: 0,
            rungs: vec![payload],
            absence: Absence::Unproven,
        };
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
            (Some(found), seen(view, STATE, "The state volume exists"))
        }
        VolumeState::Creating | VolumeState::Deleting | VolumeState::Error => {
            let wait = Wait::Volume { state: found.state };
            (
                None,
                Part::waiting(format!("The state volume is {}", found.state), wait),
            )
        }
    }
}

fn seen(view: &View<'_>, thing: &str, message: &str) -> Part {
    Part {
        intents: settle(view, thing).into_iter().collect(),
        ..Part::ready(message)
    }
}

fn machine(view: &View<'_>, interface: &Interface, volume: &Volume) -> Part {
    let mut live: Vec<_> = view
        .instances(HEAD)
        .filter(|head| head.state.is_live())
        .collect();
    live.sort_by_key(|head| attempt_of(&head.tags));
    let Some(current) = live.pop() else {
        return launch(view, interface, volume);
    };
    let surplus = live.iter().map(|head| head.id.clone()).collect::<Vec<_>>();
    let part = of_instance(view, current, volume);
    if surplus.is_empty() {
        return part;
    }
    let because = format!("{} has taken over as head", current.id);
    part.and(Part::step(
        "A former head is being ended",
        Step::Terminate {
            instances: surplus,
            because,
        },
    ))
}

fn launch(view: &View<'_>, interface: &Interface, volume: &Volume) -> Part {
    if interface.in_use || volume.attached_to.is_some() {
        return Part::waiting("The former head is being ended", Wait::FormerHead);
    }
    let head_type = &view.desired.cluster.head_type;
    if view
        .intent(HEAD)
        .is_none_or(|intent| intent.state != IntentState::Open)
        && let Some(excess) = preflight::over_limit(view, std::slice::from_ref(head_type), 1)
    {
        return Part::new(excess);
    }
    let seen = view
        .instances(HEAD)
        .map(|head| attempt_of(&head.tags))
        .max()
        .unwrap_or_default();
    let payload = Payload {
        instance_type: head_type.clone(),
        ..Payload::default()
    };
    Making {
        thing: HEAD,
        seen,
        rungs: vec![payload],
        absence: Absence::Ended,
    }
    .pursue(view, |payload, attempt| {
        launch::head(view, payload, attempt)
    })
}

fn of_instance(view: &View<'_>, head: &Instance, volume: &Volume) -> Part {
    let intent = view
        .intent(HEAD)
        .filter(|intent| intent.attempt == attempt_of(&head.tags));
    if let Some(intent) = intent.filter(|intent| intent.state == IntentState::Abandoned) {
        let (cause, detail) = Cause::read(intent);
        let because = cause.map_or_else(|| detail.to_owned(), |cause| format!("{cause}: {detail}"));
        let reason = if cause == Some(Cause::BootFailed) {
            Reason::BootFailed
        } else {
            Reason::BootTimeout
        };
        return Part {
            steps: vec![Step::Terminate {
                instances: vec![head.id.clone()],
                because: because.clone(),
            }],
            ..Part::new(Verdict::refused(
                reason,
                format!("{}: {because}; it is replaced", head.id),
            ))
        };
    }
    match head.state {
        InstanceState::Running => running(view, head, volume),
        InstanceState::Pending
        | InstanceState::Stopped
        | InstanceState::ShuttingDown
        | InstanceState::Terminated => Part::waiting(
            format!("The head {} is {}", head.id, head.state),
            Wait::HeadInstance,
        ),
    }
}

fn running(view: &View<'_>, head: &Instance, volume: &Volume) -> Part {
    if volume.attached_to.as_ref() != Some(&head.id) {
        return attach(head, &volume.id);
    }
    let report = view
        .observed
        .report
        .as_ref()
        .filter(|report| report.instance_id == head.id.0);
    let online = view.observed.agents_online.contains(&head.id);
    match report.map_or("", |report| report.state.as_str()) {
        "Ready" if online => seen(view, HEAD, "The head accepts jobs"),
        "Failed" => boot_failed(view, head, report),
        _ if online => booting(view, head, report),
        _ => agent_missing(view, head),
    }
}

fn attach(head: &Instance, volume: &VolumeId) -> Part {
    let step = Step::AttachVolume {
        volume: volume.clone(),
        instance: head.id.clone(),
        device: STATE_DEVICE.to_owned(),
    };
    Part::step("The state volume is being attached", step)
}

/// Time since AWS answered the launch of this head, by our own clock; zero while we do not know.
fn since_launch(view: &View<'_>, head: &Instance) -> std::time::Duration {
    let intent = view
        .intent(HEAD)
        .filter(|intent| intent.attempt == attempt_of(&head.tags));
    intent.map(|intent| view.since(intent)).unwrap_or_default()
}

fn agent_missing(view: &View<'_>, head: &Instance) -> Part {
    let limit = view.desired.settings.agent_timeout;
    let waited = since_launch(view, head);
    if is_settled(view) {
        return lost_contact(head);
    }
    if waited >= limit {
        return out_of_time(
            view,
            &format!(
                "the SSM agent of {} did not come online within {}s: check that subnet {} reaches the \
             SSM endpoints and that profile {} has AmazonSSMManagedInstanceCore",
                head.id,
                limit.as_secs(),
                view.desired.cluster.head_subnet,
                view.desired.cluster.head_profile
            ),
        );
    }
    let wait = Wait::Agent {
        seconds: waited.as_secs(),
        limit: limit.as_secs(),
    };
    let message = format!(
        "Head {}: its SSM agent is not online yet, given {}s",
        head.id,
        limit.as_secs()
    );
    let verdict = Verdict::new(ConditionStatus::Unknown, Reason::WaitingForAgent, message);
    Part {
        waits: vec![wait],
        intents: noted(view, head),
        ..Part::new(verdict)
    }
}

/// A head that was Ready before and does not answer now: told, not replaced; it may run jobs.
fn lost_contact(head: &Instance) -> Part {
    let message = format!("Head {}: its SSM agent went offline", head.id);
    Part::new(Verdict::new(
        ConditionStatus::Unknown,
        Reason::WaitingForAgent,
        message,
    ))
}

fn is_settled(view: &View<'_>) -> bool {
    view.intent(HEAD)
        .is_some_and(|intent| intent.state == IntentState::Settled)
}

fn booting(view: &View<'_>, head: &Instance, report: Option<&Report>) -> Part {
    let limit = view.desired.settings.boot_timeout;
    let step = report.map_or("", |report| report.step.as_str());
    if since_launch(view, head) >= limit && !is_settled(view) {
        let late = format!(
            "{} did not boot within {}s; last step '{step}'",
            head.id,
            limit.as_secs()
        );
        return out_of_time(view, &late);
    }
    let message = format!(
        "Head {} boots; the steps are on the state volume under boot/",
        head.id
    );
    let verdict = Verdict::new(ConditionStatus::Unknown, Reason::Booting, message);
    let waits = vec![Wait::HeadBoot {
        step: step.to_owned(),
    }];
    Part {
        waits,
        intents: noted(view, head),
        ..Part::new(verdict)
    }
}

fn boot_failed(view: &View<'_>, head: &Instance, report: Option<&Report>) -> Part {
    let words = report.map_or_else(String::new, |report| {
        format!(
            "boot step '{}' of {} failed: {}",
            report.step, head.id, report.message
        )
    });
    match view.intent(HEAD) {
        Some(intent) if !is_settled(view) => give_up(view, intent, Cause::BootFailed, words),
        _ => Part::new(Verdict::refused(Reason::BootFailed, words)),
    }
}

fn out_of_time(view: &View<'_>, words: &str) -> Part {
    match view.intent(HEAD) {
        Some(intent) => give_up(view, intent, Cause::BootTimeout, words),
        None => Part::new(Verdict::refused(Reason::BootTimeout, words)),
    }
}

/// The launch is answered though the answer was lost: note it, so that the clock of the boot runs.
fn noted(view: &View<'_>, head: &Instance) -> Vec<hpc_crds::Intent> {
    let attempt = attempt_of(&head.tags);
    match view.intent(HEAD) {
        Some(intent) if intent.attempt == attempt && intent.state == IntentState::Open => {
            vec![crate::intents::acted(
                intent,
                vec![head.id.0.clone()],
                view.now,
            )]
        }
        Some(intent) if intent.attempt >= attempt => vec![],
        _ => vec![adopted(view, head, attempt)],
    }
}

/// The intent of a head whose record was lost.
fn adopted(view: &View<'_>, head: &Instance, attempt: i32) -> hpc_crds::Intent {
    let payload = Payload {
        instance_type: head.instance_type.clone(),
        ..Payload::default()
    };
    let proposal = crate::intents::Proposal {
        owner: &view.desired.owner,
        thing: HEAD,
        attempt,
        body_hash: crate::intents::hash(&payload),
        payload,
    };
    crate::intents::acted(&proposal.open(view.now), vec![head.id.0.clone()], view.now)
}
