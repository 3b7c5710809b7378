//! Permissions that turned out to be missing: each is said once, when it is first missed, and what does not need it goes on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Error;

/// How long after its last silence an API server is not believed to know its roles: one that has just started refuses everything until it
/// has read them.
const ROLES_READ_AFTER: Duration = Duration::from_secs(10);

/// Which permissions joiner's account lacks, as far as it has needed them.
#[derive(Default, Debug)]
pub struct Permissions {
    missing: Mutex<BTreeSet<Permission>>,
    /// When a request last got no proper answer.
    silent: Mutex<Option<Instant>>,
}

/// Verb, API group and resource, as RBAC names them.
type Permission = (&'static str, &'static str, &'static str);

impl Permissions {
    /// Takes in how a request ended. Only a refusal and a success say something; `permission` is what the request needed.
    pub(super) fn heard<T>(&self, permission: Permission, result: &Result<T, Error>) {
        let (verb, _, resource) = permission;
        match result {
            Err(Error::Forbidden { .. }) if self.was_silent() => {}
            Err(error @ Error::Forbidden { .. }) => {
                if self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(permission) {
                    tracing::error!(verb, resource, %error, "permission missing; what does not need it goes on");
                }
            }
            Ok(_) => {
                if self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(&permission) {
                    tracing::info!(verb, resource, "permission given");
                }
            }
            Err(Error::Temporary(_) | Error::Unknown(_)) => {
                *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
            Err(_) => {}
        }
    }

    /// Whether the API server was away a moment ago.
    fn was_silent(&self) -> bool {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.is_some_and(|since| since.elapsed() < ROLES_READ_AFTER)
    }

    /// What is missing: verb, API group and resource.
    pub fn missing(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
