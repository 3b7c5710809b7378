//! What is looked at before joiner asks a pod to leave, or takes it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::nodes::UNKNOWN_FOR;
use super::watch::Invariants;
use crate::core::facts::{Claim, DoNotDisrupt, Node, Pod};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::promises::{Invariant, is_deadline_near};
use crate::core::writes::NodePatch;

/// Earlier than this after its NodeClaim has gone no machine has an end in sight: so long the auditor's evidence takes.
const EVIDENCE: Duration = Duration::from_mins(5);
/// So long pods have to leave a machine that has no NodeClaim.
const EVACUATION: SignedDuration = SignedDuration::from_mins(10);
/// So much of that may be over when it is written down: a write waits for its turn, and for an API server that throttles.
const WAITED: SignedDuration = SignedDuration::from_mins(2);
/// joiner counts whole seconds, and a request is some time on its way.
const ON_THE_WAY: SignedDuration = SignedDuration::from_secs(3);

impl Invariants {
    /// joiner is about to delete a pod without asking its budget, with so many seconds to end: a deadline of its node is near, and it has as much of its own
    /// time as there is left until then.
    pub(in crate::sim) fn pod_to_be_deleted(&self, uid: &PodUid, grace: i64) {
        let Some((pod, now)) = self.pod(uid) else { return };
        let node = pod.node.as_ref().and_then(|name| self.cluster.store().nodes.get(name).cloned());
        // Where there is no node nothing runs.
        let Some(node) = node else { return };
        let after = |seconds: i64| now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        let own_end = pod.deleting.unwrap_or_else(|| after(pod.shape.grace_seconds));
        let given = after(grace).saturating_add(ON_THE_WAY).unwrap_or(Timestamp::MAX);
        let deadlines = self.deadlines_of(&node);
        let mut near =
            deadlines.iter().filter(|at| pod.deleting.is_some() || is_deadline_near(**at, &pod, now)).peekable();
        let why = if near.peek().is_none() && (pod.deleting.is_none() || given < own_end) {
            "and no deadline allows it"
        } else if near.all(|deadline| given < own_end.min(*deadline)) && given < own_end {
            "which is less than it has until the deadline"
        } else {
            return;
        };
        let what = format!("pod {} is deleted with {grace} s to end, {why}", pod.key);
        let mut objects = vec![pod.key.to_string(), node.name.to_string()];
        objects.extend(node.owner_claims.iter().map(|owner| owner.name.to_string()));
        self.broken(Invariant::BudgetsHold, objects, what);
    }

    /// joiner is about to ask a pod to leave, which its budget can refuse, but not a pod that says itself that it must not be disrupted.
    pub(in crate::sim) fn pod_to_be_evicted(&self, uid: &PodUid) {
        let Some((pod, now)) = self.pod(uid).filter(|(pod, _)| pod.deleting.is_none()) else { return };
        if is_protected(&pod, now) {
            let what = format!("pod {} is evicted, which must not be disrupted", pod.key);
            self.broken(Invariant::BudgetsHold, vec![pod.key.to_string()], what);
        }
        self.node_to_be_drained(&pod);
    }

    /// joiner is about to write onto a Node until when its pods have to leave, or that they need not: those of a machine that has had no NodeClaim for so
    /// long that the auditor may take it down.
    pub(super) fn evacuation_to_begin(&self, node: &Node, patch: &NodePatch) {
        if patch.without_annotations.iter().any(|key| **key == *labels::ORPHAN_TERMINATION_TIMESTAMP) {
            self.book().evacuated.remove(&node.name);
        }
        let Some(said) = patch.annotations.get(labels::ORPHAN_TERMINATION_TIMESTAMP) else { return };
        let machine = self.machine_of(node);
        if machine.is_some_and(|(id, ..)| self.unclaimed_for(&id).is_some_and(|time| time >= EVIDENCE)) {
            let now = self.cluster.store().now().min((self.clock)());
            let after = |time: SignedDuration| now.saturating_add(time).unwrap_or(Timestamp::MAX);
            let said = said.parse().unwrap_or(Timestamp::MAX);
            let deadline = said.clamp(after(EVACUATION - WAITED), after(EVACUATION));
            self.book().evacuated.entry(node.name.clone()).or_insert(deadline);
        }
    }

    /// A pod, and the time: the later one of the world's and joiner's, as far as that can be believed.
    fn pod(&self, uid: &PodUid) -> Option<(Arc<Pod>, Timestamp)> {
        let store = self.cluster.store();
        let pod = Arc::clone(&store.pods.get(uid)?.pod);
        Some((pod, store.now().max((self.clock)())))
    }

    /// When pods must have left a node: at the deadlines of its NodeClaims, and of the machine without one that it may be. NodeClaims that have just gone
    /// may still be there for joiner.
    pub(super) fn deadlines_of(&self, node: &Node) -> Vec<Timestamp> {
        let token = self.machine_of(node).map(|(.., token)| token);
        // By the machine, whatever somebody has written. Where none is known by provider ID too: a user may have taken the owner off the Node.
        let is_of = |claim: &Claim| match &token {
            Some(token) => claim.uid == *token,
            None => node.is_owned_by(claim) || claim.provider_id.is_some() && claim.provider_id == node.provider_id,
        };
        let mut claims: Vec<_> = self.cluster.store().claims.values().cloned().collect();
        claims.extend(self.gone_within(UNKNOWN_FOR));
        let of_claims = claims.iter().filter(|claim| is_of(claim)).filter_map(|claim| self.deadline(claim));
        let evacuated = self.book().evacuated.get(&node.name).copied();
        of_claims.chain(evacuated).collect()
    }
}

/// Whether a pod says that it must not be disrupted now.
fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    match pod.shape.do_not_disrupt {
        DoNotDisrupt::Unsaid | DoNotDisrupt::Meaningless(_) => false,
        DoNotDisrupt::Always => true,
        DoNotDisrupt::For(time) => {
            let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
            pod.started.is_none_or(|at| at.saturating_add(time).is_ok_and(|end| now < end))
        }
    }
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
