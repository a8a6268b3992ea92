//! `hpc-lab`: the lab for a person at a terminal. What `up` starts stays after the command, and
//! `down` stops it by process id.

mod account;
mod bench;
mod demo;
mod down;
mod kubelet;
mod programs;
mod progress;
mod site;
mod status;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hpc_e2e::LabError;

/// The lab: a real Kubernetes control plane, simulated AWS, and the operator.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start what does not run yet; writes .lab/env.
    Up(up::Wishes),
    /// Stop everything and see that nothing is left.
    Down,
    /// Say what runs.
    Status,
    /// Bring the lab up and take the quickstart through it.
    Demo(up::Wishes),
    /// Measure the goals; one JSON object per row.
    Bench(bench::Wishes),
    /// Play kubelet for one Deployment until told to stop; `up` starts this.
    #[command(hide = true)]
    Kubelet(kubelet::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse().verb).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::say(&format!("hpc-lab: {}", error.chain()));
            ExitCode::FAILURE
        }
    }
}

async fn run(verb: Verb) -> Result<(), LabError> {
    let site = site::Site::here();
    match verb {
        Verb::Up(wishes) => up::run(&site, &wishes).await.map(drop),
        Verb::Down => down::run(&site).await,
        Verb::Status => status::run(&site),
        Verb::Demo(wishes) => demo::run(&site, &wishes).await,
        Verb::Bench(wishes) => bench::run(wishes).await,
        Verb::Kubelet(args) => kubelet::run(args).await,
    }
}
