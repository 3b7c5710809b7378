//! The file in which Outscale's tools keep keys: `~/.osc/config.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::access::AccessError;

/// What the file says of one profile. Its fields are those of osc-cli, oapi-cli and the SDKs, old and new; others are skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    pub(super) access_key: Option<String>,
    pub(super) secret_key: Option<String>,
    #[serde(alias = "region_name")]
    pub(super) region: Option<String>,
    pub(super) endpoints: Endpoints,
    #[serde(alias = "client_certificate")]
    pub(super) x509_client_cert: Option<PathBuf>,
    pub(super) x509_client_key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Endpoints {
    pub(super) api: Option<String>,
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
    serde_path_to_error::deserialize(profile).map_err(|error| {
        wrong(format!(
            "profile {name:?}: field {} is not what it should be; see Outscale's documentation of OSC CLI",
            error.path()
        ))
    })
}
