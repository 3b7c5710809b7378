//! Reboots, as the cloud sees them: when a NodeClaim may be given up for one.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::watch::Invariants;
use crate::clouds::Error;
use crate::core::facts::Claim;
use crate::core::ids::{ClaimName, ProviderId};

/// Within so long the cloud must take the order, or the reboot has failed.
const ORDERED_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// Within so long after that the node must be back.
const BACK_WITHIN: SignedDuration = SignedDuration::from_mins(20);

/// What is known of reboots.
#[derive(Default)]
pub(super) struct Reboots {
    /// The last one of each machine that the cloud was asked for.
    orders: BTreeMap<ProviderId, Asked>,
    /// NodeClaims of which one was wanted, and since when it is no more.
    wanted: BTreeMap<ClaimName, Option<Instant>>,
}

/// A moment, in the world and by joiner's clock.
type Moment = (Instant, Timestamp);

/// A reboot that the cloud was asked for.
struct Asked {
    operation: String,
    first: Moment,
    taken: Option<Moment>,
    refused: bool,
}

impl Invariants {
    /// joiner asks for a reboot.
    pub(in crate::sim) fn reboot_begins(&self, id: &ProviderId, operation: &str) {
        let new = || Asked { operation: operation.to_owned(), first: self.moment(), taken: None, refused: false };
        let mut reboots = self.known_reboots();
        if reboots.orders.get(id).is_none_or(|known| known.operation != operation) {
            reboots.orders.insert(id.clone(), new());
        }
    }

    /// The cloud has answered.
    pub(in crate::sim) fn reboot_ends(&self, id: &ProviderId, answer: &Result<(), Error>) {
        let now = self.moment();
        let mut reboots = self.known_reboots();
        let Some(asked) = reboots.orders.get_mut(id) else { return };
        match answer {
            Ok(()) => drop(asked.taken.get_or_insert(now)),
            Err(Error::Unsupported(_) | Error::Invalid { .. } | Error::Unauthorized { .. }) => asked.refused = true,
            Err(_) => {}
        }
    }

    /// Whether the reboot of a machine whose Node is there has failed: the cloud has refused it for good, has not taken the order in time, or the node
    /// had its time to come back. Nothing else is a reason to take a machine away that was to be restarted.
    pub(super) fn reboot_has_failed(&self, id: &ProviderId) -> bool {
        let (now, clock) = self.moment();
        let is_over = |(then, by_clock): Moment, time: SignedDuration| {
            clock.duration_since(by_clock) >= time || now.duration_since(then) >= time.unsigned_abs()
        };
        self.known_reboots().orders.get(id).is_some_and(|asked| {
            asked.refused
                || match asked.taken {
                    Some(taken) => is_over(taken, BACK_WITHIN),
                    None => is_over(asked.first, ORDERED_WITHIN),
                }
        })
    }

    /// A NodeClaim is as it is from now on.
    pub(super) fn reboot_seen(&self, claim: &Claim) {
        let mut reboots = self.known_reboots();
        if claim.is_rebooting() {
            reboots.wanted.insert(claim.name.clone(), None);
        } else if let Some(over) = reboots.wanted.get_mut(&claim.name) {
            over.get_or_insert_with(Instant::now);
        }
    }

    /// Whether somebody wants a machine to be restarted, or did no longer ago than this.
    pub(super) fn was_rebooting_within(&self, claim: &Claim, time: Duration) -> bool {
        let lately = |over: &Option<Instant>| over.is_none_or(|at| at.elapsed() <= time);
        claim.is_rebooting() || self.known_reboots().wanted.get(&claim.name).is_some_and(lately)
    }

    fn known_reboots(&self) -> MutexGuard<'_, Reboots> {
        self.reboots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self) -> Moment {
        (Instant::now(), (self.clock)())
    }
}
