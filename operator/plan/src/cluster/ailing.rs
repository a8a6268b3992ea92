//! What EC2 says of the health of machines. A machine that nothing is said of is not sick: status
//! checks that are missing, initializing or without data prove nothing.

use hpc_crds::{ConditionStatus, Reason};

use crate::cloud::InstanceId;

use crate::names::HEAD;

use super::observed::{Instance, Observed};
use super::part::{Part, Verdict, View};
use super::preflight::{self, Ask};
use super::step::Step;

/// A live machine that does not do what it should, or soon will not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ailing {
    /// Which.
    pub id: InstanceId,
    /// What it has.
    pub ill: Ill,
}

/// What a machine has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ill {
    /// Its status checks failed at two looks, a while apart.
    Impaired,
    /// AWS is going to stop, restart or retire it: its code and time.
    Event(String),
}

impl Ill {
    /// The reason it shows as.
    pub(super) const fn reason(&self) -> Reason {
        match self {
            Self::Impaired => Reason::Impaired,
            Self::Event(_) => Reason::ScheduledEvent,
        }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Impaired => "its EC2 status checks failed".to_owned(),
            Self::Event(event) => format!("AWS has scheduled {event}"),
        }
    }
}

/// What a machine has, if anything.
pub(super) fn ill<'a>(view: &View<'a>, id: &InstanceId) -> Option<&'a Ill> {
    view.observed.ailing.iter().find(|found| found.id == *id).map(|found| &found.ill)
}

/// A head that cannot stay: sick, or of another type than the spec asks for. Its interface and its
/// volume pass to the next one; the nodes and their jobs go on meanwhile.
pub(super) fn retire(view: &View<'_>, head: &Instance) -> Option<Part> {
    let wanted = &view.desired.cluster.head_type;
    // A type that is not told is unknown, not another one.
    let is_as_asked = head.instance_type == *wanted || head.instance_type.is_empty();
    let (reason, because) = match ill(view, &head.id) {
        Some(ill) => (ill.reason(), ill.words()),
        None if is_as_asked => return None,
        None => (Reason::Creating, format!("it is a {}, not a {wanted}", head.instance_type)),
    };
    if let Some(excess) = excess(view, head) {
        return Some(Part::new(excess));
    }
    let message = format!("The head {} is replaced: {because}", head.id);
    let step = Step::Terminate { instances: vec![head.id.clone()], because };
    let verdict = Verdict::new(ConditionStatus::Unknown, reason, message);
    Some(Part { steps: vec![step], ..Part::new(verdict) })
}

/// Whether its successor would pass a limit once it is gone itself: then it stays.
fn excess(view: &View<'_>, head: &Instance) -> Option<Verdict> {
    let seen = view.observed;
    let price = seen.prices.get(&head.instance_type).copied().unwrap_or_default();
    let without = Observed {
        installation_instances: seen.installation_instances.saturating_sub(1),
        installation_hourly_cost: seen.installation_hourly_cost.saturating_sub(price),
        ..seen.clone()
    };
    let types = std::slice::from_ref(&view.desired.cluster.head_type);
    let after = View { observed: &without, ..*view };
    preflight::over_limit(&after, &Ask { thing: HEAD, types, count: 1 })
}
