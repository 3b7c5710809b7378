//! What is looked at before joiner acts, and of what its actors say.

use jiff::Timestamp;

use super::deadline::{deadline, is_deadline_near};
use super::invariant::{Broken, Invariant};
use crate::core::facts::{Claim, Node, Pod, PodBudget};
use crate::core::ids::ProviderId;
use crate::core::lifecycle::Sight;

/// Phases in which the actor of a NodeClaim waits for nothing in particular.
const AT_REST: [&str; 3] = ["New", "Ready", "Gone"];

/// Whether the actor of a NodeClaim that says this of itself owes a reason.
pub fn is_silent(state: &str, waits_for: Option<&str>) -> bool {
    waits_for.is_none() && !AT_REST.contains(&state)
}

/// A machine is about to be ordered down for a NodeClaim, of whose machine the cloud last said what `sight` is: somebody has deleted the NodeClaim,
/// and no other's mark is on the machine.
pub fn judge_order(claim: &Claim, id: &ProviderId, sight: &Sight) -> Option<Broken> {
    let of_another = match sight {
        Sight::Present(machine) if machine.id == *id => machine.token.as_ref().filter(|token| **token != claim.uid),
        _ => None,
    };
    let why = match of_another {
        Some(token) => format!("which carries the mark of a NodeClaim with UID {token}"),
        None if claim.deleting.is_none() => "which nobody has deleted".to_owned(),
        None => return None,
    };
    let what = format!("machine {id} is ordered down for NodeClaim {}, {why}", claim.name);
    Some(Broken { promise: Invariant::NoClaimedMachineDeleted, object: format!("machine {id}"), what })
}

/// A Node is about to be deleted for a NodeClaim, of whose machine the cloud last said what `sight` is; `owners` are the NodeClaims that own it. Somebody has
/// deleted the NodeClaim, the Node is no other's, and its finalizer keeps it until the machine is gone.
pub fn judge_node_deletion<'a>(
    claim: &Claim,
    node: &Node,
    owners: impl IntoIterator<Item = &'a Claim>,
    sight: &Sight,
) -> Option<Broken> {
    let is_marked = matches!(sight, Sight::Present(machine)
        if machine.token.as_ref() == Some(&claim.uid) && node.provider_id.as_ref() == Some(&machine.id));
    let is_own = is_marked || node.is_owned_by(claim);
    let other = owners.into_iter().find(|owner| !is_own && owner.uid != claim.uid && owner.deleting.is_none());
    let why = if claim.deleting.is_none() {
        "which nobody has deleted".to_owned()
    } else if let Some(other) = other {
        format!("and it is the Node of NodeClaim {}", other.name)
    } else if !node.has_finalizer() && *sight != Sight::Gone {
        "and has no finalizer that keeps it until the machine is gone".to_owned()
    } else {
        return None;
    };
    let what = format!("Node {} is deleted for NodeClaim {}, {why}", node.name, claim.name);
    Some(Broken { promise: Invariant::NoServingNodeDeleted, object: format!("Node {}", node.name), what })
}

/// A pod is about to be deleted without asking the budgets that protect it: the deadline of a NodeClaim of its node must be near. What has no
/// NodeClaim is the auditor's, and has a deadline of his. A pod that somebody has deleted before leaves anyhow, and only its time is cut short.
pub fn judge_deletion<'a>(
    pod: &Pod,
    claims: impl IntoIterator<Item = &'a Claim>,
    budgets: impl IntoIterator<Item = &'a PodBudget>,
    now: Timestamp,
) -> Option<Broken> {
    let mut claims = claims.into_iter().peekable();
    claims.peek()?;
    let is_near = |claim| deadline(claim).is_some_and(|deadline| is_deadline_near(deadline, pod, now));
    if pod.deleting.is_some() || claims.any(is_near) {
        return None;
    }
    let budget = budgets.into_iter().find(|budget| budget.protects(pod))?;
    let what = format!("pod {} is deleted past its budget {}, and no deadline allows it", pod.key, budget.key.name);
    Some(Broken { promise: Invariant::BudgetsHold, object: format!("pod {}", pod.key), what })
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
