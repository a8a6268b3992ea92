//! Who may log in to a cluster and run jobs on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person or a service with an account on every node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserSpec {
    /// name is the login name. Required, unique. Example: alice.
    #[schemars(length(max = 32))]
    pub name: String,
    /// uid is the number of the user and of its group on every node, 1001 to 60000. Required,
    /// unique, immutable: files belong to it. Example: 4001.
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    pub uid: i32,
    /// sshPublicKeys are the keys the user may log in with, in the form of OpenSSH, at most 4.
    /// All users' names and keys together must fit 4 KiB, some 40 ed25519 keys; short keys save
    /// room. Default: none, then the user can run jobs only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ssh_public_keys: Vec<String>,
}
