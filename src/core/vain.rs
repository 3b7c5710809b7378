//! Nodes that were bought in vain: they serve, stand empty, and the pods that they were bought for wait all the same.
//!
//! Something about such a node is not what its NodeClaim promised: it has less room than its instance type, or lacks a label. The solver sees that
//! the pods have no place there and buys another node, which is the same. Without an end to that, a pod would buy a node a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::{Claim, Node, Owner, Pod, Snapshot};
use crate::core::ids::{ClaimName, PodUid};
use crate::core::scheduling::{Plan, PlannedClaim, Reason, Refusal};

/// So many nodes stand empty at most that were bought for one pod: the first may have got less than others of its type by mischance.
const MOST: usize = 2;

/// The NodeClaims that were made for pods which wait, as far as this instance knows.
#[derive(Debug, Default)]
pub struct Bought(BTreeMap<PodUid, BTreeSet<ClaimName>>);

impl Bought {
    /// A NodeClaim is made for these pods.
    pub fn note(&mut self, claim: &ClaimName, pods: &[Arc<Pod>]) {
        for pod in pods {
            self.0.entry(pod.uid.clone()).or_default().insert(claim.clone());
        }
    }

    /// Forgets pods that do not wait any more, and NodeClaims that are not there: those that are gone, and those that the API server has refused. A new one
    /// that the watch has not shown in time counts no more either.
    pub fn forget(&mut self, snapshot: &Snapshot) {
        self.0.retain(|pod, claims| {
            claims.retain(|claim| snapshot.claims.contains_key(claim));
            !claims.is_empty() && snapshot.pods.get(pod).is_some_and(|pod| pod.node.is_none())
        });
    }

    /// Takes out of a plan the NodeClaims that only pods ask for which have got enough of them in vain.
    pub fn withhold(&self, plan: &mut Plan, snapshot: &Snapshot) {
        let in_vain = |pod: &Arc<Pod>| self.in_vain(&pod.uid, snapshot);
        let is_vain = |claim: &PlannedClaim| claim.pods.iter().all(|pod| in_vain(pod).is_some());
        let (withheld, claims): (Vec<_>, Vec<_>) = std::mem::take(&mut plan.claims).into_iter().partition(is_vain);
        plan.claims = claims;
        for claim in withheld {
            plan.price -= claim.price;
            let refused = claim.pods.iter().filter_map(|pod| {
                let nodes = in_vain(pod)?;
                Some(Refusal { pod: pod.uid.clone(), reasons: vec![Reason::BoughtInVain { nodes }] })
            });
            plan.refused.extend(refused);
        }
        if plan.claims.is_empty() {
            plan.price = 0.0;
        }
    }

    /// The names of the nodes that stand empty and were bought for a pod, if they are enough.
    fn in_vain(&self, pod: &PodUid, snapshot: &Snapshot) -> Option<Vec<Arc<str>>> {
        let claims = self.0.get(pod)?.iter().filter_map(|name| snapshot.claims.get(name));
        let nodes = claims.filter_map(|claim| Some((claim, snapshot.node_of(claim)?)));
        let empty = nodes.filter(|(claim, node)| serves(claim, node) && is_empty(snapshot, node));
        let names: Vec<Arc<str>> = empty.map(|(_, node)| node.name.as_str().into()).collect();
        (names.len() >= MOST).then_some(names)
    }
}

/// Takes out of a plan the NodeClaims that nobody is left for: while it was made, their pods have gone or have got a node.
pub fn drop_unwanted(plan: &mut Plan, is_wanted: impl Fn(&PodUid) -> bool) {
    let before = plan.claims.len();
    plan.claims.retain(|claim| claim.pods.iter().any(|pod| is_wanted(&pod.uid)));
    if plan.claims.len() < before {
        plan.price = plan.claims.iter().map(|claim| claim.price).sum();
    }
}

/// Whether kube-scheduler could bind pods to a node that are made for it.
fn serves(claim: &Claim, node: &Node) -> bool {
    let is_planned = |taint: &_| claim.taints.contains(taint);
    claim.deleting.is_none()
        && node.deleting.is_none()
        && !node.cordoned
        && claim.is("Initialized")
        && node.is_ready()
        && node.taints.iter().all(is_planned)
}

fn is_empty(snapshot: &Snapshot, node: &Node) -> bool {
    let works = |pod: &Arc<Pod>| pod.is_active_on_node() && !matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node);
    !snapshot.pods_on(&node.name).any(works)
}

#[cfg(test)]
#[path = "vain_tests.rs"]
mod tests;
