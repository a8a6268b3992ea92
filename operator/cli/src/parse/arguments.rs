//! What is asked of a log.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hpc_bench::{Expectation, ExpectedTable, Layout, SizeRange};

/// Arguments of `parse`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Arguments {
    /// The log; standard input if it is left out or `-`.
    pub file: Option<PathBuf>,
    /// osu, imb, fluent, seissol, nastran, fio or ior; recognised if it is left out.
    #[arg(short, long)]
    pub application: Option<String>,
    /// A JSON file that declares the metrics of any other program.
    #[arg(short, long, conflicts_with = "application")]
    pub declaration: Option<PathBuf>,
    /// How to answer.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// A table that must be there, e.g. `osu_latency`, or `osu_latency=1:4194304` with its sizes.
    #[arg(long = "table", value_name = "NAME[=MIN:MAX]", value_parser = table)]
    pub tables: Vec<ExpectedTable>,
    /// Iterations the solver was asked for.
    #[arg(long)]
    pub iterations: Option<u64>,
    /// Hosts that must have run ranks.
    #[arg(long, requires = "ranks_per_host")]
    pub hosts: Option<u32>,
    /// Ranks that must have run on each host.
    #[arg(long, requires = "hosts")]
    pub ranks_per_host: Option<u32>,
    /// A fabric provider that may have carried the messages, e.g. efa; may be repeated.
    #[arg(long = "provider")]
    pub providers: Vec<String>,
}

const AFTER: &str = "Exit code: 0 read, 2 partial, 3 failed or invalid, 1 unreadable.";

/// How to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For a person.
    Text,
    /// One JSON object.
    Json,
}

impl Arguments {
    /// What the log must show.
    pub(crate) fn expectation(&self) -> Expectation {
        let layout = self.hosts.zip(self.ranks_per_host);
        Expectation {
            layout: layout.map(|(hosts, ranks_per_host)| Layout { hosts, ranks_per_host }),
            providers: self.providers.clone(),
            tables: self.tables.clone(),
            iterations: self.iterations,
            ..Expectation::default()
        }
    }

    /// Whether the log is to prove how it ran.
    pub(crate) fn is_judged(&self) -> bool {
        self.hosts.is_some() || !self.providers.is_empty()
    }
}

fn table(text: &str) -> Result<ExpectedTable, String> {
    let (benchmark, sizes) = match text.split_once('=') {
        Some((name, sizes)) => (name, Some(range(sizes).ok_or("sizes are MIN:MAX in bytes")?)),
        None => (text, None),
    };
    Ok(ExpectedTable { benchmark: benchmark.to_owned(), sizes })
}

fn range(text: &str) -> Option<SizeRange> {
    let (first, last) = text.split_once(':')?;
    Some(SizeRange { first: first.parse().ok()?, last: last.parse().ok()? })
}
