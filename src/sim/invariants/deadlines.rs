//! Deadlines as they truly are: what joiner itself has written counts only where it had a reason to write it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::watch::Invariants;
use crate::core::facts::Claim;
use crate::core::labels;
use crate::core::promises::granted;
use crate::core::writes::ClaimPatch;

/// joiner writes whole seconds.
const ROUNDED: SignedDuration = SignedDuration::from_secs(1);

impl Invariants {
    /// joiner writes down when the drain of a NodeClaim must be over. It has a say in that only when a reboot has failed for which pods had a time to leave:
    /// then the machine goes, and they have that time.
    pub(super) fn deadline_to_be_set(&self, claim: &Claim, patch: &ClaimPatch) {
        let is_given_up = claim.deleting.is_none()
            && claim.is_rebooting()
            && claim.annotations.contains_key(labels::REBOOT_GRACE)
            && claim.provider_id.as_ref().is_some_and(|id| self.reboot_has_failed(id));
        if let Some(text) = patch.annotations.get(labels::TERMINATION_TIMESTAMP).filter(|_| is_given_up) {
            self.book().hurried.insert(claim.uid.clone(), Arc::clone(text));
        }
    }

    /// A NodeClaim is seen. A deadline that stands on one that is new is the word of whoever made it, with a copy of one that was going, say.
    pub(super) fn deadline_brought(&self, claim: &Claim) {
        let mut book = self.book();
        let is_new = book.claims.get(&claim.name).is_none_or(|known| known.uid != claim.uid);
        let text = claim.annotations.get(labels::TERMINATION_TIMESTAMP);
        if let Some(text) = text.filter(|_| is_new && claim.deleting.is_none()) {
            book.hurried.insert(claim.uid.clone(), Arc::clone(text));
        }
    }

    /// When the drain of a NodeClaim's node must be over.
    pub(super) fn deadline(&self, claim: &Claim) -> Option<Timestamp> {
        claim.deleting?;
        let said = claim.annotations.get(labels::TERMINATION_TIMESTAMP);
        let hurried = said.filter(|said| self.book().hurried.get(&claim.uid) == Some(said));
        let hurried = hurried.and_then(|said| said.parse().ok());
        let granted = granted(claim).and_then(|end| end.checked_sub(ROUNDED).ok());
        granted.into_iter().chain(hurried).min()
    }
}

#[cfg(test)]
#[path = "deadlines_tests.rs"]
mod tests;
