//! Who holds the lease, and who writes meanwhile.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

use super::watch::Invariants;
use crate::core::promises::{Invariant, LEASE_TRUSTED};

/// So much longer than joiner trusts its lease may a write begin: far less than is left of the lease then.
const SLACK: Duration = Duration::from_secs(1);

/// The joiner that asked for the lease last, and when it last got it.
#[derive(Default)]
pub(super) struct Candidate {
    name: String,
    got: Option<Instant>,
}

impl Invariants {
    /// joiner, under the name that this life of it has, asks for the lease.
    pub(in crate::sim) fn lease_asked(&self, name: &str) {
        let mut candidate = self.candidate.lock().unwrap_or_else(PoisonError::into_inner);
        if candidate.name != name {
            *candidate = Candidate { name: name.to_owned(), got: None };
        }
    }

    /// It has got it, or has it for longer now.
    pub(in crate::sim) fn lease_got(&self, name: &str) {
        let mut candidate = self.candidate.lock().unwrap_or_else(PoisonError::into_inner);
        if candidate.name == name {
            candidate.got = Some(Instant::now());
        }
    }

    /// joiner is about to change something: nobody else must have held the lease for longer than it may trust in its own.
    pub(in crate::sim) fn change_begins(&self, verb: &str, resource: &str, object: &str) {
        let Some(holder) = self.cluster.store().lease.as_ref().map(|(holder, _)| holder.clone()) else { return };
        let time = {
            let candidate = self.candidate.lock().unwrap_or_else(PoisonError::into_inner);
            if candidate.name == holder {
                return;
            }
            candidate.got.map(|got| got.elapsed())
        };
        if time.is_none_or(|time| time > LEASE_TRUSTED + SLACK) {
            let time = time.map_or_else(|| "never".to_owned(), |time| format!("{} s ago", time.as_secs()));
            let what = format!(
                "joiner begins to {verb} {resource} {object}; {holder} has the lease, and joiner got it {time}"
            );
            self.broken(Invariant::OnlyLeaderWrites, vec![object.to_owned()], what);
        }
    }
}
