//! What this process did, for as long as its cache may not show it.
//!
//! The cache lags behind our own writes. A pass on an object older than our last write could act
//! on an intent that was closed meanwhile, so such a pass is skipped until the cache caught up.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hpc_plan::cluster::Report;
use jiff::Timestamp;
use kube::Resource;

/// Per object: the newest version we wrote, and the last plan we logged.
#[derive(Debug, Default)]
pub struct Memory {
    objects: Mutex<HashMap<String, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    version: Option<String>,
    logged: Option<u64>,
    released: bool,
    rest: Option<(String, Rest)>,
}

/// Why an object needs no look: it is as it was, and its head says what it said.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// What the head said.
    pub report: Option<Report>,
    /// When the object was looked at as a whole.
    pub began: Timestamp,
    /// When it is looked at again in any case.
    pub ends: Timestamp,
}

impl Memory {
    /// Whether the cache shows this object older than we left it.
    pub fn is_stale(&self, object: &impl Resource) -> bool {
        let objects = self.lock();
        let written = objects.get(uid(object)).and_then(|known| known.version.as_deref());
        written.is_some_and(|written| is_older(version(object), written))
    }

    /// Notes what a write answered.
    pub fn wrote(&self, object: &impl Resource) {
        let mut objects = self.lock();
        objects.entry(uid(object).to_owned()).or_default().version =
            Some(version(object).to_owned());
    }

    /// The version a write of this pass must expect: that of an earlier write of the same pass, or
    /// the one that was read.
    pub fn expected(&self, object: &impl Resource) -> String {
        let objects = self.lock();
        let written = objects.get(uid(object)).and_then(|known| known.version.clone());
        let read = version(object);
        written.filter(|written| is_older(read, written)).unwrap_or_else(|| read.to_owned())
    }

    /// Whether this text differs from the last one told of the object; notes it.
    pub fn is_news(&self, object: &impl Resource, text: &str) -> bool {
        let mut hash = DefaultHasher::new();
        text.hash(&mut hash);
        let hash = Some(hash.finish());
        let mut objects = self.lock();
        let known = objects.entry(uid(object).to_owned()).or_default();
        std::mem::replace(&mut known.logged, hash) != hash
    }

    /// Notes that this version of the object is at rest, if it still is the newest one.
    pub fn rest(&self, object: &impl Resource, rest: Option<Rest>) {
        let version = version(object).to_owned();
        let rest = rest.filter(|_| self.expected(object) == version).map(|rest| (version, rest));
        let mut objects = self.lock();
        // One that was let go and forgotten stays so.
        if rest.is_some() || objects.contains_key(uid(object)) {
            objects.entry(uid(object).to_owned()).or_default().rest = rest;
        }
    }

    /// Why this version of the object needs no look, if it does not.
    pub fn resting(&self, object: &impl Resource) -> Option<Rest> {
        let objects = self.lock();
        let (at, rest) = objects.get(uid(object))?.rest.as_ref()?;
        (at == version(object)).then(|| rest.clone())
    }

    /// Our finalizer is off: the object is gone, or at least no longer ours.
    pub fn released(&self, object: &impl Resource) {
        self.lock().entry(uid(object).to_owned()).or_default().released = true;
    }

    /// Whether this pass let the object go; if so it is forgotten.
    pub fn forget_released(&self, object: &impl Resource) -> bool {
        let mut objects = self.lock();
        let released = objects.get(uid(object)).is_some_and(|known| known.released);
        if released {
            objects.remove(uid(object));
        }
        released
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn uid(object: &impl Resource) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

fn version(object: &impl Resource) -> &str {
    object.meta().resource_version.as_deref().unwrap_or_default()
}

/// Resource versions of one kind are decimal numbers that grow. What is not such a number cannot be
/// ordered; then the precondition of the write alone guards it.
fn is_older(this: &str, other: &str) -> bool {
    matches!((this.parse::<u128>(), other.parse::<u128>()), (Ok(this), Ok(other)) if this < other)
}

#[cfg(test)]
mod tests {
    use hpc_crds::HpcCluster;

    use super::*;

    fn object(version: &str) -> HpcCluster {
        let mut object = HpcCluster::default();
        object.metadata.uid = Some("u1".to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn only_an_object_older_than_our_last_write_is_stale() {
        let memory = Memory::default();
        assert!(!memory.is_stale(&object("9")));
        memory.wrote(&object("10"));
        for (version, stale) in [("9", true), ("10", false), ("11", false), ("x", false)] {
            assert_eq!(memory.is_stale(&object(version)), stale, "{version}");
        }
        assert!(!memory.forget_released(&object("10")));
        memory.released(&object("10"));
        assert!(memory.forget_released(&object("10")));
        assert!(!memory.is_stale(&object("9")) && !memory.forget_released(&object("10")));
    }

    #[test]
    fn a_write_expects_what_was_read_or_what_the_same_pass_wrote() {
        let memory = Memory::default();
        assert_eq!(memory.expected(&object("9")), "9");
        memory.wrote(&object("10"));
        assert_eq!(memory.expected(&object("9")), "10");
        assert_eq!(memory.expected(&object("12")), "12");
    }

    #[test]
    fn rest_is_of_one_version_and_never_of_one_we_wrote_over() {
        let (memory, now) = (Memory::default(), Timestamp::UNIX_EPOCH);
        let rest = || Some(Rest { report: None, began: now, ends: now });
        memory.rest(&object("10"), rest());
        assert_eq!(memory.resting(&object("10")), rest());
        assert_eq!(memory.resting(&object("11")), None);
        memory.rest(&object("10"), None);
        assert_eq!(memory.resting(&object("10")), None);
        memory.wrote(&object("12"));
        memory.rest(&object("11"), rest());
        assert_eq!(memory.resting(&object("11")), None);
    }

    #[test]
    fn the_same_text_is_news_once() {
        let memory = Memory::default();
        let told = ["a", "a", "b", "a"].map(|text| memory.is_news(&object("1"), text));
        assert_eq!(told, [true, false, true, true]);
    }
}
