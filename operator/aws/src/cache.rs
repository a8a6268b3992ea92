//! Reads that several clusters share, each made once at a time and kept for a short while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Entries of a [`Keyed`] cache above which it starts over.
const MOST_KEYS: usize = 1024;

/// A value that was right at a known moment.
#[derive(Debug)]
pub(crate) struct Cached<T> {
    slot: Mutex<Option<(Instant, Duration, T)>>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { slot: Mutex::new(None) }
    }
}

impl<T: Clone> Cached<T> {
    /// The kept value, if its reading began at `not_before` or later and it has not outlived the
    /// time `read` gave it; otherwise what `read` brings. Callers wait for a reading under way.
    pub async fn get<F>(&self, not_before: Option<Instant>, read: impl FnOnce() -> F + Send) -> T
    where
        F: Future<Output = (T, Duration)> + Send,
    {
        let mut slot = self.slot.lock().await;
        if let Some((began, keep, value)) = &*slot
            && began.elapsed() < *keep
            && not_before.is_none_or(|moment| *began >= moment)
        {
            return value.clone();
        }
        let began = Instant::now();
        let (value, keep) = read().await;
        *slot = Some((began, keep, value.clone()));
        value
    }
}

/// One [`Cached`] value per key.
#[derive(Debug)]
pub(crate) struct Keyed<K, T> {
    cells: std::sync::Mutex<HashMap<K, Arc<Cached<T>>>>,
}

impl<K, T> Default for Keyed<K, T> {
    fn default() -> Self {
        Self { cells: std::sync::Mutex::default() }
    }
}

impl<K: Eq + Hash, T: Clone> Keyed<K, T> {
    /// See [`Cached::get`].
    pub async fn get<F>(
        &self,
        key: K,
        not_before: Option<Instant>,
        read: impl FnOnce() -> F + Send,
    ) -> T
    where
        F: Future<Output = (T, Duration)> + Send,
    {
        let cell = {
            let mut cells = self.cells.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if cells.len() > MOST_KEYS {
                cells.clear();
            }
            Arc::clone(cells.entry(key).or_default())
        };
        cell.get(not_before, read).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;

    const KEEP: Duration = Duration::from_secs(3);

    struct Source(AtomicU32);

    impl Source {
        async fn read(&self) -> (u32, Duration) {
            sleep(Duration::from_secs(1)).await;
            (self.0.fetch_add(1, Ordering::SeqCst) + 1, KEEP)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_at_the_same_time_share_one_reading_until_it_is_too_old() {
        let (cached, source) = (Cached::default(), Source(AtomicU32::new(0)));
        let all = join_all((0..5).map(|_| cached.get(None, || source.read()))).await;
        assert_eq!(all, [1; 5]);
        advance(KEEP).await;
        assert_eq!(cached.get(None, || source.read()).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_began_before_our_own_act_is_not_used() {
        let (cached, source) = (Cached::default(), Source(AtomicU32::new(0)));
        cached.get(None, || source.read()).await;
        let act = Instant::now();
        assert_eq!(cached.get(Some(act), || source.read()).await, 2);
        assert_eq!(cached.get(Some(act), || source.read()).await, 2);
    }
}
