//! The head's machine from its launch to the moment it accepts jobs: volume, agent, boot steps.
//!
//! Every time limit runs from the moment our own record says that AWS answered; a head without a
//! record gets one first.

use hpc_crds::{ConditionStatus, Intent, IntentState, Reason};

use crate::cloud::VolumeId;
use crate::intents::{self, Cause, Payload, Proposal};
use crate::names::HEAD;

use super::head::seen;
use super::making::give_up;
use super::observed::{Instance, InstanceState, Report, Volume};
use super::part::{Part, Verdict, View, attempt_of};
use super::step::Step;
use super::wait::Wait;

/// Device name asked for the state volume; the node finds it by the volume's id.
const STATE_DEVICE: &str = "/dev/sdf";

/// A live head: replaced when it was given up, else brought to accept jobs.
pub(super) fn boot(view: &View<'_>, head: &Instance, volume: &Volume) -> Part {
    let attempt = attempt_of(&head.tags);
    let Some(intent) = view.intent(HEAD).filter(|intent| intent.attempt == attempt) else {
        return adopt(view, head, attempt);
    };
    let boot = Boot { view, head, intent };
    match intent.state {
        IntentState::Abandoned if !intents::may_have_worked(intent) => boot.replace(),
        IntentState::Open | IntentState::Abandoned => {
            let answered = intents::acted(intent, vec![head.id.0.clone()], view.now);
            Part::storing(answered, Verdict::creating(format!("The head {} is here", head.id)))
        }
        IntentState::Acted | IntentState::Settled => boot.pursue(volume),
    }
}

/// The record of a head whose own was lost; whether it was ready before is learnt again.
fn adopt(view: &View<'_>, head: &Instance, attempt: i32) -> Part {
    let payload = Payload { instance_type: head.instance_type.clone(), ..Payload::default() };
    let proposal = Proposal {
        owner: &view.desired.owner,
        thing: HEAD,
        attempt,
        body_hash: intents::hash(&payload),
        payload,
    };
    let acted = intents::acted(&proposal.open(view.now), vec![head.id.0.clone()], view.now);
    let verdict = Verdict::creating(format!("The head {} was found again", head.id));
    Part::storing(acted, verdict)
}

/// A live head with its own record.
struct Boot<'a> {
    view: &'a View<'a>,
    head: &'a Instance,
    intent: &'a Intent,
}

impl Boot<'_> {
    fn replace(&self) -> Part {
        let (cause, detail) = Cause::read(self.intent);
        let because = self.intent.reason.clone();
        let reason = match cause {
            Some(Cause::BootFailed) => Reason::BootFailed,
            _ => Reason::BootTimeout,
        };
        let message = format!("{}: {detail}; it is replaced", self.head.id);
        Part {
            steps: vec![Step::Terminate { instances: vec![self.head.id.clone()], because }],
            ..Part::new(Verdict::refused(reason, message))
        }
    }

    fn pursue(&self, volume: &Volume) -> Part {
        match self.head.state {
            InstanceState::Running => self.running(volume),
            InstanceState::Pending
            | InstanceState::Stopped
            | InstanceState::ShuttingDown
            | InstanceState::Terminated => Part::waiting(
                format!("The head {} is {}", self.head.id, self.head.state),
                Wait::HeadInstance,
            ),
        }
    }

    fn running(&self, volume: &Volume) -> Part {
        match &volume.attached_to {
            None => return self.attach(&volume.id),
            Some(other) if *other != self.head.id => {
                return Part::waiting("The former head still holds the volume", Wait::FormerHead);
            }
            Some(_) => {}
        }
        let report = self.view.observed.report.as_ref();
        let report = report.filter(|report| report.instance_id == self.head.id.0);
        let online = self.view.observed.agents_online.contains(&self.head.id);
        match report.map_or("", |report| report.state.as_str()) {
            "Ready" if online => {
                seen(self.view, (HEAD, self.intent.attempt), "The head accepts jobs")
            }
            "Failed" => self.failed(report),
            _ if online => self.booting(report),
            _ => self.mute(),
        }
    }

    /// The boot waits for its volume, so its time starts anew, and that is stored first, when the
    /// attachment comes late (the operator was away).
    fn attach(&self, volume: &VolumeId) -> Part {
        let window = self.view.desired.settings.visibility_window;
        if !self.is_settled() && self.view.since(self.intent) > window {
            let anew = intents::turn(self.intent, IntentState::Acted, self.view.now);
            let message = "The state volume is about to be attached";
            return Part::storing(anew, Verdict::creating(message));
        }
        let step = Step::AttachVolume {
            volume: volume.clone(),
            instance: self.head.id.clone(),
            device: STATE_DEVICE.to_owned(),
        };
        Part::step("The state volume is being attached", step)
    }

    fn is_settled(&self) -> bool {
        self.intent.state == IntentState::Settled
    }

    fn mute(&self) -> Part {
        if self.is_settled() {
            return self.lost_contact();
        }
        let (view, head) = (self.view, self.head);
        let (limit, waited) = (view.desired.settings.agent_timeout, view.since(self.intent));
        if waited >= limit {
            let words = format!(
                "the SSM agent of {} did not come online within {}s: check that subnet {} reaches \
                 the SSM endpoints and that profile {} has AmazonSSMManagedInstanceCore",
                head.id,
                limit.as_secs(),
                view.desired.cluster.head_subnet,
                view.desired.cluster.head_profile
            );
            return give_up(view, self.intent, Cause::BootTimeout, words);
        }
        let wait = Wait::Agent { seconds: waited.as_secs(), limit: limit.as_secs() };
        let (id, limit) = (&head.id, limit.as_secs());
        let message = format!("Head {id}: its SSM agent is not online yet, given {limit}s");
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::WaitingForAgent, message);
        Part { waits: vec![wait], ..Part::new(verdict) }
    }

    /// A head that was Ready before and does not answer now: told, not replaced; it may run jobs.
    fn lost_contact(&self) -> Part {
        let message = format!("Head {}: its SSM agent went offline", self.head.id);
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::WaitingForAgent, message);
        Part::new(verdict)
    }

    fn booting(&self, report: Option<&Report>) -> Part {
        let (view, head) = (self.view, self.head);
        let limit = view.desired.settings.boot_timeout;
        let step = report.map_or("", |report| report.step.as_str());
        if view.since(self.intent) >= limit && !self.is_settled() {
            let limit = limit.as_secs();
            let late = format!("{} did not boot within {limit}s; last step '{step}'", head.id);
            return give_up(view, self.intent, Cause::BootTimeout, late);
        }
        let id = &head.id;
        let message = format!("Head {id} boots; the steps are on the state volume under boot/");
        let verdict = Verdict::new(ConditionStatus::Unknown, Reason::Booting, message);
        let step = step.to_owned();
        Part { waits: vec![Wait::HeadBoot { step }], ..Part::new(verdict) }
    }

    fn failed(&self, report: Option<&Report>) -> Part {
        let (step, message) = report.map_or(("", ""), |told| (&told.step, &told.message));
        let words = format!("boot step '{step}' of {} failed: {message}", self.head.id);
        if self.is_settled() {
            return Part::new(Verdict::refused(Reason::BootFailed, words));
        }
        give_up(self.view, self.intent, Cause::BootFailed, words)
    }
}
