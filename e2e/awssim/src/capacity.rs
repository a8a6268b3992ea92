//! Capacity pools per (type, zone, market). A pool nobody set is plentiful.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Which pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// Instance type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// `on-demand` or `spot`.
    pub market: String,
}

/// Free instances per pool.
#[derive(Debug, Default)]
pub struct Capacity {
    free: BTreeMap<Pool, u32>,
}

impl Capacity {
    /// Sets a pool; `None` makes it plentiful again.
    pub fn set(&mut self, pool: Pool, free: Option<u32>) {
        match free {
            Some(count) => self.free.insert(pool, count),
            None => self.free.remove(&pool),
        };
    }

    /// How many may start now; `None` when plentiful.
    pub fn free(&self, pool: &Pool) -> Option<u32> {
        self.free.get(pool).copied()
    }

    /// Takes from a pool what [`Capacity::free`] allowed.
    pub fn take(&mut self, pool: &Pool, count: u32) {
        if let Some(free) = self.free.get_mut(pool) {
            *free = free.saturating_sub(count);
        }
    }

    /// Gives back an instance.
    pub fn give_back(&mut self, pool: &Pool) {
        if let Some(free) = self.free.get_mut(pool) {
            *free += 1;
        }
    }

    /// The pools that are not plentiful.
    pub fn render(&self) -> Value {
        let row = |(pool, free): (&Pool, &u32)| json!({"type": pool.instance_type, "zone": pool.zone, "market": pool.market, "free": free});
        Value::Array(self.free.iter().map(row).collect())
    }
}
