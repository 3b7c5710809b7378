//! Signatures, in the two dialects that the API accepts. They differ in words alone.

use std::fmt::Write as _;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4::SigningParams;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ring::{digest, hmac};

use super::access::Keys;
use super::endpoint::Endpoint;

/// What every request and answer is.
pub(super) const JSON: &str = "application/json; charset=utf-8";

/// Who calls, for whoever reads the logs of the API.
const AGENT: &str = concat!("joiner/", env!("CARGO_PKG_VERSION"));

/// The words of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// AWS' own, with the service `oapi`: what oapi-cli and Outscale's SDK for Rust speak.
    #[default]
    Aws4,
    /// Outscale's, with the service `api`: what osc-cli and the SDK for Python speak.
    Osc4,
}

/// The headers of a request, signed if there are keys.
pub(super) fn headers(
    keys: Option<(&Keys, Dialect)>,
    (region, endpoint, action): (&str, &Endpoint, &str),
    body: &[u8],
    now: Timestamp,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let host = HeaderValue::from_str(endpoint.host()).map_err(|error| error.to_string())?;
    headers.insert(HOST, host);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let signed = match keys {
        None => Vec::new(),
        Some((keys, Dialect::Aws4)) => aws4(keys, region, (endpoint, action), body, now)?,
        Some((keys, Dialect::Osc4)) => osc4(keys, region, (endpoint, action), body, now),
    };
    for (name, value) in signed {
        let mut value = HeaderValue::from_str(&value).map_err(|_| format!("{name} cannot be a header"))?;
        value.set_sensitive(name == AUTHORIZATION);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn aws4(
    keys: &Keys,
    region: &str,
    (endpoint, action): (&Endpoint, &str),
    body: &[u8],
    now: Timestamp,
) -> Result<Vec<(HeaderName, String)>, String> {
    let credentials = Credentials::new(&keys.access_key, keys.secret_key.expose(), None, None, "joiner");
    let identity = credentials.into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("oapi")
        .time(moment(now))
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let url = endpoint.url(action).to_string();
    let headers = [("content-type", JSON), ("host", endpoint.host())];
    let request = SignableRequest::new("POST", &url, headers.into_iter(), SignableBody::Bytes(body));
    let request = request.map_err(|error| error.to_string())?;
    let signed = aws_sigv4::http_request::sign(request, &params).map_err(|error| error.to_string())?;
    let (instructions, _) = signed.into_parts();
    let header = |(name, value): (&str, &str)| Some((HeaderName::try_from(name).ok()?, value.to_owned()));
    Ok(instructions.headers().filter_map(header).collect())
}

#[expect(clippy::disallowed_types, reason = "no clock is read: the signer wants our time in this type")]
fn moment(now: Timestamp) -> std::time::SystemTime {
    now.into()
}

fn osc4(
    keys: &Keys,
    region: &str,
    (endpoint, action): (&Endpoint, &str),
    body: &[u8],
    now: Timestamp,
) -> Vec<(HeaderName, String)> {
    let zoned = now.to_zoned(TimeZone::UTC);
    let (day, date) = (zoned.strftime("%Y%m%d").to_string(), zoned.strftime("%Y%m%dT%H%M%SZ").to_string());
    let scope = format!("{day}/{region}/api/osc4_request");
    let signed = "content-type;host;x-osc-date";
    let canonical = format!(
        "POST\n{path}\n\ncontent-type:{JSON}\nhost:{host}\nx-osc-date:{date}\n\n{signed}\n{body}",
        path = endpoint.path(action),
        host = endpoint.host(),
        body = sha256(body),
    );
    let text = format!("OSC4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(canonical.as_bytes()));
    let seed = format!("OSC4{}", keys.secret_key.expose());
    let key = [day.as_str(), region, "api", "osc4_request"]
        .iter()
        .fold(seed.into_bytes(), |key, word| hmac256(&key, word.as_bytes()));
    let signature = hex(&hmac256(&key, text.as_bytes()));
    let access_key = &keys.access_key;
    let authorization =
        format!("OSC4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={signed}, Signature={signature}");
    vec![(HeaderName::from_static("x-osc-date"), date), (AUTHORIZATION, authorization)]
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac256(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
