//! The way out: a proxy, where there is one between the cluster and the API.

use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use super::access::AccessError;
use super::endpoint::Endpoint;

/// An HTTP proxy through which connections are led (`CONNECT`); they are encrypted from end to end.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub(super) url: Uri,
    /// Who we are to it.
    pub(super) auth: Option<HeaderValue>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Proxy {
    /// The proxy for an endpoint, as the variables `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (or in small letters) say. What is not encrypted
    /// stays on this machine and needs none.
    pub fn read(variable: impl Fn(&str) -> Option<String>, endpoint: &Endpoint) -> Result<Option<Self>, AccessError> {
        let named = |name: &'static str| {
            let found = variable(name).or_else(|| variable(&name.to_lowercase()));
            found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).map(|value| (name, value))
        };
        let Some((name, value)) = named("HTTPS_PROXY").or_else(|| named("ALL_PROXY")) else { return Ok(None) };
        let exceptions = named("NO_PROXY").map(|(_, value)| value).unwrap_or_default();
        let matcher = Matcher::builder().https(value.as_str()).no(exceptions).build();
        // One that cannot be read is not passed over in silence: the calls would go where they must not.
        let any = Matcher::builder().https(value.as_str()).build();
        let probe = Uri::from_static("https://api.eu-west-2.outscale.com/");
        let readable = any.intercept(&probe).filter(|proxy| proxy.uri().scheme_str() == Some("http"));
        if readable.is_none() {
            // It may hold a password: it is not repeated.
            let message = "is no address of an HTTP proxy; give one like http://proxy.example.com:3128";
            return Err(AccessError::new(name, message));
        }
        if !endpoint.is_encrypted() {
            return Ok(None);
        }
        let found = matcher
            .intercept(&endpoint.url(""))
            .map(|proxy| Self { url: proxy.uri().clone(), auth: proxy.basic_auth().cloned() });
        Ok(found)
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
