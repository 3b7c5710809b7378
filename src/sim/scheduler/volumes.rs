//! Volumes as the scheduler sees them: from where the claims of a pod can be reached.

use std::sync::Arc;

use crate::core::facts::{Snapshot, Topologies};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;
use crate::sim::matching;

/// Whether the volumes of a pod can be had on a node with these labels. A claim that is not there, or that waits for somebody else, can be
/// had nowhere.
pub(super) fn reachable(volumes: &Snapshot, namespace: &Arc<str>, claims: &[Arc<str>], labels: &Labels) -> bool {
    claims.iter().all(|name| {
        let key = ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) };
        let Some(claim) = volumes.volume_claims.get(&key).filter(|claim| !claim.lost && !claim.deleting) else {
            return false;
        };
        if let Some(volume) = &claim.volume {
            let volume = volumes.volumes.get(volume).filter(|_| claim.bound);
            return volume.is_some_and(|volume| volume.topologies.as_ref().is_none_or(|terms| suits(terms, labels)));
        }
        let class = claim.class.as_ref().and_then(|name| volumes.storage_classes.get(name));
        class.is_some_and(|class| !class.immediate && (class.topologies.is_empty() || suits(&class.topologies, labels)))
    })
}

fn suits(terms: &Topologies, labels: &Labels) -> bool {
    terms.iter().any(|term| term.iter().all(|requirement| matching::holds(requirement, labels)))
}
