//! What is looked at before joiner changes a Node or deletes it.

use std::sync::Arc;
use std::time::Duration;

use super::watch::Invariants;
use crate::core::facts::{Claim, Effect, Node, Taint, finalizers};
use crate::core::ids::{ClaimUid, NodeName, NodeUid, ProviderId};
use crate::core::promises::Invariant;
use crate::core::writes::NodePatch;
use crate::sim::kubelet::node_name;
use crate::sim::store::is_current;

/// What somebody else did no longer ago joiner may not know of yet: as long as a watch lags, and the request takes.
pub(super) const UNKNOWN_FOR: Duration = Duration::from_mins(15);

impl Invariants {
    /// joiner is about to change a Node: while the machine runs that it is the Node of, its finalizer stays; and nothing that runs there is thrown out.
    pub(in crate::sim) fn node_to_be_changed(&self, name: &NodeName, patch: &NodePatch) {
        let node = self.cluster.store().nodes.get(name).cloned();
        // What was meant for another version is refused.
        let Some(node) = node.filter(|node| is_current(patch.version.as_ref(), &node.version)) else { return };
        self.evacuation_to_begin(&node, patch);
        self.node_to_be_tainted(&node, patch);
        self.node_to_be_closed(&node, patch);
        let released = patch.finalizers.as_ref().is_some_and(|left| !finalizers::is_held(left));
        let released = released && node.has_finalizer();
        let machine = self.machine_of(&node).filter(|(id, _, token)| released && self.needs(id, token, &node));
        if let Some((id, ..)) = machine {
            let what = format!("Node {name} is let go, and its machine {id} still runs");
            self.broken(Invariant::NodeFinalizerLast, vec![name.to_string(), id.to_string()], what);
        }
    }

    /// Whether a machine runs and a Node is its own: the one that its kubelet has made, or one that its NodeClaim has taken. One that merely carries its ID may
    /// do so by mistake.
    fn needs(&self, id: &ProviderId, token: &ClaimUid, node: &Node) -> bool {
        self.runs(id) && (node_name(id) == node.name || node.owner_claims.iter().any(|owner| owner.uid == *token))
    }

    /// A NoExecute taint throws pods out and asks no budget. joiner adds those that the NodeClaim asks for, before the Node opens.
    fn node_to_be_tainted(&self, node: &Node, patch: &NodePatch) {
        let store = self.cluster.store();
        let named = |claim: &Claim| claim.provider_id.is_some() && claim.provider_id == node.provider_id;
        let own = |claim: &&Arc<Claim>| named(claim) || node.is_owned_by(claim);
        let asked: Vec<_> = store.claims.values().filter(own).cloned().collect();
        drop(store);
        let asked = |taint: &Taint| {
            asked.iter().any(|claim| claim.taints.iter().chain(&claim.startup_taints).any(|it| it == taint))
        };
        let throws_out = |taint: &&Taint| {
            taint.effect == Effect::NoExecute && !node.taints.iter().any(|there| there.matches(taint)) && !asked(taint)
        };
        if let Some(taint) = patch.taints.iter().flatten().find(throws_out) {
            let what = format!(
                "Node {} gets the taint {}, which throws its pods out past their budgets",
                node.name, taint.key
            );
            self.broken(Invariant::BudgetsHold, vec![node.name.to_string()], what);
        }
    }

    /// joiner is about to delete a Node: that of a NodeClaim which somebody has deleted, and one that its finalizer keeps until the machine is gone.
    pub(in crate::sim) fn node_to_be_deleted(&self, name: &NodeName, uid: &NodeUid) {
        let node = self.cluster.store().nodes.get(name).cloned();
        let Some(node) = node.filter(|node| node.uid == *uid && node.deleting.is_none()) else { return };
        if let Some((object, why)) = self.is_wanted_by(&node).or_else(|| self.would_vanish(&node)) {
            let what = format!("joiner deletes Node {name}, {why}");
            self.broken(Invariant::NoServingNodeDeleted, vec![name.to_string(), object], what);
        }
    }

    /// Who wants a Node to stay, and why, by the mark of its machine: what Nodes and NodeClaims say of each other may be somebody's edit.
    fn is_wanted_by(&self, node: &Node) -> Option<(String, String)> {
        let Some((id, name, token)) = self.machine_of(node) else {
            return Some((String::new(), "which is of no machine of joiner's".to_owned()));
        };
        let claim = self.cluster.store().claims.get(&name).filter(|claim| claim.uid == token).cloned();
        match claim {
            Some(claim) => claim
                .deleting
                .is_none()
                .then(|| (name.to_string(), format!("of machine {id}, whose NodeClaim {name} nobody has deleted"))),
            // Whose NodeClaim a user let go at once is deleted as long as joiner has not heard of it.
            None => self
                .gone_for(&token)
                .filter(|time| *time > UNKNOWN_FOR)
                .map(|_| (id.to_string(), format!("of machine {id}, whose NodeClaim {name} is long gone"))),
        }
    }

    /// Whether a Node goes at once that its machine still needs: nobody would know any more which pods are to leave.
    fn would_vanish(&self, node: &Node) -> Option<(String, String)> {
        let (id, ..) = self.machine_of(node).filter(|(id, ..)| self.runs(id))?;
        let vanishes = !node.has_finalizer() && !self.was_held_within(&node.name, UNKNOWN_FOR);
        vanishes.then(|| (id.to_string(), format!("which has no finalizer, and its machine {id} still runs")))
    }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
