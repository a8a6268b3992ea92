//! The record that is stored before anything is created, so that no crash can lose a resource.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::types::Time;

/// What the operator is about to create, or gave up creating.
///
/// The envelope is stable for ever; everything that may change between versions of the operator
/// lies in `payload`, which a version that does not know it carries on byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// version is the format of `payload`. An operator that does not know it keeps the intent
    /// unchanged and does not act on it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub version: i32,
    /// token is the idempotency token of the AWS call, 40 hexadecimal characters derived from the
    /// object's uid, `thing`, zone and `attempt`.
    #[schemars(length(min = 40, max = 40), regex(pattern = "^[0-9a-f]{40}$"))]
    pub token: String,
    /// thing names what is created: `head`, `storage-scratch`, `queue-compute`.
    #[schemars(length(min = 1, max = 128))]
    pub thing: String,
    /// attempt counts the tries for this thing, from 1, over restarts and loss of this status.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempt: i32,
    /// bodyHash is the SHA-256 of the request in hexadecimal. A request that would differ now is
    /// never sent again under the same token.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[0-9a-f]+$"))]
    pub body_hash: String,
    /// state is Open (may have been sent), Acted (AWS answered), Settled (what was made has been
    /// seen whole) or Abandoned (never to be sent again).
    pub state: IntentState,
    /// payload is JSON text with everything specific to `version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 8192))]
    pub payload: String,
    /// resourceIds are what AWS answered that the token created, at most the first 16 of them. Empty
    /// until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)), extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_ids: Vec<String>,
    /// changedAt is when `state` was last set, in UTC.
    pub changed_at: Time,
    /// reason says why the intent was abandoned. Empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub reason: String,
}

/// How far an intent has come.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    Display,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum IntentState {
    /// Stored; the request may or may not have reached AWS.
    #[default]
    Open,
    /// AWS answered with what the token created.
    Acted,
    /// What the token created has been seen whole; losing part of it later is repair, not failure.
    Settled,
    /// Given up: the token is never sent again, what it may have created is looked up and removed.
    Abandoned,
}
