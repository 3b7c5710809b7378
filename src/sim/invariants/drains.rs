//! What is looked at before joiner empties a node: somebody must want that, or a node that serves loses its pods one by one though nothing is ever deleted.

use super::nodes::UNKNOWN_FOR;
use super::watch::Invariants;
use crate::core::facts::{Node, Pod, Taint};
use crate::core::ids::{ClaimName, ProviderId};
use crate::core::labels::{DISRUPTED_TAINT, REBOOTING_TAINT};
use crate::core::promises::Invariant;
use crate::core::writes::NodePatch;

impl Invariants {
    /// joiner is about to ask a pod to leave its node.
    pub(super) fn node_to_be_drained(&self, pod: &Pod) {
        let node = pod.node.as_ref().and_then(|name| self.cluster.store().nodes.get(name).cloned());
        if let Some(node) = node {
            self.node_to_be_emptied(&node, Some(pod), &format!("pod {} is asked to leave Node {}", pod.key, node.name));
        }
    }

    /// joiner is about to change a Node, perhaps by a taint that closes it to all pods.
    pub(super) fn node_to_be_closed(&self, node: &Node, patch: &NodePatch) {
        let closes = |taint: &&Taint| {
            [DISRUPTED_TAINT, REBOOTING_TAINT].contains(&&*taint.key)
                && !node.taints.iter().any(|there| there.key == taint.key)
        };
        if let Some(taint) = patch.taints.iter().flatten().find(closes) {
            self.node_to_be_emptied(node, None, &format!("Node {} gets the taint {}", node.name, taint.key));
        }
    }

    fn node_to_be_emptied(&self, node: &Node, pod: Option<&Pod>, how: &str) {
        let Some((id, claim)) = self.is_to_serve(node) else { return };
        let what =
            format!("{how}, which nobody has deleted, nor its NodeClaim {claim}; nor is machine {id} to be restarted");
        let pod = pod.map(|pod| pod.key.to_string());
        let objects = pod.into_iter().chain([node.name.to_string(), claim.to_string(), id.to_string()]);
        self.broken(Invariant::NoServingNodeDrained, objects.collect(), what);
    }

    /// The machine and the NodeClaim of a Node that nobody wants to be emptied, by the machine's mark: what Nodes and NodeClaims say of each other may be
    /// somebody's edit. Of a machine without a NodeClaim it is looked elsewhere whether its time is over.
    fn is_to_serve(&self, node: &Node) -> Option<(ProviderId, ClaimName)> {
        let (id, name, token) = self.machine_of(node).filter(|_| node.deleting.is_none())?;
        let claim = self.cluster.store().claims.get(&name).cloned()?;
        let is_wanted = claim.uid == token && claim.deleting.is_none();
        let is_spare = || self.is_twin(&id, &token, claim.provider_id.as_ref());
        (is_wanted && !self.was_rebooting_within(&claim, UNKNOWN_FOR) && !is_spare()).then_some((id, name))
    }
}

#[cfg(test)]
#[path = "drains_tests.rs"]
mod tests;
