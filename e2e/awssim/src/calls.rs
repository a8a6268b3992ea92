//! The record of calls: nested counts for budgets, an ordered log for the
//! kill test, raw requests for the botocore oracle.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::iso;
use crate::fault::CallKey;
use crate::wire::Service;

/// Most raw requests kept per account.
const REQUESTS_KEPT: usize = 20_000;

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The account's own access key: the operator, or a test.
    Account,
    /// An instance, with the credentials of its profile.
    Instance,
}

impl Caller {
    /// Name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Instance => "instance",
        }
    }
}

/// One call, as the log keeps it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When it arrived.
    pub at: Timestamp,
    /// Service.
    pub service: Service,
    /// Region of the credential scope.
    pub region: String,
    /// Action, role, occurrence.
    pub key: CallKey,
    /// Whether it changes anything.
    pub mutating: bool,
    /// Its client token.
    pub token: Option<String>,
    /// Who called.
    pub caller: Caller,
    /// `OK` or the error code; `None` while it is under way.
    pub code: Option<String>,
}

/// One raw request.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Service.
    pub service: Service,
    /// Action.
    pub action: String,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `User-Agent`.
    pub user_agent: Option<String>,
    /// Its body.
    pub body: String,
}

/// All calls of an account.
#[derive(Debug, Default)]
pub struct Calls {
    log: Vec<Entry>,
    successes: BTreeMap<(String, Option<String>), u32>,
    requests: VecDeque<Raw>,
}

impl Calls {
    /// The key a call arriving now has.
    pub fn key(&self, action: &str, role: Option<String>) -> CallKey {
        let name = (action.to_owned(), role);
        let occurrence = self.successes.get(&name).copied().unwrap_or(0) + 1;
        let (action, role) = name;
        CallKey { action, role, occurrence }
    }

    /// Notes an arrival; gives its place in the log.
    pub fn arrive(&mut self, entry: Entry) -> usize {
        self.log.push(entry);
        self.log.len() - 1
    }

    /// Notes how a call ended.
    pub fn finish(&mut self, place: usize, code: &str) {
        let Some(entry) = self.log.get_mut(place) else {
            return;
        };
        entry.code = Some(code.to_owned());
        if code == "OK" {
            let name = (entry.key.action.clone(), entry.key.role.clone());
            *self.successes.entry(name).or_default() += 1;
        }
    }

    /// Keeps a raw request.
    pub fn record(&mut self, raw: Raw) {
        if self.requests.len() >= REQUESTS_KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back(raw);
    }

    /// `{action: {code: count}}`, of one caller or of all.
    pub fn counts(&self, caller: Option<&str>) -> Value {
        let mut counts: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| made_by(entry, caller)) {
            let code = entry.code.as_deref().unwrap_or("(pending)");
            *counts.entry(&entry.key.action).or_default().entry(code).or_default() += 1;
        }
        json!(counts)
    }

    /// The ordered log, of one caller or of all.
    pub fn log(&self, caller: Option<&str>) -> Value {
        let rows = self.log.iter().enumerate().filter(|(_, entry)| made_by(entry, caller));
        Value::Array(rows.map(|(index, entry)| render(index, entry)).collect())
    }

    /// Raw requests, oldest first.
    pub fn requests(&self) -> Value {
        let row = |raw: &Raw| {
            json!({
                "service": raw.service.name(),
                "action": raw.action,
                "contentType": raw.content_type,
                "userAgent": raw.user_agent,
                "body": raw.body,
            })
        };
        Value::Array(self.requests.iter().map(row).collect())
    }
}

fn made_by(entry: &Entry, caller: Option<&str>) -> bool {
    caller.is_none_or(|caller| entry.caller.name() == caller)
}

fn render(index: usize, entry: &Entry) -> Value {
    json!({
        "index": index,
        "time": iso(entry.at),
        "service": entry.service.name(),
        "region": entry.region,
        "action": entry.key.action,
        "role": entry.key.role,
        "occurrence": entry.key.occurrence,
        "mutating": entry.mutating,
        "token": entry.token,
        "caller": entry.caller.name(),
        "code": entry.code,
    })
}
