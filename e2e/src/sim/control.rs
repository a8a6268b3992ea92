//! The control API under `/_sim`, as one account's story uses it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{LabError, Result};
use crate::eventually::eventually;

/// One account's view of the control API.
#[derive(Debug, Clone)]
pub struct Sim {
    url: String,
    access_key: String,
    http: reqwest::Client,
}

/// One resource ever made in the account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Such as `instance`, `volume`, `file-system`.
    pub kind: String,
    /// Its id, or its name where AWS has no id.
    pub id: String,
    /// `ec2`, `fsx` or `ssm`.
    pub service: String,
    /// The 12-digit account.
    pub account: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// When it was gone.
    pub deleted_at: Option<String>,
    /// Its tags now, or when it went.
    pub tags: BTreeMap<String, String>,
    /// Token of the create call.
    pub client_token: Option<String>,
    /// What else there is to tell, by kind.
    #[serde(default)]
    pub detail: Value,
}

impl Resource {
    /// Whether it still exists.
    pub fn is_alive(&self) -> bool {
        self.deleted_at.is_none()
    }
}

/// One call of the account, in order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// Place in the log, from 0.
    pub index: u64,
    /// Such as `RunInstances`.
    pub action: String,
    /// The `hpcops.dev:role` it is about, if any.
    pub role: Option<String>,
    /// Which successful call of this action and role it is, or would be, from 1.
    pub occurrence: u32,
    /// Whether it changes anything.
    pub mutating: bool,
    /// Its client token.
    pub token: Option<String>,
    /// `account` for the operator and people, `instance` for nodes.
    pub caller: String,
    /// `OK`, the error code, or nothing while it is under way.
    pub code: Option<String>,
}

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strike {
    /// The call answers this and has no effect.
    Error {
        /// HTTP status.
        status: u16,
        /// AWS error code.
        code: String,
        /// Message.
        message: String,
    },
    /// The call waits first.
    Latency {
        /// Real milliseconds.
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

/// A parked call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Held {
    /// Names it to [`Sim::release`].
    pub id: u64,
    /// Such as `RunInstances`.
    pub action: String,
    /// The `hpcops.dev:role` it is about, if any.
    pub role: Option<String>,
    /// Which successful call of this action and role it is, from 1.
    pub occurrence: u32,
    /// Its client token.
    pub token: Option<String>,
    /// On which side of its effect it is parked.
    pub when: When,
}

/// What becomes of a parked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// It goes on.
    Continue,
    /// Its connection breaks without an answer.
    Drop,
}

/// A fault to arm.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Action name, or `*`.
    pub action: String,
    /// Only calls about this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u32>,
    /// First matching call to strike, from 1.
    pub nth: u32,
    /// How many to strike; 0 is all from then on.
    pub count: u32,
    /// What happens.
    pub kind: Strike,
}

impl Fault {
    /// Strikes the next call of an action.
    pub fn next(action: &str, kind: Strike) -> Self {
        let action = action.to_owned();
        Self { action, role: None, occurrence: None, nth: 1, count: 1, kind }
    }
}

impl Sim {
    /// The control API of the simulator at `url`.
    pub fn at(url: &str, access_key: &str) -> Self {
        let (url, access_key) = (url.trim_end_matches('/').to_owned(), access_key.to_owned());
        Self { url, access_key, http: reqwest::Client::new() }
    }

    /// Where the simulator answers, AWS calls as well.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The access key that is this account.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Every resource ever made.
    pub async fn ledger(&self) -> Result<Vec<Resource>> {
        self.get("ledger").await
    }

    /// The resources that exist now.
    pub async fn living(&self) -> Result<Vec<Resource>> {
        let all = self.ledger().await?;
        Ok(all.into_iter().filter(Resource::is_alive).collect())
    }

    /// The resources of one kind that exist now; with thousands of them the rest of the ledger is
    /// not read.
    pub async fn living_of(&self, kind: &str) -> Result<Vec<Resource>> {
        self.get(&format!("ledger?kind={kind}&alive=true")).await
    }

    /// How many calls there were, by action and by error code (`OK` without one).
    pub async fn calls(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>> {
        self.get("calls").await
    }

    /// Every call, oldest first.
    pub async fn call_log(&self) -> Result<Vec<Call>> {
        self.get("calls/log").await
    }

    /// Calls that were meant to change something, made by the operator or a person.
    pub async fn mutating_calls(&self) -> Result<Vec<Call>> {
        let all = self.call_log().await?;
        Ok(all.into_iter().filter(|call| call.mutating && call.caller == "account").collect())
    }

    /// Arms a fault.
    pub async fn fault(&self, fault: &Fault) -> Result<()> {
        self.post("faults", &json!(fault)).await.map(drop)
    }

    /// Disarms all faults.
    pub async fn clear_faults(&self) -> Result<()> {
        self.send(reqwest::Method::DELETE, "faults", None).await.map(drop)
    }

    /// The calls parked now.
    pub async fn held(&self) -> Result<Vec<Held>> {
        self.get("held").await
    }

    /// Waits until a call is parked.
    pub async fn await_held(&self, deadline: Duration) -> Result<Held> {
        eventually("a call is held", deadline, async || Ok(self.held().await?.into_iter().next()))
            .await
    }

    /// Lets a parked call go on, or breaks its connection so that nobody hears its answer.
    pub async fn release(&self, held: &Held, then: Then) -> Result<()> {
        self.post("release", &json!({"id": held.id, "then": then})).await.map(drop)
    }

    /// Says how many instances of a type may still start in a zone; nothing is plentiful.
    pub async fn capacity(&self, instance_type: &str, zone: &str, free: Option<u32>) -> Result<()> {
        let pool = json!({"type": instance_type, "zone": zone, "free": free});
        self.post("capacity", &pool).await.map(drop)
    }

    /// Makes a file system FAILED, or the next one when it settles.
    pub async fn fail_file_system(&self, id: Option<&str>, message: &str) -> Result<()> {
        self.post("fsx", &json!({"id": id, "message": message})).await.map(drop)
    }

    /// Ends an instance as AWS would: `verb` is `terminate` or `fail`.
    pub async fn end_instance(&self, id: &str, verb: &str, code: &str) -> Result<()> {
        let path = format!("instances/{id}/{verb}");
        self.post(&path, &json!({"code": code, "message": code})).await.map(drop)
    }

    /// What EC2 says of an instance's health from now on: whether its checks fail, and what AWS is
    /// about to do to it.
    pub async fn health(&self, id: &str, impaired: bool, event: Option<&str>) -> Result<()> {
        let event = event.map(|code| json!({"code": code, "inSeconds": 3600}));
        let change = json!({"impaired": impaired, "event": event});
        self.post(&format!("instances/{id}/health"), &change).await.map(drop)
    }

    /// Brings an instance's agent `online`, makes it `lost`, or lets it `never` come.
    pub async fn agent(&self, id: &str, state: &str) -> Result<()> {
        self.post(&format!("instances/{id}/agent"), &json!({"agent": state})).await.map(drop)
    }

    /// Makes this access key belong to another account.
    pub async fn move_to_account(&self, account: &str) -> Result<()> {
        let body = json!({"accessKey": self.access_key, "accountId": account});
        self.post("account", &body).await.map(drop)
    }

    /// Replaces the denied IAM actions; none allows all.
    pub async fn deny(&self, actions: &[&str]) -> Result<()> {
        self.post("deny", &json!({"actions": actions})).await.map(drop)
    }

    /// Sets a quota by name.
    pub async fn quota(&self, name: &str, value: u64) -> Result<()> {
        self.post("quota", &json!({"name": name, "value": value})).await.map(drop)
    }

    /// Scripts what bodiless instances answer to commands whose script, parameter or decoded
    /// payload contains `matching`.
    pub async fn respond(&self, matching: &str, stdout: &str) -> Result<()> {
        self.post("bodiless", &json!({"matching": matching, "stdout": stdout})).await.map(drop)
    }

    /// Changes switches of the account: `bodies`, `agents`, `instanceProfiles`, `keyPairs`, `delays`.
    pub async fn configure(&self, switches: &Value) -> Result<()> {
        self.post("config", switches).await.map(drop)
    }

    /// Ids of the instances, of all accounts, whose body lives on this machine.
    pub async fn bodies(&self) -> Result<Vec<String>> {
        self.get("bodies").await
    }

    /// What real AWS lets pass but no operator should ask for.
    pub async fn warnings(&self) -> Result<Vec<Value>> {
        self.get("warnings").await
    }

    /// Forgets the account: bodies end, resources, faults and calls are gone.
    pub async fn reset(&self) -> Result<()> {
        self.post("reset", &json!({})).await.map(drop)
    }

    /// Reads anything of the control API; `path` is relative to `/_sim/`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let value = self.send(reqwest::Method::GET, path, None).await?;
        serde_json::from_value(value).map_err(LabError::malformed(format!("/_sim/{path}")))
    }

    /// Posts anything to the control API.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(reqwest::Method::POST, path, Some(body)).await
    }

    async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let what = format!("{method} /_sim/{path}");
        let failed =
            |source: reqwest::Error| LabError::Sim { what: what.clone(), source: source.into() };
        let joint = if path.contains('?') { '&' } else { '?' };
        let url = format!("{}/_sim/{path}{joint}account={}", self.url, self.access_key);
        let mut request = self.http.request(method, url).timeout(Duration::from_secs(20));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let text = answer.text().await.map_err(failed)?;
        if !status.is_success() {
            let source = format!("{status}: {text}").into();
            return Err(LabError::Sim { what, source });
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|source| LabError::Sim { what, source: source.into() })
    }
}
