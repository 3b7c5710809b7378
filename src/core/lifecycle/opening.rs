//! Opening together: the nodes of one plan lose their `karpenter.sh/unregistered` taint at one time, as far as that can be had.
//!
//! kube-scheduler takes pods in an order of its own. A spread pod whose node is still closed when its turn comes goes to another one, if that has
//! room left, and with it goes the balance that the plan had for the pods behind it: on a real control plane a quarter of 300 mixed pods
//! landed elsewhere, some found no place any more, and more nodes were bought. So a node that is ready to open waits for the others, for a
//! short while, and only where a pod is concerned whose place depends on others.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Pod, Snapshot};
use crate::core::ids::ClaimName;

/// Longest wait for nodes that have not appeared. Machines of real clouds take tens of seconds and do not come at one time; this is a small part
/// of that, and more than nodes need to appear whose machines come at one time.
const FOR_NODES: SignedDuration = SignedDuration::from_secs(5);
/// Longest wait for nodes that are there, and whose pods are being nominated: 10,000 nominations take about 20 s.
const FOR_NOMINATIONS: SignedDuration = SignedDuration::from_secs(30);

/// Longest wait of all, should the answer get lost.
pub(super) const AT_MOST: SignedDuration = SignedDuration::from_secs(35);

/// The NodeClaims whose nodes are ready to open, and wait for the others of their plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    waiting: BTreeMap<ClaimName, Timestamp>,
}

impl Opening {
    /// The node of this NodeClaim is ready to open.
    pub fn join(&mut self, claim: &ClaimName, now: Timestamp) {
        self.waiting.entry(claim.clone()).or_insert(now);
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out those that may open now: all, when nobody is missing who may be waited for.
    pub fn take(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<ClaimName> {
        let Some(since) = self.waiting.values().min().copied() else { return Vec::new() };
        let mut missing = snapshot.planned_for.keys().filter(|name| !self.waiting.contains_key(*name));
        let waited = now.duration_since(since);
        let held = missing.any(|name| match snapshot.claims.get(name) {
            None => waited < FOR_NODES,
            Some(claim) if !is_on_its_way(claim) => false,
            Some(claim) if snapshot.node_of(claim).is_some() => waited < FOR_NOMINATIONS,
            Some(_) => waited < FOR_NODES,
        });
        if held { Vec::new() } else { std::mem::take(&mut self.waiting).into_keys().collect() }
    }
}

/// Whether a NodeClaim's node will open, as far as can be seen.
fn is_on_its_way(claim: &Claim) -> bool {
    claim.deleting.is_none() && claim.broken.is_none() && !claim.is("Registered")
}

/// Whether other pods decide on where this one may go.
pub(super) fn depends_on_others(pod: &Pod) -> bool {
    let shape = &pod.shape;
    shape.spreads.iter().any(|spread| spread.required) || !shape.affinity.is_empty() || !shape.anti_affinity.is_empty()
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
