//! Every derived name, tag and token: the one place that spells them, so that nothing doubles.
//!
//! AWS has no idempotency token for groups, placement groups and documents: there the name is the
//! key. Where AWS has one, the token is derived from the uid, the thing, its zone and the attempt,
//! so that a lost status or a second process arrives at the same token.

use sha2::{Digest, Sha256};

use crate::cloud::{Tags, Token};
use crate::slots::Slots;

/// Longest value of a tag.
const LONGEST_TAG: usize = 256;

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
/// Tag: numbers of a gang's nodes, in launch order; continued in `hpcops.dev:slots.2` and so on.
pub const SLOTS: &str = "hpcops.dev:slots";
/// Tag: the job's gang; absent on nodes that always run.
pub const GANG: &str = "hpcops.dev:gang";
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

    /// Name of the SSM parameter through which the head is told what its jobs cannot have.
    pub fn answers(&self) -> String {
        format!("/hpcops/{}/answers", self.uid)
    }

    /// Name of the SSM parameter through which the head is told who its users are.
    pub fn users(&self) -> String {
        format!("/hpcops/{}/users", self.uid)
    }

    /// Whether a parameter is this cluster's.
    pub fn owns(&self, parameter: &str) -> bool {
        let rest = parameter.strip_prefix("/hpcops/").and_then(|rest| rest.strip_prefix(&self.uid));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether a parameter is one through which the operator tells the head something.
    pub fn may_tell(&self, parameter: &str) -> bool {
        self.owns(parameter) && parameter != self.parameter()
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

/// Name of a queue's node.
pub fn node_name(queue: &str, slot: i32) -> String {
    format!("{queue}-{slot}")
}

/// The tags that hold the numbers of a gang's nodes.
pub fn slot_tags(slots: &Slots) -> Tags {
    let text = slots.to_string();
    let mut tags = Tags::new();
    for word in text.split(',') {
        let (count, fits) = tags.last_key_value().map_or((0, false), |(_, last): (_, &String)| {
            (tags.len(), last.len() + 1 + word.len() <= LONGEST_TAG)
        });
        let key = slots_key(if fits { count } else { count + 1 });
        let value: &mut String = tags.entry(key).or_default();
        if !value.is_empty() {
            value.push(',');
        }
        value.push_str(word);
    }
    tags
}

/// The numbers of the gang a node belongs to; none when the tags name none.
pub fn slots_of(tags: &Tags) -> Slots {
    let texts = (1..).map_while(|part| tags.get(&slots_key(part)).map(String::as_str));
    texts.collect::<Vec<_>>().join(",").parse().unwrap_or_default()
}

/// The keys sort in the order of their parts.
fn slots_key(part: usize) -> String {
    if part == 1 { SLOTS.to_owned() } else { format!("{SLOTS}.{part:02}") }
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
    fn slots_survive_their_way_through_the_tags() {
        for slots in [Slots::default(), Slots::span(1, 1000), (1..=1000).step_by(2).collect()] {
            let tags = slot_tags(&slots);
            assert!(tags.values().all(|value| value.len() <= LONGEST_TAG) && tags.len() <= 9);
            assert_eq!(slots_of(&tags), slots);
        }
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
