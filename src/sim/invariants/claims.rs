//! What is looked at before joiner changes a NodeClaim.

use super::watch::Invariants;
use crate::core::facts::finalizers;
use crate::core::ids::ClaimName;
use crate::core::promises::Invariant;
use crate::core::writes::ClaimPatch;
use crate::sim::store::is_current;

impl Invariants {
    /// joiner is about to change a NodeClaim: its finalizer stays while the machine is there, even when others keep the object.
    pub(in crate::sim) fn nodeclaim_to_be_changed(&self, name: &ClaimName, patch: &ClaimPatch) {
        let claim = self.cluster.store().claims.get(name).cloned();
        // What was meant for another version is refused.
        let Some(claim) = claim.filter(|claim| is_current(patch.version.as_ref(), &claim.version)) else { return };
        self.deadline_to_be_set(&claim, patch);
        let released = patch.finalizers.as_ref().is_some_and(|left| !finalizers::is_held(left));
        if released && claim.has_finalizer() {
            for id in self.machines_left(&claim) {
                let what = format!("NodeClaim {name} is let go, and its machine {id} still runs");
                self.broken(Invariant::FinalizerLast, vec![name.to_string(), id.to_string()], what);
            }
        }
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
