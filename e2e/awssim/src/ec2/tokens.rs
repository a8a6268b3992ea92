//! Client tokens: what was asked under a token and what was answered.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::wire::ApiError;

/// Tokens of one region. `RunInstances` is zonal: its scope holds the zone.
#[derive(Debug, Default)]
pub struct Tokens {
    spent: BTreeMap<Scope, Spent>,
}

/// Where a token counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Action.
    pub action: &'static str,
    /// Zone for zonal actions.
    pub zone: Option<String>,
    /// The token.
    pub token: String,
}

#[derive(Debug, Clone)]
struct Spent {
    digest: [u8; 32],
    answer: Value,
    resources: Vec<String>,
}

/// What an earlier call under the same token gave.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Its answer.
    pub answer: Value,
    /// Ids of the resources it made.
    pub resources: Vec<String>,
}

impl Tokens {
    /// The earlier answer; an error when the earlier request was another.
    pub fn replay(&self, scope: &Scope, digest: [u8; 32]) -> Result<Option<Replay>, ApiError> {
        let Some(spent) = self.spent.get(scope) else {
            return Ok(None);
        };
        if spent.digest != digest {
            return Err(ApiError::client(
                "IdempotentParameterMismatch",
                "Arguments on this idempotent request are inconsistent with arguments used in \
                 previous request(s).",
            ));
        }
        Ok(Some(Replay { answer: spent.answer.clone(), resources: spent.resources.clone() }))
    }

    /// Notes a success.
    pub fn spend(&mut self, scope: Scope, digest: [u8; 32], answer: Value, resources: Vec<String>) {
        self.spent.insert(scope, Spent { digest, answer, resources });
    }
}

/// Digest of what makes two requests the same request.
pub fn digest(request: &impl std::fmt::Debug) -> [u8; 32] {
    Sha256::digest(format!("{request:?}").as_bytes()).into()
}

/// EC2's rule for tokens.
pub fn check_token(token: &str) -> Result<(), ApiError> {
    if token.is_ascii() && token.len() <= 64 {
        return Ok(());
    }
    Err(ApiError::client("InvalidClientToken", "Client token is not valid"))
}
