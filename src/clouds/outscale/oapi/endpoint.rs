//! Where the API is.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::access::AccessError;

/// The path below which the actions are.
const PATH: &str = "/api/v1";

/// The base of all addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end.
    path: String,
}

impl Endpoint {
    /// The public endpoint of a region.
    pub fn of_region(region: &str) -> Result<Self, AccessError> {
        let is_name =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if region.is_empty() || !is_name(region) {
            let message = format!("{region:?} is no region; give one like eu-west-2");
            return Err(AccessError::new("OSC_REGION", message));
        }
        Self::parse(&format!("https://api.{region}.outscale.com{PATH}"))
    }

    /// Reads a base URL. Without a scheme it is https, without a path `/api/v1`; http only leads to this machine.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        let wrong = |why: &str| {
            let example = "give one like https://api.eu-west-2.outscale.com/api/v1";
            AccessError::new("OSC_ENDPOINT_API", format!("{text:?} {why}; {example}"))
        };
        let trimmed = text.trim();
        let full = if trimmed.contains("://") { trimmed.to_owned() } else { format!("https://{trimmed}") };
        let uri: Uri = full.parse().map_err(|_| wrong("is no URL"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else { return Err(wrong("is no URL")) };
        if authority.as_str().contains('@') {
            // Whatever stands there may be a password: it is not repeated.
            let message = "has a name or password in it; keys go into OSC_ACCESS_KEY and OSC_SECRET_KEY";
            return Err(AccessError::new("OSC_ENDPOINT_API", message));
        }
        if parts.path_and_query.as_ref().is_some_and(|path| path.query().is_some()) {
            return Err(wrong("has a query"));
        }
        if scheme == Scheme::HTTP && !is_loopback(authority.host()) {
            return Err(wrong("is not encrypted and not on this machine"));
        }
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("is neither https nor http"));
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/');
        let path = if path.is_empty() { PATH } else { path };
        Ok(Self { scheme, authority, path: path.to_owned() })
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// What goes into the `Host` header: no port where it is the usual one.
    pub fn host(&self) -> &str {
        let usual = if self.is_encrypted() { 443 } else { 80 };
        if self.authority.port_u16() == Some(usual) { self.authority.host() } else { self.authority.as_str() }
    }

    /// The region, if the host's name tells it.
    pub fn region(&self) -> Option<&str> {
        self.authority.host().strip_prefix("api.")?.strip_suffix(".outscale.com").filter(|region| !region.contains('.'))
    }

    /// The path of an action.
    pub fn path(&self, action: &str) -> String {
        format!("{}/{action}", self.path)
    }

    /// The address of an action.
    pub fn url(&self, action: &str) -> Uri {
        let text = format!("{}://{}{}", self.scheme, self.authority, self.path(action));
        text.parse().expect("a URL that was read, with a word at its end, is a URL")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
