//! What IOR said, whatever format it said it in.

use std::collections::BTreeMap;

use crate::number::Marks;

/// One start of IOR.
#[derive(Debug, Default, Clone)]
pub(super) struct Run {
    /// 1-based line of its first output.
    pub line: u64,
    /// As printed, without `IOR-`.
    pub version: Option<String>,
    /// As printed; runs of one command line are attempts.
    pub command: String,
    /// Its tests by id.
    pub tests: BTreeMap<u64, Test>,
    /// The test that is being reported.
    pub current: u64,
    /// Its decimal mark.
    pub marks: Marks,
    /// Whether it said that it finished.
    pub is_finished: bool,
}

/// One test: an entry of the command line's list.
#[derive(Debug, Default, Clone)]
pub(super) struct Test {
    /// `repetitions`.
    pub repetitions: Option<u64>,
    /// Facts of its options: nodes, tasks, tasks per node.
    pub facts: BTreeMap<&'static str, (f64, u64)>,
    /// Rows of the first table.
    pub rows: Vec<Row>,
    /// Rows of the summary, by operation.
    pub summary: BTreeMap<String, Summary>,
    /// `Max Write`, `Max Read`, by operation.
    pub maxima: BTreeMap<String, (f64, u64)>,
    /// Rows that are cut or broken.
    pub damaged: Vec<u64>,
}

/// One iteration of one operation.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    /// `write` or `read`.
    pub operation: String,
    /// From 0.
    pub iteration: u64,
    /// By name: `bw_mib`, `iops`, `latency_s`, `open_s`, `transfer_s`, `close_s`, `total_s`.
    pub values: BTreeMap<&'static str, f64>,
    /// 1-based.
    pub line: u64,
}

/// What IOR itself sums up.
#[derive(Debug, Default, Clone)]
pub(super) struct Summary {
    /// By name: `max`, `min`, `mean`, `stdev` (MiB/s), `repetitions`, `tasks`, `tasks_per_node`.
    pub values: BTreeMap<&'static str, f64>,
    /// 1-based.
    pub line: u64,
}

/// Rows one log may hold.
pub(super) const MAX_ROWS: usize = 100_000;

impl Run {
    /// The test that is being reported.
    pub fn test(&mut self) -> &mut Test {
        self.tests.entry(self.current).or_default()
    }

    /// Rows of all tests.
    pub fn row_count(&self) -> usize {
        self.tests.values().map(|test| test.rows.len()).sum()
    }
}

impl Test {
    /// Rows of an operation.
    pub fn of(&self, operation: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.operation == operation)
    }

    /// Operations that were measured or summed up.
    pub fn operations(&self) -> Vec<&str> {
        let known = ["write", "read"];
        let has = |operation: &&str| {
            self.of(operation).next().is_some()
                || self.summary.contains_key(*operation)
                || self.maxima.contains_key(*operation)
        };
        known.into_iter().filter(has).collect()
    }

    /// Repetitions asked: from the options, else from the summary.
    pub fn asked(&self) -> Option<u64> {
        let summary = self.summary.values().find_map(|summary| summary.values.get("repetitions"));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count that was printed"
        )]
        let summed = summary.map(|repetitions| *repetitions as u64);
        self.repetitions.or(summed)
    }

    /// Whether every row and every sum is there; `None` if there is nothing that says so.
    pub fn is_whole(&self) -> Option<bool> {
        let operations = self.operations();
        let damaged = !self.damaged.is_empty() || operations.is_empty();
        let asked = self.asked();
        let full = |operation: &&str| {
            let rows = u64::try_from(self.of(operation).count()).ok();
            asked.is_none_or(|asked| rows == Some(asked))
        };
        let sums = |operation: &&str| self.summary.contains_key(*operation);
        if damaged || !operations.iter().all(full) {
            return Some(false);
        }
        if operations.iter().all(sums) {
            return Some(true);
        }
        if self.summary.is_empty() { None } else { Some(false) }
    }
}
