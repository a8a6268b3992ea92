//! Two worlds are the same when they will behave alike: absolute times do not count, only how long
//! ago things were, and that only up to the longest wait that reads it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use hpc_crds::{HpcClusterStatus, Intent, IntentState, Time};
use jiff::Timestamp;

use super::World;
use crate::cluster::Settings;
use crate::intents::{self, Payload};

impl World {
    /// A hash of everything that decides what happens next under these settings.
    pub fn fingerprint(&self, settings: &Settings) -> u64 {
        let mut hash = DefaultHasher::new();
        self.body_print().hash(&mut hash);
        let clock = Clock { world: self, now: self.now, settings };
        clock.status(&self.object.status, &mut hash);
        hash.finish()
    }

    /// The same without the status: what AWS is, and what was ever done.
    pub fn body_print(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        (self.object.finalizer, self.released, &self.account, &self.fate).hash(&mut hash);
        (&self.groups, &self.placement_groups, &self.interfaces).hash(&mut hash);
        (&self.volumes, &self.instances, &self.file_systems).hash(&mut hash);
        (&self.document, &self.parameter, &self.tokens, &self.ledger).hash(&mut hash);
        (&self.scheduler.jobs, &self.scheduler.gangs, self.scheduler.left(self.now))
            .hash(&mut hash);
        (&self.notes, &self.ailing, &self.scheduler.numbers).hash(&mut hash);
        hash.finish()
    }
}

struct Clock<'a> {
    world: &'a World,
    now: Timestamp,
    settings: &'a Settings,
}

impl Clock<'_> {
    fn age(&self, time: Time, horizon: Duration) -> u64 {
        let age = Duration::try_from(self.now.duration_since(time.timestamp())).unwrap_or_default();
        age.min(horizon).as_secs()
    }

    /// The longest time for which the age of an intent can still make a difference.
    fn horizon(&self, intent: &Intent) -> Duration {
        let of = self.settings;
        let windows = [of.agent_timeout, of.boot_timeout, of.visibility_window, of.lookup_window];
        let windows = windows.into_iter().chain([of.finalizer_gap]).max().unwrap_or_default();
        let round = Payload::of(intent).round;
        let backoff = intents::backoff(of.capacity_backoff, round, &self.world.owner);
        windows.max(backoff) + Duration::from_secs(2)
    }

    fn status(&self, status: &HpcClusterStatus, hash: &mut DefaultHasher) {
        for condition in &status.conditions {
            (&condition.type_, condition.status, &condition.reason, &condition.message).hash(hash);
            condition.observed_generation.hash(hash);
        }
        for intent in &status.intents {
            self.intent(intent, hash);
        }
        let rest = HpcClusterStatus { conditions: vec![], intents: vec![], ..status.clone() };
        self.rest(rest, hash);
    }

    /// The age of a settled intent decides nothing: what it made was seen whole.
    fn intent(&self, intent: &Intent, hash: &mut DefaultHasher) {
        let age = match intent.state {
            IntentState::Settled => 0,
            IntentState::Open | IntentState::Acted | IntentState::Abandoned => {
                self.age(intent.changed_at, self.horizon(intent))
            }
        };
        (intent.version, &intent.token, &intent.thing, intent.attempt, &intent.body_hash)
            .hash(hash);
        (intent.state as u8, &intent.payload, &intent.resource_ids, &intent.reason, age).hash(hash);
    }

    /// Everything else is plain facts, but for the time of the next try.
    fn rest(&self, mut rest: HpcClusterStatus, hash: &mut DefaultHasher) {
        for queue in &mut rest.queues {
            let left = queue.next_try.take().map(|time| self.left(time));
            left.hash(hash);
        }
        format!("{rest:?}").hash(hash);
    }

    fn left(&self, time: Time) -> u64 {
        let left =
            Duration::try_from(time.timestamp().duration_since(self.now)).unwrap_or_default();
        left.as_secs()
    }
}
