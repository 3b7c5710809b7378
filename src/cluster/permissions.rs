//! Permissions that turned out to be missing: each is said once, when it is first missed, and what does not need it goes on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::Error;

/// Which permissions joiner's account lacks, as far as it has needed them.
#[derive(Default, Debug)]
pub struct Permissions(Mutex<BTreeSet<Permission>>);

/// Verb, API group and resource, as RBAC names them.
type Permission = (&'static str, &'static str, &'static str);

impl Permissions {
    /// Takes in how a request ended. Only a refusal and a success say something; `permission` is what the request needed.
    pub(super) fn heard<T>(&self, permission: Permission, result: &Result<T, Error>) {
        let (verb, _, resource) = permission;
        match result {
            Err(error @ Error::Forbidden { .. }) => {
                if self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(permission) {
                    tracing::error!(verb, resource, %error, "permission missing; what does not need it goes on");
                }
            }
            Ok(_) => {
                if self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&permission) {
                    tracing::info!(verb, resource, "permission given");
                }
            }
            Err(_) => {}
        }
    }

    /// What is missing: verb, API group and resource.
    pub fn missing(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
