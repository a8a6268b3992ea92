//! What the one who started a program knows of it: without this a log can only be read, not believed.

/// What a log must show. Everything left empty is not checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    /// Hosts and ranks asked for.
    pub layout: Option<Layout>,
    /// Providers of which each one seen must be one; empty = any. Only checked from two hosts on.
    pub providers: Vec<String>,
    /// Tables that must be there, with their sizes.
    pub tables: Vec<ExpectedTable>,
    /// Iterations an iterating solver was asked for.
    pub iterations: Option<u64>,
    /// What physics allows.
    pub bounds: Bounds,
}

/// Hosts and ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Distinct hosts, 1 and more.
    pub hosts: u32,
    /// Ranks on each host, 1 and more.
    pub ranks_per_host: u32,
}

/// One table a program must print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTable {
    /// Program name, e.g. `osu_latency`.
    pub benchmark: String,
    /// Sizes its rows must reach; `None` for a table without sizes.
    pub sizes: Option<SizeRange>,
}

/// Message sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The first row's size is at most this: some versions start at 0, others at 1.
    pub first: u64,
    /// The last row's size.
    pub last: u64,
}

/// What physics allows; a number beyond it was not measured on the fabric (page cache, shared memory).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    /// Most MB/s (10^6 bytes) in one direction.
    pub max_mb_per_s: Option<f64>,
    /// Least microseconds between hosts.
    pub min_latency_us: Option<f64>,
}
