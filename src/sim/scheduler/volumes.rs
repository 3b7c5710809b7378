//! Volumes as the scheduler sees them: from where the claims of a pod can be reached.

use std::sync::Arc;

use crate::core::facts::{Snapshot, Topologies};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;
use crate::sim::matching;

/// From where the volumes of a pod can be had: on nodes that suit each of these.
pub(super) struct Reach<'a>(Vec<&'a Topologies>);

impl<'a> Reach<'a> {
    /// That of a pod with these claims. A claim that is not there, or that waits for somebody else, can be had nowhere.
    pub(super) fn of(volumes: &'a Snapshot, namespace: &Arc<str>, claims: &[Arc<str>]) -> Option<Self> {
        let mut all = Vec::new();
        for name in claims {
            let key = ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) };
            let claim = volumes.volume_claims.get(&key).filter(|claim| !claim.lost && !claim.deleting)?;
            if let Some(volume) = &claim.volume {
                let volume = volumes.volumes.get(volume).filter(|_| claim.bound)?;
                all.extend(&volume.topologies);
            } else {
                let class = claim.class.as_ref().and_then(|name| volumes.storage_classes.get(name));
                let class = class.filter(|class| !class.immediate)?;
                all.extend(Some(&class.topologies).filter(|topologies| !topologies.is_empty()));
            }
        }
        Some(Self(all))
    }

    /// Whether they can be had on a node with these labels.
    pub(super) fn includes(&self, labels: &Labels) -> bool {
        self.0.iter().all(|terms| suits(terms, labels))
    }
}

fn suits(terms: &Topologies, labels: &Labels) -> bool {
    terms.iter().any(|term| term.iter().all(|requirement| matching::holds(requirement, labels)))
}
