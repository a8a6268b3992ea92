//! Faults asked for through the control API: an error, a delay, a broken
//! connection or a parked call, for chosen calls of one account.

use serde::{Deserialize, Serialize};

/// On which side of a call's effect a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Nothing has happened yet.
    Before,
    /// It has happened, and the caller does not know.
    After,
}

/// What happens to a matching call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strike {
    /// The call answers this and has no effect.
    Error {
        /// HTTP status.
        status: u16,
        /// AWS error code.
        code: String,
        /// Message.
        #[serde(default)]
        message: String,
    },
    /// The call waits first (real milliseconds, not scaled).
    Latency {
        /// How long.
        ms: u64,
    },
    /// The connection breaks without an answer.
    Drop {
        /// Before or after the effect.
        when: When,
    },
    /// The call is parked until it is released.
    Hold {
        /// Before or after the effect.
        when: When,
    },
}

/// A fault as posted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Account or access key; default the only or the asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Action name, or `*`.
    pub action: String,
    /// Only calls whose `hpcops.dev:role` is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only this occurrence (see `calls/log`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u32>,
    /// First matching call to strike, from 1.
    #[serde(default = "one")]
    pub nth: u32,
    /// How many calls to strike; 0 is all from then on.
    #[serde(default = "one")]
    pub count: u32,
    /// What happens.
    pub kind: Strike,
}

fn one() -> u32 {
    1
}

/// What identifies a call for faults and the kill test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallKey {
    /// Action name.
    pub action: String,
    /// Value of the role tag in the request or of the resource it names.
    pub role: Option<String>,
    /// 1 + how many calls of this (action, role) have succeeded.
    pub occurrence: u32,
}

#[derive(Debug, Clone)]
struct Armed {
    fault: Fault,
    seen: u32,
}

/// The armed faults of an account.
#[derive(Debug, Default)]
pub struct Faults {
    armed: Vec<Armed>,
}

impl Faults {
    /// Arms one more.
    pub fn arm(&mut self, fault: Fault) {
        self.armed.push(Armed { fault, seen: 0 });
    }

    /// Disarms all.
    pub fn clear(&mut self) {
        self.armed.clear();
    }

    /// What is armed.
    pub fn list(&self) -> Vec<Fault> {
        self.armed.iter().map(|armed| armed.fault.clone()).collect()
    }

    /// What strikes this call: every matching delay, and the first other fault.
    pub fn strike(&mut self, call: &CallKey) -> Vec<Strike> {
        let mut strikes = Vec::new();
        for armed in self.armed.iter_mut().filter(|armed| armed.fault.matches(call)) {
            armed.seen += 1;
            if armed.strikes_now() {
                strikes.push(armed.fault.kind.clone());
            }
        }
        strikes
    }
}

impl Fault {
    fn matches(&self, call: &CallKey) -> bool {
        (self.action == "*" || self.action == call.action)
            && (self.role.is_none() || self.role == call.role)
            && self.occurrence.is_none_or(|occurrence| occurrence == call.occurrence)
    }
}

impl Armed {
    fn strikes_now(&self) -> bool {
        let last = if self.fault.count == 0 {
            u32::MAX
        } else {
            self.fault.nth.saturating_add(self.fault.count - 1)
        };
        (self.fault.nth..=last).contains(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn struck(fault: serde_json::Value, calls: u32) -> Vec<u32> {
        let mut faults = Faults::default();
        faults.arm(serde_json::from_value(fault).unwrap());
        (1..=calls)
            .filter(|n| {
                let key = CallKey {
                    action: "RunInstances".into(),
                    role: Some("head".into()),
                    occurrence: *n,
                };
                !faults.strike(&key).is_empty()
            })
            .collect()
    }

    #[test]
    fn a_fault_strikes_the_calls_it_names() {
        let error = json!({"error": {"status": 500, "code": "InternalError"}});
        let check = |fault: serde_json::Value, expected: &[u32]| {
            let mut fault = fault;
            fault["kind"] = error.clone();
            assert_eq!(struck(fault, 5), expected);
        };
        check(json!({"action": "RunInstances"}), &[1]);
        check(json!({"action": "*", "nth": 2, "count": 2}), &[2, 3]);
        check(json!({"action": "RunInstances", "count": 0}), &[1, 2, 3, 4, 5]);
        check(json!({"action": "RunInstances", "occurrence": 4}), &[4]);
        check(json!({"action": "RunInstances", "role": "queue-a", "count": 0}), &[]);
        check(json!({"action": "CreateVolume", "count": 0}), &[]);
    }
}
