//! The control API under `/_sim/`: tests set the scene and read what happened.

mod change;
mod read;

use std::sync::Arc;

use hyper::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::shared::Shared;
use crate::wire::decode_form;

/// A request to the control API.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path after `/_sim/`.
    pub path: &'a str,
    /// Query text.
    pub query: &'a str,
    /// Body text.
    pub body: &'a str,
}

/// A refused control request: status and text.
#[derive(Debug)]
pub struct Refusal {
    status: u16,
    message: String,
}

impl Refusal {
    fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }

    fn not_found(message: impl Into<String>) -> Self {
        Self { status: 404, message: message.into() }
    }
}

/// A control request with its account resolved.
#[derive(Debug)]
struct Scene<'a> {
    shared: &'a Arc<Shared>,
    asked: &'a Asked<'a>,
    account: Option<String>,
}

/// Answers a control request: HTTP status and JSON.
pub fn answer(shared: &Arc<Shared>, asked: &Asked<'_>, headers: &HeaderMap) -> (u16, Value) {
    shared.tick();
    let named = headers.get("x-sim-account").and_then(|value| value.to_str().ok());
    let account = asked.parameter("account").or_else(|| named.map(str::to_owned));
    let account = account.map(|name| account_id(shared, &name));
    let scene = Scene { shared, asked, account };
    match route(&scene) {
        Ok(value) => (200, value),
        Err(refusal) => (refusal.status, json!({"error": refusal.message})),
    }
}

/// Twelve digits are an account; anything else is an access key.
fn account_id(shared: &Shared, name: &str) -> String {
    if name.len() == 12 && name.chars().all(|c| c.is_ascii_digit()) {
        return name.to_owned();
    }
    shared.state().principal(name).account
}

impl Asked<'_> {
    fn parameter(&self, name: &str) -> Option<String> {
        decode_form(self.query).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The body; an empty one is an empty object.
    fn decode<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let text = if self.body.trim().is_empty() { "{}" } else { self.body };
        serde_json::from_str(text).map_err(|error| Refusal::bad(error.to_string()))
    }
}

impl Scene<'_> {
    /// The account a change is for: the named one, or the only one.
    fn account(&self) -> Result<String, Refusal> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let mut state = self.shared.state();
        let mut known = state.worlds().keys();
        match (known.next(), known.next()) {
            (Some(only), None) => Ok(only.clone()),
            (_, _) => Err(Refusal::bad("name the account: ?account=<access key or account id>")),
        }
    }

    fn region(&self) -> String {
        self.asked.parameter("region").unwrap_or_else(|| "us-east-1".to_owned())
    }
}

fn route(scene: &Scene<'_>) -> Result<Value, Refusal> {
    let parts: Vec<&str> = scene.asked.path.trim_matches('/').split('/').collect();
    match (scene.asked.method, parts.as_slice()) {
        ("GET", ["health"]) => Ok(json!({"ok": true})),
        ("GET", ["config"]) => Ok(read::config(scene)),
        ("GET", ["ledger"]) => Ok(read::ledger(scene)),
        ("GET", ["calls"]) => Ok(read::calls(scene)),
        ("GET", ["calls", "log"]) => Ok(read::log(scene)),
        ("GET", ["requests"]) => Ok(read::requests(scene)),
        ("GET", ["warnings"]) => Ok(read::warnings(scene)),
        ("GET", ["faults"]) => Ok(read::faults(scene)),
        ("GET", ["held"]) => Ok(scene.shared.holds.render(scene.account.as_deref())),
        ("GET", ["bodies"]) => Ok(read::bodies(scene)),
        ("GET", ["bodies", id]) => read::body(scene, id),
        ("POST", ["release"]) => change::release(scene),
        ("POST", ["faults"]) => change::arm(scene),
        ("DELETE", ["faults"]) => change::disarm(scene),
        ("POST", ["capacity"]) => change::capacity(scene),
        ("POST", ["fsx"]) => change::fsx(scene),
        ("POST", ["instances", id, verb]) => change::instance(scene, id, verb),
        ("POST", ["account"]) => change::account(scene),
        ("POST", ["deny"]) => change::deny(scene),
        ("POST", ["quota"]) => change::quota(scene),
        ("POST", ["bodiless"]) => change::responder(scene),
        ("DELETE", ["bodiless"]) => change::forget_responders(scene),
        ("POST", ["config"]) => change::config(scene),
        ("POST", ["reset"]) => change::reset(scene),
        (method, _) => Err(Refusal::not_found(format!("no {method} /_sim/{}", scene.asked.path))),
    }
}
