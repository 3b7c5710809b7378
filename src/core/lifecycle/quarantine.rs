//! Quarantine: a NodeClaim whose actor fails again and again says so, until an actor has looked after it for a while.
//!
//! It is written by the parent of the actors, as there is none, and taken off by the first one that lives long enough.

use jiff::{SignedDuration, Timestamp};

use crate::core::conditions::Conditions;
use crate::core::facts::{Claim, Status, find_condition};
use crate::core::writes::ClaimStatusPatch;

use super::{Situation, status};

/// The condition while it lasts; otherwise it is not there. Karpenter has none: its controllers fail for all NodeClaims or for none.
const QUARANTINED: &str = "Quarantined";
/// Its reason.
const REASON: &str = "ActorFails";

/// An actor that has lived this long is healthy: its next failure counts as its first.
pub const HEALTHY_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// The change that says why nobody looks after a NodeClaim; nothing when it says so already, or its conditions cannot be read.
pub fn quarantine(claim: &Claim, why: &str, now: Timestamp) -> Option<ClaimStatusPatch> {
    let why = status::cut(why);
    let said = find_condition(&claim.conditions, QUARANTINED).is_some_and(|condition| *condition.message == *why);
    if said || claim.broken.as_ref().is_some_and(|broken| broken.conditions) {
        return None;
    }
    let mut conditions = status::begin(claim, now);
    conditions.set(QUARANTINED, Status::True, REASON, &why);
    Some(ClaimStatusPatch {
        version: Some(claim.version.clone()),
        conditions: Some(conditions.finish()),
        ..ClaimStatusPatch::default()
    })
}

/// When a NodeClaim that says that it is quarantined may say so no more.
pub(super) fn ends(situation: &Situation<'_>) -> Option<Timestamp> {
    find_condition(&situation.claim.conditions, QUARANTINED)?;
    let since = situation.memory.since.unwrap_or(situation.now);
    Some(since.saturating_add(HEALTHY_AFTER).unwrap_or(Timestamp::MAX))
}

/// Takes the condition off when its time has come.
pub(super) fn judge(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    if ends(situation).is_some_and(|end| end <= situation.now) {
        conditions.clear(QUARANTINED);
    }
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod tests;
