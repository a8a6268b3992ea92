//! The process that stays behind `up` to play kubelet: it restarts what ends and polls the probes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use hpc_e2e::control_plane::client_of;
use hpc_e2e::kubeconfig::{Endpoint, write_private};
use hpc_e2e::kubelet::Node;
use hpc_e2e::process::Lifetime;
use hpc_e2e::{LabError, Operator, Restart, Result};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::programs;
use crate::site::Site;

/// How long the operator may take until it is ready.
const READY: Duration = Duration::from_secs(45);

/// Whose pod to run, and where.
#[derive(Debug, Parser)]
pub struct Args {
    /// The administrator's kubeconfig.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The apiserver's URL, for the pod.
    #[arg(long)]
    server: String,
    /// The apiserver's authority, for the pod.
    #[arg(long)]
    ca: PathBuf,
    /// Files of the pod.
    #[arg(long)]
    dir: PathBuf,
    /// Where to write the operator's process id.
    #[arg(long)]
    pid_file: PathBuf,
    /// Namespace of the Deployment.
    #[arg(long)]
    namespace: String,
    /// Name of the Deployment.
    #[arg(long)]
    deployment: String,
}

/// Runs until SIGTERM.
pub async fn run(args: Args) -> Result<()> {
    let terminate = signal(SignalKind::terminate());
    let mut terminate = terminate.map_err(LabError::io("listen to signals of", "this process"))?;
    let node = Node {
        client: client_of(&args.kubeconfig).await?,
        endpoint: Endpoint { url: args.server, ca: args.ca },
        dir: args.dir,
        lifetime: Lifetime::WithParent(Signal::SIGTERM),
    };
    let operator = Operator::run(&node, &args.namespace, &args.deployment, Restart::Always).await?;
    operator.await_ready(READY).await?;
    let mut state = operator.watch();
    // Ends with this process.
    tokio::spawn(programs::keep(Site::here()));
    loop {
        if let Some(process) = state.borrow_and_update().process {
            write_private(&args.pid_file, &format!("{}\n", process.pid))?;
        }
        tokio::select! {
            _ = terminate.recv() => return operator.stop().await,
            changed = state.changed() => if changed.is_err() { return Ok(()) },
        }
    }
}
