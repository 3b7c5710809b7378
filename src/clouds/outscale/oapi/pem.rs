//! Certificates and keys as somebody names them: a file, or the text itself.

use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::access::AccessError;

/// A PEM text. One that is given is never shown, as it may be a key.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// It is in this file.
    File(PathBuf),
    /// This is it.
    Given(Vec<u8>),
}

impl Pem {
    /// Reads a text in base64, as the fields and variables that end with `B64` have it.
    pub(super) fn of_base64(field: &'static str, text: &str) -> Result<Self, AccessError> {
        let decoded = STANDARD.decode(text.trim());
        decoded
            .map(Self::Given)
            .map_err(|_| AccessError::new(field, "is no base64; give that of a PEM file (base64 -w0 FILE)"))
    }

    /// The text.
    pub(super) fn read(&self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::File(path) => std::fs::read(path),
            Self::Given(text) => Ok(text.clone()),
        }
    }
}

impl<P: Into<PathBuf>> From<P> for Pem {
    fn from(path: P) -> Self {
        Self::File(path.into())
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Given(_) => f.write_str("what was given in base64"),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({self})")
    }
}
