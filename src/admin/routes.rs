//! Which path leads where.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::telemetry::metrics::Samples;

use super::actors::{self, Wanted};
use super::probes::{self, Check};
use super::serve::{Sources, Why};

/// The content type of Prometheus' text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The page may run what is in it and talk to joiner, nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:";

type Shared = State<Arc<Sources>>;
type Words = Query<BTreeMap<String, String>>;

/// Routes of the health port.
pub(super) fn probes(sources: Arc<Sources>) -> Router {
    Router::new()
        .route("/healthz", get(async |State(s): Shared, Query(q): Words| probe(&s.alive, &q)))
        .route("/readyz", get(async |State(s): Shared, Query(q): Words| probe(&s.ready, &q)))
        .route("/healthz/{check}", get(async |State(s): Shared, Path(name): Path<String>| probe_one(&s.alive, &name)))
        .route("/readyz/{check}", get(async |State(s): Shared, Path(name): Path<String>| probe_one(&s.ready, &name)))
        .with_state(sources)
}

/// Routes of the metrics port.
pub(super) fn metrics(sources: Arc<Sources>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/metrics", get(exposition))
        .route("/actors", get(actors_page))
        .route("/actors.json", get(async |State(s): Shared, Query(q): Words| actors_json(&s, &q).await))
        .route(
            "/explain/pod/{name}",
            get(async |State(s): Shared, Path(name): Path<String>| why(&s, Why::Pod { namespace: None, name }).await),
        )
        .route(
            "/explain/pod/{namespace}/{name}",
            get(async |State(s): Shared, Path((namespace, name)): Path<(String, String)>| {
                why(&s, Why::Pod { namespace: Some(namespace), name }).await
            }),
        )
        .route(
            "/explain/nodeclaim/{name}",
            get(async |State(s): Shared, Path(name): Path<String>| why(&s, Why::NodeClaim(name)).await),
        )
        .with_state(sources)
}

async fn why(sources: &Sources, question: Why) -> Response {
    match (sources.explainer)(question).await {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(unknown) => (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response(),
    }
}

fn probe(checks: &[Check], query: &BTreeMap<String, String>) -> Response {
    let (holds, text) = probes::examine(checks, query.contains_key("verbose"));
    (if holds { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text).into_response()
}

fn probe_one(checks: &[Check], name: &str) -> Response {
    match checks.iter().find(|check| check.name == name) {
        Some(check) => probe(std::slice::from_ref(check), &BTreeMap::new()),
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}\n")).into_response(),
    }
}

async fn front() -> Response {
    html(include_str!("front.html"))
}

fn html(text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ];
    (headers, text).into_response()
}

async fn exposition(State(sources): Shared) -> Response {
    // In a large cluster this walks over every pod: not on a thread that actors need.
    let rendered = tokio::task::spawn_blocking(move || {
        let mut samples = Samples::new();
        for (kind, figures) in sources.house.observations.figures() {
            samples.actors(kind.as_str(), &figures);
        }
        for (promise, times) in sources.house.promises.counts() {
            samples.promise_broken(promise, times);
        }
        samples.operations_under_way(sources.house.operations.under_way());
        for sample in &sources.samplers {
            sample(&mut samples);
        }
        sources.exporter.render(samples)
    });
    match rendered.await {
        Ok(text) => ([(header::CONTENT_TYPE, EXPOSITION)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot render metrics: {error}\n")).into_response(),
    }
}

async fn actors_page(State(sources): Shared, Query(query): Words, headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let wants_json = match query.get("format").map(String::as_str) {
        Some("json") => true,
        Some("html") => false,
        _ => accepts.contains("application/json") && !accepts.contains("text/html"),
    };
    if wants_json { actors_json(&sources, &query).await } else { html(include_str!("page.html")) }
}

async fn actors_json(sources: &Sources, query: &BTreeMap<String, String>) -> Response {
    match Wanted::read(query) {
        Ok(wanted) => axum::Json(actors::page(&sources.house, &wanted).await).into_response(),
        Err(refusal) => (StatusCode::BAD_REQUEST, format!("{refusal}\n")).into_response(),
    }
}
