//! Opening together: the nodes of one plan lose their `karpenter.sh/unregistered` taint at one time, as far as that can be had.
//!
//! kube-scheduler takes pods in an order of its own. A spread pod whose node is still closed when its turn comes goes to another one, if that has
//! room left, and with it goes the balance that the plan had for the pods behind it: on a real control plane a quarter of 300 mixed pods
//! landed elsewhere, some found no place any more, and more nodes were bought. So a node that is ready to open waits for the others, for a
//! short while, and only where a pod is concerned whose place depends on others.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Pod, Snapshot};
use crate::core::ids::ClaimName;

/// Longest wait for nodes that have not appeared. Machines of real clouds take tens of seconds and do not come at one time; this is a small part
/// of that, and more than nodes need to appear whose machines come at one time.
const FOR_NODES: SignedDuration = SignedDuration::from_secs(5);
/// Longest pause in which no other node gets ready, where nodes are there whose pods are being looked at by kube-scheduler, or nominated. Both go on
/// at 50 to 300 pods a second on a small control plane, and a node has 100 at most as a rule.
const FOR_NOMINATIONS: SignedDuration = SignedDuration::from_secs(10);
/// Longest wait for kube-scheduler to look at the pods of a node: it looks at 100 a second on a small control plane, and bursts of 10,000 are not rare.
/// A node that opens to pods that nobody could nominate is filled at random.
pub(super) const JUDGED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// Longest wait of all, should the answer get lost.
pub(super) const AT_MOST: SignedDuration = SignedDuration::from_mins(3);

/// The NodeClaims whose nodes are ready to open, and wait for the others of their plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    waiting: BTreeSet<ClaimName>,
    /// When the first came.
    since: Option<Timestamp>,
    /// When the last came.
    grew: Option<Timestamp>,
}

impl Opening {
    /// The node of this NodeClaim is ready to open.
    pub fn join(&mut self, claim: &ClaimName, now: Timestamp) {
        if self.waiting.insert(claim.clone()) {
            self.since.get_or_insert(now);
            self.grew = Some(now);
        }
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out those that may open now: all, when nobody is missing who may be waited for. The nodes of the pods that kube-scheduler takes first
    /// come first.
    pub fn take(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<ClaimName> {
        let (Some(since), Some(grew)) = (self.since, self.grew) else { return Vec::new() };
        let mut missing = snapshot.planned_for.keys().filter(|name| !self.waiting.contains(*name));
        let for_nodes = now.duration_since(since) < FOR_NODES;
        let for_nominations = now.duration_since(grew) < FOR_NOMINATIONS;
        let held = missing.any(|name| match snapshot.claims.get(name) {
            None => for_nodes,
            Some(claim) if !is_on_its_way(claim) => false,
            Some(claim) if snapshot.node_of(claim).is_some() => for_nominations,
            Some(_) => for_nodes,
        });
        if held {
            return Vec::new();
        }
        let mut names: Vec<ClaimName> = std::mem::take(self).waiting.into_iter().collect();
        let first_pod =
            |name: &ClaimName| snapshot.planned_for.get(name)?.iter().filter_map(|uid| snapshot.arrival(uid)).min();
        names.sort_by_cached_key(first_pod);
        names
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
