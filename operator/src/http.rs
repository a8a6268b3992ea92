//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::telemetry::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves until the process ends.
pub async fn serve(bind: SocketAddr, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let router = Router::new()
        .route(
            "/livez",
            get(|State(metrics): State<Arc<Metrics>>| async move { sign(metrics.is_alive()) }),
        )
        .route(
            "/readyz",
            get(|State(metrics): State<Arc<Metrics>>| async move { sign(metrics.is_ready()) }),
        )
        .route("/metrics", get(text))
        .with_state(metrics);
    axum::serve(TcpListener::bind(bind).await?, router).await
}

const fn sign(good: bool) -> (StatusCode, &'static str) {
    if good { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "no\n") }
}

async fn text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text())
}
