//! One call (or event) at work: the account and region it may change, the
//! time it happens at, and what it wants done afterwards.

use jiff::Timestamp;
use serde_json::Value;

use crate::agenda::Event;
use crate::clock::Delay;
use crate::effect::Effect;
use crate::ledger::{Birth, Kind, Tags};
use crate::wire::ApiError;
use crate::world::{Account, Engine, Principal, Region};

/// What an action works with.
#[derive(Debug)]
pub struct Call<'a> {
    /// The caller's account.
    pub account: &'a mut Account,
    /// The region of the credential scope.
    pub region: &'a mut Region,
    /// Clock, dice, data.
    pub engine: &'a Engine,
    /// When the call happens. One call has one time.
    pub now: Timestamp,
    /// What to do once the lock is gone.
    pub effects: &'a mut Vec<Effect>,
    /// Keys to hand to instances: (access key, principal).
    pub keys: &'a mut Vec<(String, Principal)>,
    /// The request only asks whether it would succeed.
    pub dry_run: bool,
}

/// A resource about to be noted, without region and time.
#[derive(Debug)]
pub struct Newborn<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its id or name.
    pub id: &'a str,
    /// Its tags.
    pub tags: Tags,
    /// Its client token.
    pub token: Option<&'a str>,
    /// What else tests ask for.
    pub detail: Value,
}

impl Call<'_> {
    /// The point between validation and effect: a dry run ends here.
    pub fn commit(&self) -> Result<(), ApiError> {
        if self.dry_run {
            return Err(ApiError::with_status(
                412,
                "DryRunOperation",
                "Request would have succeeded, but DryRun flag is set.",
            ));
        }
        Ok(())
    }

    /// Takes a resource token per instance, or refuses all.
    pub fn take_resources(&mut self, action: &str, count: u32) -> Result<(), ApiError> {
        if self.account.settings.throttling {
            self.region.buckets.resources(action, count, self.now)?;
        }
        Ok(())
    }

    /// A fresh id.
    pub fn new_id(&mut self, prefix: &str) -> String {
        self.account.new_id(prefix, self.engine.dice)
    }

    /// When something begun now is done.
    pub fn after(&self, delay: Delay, key: &str) -> Timestamp {
        self.account.after(self.engine, self.now, delay, key)
    }

    /// Puts an event on the agenda.
    pub fn schedule(&mut self, at: Timestamp, event: Event) {
        self.region.agenda.add(at, event);
    }

    /// Notes a new resource.
    pub fn born(&mut self, newborn: Newborn<'_>) {
        let birth = Birth {
            kind: newborn.kind,
            id: newborn.id.to_owned(),
            tags: newborn.tags,
            client_token: newborn.token.map(str::to_owned),
            detail: newborn.detail,
        };
        self.account.ledger.add(&self.region.name, self.now, birth);
    }

    /// Notes that a resource is gone.
    pub fn gone(&mut self, kind: Kind, id: &str) {
        self.account.ledger.remove(kind, &self.region.name, id, self.now);
    }

    /// Tags of a resource.
    pub fn tags(&self, kind: Kind, id: &str) -> &Tags {
        self.account.ledger.tags(kind, &self.region.name, id)
    }

    /// An ARN in this account and region.
    pub fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region.name, self.account.id)
    }
}
