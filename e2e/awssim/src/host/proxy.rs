//! Brings a body's calls to the simulated services out of the rack: bytes in,
//! bytes out, to the address on which the simulator listens.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::failure::io_failed;
use super::rack::in_network;
use crate::machine::MachineError;

/// Listens at the address of `profile::ENDPOINT`.
pub fn serve(to: SocketAddr, rack_pid: i32) -> Result<AbortHandle, MachineError> {
    let listen = || {
        let listener = TcpListener::bind((Ipv4Addr::new(169, 254, 170, 1), 80))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listener = in_network(rack_pid, listen)
        .and_then(tokio::net::TcpListener::from_std)
        .map_err(io_failed("the rack", "serve the endpoints"))?;
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
