//! Brings a body's calls to the simulated services out of its network: bytes in,
//! bytes out, to the address on which the simulator listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::rack::listen;
use super::vpc::Vpc;

/// The address of `profile::ENDPOINT`.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 170, 1)), 80);

/// Serves in a network until the task is aborted.
pub fn serve(vpc: &Arc<Vpc>, to: SocketAddr) -> std::io::Result<AbortHandle> {
    let listener = listen(vpc.pid(), ADDRESS)?;
    let task = tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, to));
            }
        }
    });
    Ok(task.abort_handle())
}

async fn forward(mut inside: TcpStream, to: SocketAddr) {
    let carried = async {
        let mut outside = TcpStream::connect(to).await?;
        tokio::io::copy_bidirectional(&mut inside, &mut outside).await
    };
    if let Err(error) = carried.await {
        tracing::debug!(%error, "a call from a body broke");
    }
}
