//! `kubectl hpc`: what a person does with clusters, runs and logs beyond `kubectl apply` and `kubectl get`.
//!
//! It reads only our own resources, and works offline where it can.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod parse;

/// HPC clusters and benchmark runs: what `kubectl get` does not show.
#[derive(Debug, Parser)]
#[command(name = "kubectl-hpc", bin_name = "kubectl hpc", version, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Read a benchmark's log, offline: which line gave which number.
    Parse(Box<parse::Arguments>),
}

/// A command line that cannot be understood; 2 means something else here.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(Cli { verb: Verb::Parse(arguments) }) => parse::run(&arguments),
        Err(error) => {
            let code = if error.use_stderr() { USAGE } else { 0 };
            // Nothing can be said where the terminal is gone.
            let _ = error.print();
            ExitCode::from(code)
        }
    }
}
