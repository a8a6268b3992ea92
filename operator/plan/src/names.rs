//! Every derived name, tag and token: the one place that spells them, so that nothing doubles.
//!
//! AWS has no idempotency token for groups, placement groups and documents: there the name is the
//! key. Where AWS has one, the token is derived from the uid, the thing, its zone and the attempt,
//! so that a lost status or a second process arrives at the same token.

use sha2::{Digest, Sha256};

use crate::cloud::{Tags, Token};

/// Tag: installation that owns the resource.
pub const INSTALLATION: &str = "hpcops.dev:installation";
/// Tag: uid of the HPCCluster.
pub const CLUSTER_UID: &str = "hpcops.dev:cluster-uid";
/// Tag: `namespace.name` of the HPCCluster.
pub const CLUSTER: &str = "hpcops.dev:cluster";
/// Tag: what the resource is for.
pub const ROLE: &str = "hpcops.dev:role";
/// Tag: the attempt that made it.
pub const ATTEMPT: &str = "hpcops.dev:attempt";
/// Tag: node names of a gang, in launch order.
pub const SLOTS: &str = "hpcops.dev:slots";
/// Tag: set on what outlives its object.
pub const RETAINED: &str = "hpcops.dev:retained";
/// Tag: set on a file system before it is first mounted, so that AWS itself says that it may hold
/// data, whatever becomes of the status.
pub const MOUNTED: &str = "hpcops.dev:mounted";
/// Finalizer of both kinds.
pub const FINALIZER: &str = "hpcops.dev/release";
/// Annotation: stop acting.
pub const PAUSED: &str = "hpcops.dev/paused";
/// Annotation: build beside what the predecessor of this uid left.
pub const IGNORE_PREDECESSOR: &str = "hpcops.dev/ignore-predecessor";

/// Role of the head.
pub const HEAD: &str = "head";
/// Role of the nodes' security group.
pub const NODES: &str = "nodes";
/// Thing and role of the head's network interface.
pub const HEAD_INTERFACE: &str = "head-interface";
/// Thing and role of the state volume.
pub const STATE: &str = "state";

/// Whose resource: the identity that goes into tags, names and tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Installation id of the operator.
    pub installation: String,
    /// Object uid.
    pub uid: String,
    /// Object namespace.
    pub namespace: String,
    /// Object name.
    pub name: String,
}

impl Owner {
    /// `namespace.name`, the value of the cluster tag.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }

    /// Tags of a resource in `role`; the user's own tags never override ours.
    #[must_use]
    pub fn tags(&self, role: &str, user: &Tags) -> Tags {
        let mut tags = user.clone();
        tags.entry("Name".to_owned()).or_insert_with(|| format!("{}-{role}", self.name));
        for (key, value) in [
            (INSTALLATION, self.installation.clone()),
            (CLUSTER_UID, self.uid.clone()),
            (CLUSTER, self.full_name()),
            (ROLE, role.to_owned()),
        ] {
            tags.insert(key.to_owned(), value);
        }
        tags
    }

    /// Derived name of a group or placement group: unique per object and role.
    pub fn resource(&self, role: &str) -> String {
        format!("hpcops-{}-{role}", self.uid)
    }

    /// Token of the `attempt`-th try to make `thing` in `zone`.
    pub fn token(&self, thing: &str, zone: &str, attempt: i32) -> Token {
        Token(digest(&[&self.uid, thing, zone, &attempt.to_string()]))
    }

    /// Name of the SSM parameter through which the head reports.
    pub fn parameter(&self) -> String {
        format!("/hpcops/{}/demand", self.uid)
    }
}

/// Role of a queue's instances and placement group.
pub fn queue_role(queue: &str) -> String {
    format!("queue-{queue}")
}

/// Role of a file system and its security group.
pub fn storage_role(storage: &str) -> String {
    format!("storage-{storage}")
}

/// Names of a queue's nodes, in slot order.
pub fn node_names(queue: &str, count: i32) -> Vec<String> {
    (1..=count).map(|slot| format!("{queue}-{slot}")).collect()
}

/// The first 40 hex characters of a SHA-256 over length-prefixed parts.
pub fn digest(parts: &[&str]) -> String {
    let mut hex = hex(parts);
    hex.truncate(40);
    hex
}

fn hex(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        hex.extend(char::from_digit(u32::from(byte >> 4), 16));
        hex.extend(char::from_digit(u32::from(byte & 15), 16));
        hex
    })
}

/// SHA-256 over the sorted keys and values of a `ConfigMap`'s data, hexadecimal.
pub fn sha256(data: &std::collections::BTreeMap<String, String>) -> String {
    let parts: Vec<&str> = data.iter().flat_map(|(key, value)| [key.as_str(), value]).collect();
    hex(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner {
            installation: "lab".into(),
            uid: "7f4e1d9a".into(),
            namespace: "cfd".into(),
            name: "wing".into(),
        }
    }

    #[test]
    fn a_token_changes_with_each_of_its_parts_and_with_nothing_else() {
        let base = owner().token("head", "us-east-1a", 1);
        assert_eq!(base, owner().token("head", "us-east-1a", 1));
        assert_eq!(base.as_str().len(), 40);
        for other in [
            owner().token("state", "us-east-1a", 1),
            owner().token("head", "us-east-1b", 1),
            owner().token("head", "us-east-1a", 2),
            Owner { uid: "8".into(), ..owner() }.token("head", "us-east-1a", 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn parts_do_not_run_into_one_another() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }

    #[test]
    fn the_users_tags_never_override_ours_except_name() {
        let user =
            Tags::from([(ROLE.to_owned(), "x".to_owned()), ("Name".to_owned(), "f1".to_owned())]);
        let tags = owner().tags(HEAD, &user);
        assert_eq!(tags.get(ROLE).map(String::as_str), Some(HEAD));
        assert_eq!(tags.get("Name").map(String::as_str), Some("f1"));
    }
}
