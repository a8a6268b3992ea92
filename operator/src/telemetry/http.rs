//! `/livez`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::Telemetry;

/// Content type of the `OpenMetrics` text format.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers until the process ends.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(listener: TcpListener, telemetry: Arc<Telemetry>) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(telemetry);
    axum::serve(listener, routes).await
}

async fn livez(State(telemetry): State<Arc<Telemetry>>) -> Response {
    verdict(telemetry.is_alive(), "a pass is stuck")
}

async fn readyz(State(telemetry): State<Arc<Telemetry>>) -> Response {
    verdict(telemetry.is_ready(), "another process holds the lease")
}

fn verdict(good: bool, otherwise: &'static str) -> Response {
    if good {
        (StatusCode::OK, "ok\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, otherwise).into_response()
    }
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> Response {
    ([(header::CONTENT_TYPE, METRICS)], telemetry.text()).into_response()
}
