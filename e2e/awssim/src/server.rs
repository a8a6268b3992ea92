//! HTTP on hyper itself, because a fault must be able to break a connection
//! without an answer, which no framework above it offers.

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming as Body};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::control;
use crate::gate::{self, Outcome};
use crate::incoming::{self, Rejection};
use crate::shared::Shared;
use crate::wire::Service;

/// A connection that ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is broken on purpose")]
struct Broken;

/// Accepts connections until the task is dropped.
#[expect(clippy::cognitive_complexity, reason = "the macros of select and tracing are counted in")]
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&shared)));
                }
                Err(error) => tracing::warn!(%error, "accept failed"),
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| handle(request, Arc::clone(&shared)));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn handle(
    request: Request<Body>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Broken> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Err(Broken);
    };
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    if let Some(path) = parts.uri.path().strip_prefix("/_sim/") {
        let asked =
            control::Asked { method: parts.method.as_str(), path, query: &query, body: &body };
        let (status, value) = control::answer(&shared, &asked, &parts.headers);
        return Ok(respond(status, "application/json", value.to_string(), None));
    }
    match incoming::read(&parts.headers, &query, body) {
        Ok(incoming) => pass_on(shared, incoming).await,
        Err(rejection) => Ok(reject(&shared, &rejection)),
    }
}

/// A call lives on when its caller goes away: AWS has received it.
async fn pass_on(
    shared: Arc<Shared>,
    incoming: incoming::Incoming,
) -> Result<Response<Full<Bytes>>, Broken> {
    let outcome = tokio::spawn(async move { gate::pass(&shared, incoming).await }).await;
    match outcome {
        Ok(Outcome::Answer { status, service, body, request_id }) => {
            Ok(respond(status, content_type(service), body, Some(&request_id)))
        }
        Ok(Outcome::Broken) | Err(_) => Err(Broken),
    }
}

fn reject(shared: &Shared, rejection: &Rejection) -> Response<Full<Bytes>> {
    let request_id = shared.request_id();
    let body = rejection.error.render(rejection.service, &request_id);
    respond(rejection.error.status, content_type(rejection.service), body, Some(&request_id))
}

fn content_type(service: Service) -> &'static str {
    match service {
        Service::Ec2 => "text/xml;charset=UTF-8",
        Service::Sts => "text/xml",
        Service::Fsx | Service::Ssm => "application/x-amz-json-1.1",
    }
}

fn respond(
    status: u16,
    content_type: &str,
    body: String,
    request_id: Option<&str>,
) -> Response<Full<Bytes>> {
    let mut builder = Response::builder().status(status).header("content-type", content_type);
    if let Some(id) = request_id {
        builder = builder.header("x-amzn-requestid", id);
    }
    builder.body(Full::new(Bytes::from(body))).unwrap_or_default()
}
