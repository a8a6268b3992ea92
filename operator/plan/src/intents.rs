//! Intents: what is about to be made is stored first, and only a later pass that reads it acts.
//!
//! An intent's token makes a repeat harmless, its attempt number is never reused, and giving up is
//! recorded before anything is cleaned up. One intent per thing is kept: the latest.

use std::fmt;
use std::time::Duration;

use hpc_crds::{Intent, IntentState, Time};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cloud::{Kind, Token};
use crate::names::{Owner, digest};
use crate::slots::Slots;

/// Format of the payload this build writes and acts on.
pub const VERSION: i32 = 1;
/// Longest wait between two attempts.
const LONGEST_BACKOFF: Duration = Duration::from_mins(10);

/// What this build stores beside the envelope. Missing fields are defaults: all may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Payload {
    /// Step of the ladder (type x subnet) this attempt stands on.
    pub rung: usize,
    /// How often in a row all has failed before this attempt: the back-off follows it.
    pub round: i32,
    /// How many attempts in a row ended in a way that is bounded (boot, agent, a wrong request).
    pub failures: i32,
    /// Instance type asked for.
    pub instance_type: String,
    /// Subnet asked for.
    pub subnet: String,
    /// Its zone.
    pub zone: String,
    /// Numbers of the nodes, in launch order.
    pub slots: Slots,
}

impl Payload {
    /// What an intent of this version holds; defaults when it cannot be read.
    pub fn of(intent: &Intent) -> Self {
        serde_json::from_str(&intent.payload).unwrap_or_default()
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Why an attempt was given up; the first word of [`Intent::reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
pub enum Cause {
    /// No capacity, told at once or after the launch.
    Capacity,
    /// A limit of the account.
    Quota,
    /// Not allowed.
    Denied,
    /// Not offered there, or not supported.
    NotOffered,
    /// The request was wrong.
    Invalid,
    /// Something it needs does not exist.
    Dependency,
    /// The token's instances are gone for good.
    Spent,
    /// Part of the gang ended before it was whole.
    Partial,
    /// The agent or the boot took too long.
    BootTimeout,
    /// The boot failed and said so.
    BootFailed,
    /// It ended as FAILED.
    Failed,
    /// AWS answered, but nothing was ever seen.
    Vanished,
    /// The request would be another one today.
    Superseded,
    /// The object is being deleted.
    Deleting,
}

impl Cause {
    /// The cause of a refusal.
    pub const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Capacity => Some(Self::Capacity),
            Kind::Quota => Some(Self::Quota),
            Kind::Denied => Some(Self::Denied),
            Kind::NotOffered => Some(Self::NotOffered),
            Kind::Invalid => Some(Self::Invalid),
            Kind::Dependency => Some(Self::Dependency),
            Kind::TokenSpent => Some(Self::Spent),
            Kind::NotFound
            | Kind::Exists
            | Kind::Throttled
            | Kind::Credentials
            | Kind::InUse
            | Kind::TokenMismatch
            | Kind::Unknown => None,
        }
    }

    /// Whether the refusal may have been one of a repeat, the first call having worked unheard: AWS
    /// checks rights and references before it looks at the token.
    pub const fn may_hide_success(self) -> bool {
        match self {
            Self::Quota | Self::Denied | Self::Invalid | Self::Dependency => true,
            Self::Capacity
            | Self::NotOffered
            | Self::Spent
            | Self::Partial
            | Self::BootTimeout
            | Self::BootFailed
            | Self::Failed
            | Self::Vanished
            | Self::Superseded
            | Self::Deleting => false,
        }
    }

    /// The cause when an instance ended with this code of AWS: no capacity after all, or `other`.
    pub fn of_end(code: &str, other: Self) -> Self {
        if code.contains("InsufficientInstanceCapacity") { Self::Capacity } else { other }
    }

    /// The cause stored in an intent, with the rest of its words.
    pub fn read(intent: &Intent) -> (Option<Self>, &str) {
        let (word, rest) = intent.reason.split_once(": ").unwrap_or((&intent.reason, ""));
        (word.parse().ok(), rest)
    }
}

/// A new intent, in one place so that no field is forgotten.
#[derive(Clone, Debug)]
pub struct Proposal<'a> {
    /// Whose.
    pub owner: &'a Owner,
    /// What.
    pub thing: &'a str,
    /// Which try.
    pub attempt: i32,
    /// Hash of the request.
    pub body_hash: String,
    /// What the attempt is made of.
    pub payload: Payload,
}

impl Proposal<'_> {
    /// The intent to publish.
    pub fn open(self, now: Timestamp) -> Intent {
        let token = self.owner.token(self.thing, &self.payload.zone, self.attempt);
        Intent {
            version: VERSION,
            token: token.0,
            thing: self.thing.to_owned(),
            attempt: self.attempt,
            body_hash: self.body_hash,
            state: IntentState::Open,
            payload: self.payload.text(),
            resource_ids: Vec::new(),
            changed_at: Time::new(now),
            reason: String::new(),
        }
    }
}

/// The intent in another state; only one that was given up has a reason.
pub fn turn(intent: &Intent, state: IntentState, now: Timestamp) -> Intent {
    Intent { state, changed_at: Time::new(now), reason: String::new(), ..intent.clone() }
}

/// Ids of one intent that a status has room for. A gang may have a thousand: that there are some is
/// what counts, and how many were asked for stands in the payload.
const MOST_IDS: usize = 16;

/// The intent, answered by AWS.
pub fn acted(intent: &Intent, mut ids: Vec<String>, now: Timestamp) -> Intent {
    ids.truncate(MOST_IDS);
    Intent { resource_ids: ids, ..turn(intent, IntentState::Acted, now) }
}

/// The intent, given up.
pub fn abandon(intent: &Intent, cause: Cause, detail: impl fmt::Display, now: Timestamp) -> Intent {
    let mut reason = format!("{cause}: {detail}");
    let end = (0..=reason.len().min(512)).rev().find(|&at| reason.is_char_boundary(at));
    reason.truncate(end.unwrap_or_default());
    Intent { reason, ..turn(intent, IntentState::Abandoned, now) }
}

/// Hash of a request.
pub fn hash(body: &impl Serialize) -> String {
    digest(&[&serde_json::to_string(body).unwrap_or_default()])
}

/// The token of an intent.
pub fn token(intent: &Intent) -> Token {
    Token(intent.token.clone())
}

/// Whether an attempt was refused in a way that leaves open that it had worked before; what it
/// made is then taken, not given back.
pub fn may_have_worked(intent: &Intent) -> bool {
    let refused = intent.state == IntentState::Abandoned && intent.resource_ids.is_empty();
    refused && Cause::read(intent).0.is_some_and(Cause::may_hide_success)
}

/// Whether this build wrote it and may act on it.
pub const fn is_known(intent: &Intent) -> bool {
    intent.version == VERSION
}

/// Time since the intent's state changed.
pub fn age(intent: &Intent, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(intent.changed_at.timestamp())).unwrap_or_default()
}

/// Wait before the attempt after `round` failed ones: doubles to ten minutes, spread by a hash of
/// the owner so that clusters refused together do not come back together.
pub fn backoff(first: Duration, round: i32, owner: &Owner) -> Duration {
    let doublings = u32::try_from(round).unwrap_or_default().min(16);
    let full = first.saturating_mul(1 << doublings).min(LONGEST_BACKOFF);
    let seed = digest(&[&owner.uid, &round.to_string()]);
    let percent = u32::from_str_radix(seed.get(..4).unwrap_or("0"), 16).unwrap_or_default() % 21;
    full * (90 + percent) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner {
            installation: "lab".into(),
            uid: uid.into(),
            namespace: "cfd".into(),
            name: "wing".into(),
        }
    }

    /// The first value of a key, at any depth.
    fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
        let fields = value.as_object().into_iter().flat_map(|fields| fields.values());
        let mut inner = fields.chain(value.as_array().into_iter().flatten());
        value.get(key).or_else(|| inner.find_map(|inner| find(inner, key)))
    }

    #[test]
    fn a_gang_of_a_thousand_leaves_no_more_ids_than_a_status_takes() {
        let schema = serde_json::to_value(hpc_crds::all()).unwrap();
        let most = find(find(&schema, "resourceIds").unwrap(), "maxItems").unwrap();
        let ids = (0..1000).map(|number| format!("i-{number:017x}")).collect();
        let answered = acted(&Intent::default(), ids, Timestamp::UNIX_EPOCH);
        assert_eq!(Some(answered.resource_ids.len() as u64), most.as_u64());
    }

    #[test]
    fn back_off_doubles_to_ten_minutes_within_a_tenth() {
        for (round, full) in [(0, 30), (1, 60), (3, 240), (5, 600), (40, 600)] {
            let wait = backoff(Duration::from_secs(30), round, &owner("a")).as_secs_f64();
            assert!(
                (f64::from(full) * 0.9..=f64::from(full) * 1.1).contains(&wait),
                "{round}: {wait}"
            );
        }
    }

    #[test]
    fn a_cause_survives_its_way_through_the_status() {
        let intent = Intent { reason: "Capacity: ICE: none left".into(), ..Intent::default() };
        assert_eq!(Cause::read(&intent), (Some(Cause::Capacity), "ICE: none left"));
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let cut =
            abandon(&Intent::default(), Cause::Invalid, "ü".repeat(600), Timestamp::UNIX_EPOCH);
        assert!(cut.reason.len() <= 512 && cut.reason.ends_with('ü'));
    }
}
