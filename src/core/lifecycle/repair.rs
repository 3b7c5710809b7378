//! Repair as it was before Karpenter 1.15 (`--legacy-node-repair`): a machine that has been broken for too long goes at once, whatever budgets,
//! pods and grace periods say. What replaces under budgets is a disruption, and not in here.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::labels;
use crate::core::repair::{Diagnosis, Policies};
use crate::core::writes::ClaimPatch;

use super::step::Phase;
use super::{Act, DeleteReason, Situation, Step, liveness, reboot, termination};

/// How soon a repair that is blocked is looked at again (Karpenter's value).
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// Whether and how nodes are repaired.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What means that a machine is broken.
    pub policies: Policies,
    /// At once, instead of as a disruption.
    pub legacy: bool,
}

/// What is the matter with the Node, due or not.
pub(super) fn diagnosis(situation: &Situation<'_>) -> Option<Diagnosis> {
    let repair = situation.repair.filter(|_| situation.claim.deleting.is_none())?;
    let node = situation.node()?;
    if repair.legacy {
        return repair.policies.legacy(node);
    }
    repair.policies.diagnose(node, reboot::ended(situation.claim), situation.now)
}

/// What is next for a machine that is to go because it is broken.
pub(super) fn next(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    let diagnosis = due(situation)?;
    if blocked(situation).is_some() {
        return None;
    }
    if let Some(step) = prove_broken(situation, phase) {
        return Some(step);
    }
    let claim = situation.claim;
    if termination::deadline(claim).is_none_or(|at| at > situation.now) {
        return Some(Step::act(phase, Act::PatchClaim(termination::with_deadline(claim, situation.now))));
    }
    Some(Step::act(phase, Act::DeleteClaim(DeleteReason::Unhealthy(diagnosis.condition))))
}

/// Takes off a deadline that is over while the NodeClaim lives: a repair that was called off has left it, or somebody has written it. A deletion in weeks
/// would take all pods at once for it, past every budget.
pub(super) fn tidy(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    outlived(situation)?;
    let claim = situation.claim;
    let without_annotations = vec![labels::TERMINATION_TIMESTAMP.into()];
    let patch = ClaimPatch { version: Some(Arc::clone(&claim.version)), without_annotations, ..ClaimPatch::default() };
    Some(Step::act(phase, Act::PatchClaim(patch)))
}

/// A deadline that is over, of a NodeClaim that lives and that nothing of joiner's is about to delete.
pub(super) fn outlived<'a>(situation: &Situation<'a>) -> Option<&'a str> {
    let claim = situation.claim;
    let text = claim.annotations.get(labels::TERMINATION_TIMESTAMP).filter(|_| claim.deleting.is_none())?;
    let stands = termination::is_overdue(situation) && due(situation).is_none() && !reboot::is_rebooting(claim);
    stands.then_some(&**text)
}

/// Asks the API server itself for the Node before its machine goes: a watch that lags shows it as it was, and it may be well again. Nothing when it
/// is broken there, too.
fn prove_broken(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    let (id, repair) = (situation.provider_id()?, situation.repair?);
    let Some((again, node)) = liveness::word_on(situation, id) else {
        return Some(Step::act(phase, Act::FindNode(id.clone())));
    };
    let diagnosis = node.and_then(|node| repair.policies.legacy(node));
    let is_well = diagnosis.is_none_or(|diagnosis| diagnosis.due > situation.now);
    is_well.then(|| Step::wait(phase, "the watch to show the Node as it is: gone, or broken no more").look_at(again))
}

/// Why a repair that is due does not happen.
pub(super) fn blocked(situation: &Situation<'_>) -> Option<String> {
    due(situation)?;
    situation.repair?.policies.blocked(situation.snapshot, situation.claim.pool().as_ref())
}

/// When there is something to look at: the repair becomes due, or it is due and blocked.
pub(super) fn look_at(situation: &Situation<'_>) -> Option<Timestamp> {
    let due = diagnosis(situation)?.due;
    let again = situation.now.saturating_add(LOOK_AGAIN).unwrap_or(Timestamp::MAX);
    Some(if due > situation.now { due } else { again })
}

fn due(situation: &Situation<'_>) -> Option<Diagnosis> {
    situation.repair.filter(|repair| repair.legacy)?;
    diagnosis(situation).filter(|diagnosis| diagnosis.due <= situation.now)
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
