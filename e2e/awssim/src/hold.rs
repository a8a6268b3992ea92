//! Parked calls: listed, and let go or dropped, through the control API.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::fault::{CallKey, When};

/// What becomes of a parked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// It goes on.
    Continue,
    /// Its connection breaks without an answer.
    Drop,
}

/// A call to park.
#[derive(Debug, Clone)]
pub struct Parked {
    /// Account it belongs to.
    pub account: String,
    /// Action, role, occurrence.
    pub key: CallKey,
    /// Its client token.
    pub token: Option<String>,
    /// Before or after its effect.
    pub when: When,
}

#[derive(Debug)]
struct Held {
    parked: Parked,
    release: oneshot::Sender<Then>,
}

/// All parked calls.
#[derive(Debug, Default)]
pub struct Holds {
    held: Mutex<(u64, BTreeMap<u64, Held>)>,
}

impl Holds {
    /// Waits until somebody decides. A simulator that stops drops the call.
    pub async fn park(&self, parked: Parked) -> Then {
        let (release, decision) = oneshot::channel();
        {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.0 += 1;
            let id = held.0;
            held.1.insert(id, Held { parked, release });
        }
        decision.await.unwrap_or(Then::Drop)
    }

    /// Lets one go. `false` when there is no such call.
    pub fn release(&self, id: u64, then: Then) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&id);
        held.is_some_and(|held| held.release.send(then).is_ok())
    }

    /// Drops all parked calls of an account.
    pub fn drop_all(&self, account: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.1.retain(|_, call| call.parked.account != account);
    }

    /// The parked calls, of one account or all.
    pub fn render(&self, account: Option<&str>) -> Value {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = held
            .1
            .iter()
            .filter(|(_, call)| account.is_none_or(|account| call.parked.account == account));
        let row = |(id, call): (&u64, &Held)| {
            let parked = &call.parked;
            json!({
                "id": id, "account": parked.account, "action": parked.key.action,
                "role": parked.key.role, "occurrence": parked.key.occurrence,
                "token": parked.token, "when": parked.when,
            })
        };
        Value::Array(calls.map(row).collect())
    }
}
