//! Leaving: the pods that will need another place because their node goes, and where they were found one before they have left.
//!
//! A drain takes as long as budgets and grace periods let it. Pods that are about to lose their node are planned along with those that
//! wait, so that the nodes they will need are there when they come. What is bought for them is a NodeClaim like any other: the next plan
//! sees its room, and puts the same pods, or those that come in their place, there again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Kind, Owner, Pod, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::lifecycle::{is_drainable, is_protected};
use crate::core::scheduling::Plan;

/// Whether a pod that may need another place is still on a node that goes, allowed to leave or not.
pub fn is_anybody_going(snapshot: &Snapshot) -> bool {
    nodes(snapshot).iter().any(|node| snapshot.pods_on(node).any(|pod| comes_again(pod)))
}

/// The pods of nodes that go, and that can leave and come again elsewhere, as the solver takes them: after all that wait already, which
/// kube-scheduler places first.
pub fn leavers(snapshot: &Snapshot, now: Timestamp) -> Vec<Arc<Pod>> {
    let nodes = nodes(snapshot);
    going(snapshot, &nodes, now).map(|pod| Arc::new(Pod { created: Timestamp::MAX, ..(**pod).clone() })).collect()
}

fn going<'a>(
    snapshot: &'a Snapshot,
    nodes: &'a BTreeSet<NodeName>,
    now: Timestamp,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    // Before budgets are known, nobody knows whether they let pods go.
    let nodes = nodes.iter().filter(|_| snapshot.listed.contains(&Kind::PodBudget));
    let pods = nodes.flat_map(|node| snapshot.pods_on(node));
    pods.filter(move |pod| comes_again(pod) && may_leave(snapshot, pod, now))
}

/// The nodes that go.
fn nodes(snapshot: &Snapshot) -> BTreeSet<NodeName> {
    let claims = snapshot.claims.values().filter(|claim| claim.is_leaving());
    let owned = claims.filter_map(|claim| snapshot.node_of(claim));
    let gone = snapshot.nodes.values().filter(|node| node.deleting.is_some());
    owned.chain(gone).map(|node| node.name.clone()).collect()
}

/// Whether there will be another pod in its place that has none yet. A StatefulSet makes it when the old one has gone, other controllers when
/// it begins to go; what nobody owns is not made again.
fn comes_again(pod: &Pod) -> bool {
    !pod.is_terminal()
        && match pod.shape.owner {
            Owner::StatefulSet => true,
            Owner::Controller => pod.deleting.is_none(),
            Owner::DaemonSet | Owner::Node | Owner::Nobody => false,
        }
}

/// Whether a pod is on its way already, or can be evicted sooner or later as things stand, or is not evicted and leaves with the machine.
fn may_leave(snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> bool {
    if pod.deleting.is_some() {
        return true;
    }
    if is_protected(pod, now) {
        return false;
    }
    if !is_drainable(pod, now) {
        return true;
    }
    let mut budgets = snapshot.pod_budgets.values().filter(|budget| budget.protects(pod));
    // The API server evicts no pod that several budgets protect.
    let (budget, None) = (budgets.next(), budgets.next()) else { return false };
    let is_held = budget.is_some_and(|budget| budget.is_closed() && (pod.ready.is_some() || !budget.spares_unready));
    !is_held
}

/// A place in a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// The node of a NodeClaim, new or there.
    Claim(ClaimName),
    /// A node that is nobody's.
    Node(NodeName),
    /// None was found.
    Nowhere,
}

/// Where the latest plan has put the pods of nodes that go.
#[derive(Clone, Debug, Default)]
pub struct Foreseen {
    places: BTreeMap<PodUid, Place>,
}

impl Foreseen {
    /// Takes the leavers out of a plan, and remembers their places. They are nominated nowhere, because they run; the NodeClaims that were
    /// planned for them stay.
    pub fn take_out(leavers: &BTreeSet<PodUid>, plan: &mut Plan) -> Self {
        let mut places = BTreeMap::new();
        if leavers.is_empty() {
            return Self { places };
        }
        let mut out = |pods: &mut Vec<Arc<Pod>>, place: &Place| {
            pods.retain(|pod| {
                let leaves = leavers.contains(&pod.uid);
                if leaves {
                    places.insert(pod.uid.clone(), place.clone());
                }
                !leaves
            });
        };
        for planned in &mut plan.claims {
            out(&mut planned.pods, &Place::Claim(planned.draft.name.clone()));
        }
        for placed in &mut plan.existing {
            let place = match (&placed.claim, &placed.node) {
                (Some(claim), _) => Place::Claim(claim.clone()),
                (None, Some(node)) => Place::Node(node.clone()),
                (None, None) => Place::Nowhere,
            };
            out(&mut placed.pods, &place);
        }
        plan.existing.retain(|placed| !placed.pods.is_empty());
        plan.refused.retain(|refusal| {
            let leaves = leavers.contains(&refusal.pod);
            if leaves {
                places.insert(refusal.pod.clone(), Place::Nowhere);
            }
            !leaves
        });
        Self { places }
    }

    /// How many have a place.
    pub fn placed(&self) -> usize {
        self.places.len() - self.refused()
    }

    /// How many have none.
    pub fn refused(&self) -> usize {
        self.places.values().filter(|place| **place == Place::Nowhere).count()
    }

    /// Whether no plan has been made for one of the pods that leave now, or its place is no more. `is_coming` says of a NodeClaim that is
    /// not there whether it is being written.
    pub fn misses(&self, snapshot: &Snapshot, now: Timestamp, is_coming: impl Fn(&ClaimName) -> bool) -> bool {
        let nodes = nodes(snapshot);
        going(snapshot, &nodes, now).any(|pod| match self.places.get(&pod.uid) {
            None => true,
            Some(Place::Nowhere) => false,
            Some(Place::Claim(name)) => match snapshot.claims.get(name) {
                Some(claim) => claim.is_leaving(),
                None => !is_coming(name),
            },
            Some(Place::Node(name)) => snapshot.nodes.get(name).is_none_or(|node| node.deleting.is_some()),
        })
    }
}

#[cfg(test)]
#[path = "leaving_tests.rs"]
mod tests;
