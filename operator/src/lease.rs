//! The lease: one process at a time is the operator. Without it, or once it is lost, nothing acts.

use std::time::Duration;

use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::time::{Instant, sleep, timeout};

use crate::flags::Flags;

/// Seconds a lease lasts after a renewal.
const LASTS: u64 = 30;
/// Seconds before its end at which it is renewed.
const GRACE: u64 = 10;
/// Longest wait for the release of the lease at the end.
const RELEASE: Duration = Duration::from_secs(3);

/// A lease that is held.
pub struct Lease {
    manager: LeaseManager,
}

impl Lease {
    /// Waits until this process holds the lease.
    ///
    /// # Errors
    /// When the lease cannot be set up at all.
    pub async fn acquire(
        client: Client,
        flags: &Flags,
    ) -> Result<Self, kube_lease_manager::LeaseManagerError> {
        let namespace = match flags.lease_namespace.as_str() {
            "" => client.default_namespace().to_owned(),
            named => named.to_owned(),
        };
        let manager = LeaseManagerBuilder::new(client, &flags.lease_name)
            .with_namespace(namespace)
            .with_identity(&flags.pod_name)
            .with_field_manager(&flags.pod_name)
            .with_duration(LASTS)
            .with_grace(GRACE)
            .build()
            .await?;
        loop {
            match manager.changed().await {
                Ok(true) => return Ok(Self { manager }),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the lease is out of reach");
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Renews the lease for as long as it can; returns once it is lost, or may be: when it could
    /// not be renewed until its end.
    pub async fn until_lost(&self) {
        let mut failing = None;
        loop {
            let began = Instant::now();
            match self.manager.changed().await {
                Ok(true) => failing = None,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "the lease could not be renewed");
                    // A call that slept until the next renewal means that the last one went well.
                    let since = failing.filter(|_| began.elapsed() < Duration::from_secs(GRACE));
                    let since = *failing.insert(since.unwrap_or_else(Instant::now));
                    if since.elapsed() >= Duration::from_secs(GRACE - 2) {
                        return;
                    }
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Lets the next process have it at once.
    pub async fn release(self) {
        if let Ok(Err(error)) = timeout(RELEASE, self.manager.release()).await {
            tracing::warn!(%error, "the lease could not be released");
        }
    }
}
