//! The operator: flags, context, one controller per kind, and the probes beside them.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use hpc_aws::Aws;
use hpc_operator::context::Context;
use hpc_operator::flags::{Cli, Command, Flags};
use hpc_operator::lease::Lease;
use hpc_operator::{cluster, run, telemetry};
use kube::Client;
use tokio::net::TcpListener;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match (cli.command, cli.flags) {
        (Some(Command::Crds), _) => print_crds(),
        (None, Some(flags)) => operate(flags).await,
        (None, None) => Err("--installation-id is required".into()),
    };
    let failed = |error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    };
    ended.map_or_else(failed, |()| ExitCode::SUCCESS)
}

/// One document each; JSON is YAML, and kubectl reads either.
fn print_crds() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for definition in hpc_crds::all() {
        writeln!(out, "---\n{:#}", hpc_crds::manifest(&definition))?;
    }
    Ok(())
}

/// Operates until told to end, or until the lease is lost.
async fn operate(flags: Flags) -> Result<(), Box<dyn Error>> {
    telemetry::log();
    telemetry::end_on_panic();
    // Kubernetes and AWS clients each bring a provider; the process has one.
    let _already = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let telemetry = Arc::<telemetry::Telemetry>::default();
    let listener = TcpListener::bind(flags.bind).await?;
    tokio::spawn(telemetry::serve(listener, Arc::clone(&telemetry)));
    let client = Client::try_default().await?;
    let lease = Lease::acquire(client.clone(), &flags).await?;
    telemetry.leads(&flags.lease_name, true);
    let cloud = Arc::new(Aws::from_env(telemetry.listener()).await);
    let job_poll = Duration::from_secs(flags.job_poll_seconds);
    let context = Arc::new(Context {
        namespaces: flags.namespaces(),
        sweep: Duration::from_secs(flags.fleet_sweep_seconds),
        telemetry: Arc::clone(&telemetry),
        ..Context::new(client, cloud, flags.settings(), job_poll)
    });
    let (end, ended) = watch::channel(false);
    let clusters = cluster::serve(Arc::clone(&context), ended.clone());
    let kinds = async { tokio::join!(clusters, run::serve(context, ended)) };
    tokio::pin!(kinds);
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = &mut kinds => return Err("the controllers ended by themselves".into()),
        () = lease.until_lost() => return Err("the lease is lost".into()),
        _ = terminated.recv() => {}
        _ = ctrl_c() => {}
    }
    end.send_replace(true);
    kinds.await;
    lease.release().await;
    Ok(())
}
