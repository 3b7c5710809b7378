//! When a deadline lets things be done that would have to wait otherwise.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Pod};
use crate::core::labels;

/// When the drain of a NodeClaim's node must be over. Where somebody has written nonsense, the end of the grace period counts.
pub(super) fn deadline(claim: &Claim) -> Option<Timestamp> {
    claim.annotations.get(labels::TERMINATION_TIMESTAMP)?.parse().ok().or_else(|| granted(claim))
}

/// The end of the grace period of a NodeClaim that is being deleted: its deadline, unless somebody has set another.
pub fn granted(claim: &Claim) -> Option<Timestamp> {
    let grace = SignedDuration::try_from(claim.termination_grace?).ok()?;
    claim.deleting?.saturating_add(grace).ok()
}

/// Whether the deadline of a pod's node lets the pod be deleted now, so that it has its grace period before it. A second is for the way.
pub fn is_deadline_near(deadline: Timestamp, pod: &Pod, now: Timestamp) -> bool {
    let grace = SignedDuration::from_secs(pod.shape.grace_seconds + 1);
    deadline.saturating_sub(grace).is_ok_and(|from| from <= now)
}
