//! Waiting for something to come true: always with a deadline, and a failure tells what was seen
//! instead. Nothing in the lab or its stories sleeps for a fixed time.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Api;
use kube::runtime::wait::{Condition, await_condition as watch_until};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::error::{LabError, Result};

/// How often a thing that cannot be watched is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Looks until `look` finds something. An error of `look` is what was last seen, not the end: the
/// thing waited for may not even exist yet.
pub async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let until = Instant::now() + deadline;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = String::from("nothing");
    while Instant::now() < until {
        ticks.tick().await;
        match tokio::time::timeout_at(until, look()).await {
            Ok(Ok(Some(found))) => return Ok(found),
            Ok(Ok(None)) => "not yet".clone_into(&mut last),
            Ok(Err(error)) => last = error.chain(),
            Err(_elapsed) => "no answer".clone_into(&mut last),
        }
    }
    Err(LabError::Deadline { what: what.to_owned(), within: deadline, last })
}

/// Watches one object until `holds` says so; `None` is an object that does not exist.
pub async fn await_condition<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    deadline: Duration,
    holds: impl Fn(Option<&K>) -> bool + Send,
) -> Result<Option<K>>
where
    K: kube::Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
    K::DynamicType: Default,
{
    let seen = Arc::new(Mutex::new(String::from("nothing")));
    let watched = Watched { holds, seen: Arc::clone(&seen) };
    match tokio::time::timeout(deadline, watch_until(api.clone(), name, watched)).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(error)) => Err(LabError::malformed(format!("the watch of {name}"))(error)),
        Err(_elapsed) => Err(LabError::Deadline {
            what: format!("{name}: {what}"),
            within: deadline,
            last: seen.lock().map(|seen| seen.clone()).unwrap_or_default(),
        }),
    }
}

struct Watched<F> {
    holds: F,
    seen: Arc<Mutex<String>>,
}

impl<K: Serialize, F: Fn(Option<&K>) -> bool> Condition<K> for Watched<F> {
    fn matches_object(&self, object: Option<&K>) -> bool {
        if let Ok(mut seen) = self.seen.lock() {
            *seen = describe(object);
        }
        (self.holds)(object)
    }
}

/// What a person wants to know of an object that is not as expected: its status.
fn describe<K: Serialize>(object: Option<&K>) -> String {
    let Some(object) = object else {
        return "no such object".to_owned();
    };
    let value = serde_json::to_value(object).unwrap_or_default();
    value.get("status").unwrap_or(&value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_comes_true_names_the_last_thing_seen() {
        let look =
            async || -> Result<Option<()>> { Err(LabError::missing("the head", "launch it")) };
        let error = eventually("the head answers", Duration::from_millis(120), look).await;
        assert_eq!(
            error.unwrap_err().to_string(),
            "the head answers: not within 120ms; last seen: the head is missing: launch it"
        );
    }

    #[tokio::test]
    async fn a_look_that_never_returns_does_not_outlive_the_deadline() {
        let look = async || -> Result<Option<()>> { std::future::pending().await };
        let error = eventually("an answer comes", Duration::from_millis(80), look).await;
        assert!(error.unwrap_err().to_string().ends_with("last seen: no answer"));
    }
}
