//! Consolidatable: whether a node has been left alone for as long as its NodePool asks for, so that it may be consolidated.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::Status;
use crate::core::time::later;

use super::Situation;

/// The condition that says it.
pub(super) const CONSOLIDATABLE: &str = "Consolidatable";
/// `status.lastPodEventTime` is written no more often than this (Karpenter's value: less than a disruption waits before it acts).
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// From when on the node may be consolidated; nothing when never: `consolidateAfter: Never`, a static NodePool, or not initialized (yet,
/// or any more).
pub(super) fn from(situation: &Situation<'_>) -> Option<Timestamp> {
    let pool = situation.pool.filter(|pool| pool.replicas.is_none())?;
    let after = pool.disruption.consolidate_after?;
    if !is_initialized(situation) {
        return None;
    }
    let quiet_since = last_event(situation).unwrap_or_else(|| situation.since("Initialized"));
    Some(later(quiet_since, after))
}

/// Whether the condition is to be there; nothing when it cannot be said, because the NodePool is gone.
pub(super) fn wanted(situation: &Situation<'_>) -> Option<bool> {
    situation.pool?;
    Some(from(situation).is_some_and(|from| situation.now >= from))
}

fn is_initialized(situation: &Situation<'_>) -> bool {
    situation.has("Registered", Status::True) && situation.has("Initialized", Status::True)
}

/// When a pod was last bound to the node, ended there, or began to end there.
fn last_event(situation: &Situation<'_>) -> Option<Timestamp> {
    situation.claim.last_pod_event.max(situation.pod_event)
}

/// The pod event to be written, once one is newer than the one that is written and the pause is over. Unlike upstream's, the last event of
/// a burst is written too, when the pause is over.
pub(super) fn event_to_write(situation: &Situation<'_>) -> Option<Timestamp> {
    let event = newer_event(situation)?;
    (situation.now >= write_from(situation)).then_some(event)
}

/// When a pod event that must wait will be written.
pub(super) fn write_at(situation: &Situation<'_>) -> Option<Timestamp> {
    newer_event(situation)?;
    Some(write_from(situation)).filter(|at| *at > situation.now)
}

fn newer_event(situation: &Situation<'_>) -> Option<Timestamp> {
    situation.pod_event.filter(|event| situation.claim.last_pod_event.is_none_or(|written| *event > written))
}

fn write_from(situation: &Situation<'_>) -> Timestamp {
    let pause = |written: Timestamp| written.saturating_add(WRITTEN_EVERY).unwrap_or(Timestamp::MAX);
    situation.claim.last_pod_event.map_or(Timestamp::MIN, pause)
}

#[cfg(test)]
#[path = "consolidation_tests.rs"]
mod tests;
