//! The operator: flags, clients, lease, controllers, and the end of the process when any part ends.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use hpc_aws::Aws;
use hpc_operator::config::{Command, Config, Verb};
use hpc_operator::context::Context;
use hpc_operator::telemetry::{self, Metrics};
use hpc_operator::{controllers, http, lease};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let command = Command::parse();
    if let Some(Verb::Crds) = command.verb {
        return print_crds();
    }
    telemetry::log();
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(%panic, "a pass panicked; the process ends rather than going deaf");
        std::process::abort();
    }));
    // Both the Kubernetes and the AWS client bring rustls: one provider is chosen before either.
    let chosen = rustls::crypto::aws_lc_rs::default_provider().install_default();
    if chosen.is_err() {
        tracing::warn!("a crypto provider was installed before");
    }
    match serve(&command.config).await {
        Ok(why) => {
            tracing::info!(why, "the operator ends");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(error = error.to_string(), "the operator cannot run");
            ExitCode::FAILURE
        }
    }
}

/// Runs until the process is asked to end, loses its lease, or one of its parts ends.
async fn serve(config: &Config) -> Result<&'static str, Box<dyn std::error::Error>> {
    let metrics = Arc::new(Metrics::default());
    let mut end = signal(SignalKind::terminate())?;
    let http = tokio::spawn(http::serve(config.bind, Arc::clone(&metrics)));
    let client = Client::try_default().await?;
    let listener = Arc::clone(&metrics);
    let aws = Aws::from_env(Arc::new(move |heard| listener.hear(heard))).await;
    let held = lease::acquire(client.clone(), config).await?;
    metrics.lead();
    let namespaces = config.namespaces();
    let ctx = Arc::new(Context::new(config, client, Arc::new(aws), metrics));
    tokio::select! {
        _ = end.recv() => Ok("asked to end"),
        () = lease::lost(held) => Err("the lease was lost".into()),
        () = controllers::run(ctx, &namespaces) => Err("the controllers ended".into()),
        ended = http => Err(format!("the HTTP server ended: {ended:?}").into()),
    }
}

#[expect(clippy::print_stdout, reason = "this is the output of the subcommand")]
fn print_crds() -> ExitCode {
    for definition in hpc_crds::all() {
        println!("---\n{}", hpc_crds::manifest(&definition));
    }
    ExitCode::SUCCESS
}
