//! Who we are to the API, where it is, and how our calls are signed: as Outscale's own tools read it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::endpoint::Endpoint;
use super::pem::Pem;
use super::profile::{self, Profile};
use super::sign::Dialect;

/// Why an access cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct AccessError {
    /// The variable, or what else is wrong.
    pub field: &'static str,
    /// What is wrong, and how to mend it.
    pub message: String,
}

impl AccessError {
    pub(super) fn new(field: &'static str, message: impl fmt::Display) -> Self {
        Self { field, message: message.to_string() }
    }
}

/// A secret key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(String);

impl SecretKey {
    /// Wraps the key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key, for signing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(not shown)")
    }
}

/// The keys of a Secret, and the variables that say the same.
const ENTRIES: [(&str, &str); 4] = [
    ("access_key", "OSC_ACCESS_KEY"),
    ("secret_key", "OSC_SECRET_KEY"),
    ("region", "OSC_REGION"),
    ("endpoint", "OSC_ENDPOINT_API"),
];

/// An access key with its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// The access key's ID.
    pub access_key: String,
    /// Its secret.
    pub secret_key: SecretKey,
}

/// Who we are to the API, and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The keys.
    pub keys: Keys,
    /// The region, part of every signature.
    pub region: String,
    /// Where the API is.
    pub endpoint: Endpoint,
    /// How calls are signed. What Outscale's tools read does not say: the default, unless somebody sets another.
    pub dialect: Dialect,
    /// A certificate and its key, where the account's access rules ask for one.
    pub client_certificate: Option<(Pem, Pem)>,
}

impl Access {
    /// Reads the variables `OSC_ACCESS_KEY`, `OSC_SECRET_KEY`, `OSC_REGION`, `OSC_ENDPOINT_API`, `OSC_PROTOCOL`, `OSC_X509_CLIENT_CERT` and
    /// `OSC_X509_CLIENT_KEY` (or the same with `_B64` at the end). What they do not say is taken from the profile `OSC_PROFILE` (`default`) of the file `OSC_CONFIG_FILE`
    /// (`~/.osc/config.json`), if there is one. Where neither of the last two is set, variables that say both who we are and where leave the file
    /// unread: nothing of a profile that nobody asked for is put to them.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        file: impl Fn(&Path) -> std::io::Result<String>,
    ) -> Result<Self, AccessError> {
        let variable =
            |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_asked = variable("OSC_PROFILE").or_else(|| variable("OSC_CONFIG_FILE")).is_some();
        let has_keys = variable("OSC_ACCESS_KEY").is_some() && variable("OSC_SECRET_KEY").is_some();
        let has_place = variable("OSC_REGION").or_else(|| variable("OSC_ENDPOINT_API")).is_some();
        let profile = if has_keys && has_place && !is_asked { Profile::default() } else { stored(&variable, file)? };
        let or = |name: &str, stored: &Option<String>| variable(name).or_else(|| stored.clone());
        is_checked(skips_checks(&variable))?;
        let (cert, key) = told_certificate(&variable)?;
        let certificate = certificate(cert.or(profile.certificate), key.or(profile.certificate_key))?;
        let words = Words {
            protocol: or("OSC_PROTOCOL", &profile.protocol),
            access_key: or("OSC_ACCESS_KEY", &profile.access_key),
            secret_key: or("OSC_SECRET_KEY", &profile.secret_key),
            region: or("OSC_REGION", &profile.region),
            endpoint: or("OSC_ENDPOINT_API", &profile.endpoint),
            remedy: "set it, or name a profile of ~/.osc/config.json in OSC_PROFILE",
        };
        Ok(Self { client_certificate: certificate, ..words.access()? })
    }

    /// Reads the data of a Secret: `access_key`, `secret_key`, `region` and `endpoint`, or the same under the names of the variables. Keys are the
    /// Secret's alone. Where the API is, and what certificate it wants, is the variables' to say where the Secret does not; no profile is read.
    pub fn of_secret(
        data: &BTreeMap<String, Vec<u8>>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, AccessError> {
        let filled = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let word = |short: &str, long: &str| {
            let bytes = data.get(short).or_else(|| data.get(long))?;
            filled(String::from_utf8_lossy(bytes).into_owned())
        };
        let variable = |name: &str| variable(name).and_then(filled);
        is_checked(skips_checks(&variable))?;
        let words = Words {
            protocol: variable("OSC_PROTOCOL"),
            access_key: word("access_key", "OSC_ACCESS_KEY"),
            secret_key: word("secret_key", "OSC_SECRET_KEY"),
            region: word("region", "OSC_REGION").or_else(|| variable("OSC_REGION")),
            endpoint: word("endpoint", "OSC_ENDPOINT_API").or_else(|| variable("OSC_ENDPOINT_API")),
            remedy: "store it in the Secret under this key",
        };
        let (cert, key) = told_certificate(&variable)?;
        let certificate = certificate(cert, key)?;
        // What is wrong is told by the name under which it stands, or should.
        let by_entry = |error: AccessError| {
            let Some((short, long)) = ENTRIES.into_iter().find(|(_, long)| *long == error.field) else { return error };
            let is_of_variable = matches!(long, "OSC_REGION" | "OSC_ENDPOINT_API") && variable(long).is_some();
            let is_long = !data.contains_key(short) && (data.contains_key(long) || is_of_variable);
            AccessError { field: if is_long { long } else { short }, ..error }
        };
        Ok(Self { client_certificate: certificate, ..words.access().map_err(by_entry)? })
    }
}

/// The certificate and the key that variables name, by file or by text.
fn told_certificate(variable: &impl Fn(&str) -> Option<String>) -> Result<(Option<Pem>, Option<Pem>), AccessError> {
    let pem = |file: &str, text: &'static str| match (variable(file), variable(text)) {
        (None, Some(value)) => Pem::of_base64(text, &value).map(Some),
        (file, _) => Ok(file.map(Pem::from)),
    };
    Ok((
        pem("OSC_X509_CLIENT_CERT", "OSC_X509_CLIENT_CERT_B64")?,
        pem("OSC_X509_CLIENT_KEY", "OSC_X509_CLIENT_KEY_B64")?,
    ))
}

fn skips_checks(variable: &impl Fn(&str) -> Option<String>) -> bool {
    variable("OSC_TLS_SKIP_VERIFY").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// joiner always looks at whom it is talking to: whoever does not want that is told so, and not left to believe it.
pub(super) fn is_checked(skips: bool) -> Result<(), AccessError> {
    let message = "is not supported (nor tls_skip_verify of a profile), as keys and machine configurations would go to whoever answers; take it out, \
                   and name a file with the endpoint's CA certificate in SSL_CERT_FILE";
    if skips { Err(AccessError::new("OSC_TLS_SKIP_VERIFY", message)) } else { Ok(()) }
}

/// A certificate with its key: one is nothing without the other.
fn certificate(certificate: Option<Pem>, key: Option<Pem>) -> Result<Option<(Pem, Pem)>, AccessError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(AccessError::new("OSC_X509_CLIENT_KEY", "is missing; a certificate needs its key")),
        (None, Some(_)) => Err(AccessError::new("OSC_X509_CLIENT_CERT", "is missing; a key needs its certificate")),
    }
}

/// What was said, wherever.
struct Words {
    protocol: Option<String>,
    access_key: Option<String>,
    secret_key: Option<String>,
    region: Option<String>,
    endpoint: Option<String>,
    /// What to do about a key that is missing.
    remedy: &'static str,
}

impl Words {
    fn access(self) -> Result<Access, AccessError> {
        let protocol = self.protocol.as_deref().unwrap_or("https");
        let with_protocol =
            |text: &str| if text.contains("://") { text.to_owned() } else { format!("{protocol}://{text}") };
        let endpoint = self.endpoint.map(|text| Endpoint::parse(&with_protocol(&text))).transpose()?;
        if endpoint.is_none() && protocol != "https" {
            let message =
                format!("is {protocol} (or protocol of a profile); Outscale is called by https alone, take it out");
            return Err(AccessError::new("OSC_PROTOCOL", message));
        }
        let told = endpoint.as_ref().and_then(Endpoint::region).map(str::to_owned);
        let region = self.region.or(told);
        let region = region
            .ok_or_else(|| AccessError::new("OSC_REGION", "is missing; give the account's region, like eu-west-2"))?;
        let endpoint = endpoint.map_or_else(|| Endpoint::of_region(&region), Ok)?;
        if let Some(other) = endpoint.region().filter(|other| *other != region) {
            let message =
                format!("{region} is not the region of {endpoint}, which is {other}; accounts live in one region");
            return Err(AccessError::new("OSC_REGION", message));
        }
        let missing = |field| AccessError::new(field, format!("is missing; {}", self.remedy));
        let access_key = self.access_key.ok_or_else(|| missing("OSC_ACCESS_KEY"))?;
        let secret_key = self.secret_key.ok_or_else(|| missing("OSC_SECRET_KEY"))?;
        if !access_key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let message = "has other characters than letters and digits; give the AccessKeyId alone, without quotes or line breaks";
            return Err(AccessError::new("OSC_ACCESS_KEY", message));
        }
        let keys = Keys { access_key, secret_key: SecretKey::new(secret_key) };
        Ok(Access { keys, region, endpoint, dialect: Dialect::default(), client_certificate: None })
    }
}

/// The profile in the file. That there is no file is fine, unless it was asked for.
fn stored(
    variable: &impl Fn(&str) -> Option<String>,
    file: impl Fn(&Path) -> std::io::Result<String>,
) -> Result<Profile, AccessError> {
    let named = variable("OSC_PROFILE");
    let told = variable("OSC_CONFIG_FILE").map(PathBuf::from);
    let usual = || variable("HOME").map(|home| PathBuf::from(home).join(".osc").join("config.json"));
    let asked = named.is_some() || told.is_some();
    let Some(path) = told.or_else(usual) else {
        if asked {
            return Err(AccessError::new("OSC_CONFIG_FILE", "is missing, and HOME does not tell where the file is"));
        }
        return Ok(Profile::default());
    };
    match file(&path) {
        Ok(text) if asked => profile::read(&path, &text, named.as_deref().unwrap_or("default")),
        // Nobody asked for the file: one without a profile `default` says nothing.
        Ok(text) => match profile::read(&path, &text, "default") {
            Err(error) if error.field == "OSC_PROFILE" => Ok(Profile::default()),
            other => other,
        },
        Err(error) if !asked && error.kind() == std::io::ErrorKind::NotFound => Ok(Profile::default()),
        Err(error) => Err(AccessError::new("OSC_CONFIG_FILE", format!("{} cannot be read ({error})", path.display()))),
    }
}
