//! One process at a time is the operator. The lease only keeps two from working side by side;
//! that nothing doubles when they do is the business of intents and tokens.

use kube::Client;
use kube_lease_manager::{LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch;

use crate::config::Config;

/// Seconds a lease lives without renewal, and how long before its end it is renewed.
const DURATION: u64 = 30;
const GRACE: u64 = 10;

/// Waits until this process holds the lease. The receiver tells when it is lost.
pub async fn acquire(
    client: Client,
    config: &Config,
) -> Result<watch::Receiver<bool>, LeaseManagerError> {
    let manager = LeaseManagerBuilder::new(client, &config.lease_name)
        .with_namespace(&config.lease_namespace)
        .with_identity(&config.pod_name)
        .with_duration(DURATION)
        .with_grace(GRACE)
        .build()
        .await?;
    let (mut held, _renewal) = manager.watch().await;
    while !*held.borrow_and_update() {
        if held.changed().await.is_err() {
            break;
        }
    }
    Ok(held)
}

/// Returns when the lease is lost.
pub async fn lost(mut held: watch::Receiver<bool>) {
    while *held.borrow_and_update() {
        if held.changed().await.is_err() {
            return;
        }
    }
}
