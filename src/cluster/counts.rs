//! What the client counts about itself, for metrics and probes to read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::facts::Kind;

use super::convert::Unreadable;

/// How many requests were sent, by verb (as RBAC names it) and resource (plural, with subresource). A watch counts as one `list` each
/// time it starts over, however many pages that has, and as one `watch` when it begins to follow.
#[derive(Default, Debug)]
pub struct RequestCounts(Mutex<BTreeMap<(&'static str, Arc<str>), u64>>);

impl RequestCounts {
    /// Counts one request.
    pub(super) fn count(&self, verb: &'static str, resource: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((verb, resource.into())).or_default() += 1;
    }

    /// All counts so far.
    pub fn all(&self) -> BTreeMap<(&'static str, Arc<str>), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests of a verb and resource were sent.
    pub fn of(&self, verb: &'static str, resource: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(verb, resource.into())).copied().unwrap_or(0)
    }
}

/// Which watches are in trouble, and why. A watch that fails goes on trying; this is how one sees it.
#[derive(Default, Debug)]
pub struct WatchHealth {
    troubles: Mutex<BTreeMap<Kind, String>>,
    /// Objects that cannot be read, and why.
    unreadable: Mutex<BTreeMap<String, String>>,
}

impl WatchHealth {
    /// Notes why a watch failed, and says it when that is news.
    pub(super) fn failed(&self, kind: Kind, why: String) {
        let mut troubles = locked(&self.troubles);
        if troubles.get(&kind) != Some(&why) {
            tracing::warn!(kind = kind.as_str(), error = %why, "watch in trouble, trying again");
            troubles.insert(kind, why);
        }
    }

    /// Notes that a watch works.
    pub(super) fn works(&self, kind: Kind) {
        if locked(&self.troubles).remove(&kind).is_some() {
            tracing::info!(kind = kind.as_str(), "watch works again");
        }
    }

    /// Notes an object that counts as if it were not there, and says it when that is news.
    pub(super) fn unreadable(&self, error: Unreadable) {
        let object = format!("{} {}", error.kind, error.name);
        let mut unreadable = locked(&self.unreadable);
        if unreadable.get(&object) != Some(&error.message) {
            tracing::warn!(%object, error = %error.message, "object cannot be read, and counts as if it were not there");
            unreadable.insert(object, error.message);
        }
    }

    /// The kinds whose watch failed and has not worked since, each with the last reason.
    pub fn troubles(&self) -> BTreeMap<Kind, String> {
        locked(&self.troubles).clone()
    }

    /// Objects (kind and name) that could not be read, with the last reason of each: field, what is wrong with it, and the remedy.
    pub fn unreadable_objects(&self) -> BTreeMap<String, String> {
        locked(&self.unreadable).clone()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
