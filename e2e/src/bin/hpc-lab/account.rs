//! Whose AWS the operator uses: the lab's simulated account, or, for `make aws-smoke`, the account of
//! the person at the terminal.

use std::collections::BTreeMap;

use hpc_e2e::process::free_port;
use hpc_e2e::{LabError, Result};
use serde_json::{Value, json};

/// Region of the examples.
const REGION: &str = "us-east-1";
/// The access key of the lab's account; it derives the account's number.
pub const SIMULATED_KEY: &str = "AKIAHPCOPSLAB0000001";
/// Variables that hold a person's credentials.
const CREDENTIALS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// An account, and how to reach it.
#[derive(Debug)]
pub struct Account {
    /// Empty on real AWS.
    endpoint: String,
    region: String,
    credentials: BTreeMap<&'static str, String>,
}

impl Account {
    /// The lab's account in the simulator at `url`; any secret does, for it keeps none.
    pub fn simulated(url: &str) -> Self {
        let pairs = [("AWS_ACCESS_KEY_ID", SIMULATED_KEY), ("AWS_SECRET_ACCESS_KEY", "simulated")];
        Self {
            endpoint: url.to_owned(),
            region: REGION.to_owned(),
            credentials: pairs.map(|(name, value)| (name, value.to_owned())).into(),
        }
    }

    /// The account whose credentials are in this program's environment.
    pub fn of_this_person() -> Result<Self> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if set("AWS_ENDPOINT_URL").is_some() {
            return Err(LabError::missing("real AWS", "unset AWS_ENDPOINT_URL"));
        }
        let credentials: BTreeMap<_, _> =
            CREDENTIALS.into_iter().filter_map(|name| Some((name, set(name)?))).collect();
        if credentials.len() < 2 {
            let hint = "export AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if there is one, AWS_SESSION_TOKEN";
            return Err(LabError::missing("credentials", hint));
        }
        let region = set("AWS_REGION").unwrap_or_else(|| REGION.to_owned());
        Ok(Self { endpoint: String::new(), region, credentials })
    }

    /// The data of the Secret that the operator's pod reads.
    pub fn credentials(&self) -> &BTreeMap<&'static str, String> {
        &self.credentials
    }

    /// The chart's values; the rest is its defaults.
    pub fn values(&self) -> Result<Value> {
        let aws =
            json!({"region": self.region, "endpointUrl": self.endpoint, "existingSecret": "aws"});
        let http = json!({"port": free_port()?});
        let log = |level: &str| json!([{"name": "RUST_LOG", "value": level}]);
        if self.is_simulated() {
            return Ok(json!({
                "installationId": "lab", "aws": aws, "http": http, "extraEnv": log("info"),
                "simulatedFabric": "tcp",
            }));
        }
        // The hard cap of a smoke test: a head, two small nodes, two dollars an hour. What goes over
        // the wire is logged, to become fixtures.
        Ok(json!({
            "installationId": "smoke", "aws": aws, "http": http,
            "extraEnv": log("info,aws_smithy_runtime=debug"),
            "limits": {"maxInstances": 3, "maxHourlyCost": "2"},
        }))
    }

    /// What `.lab/env` exports of it. A person's own credentials are theirs to export.
    pub fn exports(&self) -> Vec<(&'static str, String)> {
        let mut exports = vec![("AWS_REGION", self.region.clone())];
        if self.is_simulated() {
            exports.push(("AWS_ENDPOINT_URL", self.endpoint.clone()));
            exports.push(("AWSSIM_URL", self.endpoint.clone()));
            exports.extend(self.credentials.iter().map(|(name, value)| (*name, value.clone())));
        }
        exports
    }

    fn is_simulated(&self) -> bool {
        !self.endpoint.is_empty()
    }
}
