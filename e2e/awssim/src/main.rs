//! The simulator as a process: prints where it listens, and ends with its
//! parent or on SIGTERM, taking all bodies along.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use awssim::host::{Bodies, HostConfig};
use awssim::{Config, Simulator};
use clap::{Parser, ValueEnum};
use nix::unistd::getppid;
use tokio::signal::unix::{SignalKind, signal};

/// Simulated AWS over HTTP.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on; port 0 chooses one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Seed of all chance; printed, so that a run can be repeated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Factor of all delays; 1 is as slow as AWS.
    #[arg(long, default_value_t = 0.02)]
    time_scale: f64,
    /// Folder for the data of volumes and file systems.
    #[arg(long)]
    state_dir: PathBuf,
    /// Whether new accounts give their instances bodies.
    #[arg(long, value_enum, default_value_t = WithBodies::None)]
    bodies: WithBodies,
    /// Marks the processes of the bodies; a second simulator with the same
    /// prefix ends the first one's.
    #[arg(long, default_value = "awssim")]
    body_prefix: String,
    /// Go on when the parent process has ended.
    #[arg(long)]
    detached: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WithBodies {
    /// Every instance is a set of processes.
    All,
    /// Instances exist in answers only.
    None,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let arguments = Arguments::parse();
    let host =
        HostConfig { prefix: arguments.body_prefix, state_dir: arguments.state_dir.join("host") };
    let config = Config {
        listen: arguments.listen,
        seed: arguments.seed,
        time_scale: arguments.time_scale,
        state_dir: arguments.state_dir,
        machines: Some(Bodies::factory(host)),
        bodies: arguments.bodies == WithBodies::All,
    };
    match Simulator::start(config).await {
        Ok(running) => {
            announce(&running.url, running.seed);
            wait_for_end(arguments.detached).await;
            running.stop().await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(%error, cause = ?std::error::Error::source(&error), "cannot start");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "this one line is how a parent learns the address")]
fn announce(url: &str, seed: u64) {
    println!("{}", serde_json::json!({"url": url, "seed": seed}));
}

/// A signal, or (unless detached) the end of the parent process.
async fn wait_for_end(detached: bool) {
    let parent = getppid();
    let orphaned = async {
        let mut interval = tokio::time::interval(Duration::from_millis(200));
        while detached || getppid() == parent {
            interval.tick().await;
        }
    };
    tokio::select! {
        () = orphaned => {}
        () = signalled(SignalKind::terminate()) => {}
        () = signalled(SignalKind::interrupt()) => {}
    }
}

async fn signalled(kind: SignalKind) {
    match signal(kind) {
        Ok(mut stream) => {
            stream.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "a signal cannot be awaited");
            std::future::pending::<()>().await;
        }
    }
}
