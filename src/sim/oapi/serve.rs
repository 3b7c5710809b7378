//! The fake on a port.

use std::future::Future;
use std::io;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use tokio::net::TcpListener;

use super::fake::{Fake, Reply};

/// Serves a fake until told to stop. Whoever can reach the port and has the keys of the account may call it: keep it on this machine.
pub async fn serve(
    listener: TcpListener,
    fake: Fake,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = Router::new().fallback(answer).with_state(fake);
    axum::serve(listener, routes).with_graceful_shutdown(stop).await
}

async fn answer(State(fake): State<Fake>, method: Method, url: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::OPTIONS {
        return response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty());
    }
    if method != Method::POST {
        let said = r#"{"Errors":[{"Code":"2","Type":"AccessDenied","Details":"only POST is allowed"}]}"#;
        return response(StatusCode::METHOD_NOT_ALLOWED, HeaderMap::new(), Body::from(said));
    }
    match fake.reply(url.path(), &headers, &body).await {
        Reply::Said { status, headers, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response(status, headers, Body::from(body))
        }
        // An answer that breaks off before its first byte: the connection is closed.
        Reply::Lost => {
            let broken = futures::stream::once(async { Err::<Bytes, _>(io::Error::other("the answer is lost")) });
            response(StatusCode::OK, HeaderMap::new(), Body::from_stream(broken))
        }
    }
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
