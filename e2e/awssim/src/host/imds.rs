//! The instance metadata service of one body: IMDSv2 only, as the launches ask.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::task::AbortHandle;

use super::body::Body;
use super::failure::io_failed;
use super::rack::in_network;
use super::{Host, locked};
use crate::machine::{HostView, MachineError};

const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);
const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

struct Service {
    view: Arc<dyn HostView>,
    instance_id: String,
    user_data: Option<Vec<u8>>,
    tokens: Mutex<BTreeSet<String>>,
    issued: AtomicU64,
}

/// Listens inside the body's network until the task is aborted.
pub fn serve(host: &Host, body: &Body) -> Result<AbortHandle, MachineError> {
    let listen = || {
        let listener = TcpListener::bind(ADDRESS)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listener = in_network(body.pid(), listen)
        .and_then(tokio::net::TcpListener::from_std)
        .map_err(io_failed(body.id(), "serve its metadata"))?;
    let service = Arc::new(Service {
        view: Arc::clone(&host.view),
        instance_id: body.id().to_owned(),
        user_data: body.spec().user_data.clone(),
        tokens: Mutex::default(),
        issued: AtomicU64::new(0),
    });
    Ok(tokio::spawn(accept(listener, service)).abort_handle())
}

async fn accept(listener: tokio::net::TcpListener, service: Arc<Service>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let service = Arc::clone(&service);
        let answer = service_fn(move |request: Request<Incoming>| {
            let service = Arc::clone(&service);
            async move { Ok::<_, std::convert::Infallible>(service.answer(&request)) }
        });
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a metadata connection broke");
            }
        });
    }
}

impl Service {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().trim_start_matches('/');
        if *request.method() == Method::PUT && path == "latest/api/token" {
            return self.issue(request);
        }
        let header = request
            .headers()
            .get(TOKEN)
            .and_then(|token| token.to_str().ok());
        if !header.is_some_and(|token| locked(&self.tokens).contains(token)) {
            return reply(StatusCode::UNAUTHORIZED, Vec::new());
        }
        match self.item(path) {
            Some(bytes) => reply(StatusCode::OK, bytes),
            None => reply(StatusCode::NOT_FOUND, Vec::new()),
        }
    }

    fn issue(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let ttl = request
            .headers()
            .get(TTL)
            .and_then(|ttl| ttl.to_str().ok()?.parse::<u32>().ok());
        if !ttl.is_some_and(|ttl| (1..=21_600).contains(&ttl)) {
            return reply(StatusCode::BAD_REQUEST, Vec::new());
        }
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let token = format!(
            "{:x}",
            Sha256::digest(format!("{}/{number}", self.instance_id))
        );
        locked(&self.tokens).insert(token.clone());
        reply(StatusCode::OK, token.into_bytes())
    }

    fn item(&self, path: &str) -> Option<Vec<u8>> {
        if path == "latest/user-data" {
            return self.user_data.clone();
        }
        let found = self.view.imds(&self.instance_id, path);
        found
            .or_else(|| {
                self.view
                    .imds(&self.instance_id, path.trim_end_matches('/'))
            })
            .map(String::into_bytes)
    }
}

fn reply(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}
