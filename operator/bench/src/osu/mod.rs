//! OSU micro-benchmarks: how they are started, and their tables.
//!
//! `run.sh` runs on the first compute node; [`Launch`] gives it its environment; the reader takes what it prints.

mod attributes;
mod columns;
mod launch;
mod parse;
mod startup;
mod titles;

pub use crate::primary::primary;
pub use launch::{Benchmark, Fabric, Launch, LaunchError, RUN};
pub(crate) use parse::Reader;
