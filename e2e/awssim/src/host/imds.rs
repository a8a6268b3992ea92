//! The instance metadata service of a network: who asks is known by the address
//! it asks from. `IMDSv2` only, as the launches demand it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::body::Body;
use super::locked;
use super::rack::listen;
use super::vpc::Vpc;
use crate::machine::HostView;

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);
const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// The session tokens given to one body.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<BTreeSet<String>>);

impl Tokens {
    fn issue(&self, instance_id: &str) -> String {
        let mut all = locked(&self.0);
        let token = format!("{:x}", Sha256::digest(format!("{instance_id}/{}", all.len())));
        all.insert(token.clone());
        token
    }

    fn holds(&self, token: &str) -> bool {
        locked(&self.0).contains(token)
    }
}

/// Serves in a network until the task is aborted.
pub fn serve(vpc: &Arc<Vpc>, view: Arc<dyn HostView>) -> std::io::Result<AbortHandle> {
    let listener = listen(vpc.pid(), ADDRESS)?;
    Ok(tokio::spawn(accept(listener, Arc::downgrade(vpc), view)).abort_handle())
}

async fn accept(listener: TcpListener, vpc: Weak<Vpc>, view: Arc<dyn HostView>) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            continue;
        };
        let Some(vpc) = vpc.upgrade() else { return };
        // Nobody answers a machine that is not there.
        if let Some(body) = vpc.body_at(from.ip()) {
            tokio::spawn(converse(stream, body, Arc::clone(&view)));
        }
    }
}

async fn converse(stream: TcpStream, body: Arc<Body>, view: Arc<dyn HostView>) {
    let service = service_fn(|request: Request<Incoming>| {
        let reply = answer(&request, &body, view.as_ref());
        std::future::ready(Ok::<_, std::convert::Infallible>(reply))
    });
    let http = hyper::server::conn::http1::Builder::new();
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a metadata connection broke");
    }
}

fn answer(request: &Request<Incoming>, body: &Body, view: &dyn HostView) -> Response<Full<Bytes>> {
    let path = request.uri().path().trim_start_matches('/');
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if *request.method() == Method::PUT && path == "latest/api/token" {
        let ttl = header(TTL).and_then(|ttl| ttl.parse::<u32>().ok());
        if !ttl.is_some_and(|ttl| (1..=21_600).contains(&ttl)) {
            return reply(StatusCode::BAD_REQUEST, Vec::new());
        }
        return reply(StatusCode::OK, body.tokens().issue(body.id()).into_bytes());
    }
    if !header(TOKEN).is_some_and(|token| body.tokens().holds(token)) {
        return reply(StatusCode::UNAUTHORIZED, Vec::new());
    }
    let found = match path {
        "latest/user-data" => body.spec().user_data.clone(),
        path => view.imds(body.id(), path).map(String::into_bytes),
    };
    found.map_or_else(
        || reply(StatusCode::NOT_FOUND, Vec::new()),
        |bytes| reply(StatusCode::OK, bytes),
    )
}

fn reply(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}
