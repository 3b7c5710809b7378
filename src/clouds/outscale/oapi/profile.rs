//! The file in which Outscale's tools keep keys: `~/.osc/config.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::access::{AccessError, is_checked};
use super::pem::Pem;

/// What the file says of one profile, without spaces around it and what is empty.
#[derive(Default)]
pub(super) struct Profile {
    pub(super) access_key: Option<String>,
    pub(super) secret_key: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) certificate: Option<Pem>,
    pub(super) certificate_key: Option<Pem>,
}

/// A profile as it is written. Its fields are those of osc-cli, oapi-cli and the SDKs, old and new; others are skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    access_key: Option<String>,
    secret_key: Option<String>,
    region: Option<String>,
    /// The same in osc-cli's older files.
    region_name: Option<String>,
    endpoints: Option<Endpoints>,
    x509_client_cert: Option<String>,
    x509_client_key: Option<String>,
    x509_client_cert_b64: Option<String>,
    x509_client_key_b64: Option<String>,
    protocol: Option<String>,
    tls_skip_verify: Option<bool>,
    /// One PEM file with private key and certificate both, as osc-cli has it.
    client_certificate: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoints {
    api: Option<String>,
}

impl Profile {
    fn of(written: Written) -> Result<Self, AccessError> {
        is_checked(written.tls_skip_verify.unwrap_or(false))?;
        let word = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let path = |text: Option<String>| word(text).map(Pem::from);
        let pem = |file, field, text| match (path(file), word(text)) {
            (None, Some(text)) => Pem::of_base64(field, &text).map(Some),
            (file, _) => Ok(file),
        };
        let both = path(written.client_certificate);
        let certificate = pem(written.x509_client_cert, "x509_client_cert_b64", written.x509_client_cert_b64)?;
        let key = pem(written.x509_client_key, "x509_client_key_b64", written.x509_client_key_b64)?;
        // The SDKs' fields win. A certificate of theirs has its key in a file of its own.
        let (certificate, certificate_key) = match (certificate, key) {
            (None, None) => (both.clone(), both),
            (None, Some(key)) => (both, Some(key)),
            named => named,
        };
        Ok(Self {
            access_key: word(written.access_key),
            secret_key: word(written.secret_key),
            region: word(written.region).or_else(|| word(written.region_name)),
            endpoint: word(written.endpoints.and_then(|endpoints| endpoints.api)),
            protocol: word(written.protocol),
            certificate,
            certificate_key,
        })
    }
}

/// Reads one profile of the file's text.
pub(super) fn read(file: &Path, text: &str, name: &str) -> Result<Profile, AccessError> {
    let wrong = |message: String| AccessError::new("OSC_CONFIG_FILE", format!("{}: {message}", file.display()));
    // Profiles are read one by one: what is wrong with another one does not matter. The parser's own words are left out, as they may
    // repeat a key.
    let mut profiles: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        wrong(format!("not a JSON object of profiles ({place}); see Outscale's documentation of OSC CLI"))
    })?;
    let Some(profile) = profiles.remove(name) else {
        let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(AccessError::new(
            "OSC_PROFILE",
            format!("{} has no profile {name:?}; it has {known}", file.display()),
        ));
    };
    let written: Result<Written, _> = serde_path_to_error::deserialize(profile);
    let written = written.map_err(|error| {
        wrong(format!(
            "profile {name:?}: field {} is not what it should be; see Outscale's documentation of OSC CLI",
            error.path()
        ))
    })?;
    Profile::of(written)
}
