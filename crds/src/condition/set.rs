//! How the conditions of one pass come from those of the pass before.

use super::{Condition, ConditionStatus, ConditionType, Reason, find};
use crate::types::Time;

/// The longest message in bytes; longer ones are cut.
const MESSAGE_BYTES: usize = 1024;

/// What a cut message ends with.
const CUT: &str = "...";

/// The conditions of an object while a pass goes over them.
///
/// It starts from the conditions in the observed status. What the pass does not set stays as it
/// was, except [`ConditionType::Reconciling`] and [`ConditionType::Stalled`], which must be said
/// again in each pass. A condition that is set to what it was does not change, so a steady object
/// yields equal conditions.
#[derive(Clone, Debug)]
pub struct ConditionSet<'a> {
    previous: &'a [Condition],
    generation: i64,
    now: Time,
    conditions: Vec<Condition>,
}

impl<'a> ConditionSet<'a> {
    /// Starts from `previous`, for the spec of `generation`, in a pass that happens `now`.
    pub fn new(previous: &'a [Condition], generation: i64, now: impl Into<Time>) -> Self {
        let stays = |condition: &&Condition| {
            condition.known_type().is_some_and(|type_| !type_.is_only_when_true())
        };
        let conditions = previous.iter().filter(stays).cloned().collect();
        Self { previous, generation, now: now.into(), conditions }
    }

    /// States `type_`. An only-when-true type that is not True is removed.
    pub fn set(
        &mut self,
        type_: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: &str,
    ) -> &mut Self {
        self.conditions.retain(|condition| !condition.is(type_));
        if status == ConditionStatus::True || !type_.is_only_when_true() {
            let condition = Condition {
                type_: type_.to_string(),
                status,
                observed_generation: self.generation,
                last_transition_time: self.transition_time(type_, status),
                reason: reason.to_string(),
                message: cut(message),
            };
            self.conditions.push(condition);
        }
        self
    }

    /// Takes `type_` away, when it does not apply to the object (any more).
    pub fn remove(&mut self, type_: ConditionType) -> &mut Self {
        self.conditions.retain(|condition| !condition.is(type_));
        self
    }

    /// Leaves `type_` as it was; what was never stated becomes Unknown with reason Pending, so that
    /// every condition is there from the first visit.
    pub fn keep(&mut self, type_: ConditionType) -> &mut Self {
        match self.get(type_) {
            Some(_) => self,
            None => self.set(type_, ConditionStatus::Unknown, Reason::Pending, ""),
        }
    }

    /// States `root` from `parts`: True with `success` when all are True, else a copy of the first
    /// False part, else of the first that is not known.
    pub fn set_root(
        &mut self,
        root: ConditionType,
        parts: &[ConditionType],
        success: (Reason, &str),
    ) -> &mut Self {
        for part in parts {
            self.keep(*part);
        }
        match self.worst(parts).cloned() {
            None => self.set(root, ConditionStatus::True, success.0, success.1),
            Some(part) => {
                let reason = part.known_reason().unwrap_or(Reason::Pending);
                self.set(root, part.status, reason, &part.message)
            }
        }
    }

    /// The condition of type `type_`, as it stands now.
    pub fn get(&self, type_: ConditionType) -> Option<&Condition> {
        find(&self.conditions, type_)
    }

    /// The conditions in their fixed order.
    pub fn into_conditions(mut self) -> Vec<Condition> {
        self.conditions.sort_by_key(Condition::known_type);
        self.conditions
    }

    fn worst(&self, parts: &[ConditionType]) -> Option<&Condition> {
        let with = |status| {
            let holds = move |condition: &&Condition| condition.status == status;
            parts.iter().filter_map(|part| self.get(*part)).find(holds)
        };
        with(ConditionStatus::False).or_else(|| with(ConditionStatus::Unknown))
    }

    fn transition_time(&self, type_: ConditionType, status: ConditionStatus) -> Time {
        find(self.previous, type_)
            .filter(|before| before.status == status)
            .map_or(self.now, |before| before.last_transition_time)
    }
}

/// The message, at most [`MESSAGE_BYTES`] long, cut between characters.
fn cut(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MESSAGE_BYTES - CUT.len());
    message.get(..end).map_or_else(String::new, |head| format!("{head}{CUT}"))
}
