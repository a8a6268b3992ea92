//! Token buckets on our side of the wire, one per API action of a region.
//!
//! AWS counts calls per account, region and action, and a caller who goes on while throttled keeps
//! the bucket empty for everybody. So a throttled answer closes the action until one token has
//! come back, then for twice as long, until a call gets through.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::action::{Action, Rate};

/// Longest pause of a throttled action.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A caller is told to come back rather than kept waiting longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// All buckets of one region.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    buckets: Mutex<HashMap<(&'static str, Sort), Bucket>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Requests,
    Resources,
}

impl Buckets {
    /// Waits for one request token and `resources` resource tokens.
    ///
    /// # Errors
    /// How long it would take, when that is longer than a caller should be kept.
    pub async fn admit(&self, action: &Action, resources: u32) -> Result<(), Duration> {
        loop {
            match self.take(action, resources, Instant::now()) {
                None => return Ok(()),
                Some(wait) if wait > LONGEST_WAIT => return Err(wait),
                Some(wait) => sleep(wait).await,
            }
        }
    }

    /// Takes the tokens, or tells how long until they may be there.
    fn take(&self, action: &Action, resources: u32, now: Instant) -> Option<Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = [
            Some((Sort::Requests, action.requests, 1.0)),
            action
                .resources
                .map(|rate| (Sort::Resources, rate, f64::from(resources).min(rate.size))),
        ];
        let wait = wanted
            .iter()
            .flatten()
            .map(|(sort, rate, cost)| {
                let bucket = buckets.entry((action.name, *sort));
                bucket.or_insert_with(|| Bucket::full(*rate, now)).wait(*rate, *cost, now)
            })
            .max()
            .unwrap_or_default();
        if !wait.is_zero() {
            return Some(wait);
        }
        for (sort, _, cost) in wanted.into_iter().flatten() {
            if let Some(bucket) = buckets.get_mut(&(action.name, sort)) {
                bucket.tokens -= cost;
            }
        }
        None
    }

    /// AWS throttled a call that began at `began`.
    pub fn throttled(&self, action: &Action, began: Instant, now: Instant) {
        self.with(action, now, |bucket| bucket.close(action.requests, began, now));
    }

    /// AWS took a call.
    pub fn accepted(&self, action: &Action, now: Instant) {
        self.with(action, now, |bucket| bucket.pause = Duration::ZERO);
    }

    fn with(&self, action: &Action, now: Instant, change: impl FnOnce(&mut Bucket)) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry((action.name, Sort::Requests));
        change(bucket.or_insert_with(|| Bucket::full(action.requests, now)));
    }
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    /// When `tokens` was right; in the future while the action is closed.
    filled: Instant,
    pause: Duration,
    closed_at: Option<Instant>,
}

impl Bucket {
    const fn full(rate: Rate, now: Instant) -> Self {
        Self { tokens: rate.size, filled: now, pause: Duration::ZERO, closed_at: None }
    }

    fn wait(&mut self, rate: Rate, cost: f64, now: Instant) -> Duration {
        let closed_for = self.filled.saturating_duration_since(now);
        let since = now.saturating_duration_since(self.filled);
        self.tokens = since.as_secs_f64().mul_add(rate.refill, self.tokens).min(rate.size);
        self.filled = self.filled.max(now);
        if self.tokens >= cost && closed_for.is_zero() {
            return Duration::ZERO;
        }
        let missing = Duration::from_secs_f64((cost - self.tokens).max(0.0) / rate.refill);
        // Never zero, or a caller would spin on a rounding error.
        (closed_for + missing).max(Duration::from_millis(1))
    }

    /// Calls sent before the last closing say nothing new: one burst doubles the pause once.
    fn close(&mut self, rate: Rate, began: Instant, now: Instant) {
        if self.closed_at.is_some_and(|closed| began < closed) {
            return;
        }
        let one_token = Duration::from_secs_f64(1.0 / rate.refill);
        self.pause = (self.pause * 2).clamp(one_token, LONGEST_PAUSE);
        self.closed_at = Some(now);
        self.tokens = 0.0;
        // The token that ends the pause is back exactly when it ends.
        self.filled = now + self.pause.saturating_sub(one_token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{DESCRIBE_SUBNETS, RUN_INSTANCES};

    /// When `calls` calls were let through, in milliseconds from the start.
    async fn times(buckets: &Buckets, action: &Action, calls: usize, cost: u32) -> Vec<u128> {
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..calls {
            buckets.admit(action, cost).await.unwrap();
            times.push(start.elapsed().as_millis());
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_calls_come_as_fast_as_the_bucket_refills() {
        let times = times(&Buckets::default(), &RUN_INSTANCES, 8, 1).await;
        assert_eq!(times[4], 0);
        for (call, at) in [(5, 500), (6, 1000), (7, 1500)] {
            assert!(times[call].abs_diff(at) <= 5, "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn instances_are_counted_beside_requests() {
        let buckets = Buckets::default();
        assert_eq!(times(&buckets, &RUN_INSTANCES, 1, 1000).await, [0]);
        assert!(times(&buckets, &RUN_INSTANCES, 1, 16).await[0].abs_diff(8000) <= 5);
        let wait = buckets.admit(&RUN_INSTANCES, 1000).await.unwrap_err();
        assert!(wait > Duration::from_secs(490), "{wait:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttled_action_pauses_for_one_token_then_twice_as_long() {
        let buckets = Buckets::default();
        for pause in [500, 1000, 2000, 4000] {
            buckets.throttled(&RUN_INSTANCES, Instant::now(), Instant::now());
            let times = times(&buckets, &RUN_INSTANCES, 2, 1).await;
            assert!(times[0].abs_diff(pause) <= 5, "{times:?} after {pause}");
            assert!(times[1].abs_diff(pause + 500) <= 5, "{times:?} after {pause}");
        }
        buckets.accepted(&RUN_INSTANCES, Instant::now());
        buckets.throttled(&RUN_INSTANCES, Instant::now(), Instant::now());
        assert!(times(&buckets, &RUN_INSTANCES, 1, 1).await[0].abs_diff(500) <= 5);
    }

    #[tokio::test(start_paused = true)]
    async fn one_burst_of_throttled_calls_counts_once() {
        let buckets = Buckets::default();
        let began = Instant::now();
        sleep(Duration::from_millis(10)).await;
        for _ in 0..5 {
            buckets.throttled(&RUN_INSTANCES, began, Instant::now());
        }
        assert!(times(&buckets, &RUN_INSTANCES, 1, 1).await[0].abs_diff(500) <= 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttled_action_does_not_stop_another_one() {
        let buckets = Buckets::default();
        buckets.throttled(&RUN_INSTANCES, Instant::now(), Instant::now());
        assert_eq!(times(&buckets, &DESCRIBE_SUBNETS, 1, 0).await, [0]);
    }
}
