//! What a VM is told at its birth.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// User data, in base64 as it goes over the wire. It holds the cluster's secrets, so it is never shown.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserData(String);

impl UserData {
    /// The most bytes that the API takes, counted in base64.
    pub const LONGEST: usize = 500 * 1024;

    /// Wraps bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(STANDARD.encode(bytes))
    }

    /// The bytes, unless the base64 is damaged.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }

    /// How long it is on the wire.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes of base64)", self.0.len())
    }
}
