//! How requests travel: over the network, or to a server in the same process.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, Method, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;

use super::access::{Access, AccessError};
use super::proxy::Proxy;
use super::tls;

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The longest answer that is read: a page of VMs, each with all the user data that it may have, is shorter.
const LONGEST_ANSWER: usize = 128 * 1024 * 1024;

/// A request, signed. It has no `Debug`: its body may hold secrets.
#[derive(Clone)]
pub struct Post {
    /// Where to.
    pub url: Uri,
    /// With what.
    pub headers: HeaderMap,
    /// What.
    pub body: Vec<u8>,
}

/// An answer. It has no `Debug` either.
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// When to come back, if the server says so.
    pub retry_after: Option<Duration>,
    /// What it says.
    pub body: Bytes,
}

impl Answer {
    /// An answer of its status, headers and body.
    pub fn of(status: u16, headers: &HeaderMap, body: Bytes) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let date = text(DATE).and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|zoned| zoned.timestamp());
        let retry_after = text(RETRY_AFTER).and_then(|after| after.trim().parse().ok()).map(Duration::from_secs);
        Self { status, date, retry_after, body }
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Undelivered {
    /// The request was certainly not sent.
    NotSent(String),
    /// It may have arrived.
    NoAnswer(String),
}

/// Carries requests.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and reads the whole answer. Dropped, it leaves open whether the request arrived.
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>>;
}

/// The network.
#[derive(Clone, Debug)]
pub struct Network(Way);

/// Connections over a connector.
type Over<C> = Client<HttpsConnector<C>, Full<Bytes>>;

#[derive(Clone, Debug)]
enum Way {
    Straight(Over<HttpConnector>),
    Proxied(Over<Tunnel<HttpConnector>>),
}

impl Network {
    /// Connections as an access asks for them.
    pub fn new(access: &Access) -> Result<Self, AccessError> {
        Self::through(access, None)
    }

    /// The same, through a proxy where there is one.
    pub fn through(access: &Access, proxy: Option<&Proxy>) -> Result<Self, AccessError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        connector.set_nodelay(true);
        let secured = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(access)?)
            .https_or_http()
            .enable_http1();
        let clients = Client::builder(TokioExecutor::new());
        let Some(proxy) = proxy else {
            return Ok(Self(Way::Straight(clients.build(secured.wrap_connector(connector)))));
        };
        let mut tunnel = Tunnel::new(proxy.url.clone(), connector);
        if let Some(auth) = &proxy.auth {
            tunnel = tunnel.with_auth(auth.clone());
        }
        Ok(Self(Way::Proxied(clients.build(secured.wrap_connector(tunnel)))))
    }
}

impl Transport for Network {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        async move {
            let mut request = http::Request::new(Full::new(Bytes::from(post.body)));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = post.url;
            *request.headers_mut() = post.headers;
            let answer = match &self.0 {
                Way::Straight(client) => client.request(request).await,
                Way::Proxied(client) => client.request(request).await,
            };
            let answer = answer.map_err(|error| {
                let text = causes(&error);
                if error.is_connect() { Undelivered::NotSent(text) } else { Undelivered::NoAnswer(text) }
            })?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| Undelivered::NoAnswer(format!("the answer broke off: {error}")))?;
            Ok(Answer::of(parts.status.as_u16(), &parts.headers, body.to_bytes()))
        }
        .boxed()
    }
}

/// An error with what caused it.
fn causes(error: &hyper_util::client::legacy::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
