//! Places of the plan that others have taken.

use crate::core::facts::Snapshot;
use crate::core::resources::Resources;

/// Whether room that was planned for pods that wait has gone to others: on some open node they do not all fit beside those that are there.
///
/// Only resources are looked at. Who is kept out by anything else is found when kube-scheduler has come to rest.
pub fn is_any_taken(snapshot: &Snapshot) -> bool {
    snapshot.planned_for.iter().any(|(name, uids)| {
        let claim = snapshot.claims.get(name);
        let node = claim.and_then(|claim| snapshot.node_of(claim)).filter(|node| node.is_registered());
        node.is_some_and(|node| {
            let planned = uids.iter().filter_map(|uid| snapshot.pods.get(uid));
            let mut waiting = planned.filter(|pod| pod.node.is_none()).peekable();
            if waiting.peek().is_none() {
                return false;
            }
            let there = snapshot.pods_on(&node.name).filter(|pod| pod.is_active_on_node());
            let mut asked = Resources::new();
            for pod in waiting.chain(there) {
                asked.add(&pod.shape.requests);
            }
            !asked.fits(&node.allocatable)
        })
    })
}

#[cfg(test)]
#[path = "taken_tests.rs"]
mod tests;
