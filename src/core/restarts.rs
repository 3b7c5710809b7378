//! Restarts: a node whose machine is restarted comes back, and its pods wait for it, unless its restart is held up.
//!
//! A drain for a restart may take for ever: the pods that have left wait for the node, and a budget holds the last one for want of them. So whoever
//! plans sees a node whose pods have not left for a while as one that does not come back. What is bought lets the restart go on.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Claim, Snapshot};
use crate::core::ids::PodUid;
use crate::core::lifecycle::is_held;

/// The cluster as whoever plans sees it: nodes whose restart is held up are fenced, and not about to come back.
pub fn without_held(snapshot: &Arc<Snapshot>, now: Timestamp) -> Arc<Snapshot> {
    let held: Vec<&Arc<Claim>> = snapshot.claims.values().filter(|claim| is_held(claim, now)).collect();
    if held.is_empty() {
        return Arc::clone(snapshot);
    }
    let mut seen = (**snapshot).clone();
    for claim in held {
        let mut claim = (**claim).clone();
        claim.conditions.retain(|condition| &*condition.kind != "Rebooting");
        seen.claims.insert(claim.name.clone(), Arc::new(claim));
    }
    Arc::new(seen)
}

/// Whether a pod waits for a node whose restart is held up, though it could have another place: those for whom there `is_none` are not asked for again.
pub fn is_anybody_held(snapshot: &Snapshot, now: Timestamp, is_none: impl Fn(&PodUid) -> bool) -> bool {
    let planned = snapshot.pending.keys().filter(|uid| !is_none(uid)).filter_map(|uid| snapshot.planned.get(uid));
    planned.filter_map(|name| snapshot.claims.get(name)).any(|claim| is_held(claim, now))
}

#[cfg(test)]
#[path = "restarts_tests.rs"]
mod tests;
