//! Reboot: a machine is restarted in place. Its node is fenced and emptied before, and known to have restarted by its new boot ID.
//!
//! Whoever asks for it makes the condition `Rebooting` True; here it is carried out. What has been done is written down before the next thing is, so
//! that whoever takes over goes on where the last one was:
//!
//! ```text
//! asked for ─► taint on ─► pods leave, for as long as the grace allows ─► boot ID noted ─► the cloud restarts the machine ─► issued
//! issued ─► no longer initialized ─► another boot ID: taint off ─► Ready: done, and the Node is initialized anew
//! the cloud cannot, not issued within 5 min, not back within 20 min: taint off, and the NodeClaim is deleted
//! ```

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::conditions::Conditions;
use crate::core::facts::{Claim, Condition, Effect, Node, Status, Taint, find_condition};
use crate::core::labels::{self, Labels};
use crate::core::time::{go_duration, later};
use crate::core::writes::{ClaimPatch, NodePatch};

use super::drain::drain;
use super::step::{self, Phase, Step, after};
use super::{Act, DeleteReason, Memory, Situation, holdup, liveness, status, termination};

/// The condition that asks for a reboot, and says how far it is.
pub(super) const REBOOTING: &str = "Rebooting";
/// Its reason, and that of `Initialized`, from when the cloud has been asked until the node is back.
const ISSUED: &str = "RebootIssued";
/// What it waits for is said after these words, and after what whoever asked for it has said.
const HOLD_UP: &str = "before the reboot: ";
/// Seconds within which the cloud must take the order (Karpenter's value).
const ISSUED_WITHIN: i64 = 5 * 60;
/// Seconds within which the node must be back (Karpenter's value).
const BACK_WITHIN: i64 = 20 * 60;
/// Seconds that a drain takes at least: kube-scheduler needs a moment to see the taint (Karpenter's value).
const SHORTEST_DRAIN: i64 = 5;
/// How often a drain is looked at though no pod was heard of.
const LOOK_AGAIN: i64 = 10;
/// Seconds after which nobody waits any more for a node whose pods have not left: ten times the grace that pods have by default. Karpenter waits for ever.
const HELD_AFTER: i64 = 5 * 60;

/// What an actor remembers of a reboot. Losing it costs a repeated order, which is the same order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reboot {
    /// When the cloud was first asked, and for which operation.
    pub first: Option<(Arc<str>, Timestamp)>,
    /// The operation that the cloud has taken.
    pub issued: Option<Arc<str>>,
    /// The operation that the cloud will never take, and why.
    pub refused: Option<(Arc<str>, String)>,
    /// What the cloud said when it last took none.
    pub trouble: Option<String>,
}

/// Whether somebody asked for a reboot that has not ended.
pub fn is_rebooting(claim: &Claim) -> bool {
    under_way(claim).is_some()
}

/// When the last reboot ended.
pub(super) fn ended(claim: &Claim) -> Option<Timestamp> {
    find_condition(&claim.conditions, REBOOTING).filter(|it| it.status == Status::False).map(|it| it.since)
}

fn under_way(claim: &Claim) -> Option<&Condition> {
    find_condition(&claim.conditions, REBOOTING).filter(|it| it.status == Status::True && claim.deleting.is_none())
}

fn is_issued(request: &Condition) -> bool {
    &*request.reason == ISSUED
}

/// For how long pods may take to leave; nothing when for ever.
pub(super) fn grace(claim: &Claim) -> Result<Option<Duration>, String> {
    let Some(text) = claim.annotations.get(labels::REBOOT_GRACE) else { return Ok(None) };
    go_duration(text).map(Some).ok_or_else(|| {
        format!(
            "metadata.annotations[{}]: {text:?} is no duration; write one as 5m, 0s to let pods ride along, or remove it to wait for them",
            labels::REBOOT_GRACE
        )
    })
}

/// Names one reboot: the same over retries and restarts of joiner, another for each reboot.
fn operation(situation: &Situation<'_>, request: &Condition, boot: &str) -> Arc<str> {
    format!("{}-{}-{boot}", situation.claim.uid, since(situation, request).as_nanosecond()).into()
}

fn since(situation: &Situation<'_>, request: &Condition) -> Timestamp {
    request.since.min(situation.now)
}

/// What is next for a machine that is to be restarted; nothing when there is nothing (more) to do.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    let Some(request) = under_way(situation.claim) else { return tidy(situation) };
    if grace(situation.claim).is_err() {
        return step::write_status(situation, Phase::Rebooting);
    }
    if is_back(situation, request) {
        return Some(finish(situation));
    }
    if let Some(reason) = failure(situation, request) {
        return Some(give_up(situation, reason));
    }
    Some(if is_issued(request) { come_back(situation) } else { go(situation, request) })
}

/// The deadlines that are running.
pub(super) fn deadlines(situation: &Situation<'_>) -> Vec<(&'static str, Timestamp)> {
    let Some(request) = under_way(situation.claim) else { return Vec::new() };
    let mut deadlines = Vec::new();
    if let Some(at) =
        drained_by(situation.claim, request, situation.now).filter(|at| !is_issued(request) && *at > situation.now)
    {
        deadlines.push(("is rebooted with the pods that are left", at));
    }
    deadlines.extend(gives_up_at(situation, request).map(|at| ("reboot is given up", at)));
    deadlines
}

/// From asked for to issued.
fn go(situation: &Situation<'_>, request: &Condition) -> Step {
    let phase = Phase::Rebooting;
    let claim = situation.claim;
    if has_been_issued(situation, request)
        && let Some(step) = step::write_status(situation, phase)
    {
        return step;
    }
    let Some(node) = situation.node() else { return Step::wait(phase, "the Node to be there") };
    if !is_fenced(node) {
        return patch_node(situation, node, fence(node));
    }
    let Some(noted) = claim.annotations.get(labels::PRE_BOOT_ID) else {
        if let Some(step) = empty(situation, request) {
            return step;
        }
        // Where the kubelet tells none, any will be another one.
        let boot = node.boot_id.clone().unwrap_or_default();
        let annotations = Labels::from([(labels::PRE_BOOT_ID.into(), boot)]);
        let version = Some(Arc::clone(&claim.version));
        return Step::act(phase, Act::PatchClaim(ClaimPatch { version, annotations, ..ClaimPatch::default() }));
    };
    let operation = operation(situation, request, noted);
    match situation.provider_id() {
        Some(id) => Step::act(phase, Act::Reboot(id.clone(), operation)),
        None => Step::wait(phase, "the machine's provider ID"),
    }
}

/// Whether the cloud has taken the order: it said so, or the Node has another boot ID by now.
fn has_been_issued(situation: &Situation<'_>, request: &Condition) -> bool {
    let Some(noted) = situation.claim.annotations.get(labels::PRE_BOOT_ID) else { return false };
    let restarted = situation.node().and_then(|node| node.boot_id.as_ref()).is_some_and(|boot| boot != noted);
    restarted || situation.memory.reboot.issued == Some(operation(situation, request, noted))
}

/// Lets the pods leave; nothing once they have, or may take no longer.
fn empty(situation: &Situation<'_>, request: &Condition) -> Option<Step> {
    let phase = Phase::Rebooting;
    let by = drained_by(situation.claim, request, situation.now);
    if by.is_some_and(|by| situation.now >= by) {
        return None;
    }
    let soonest = after(since(situation, request), SHORTEST_DRAIN);
    // Nobody is deleted for a reboot: who has not left by the end of the grace stays on the node.
    let drain = drain(&situation.pods, None, situation.now);
    if drain.waiting == 0 {
        let wait = Step::wait(phase, "the shortest time of a drain to pass").look_at(soonest);
        return (situation.now < soonest).then_some(wait);
    }
    let mut wait = format!("{} pods to leave before the reboot", drain.waiting);
    if !drain.protected.is_empty() {
        wait = format!("{wait}; {} must not be disrupted (karpenter.sh/do-not-disrupt)", drain.protected.join(", "));
    }
    let mut step = Step::wait(phase, wait).look_at(after(situation.now, LOOK_AGAIN));
    if let Some(step) = step::tell(situation, phase) {
        return Some(step);
    }
    if !drain.evict.is_empty() {
        step.act = Some(Act::Drain { evict: drain.evict, force: Vec::new() });
    }
    Some(step)
}

/// When pods are no longer waited for; at once with a grace of nothing.
fn drained_by(claim: &Claim, request: &Condition, now: Timestamp) -> Option<Timestamp> {
    let grace = grace(claim).ok()??;
    let asked = request.since.min(now);
    if grace.is_zero() {
        return Some(asked);
    }
    let grace = grace.max(Duration::from_secs(SHORTEST_DRAIN.unsigned_abs()));
    Some(later(asked, grace))
}

/// Whether pods are asked to leave for a reboot now: somebody asked for it, they may still take their time, and the machine is not about to restart.
pub(super) fn is_emptying(claim: &Claim, now: Timestamp) -> bool {
    under_way(claim).is_some_and(|request| {
        !is_issued(request)
            && !claim.annotations.contains_key(labels::PRE_BOOT_ID)
            && grace(claim).is_ok()
            && drained_by(claim, request, now).is_none_or(|by| now < by)
    })
}

/// Whether the pods take so long to leave that the end of the reboot is not in sight: a budget may hold the last of them for want of those that have
/// left, who must not wait for this node then.
pub fn is_held(claim: &Claim, now: Timestamp) -> bool {
    under_way(claim).is_some_and(|request| is_emptying(claim, now) && now >= after(request.since, HELD_AFTER))
}

/// From issued until the node is back.
fn come_back(situation: &Situation<'_>) -> Step {
    let phase = Phase::Rebooting;
    if let Some(step) = step::write_status(situation, phase) {
        return step;
    }
    let Some(node) = situation.node() else { return Step::wait(phase, "the Node to come back from its reboot") };
    if node.is_initialized() {
        let without_labels = vec![labels::INITIALIZED.into()];
        return patch_node(situation, node, NodePatch { without_labels, ..NodePatch::of(node) });
    }
    if !has_new_boot(situation, node) {
        return Step::wait(phase, "the Node to show a new boot ID");
    }
    if is_fenced(node) {
        return patch_node(situation, node, unfence(node));
    }
    Step::wait(phase, "the Node to become Ready after its reboot")
}

fn has_new_boot(situation: &Situation<'_>, node: &Node) -> bool {
    // What was noted is taken off when the reboot has been seen to end.
    let noted = situation.claim.annotations.get(labels::PRE_BOOT_ID);
    noted.is_none_or(|noted| node.boot_id.as_ref().is_some_and(|boot| boot != noted))
}

fn is_back(situation: &Situation<'_>, request: &Condition) -> bool {
    let back = |node: &Node| node.is_ready() && !node.is_initialized() && has_new_boot(situation, node);
    is_issued(request) && situation.has("Initialized", Status::Unknown) && situation.node().is_some_and(back)
}

/// The node is back: taint off, the noted boot ID off, and the condition says so; in this order, so that what is left undone is seen.
fn finish(situation: &Situation<'_>) -> Step {
    let phase = Phase::Rebooting;
    if let Some(node) = situation.node().filter(|node| is_fenced(node)) {
        return patch_node(situation, node, unfence(node));
    }
    if situation.claim.annotations.contains_key(labels::PRE_BOOT_ID) {
        return Step::act(phase, Act::PatchClaim(forget(situation.claim)));
    }
    step::write_status(situation, phase).unwrap_or_else(|| Step::wait(phase, "the end of the reboot to be written"))
}

/// Why a reboot has failed, if it has.
fn failure(situation: &Situation<'_>, request: &Condition) -> Option<DeleteReason> {
    let memory = &situation.memory.reboot;
    if let (Some((operation, why)), Some(noted)) =
        (&memory.refused, situation.claim.annotations.get(labels::PRE_BOOT_ID))
        && !is_issued(request)
        && *operation == self::operation(situation, request, noted)
    {
        return Some(DeleteReason::RebootRefused(why.clone()));
    }
    let at = gives_up_at(situation, request)?;
    if situation.now < at {
        return None;
    }
    Some(if is_issued(request) {
        DeleteReason::RebootTimeout(format!("the node was not back within {} minutes", BACK_WITHIN / 60))
    } else {
        let why =
            situation.node().and_then(|_| memory.trouble.clone()).unwrap_or_else(|| "its Node is not there".to_owned());
        DeleteReason::RebootRefused(format!(
            "the reboot could not be ordered within {} minutes: {why}",
            ISSUED_WITHIN / 60
        ))
    })
}

/// When a reboot is given up; nothing while pods are waited for.
fn gives_up_at(situation: &Situation<'_>, request: &Condition) -> Option<Timestamp> {
    if is_issued(request) {
        return situation
            .has("Initialized", Status::Unknown)
            .then(|| after(issued_at(situation.claim, situation.memory, situation.now), BACK_WITHIN));
    }
    // From when it is written down that the cloud has taken the order, the node has its time; until then there is nothing to give up.
    if has_been_issued(situation, request) {
        return None;
    }
    if let Some(noted) = situation.claim.annotations.get(labels::PRE_BOOT_ID)
        && let Some((operation, first)) = &situation.memory.reboot.first
        && *operation == self::operation(situation, request, noted)
    {
        return Some(after(*first, ISSUED_WITHIN));
    }
    // Of several that say that they are this machine, one is left one day.
    situation.nodes.is_empty().then(|| after(since(situation, request), ISSUED_WITHIN))
}

/// When the reboot was ordered, or a moment after that. `Initialized` became Unknown with it, unless the node was not initialized when somebody asked: then
/// it is as long ago as this actor knows of the order.
pub fn issued_at(claim: &Claim, memory: &Memory, now: Timestamp) -> Timestamp {
    let since = |kind: &str| find_condition(&claim.conditions, kind).map(|condition| condition.since.min(now));
    let (initialized, asked) = (since("Initialized"), since("Rebooting").unwrap_or(now));
    if let Some(initialized) = initialized.filter(|initialized| *initialized >= asked) {
        return initialized;
    }
    let known = memory.reboot.first.as_ref().map(|(_, first)| *first).or(memory.since);
    known.map_or(asked, |known| known.max(asked))
}

/// The node is replaced the ordinary way: its pods get as long as the reboot would have given them.
fn give_up(situation: &Situation<'_>, reason: DeleteReason) -> Step {
    let phase = Phase::Rebooting;
    // A watch that lags shows no Node, though the machine may serve all the while: the API server itself has to say that there is none.
    if situation.nodes.is_empty()
        && let Some(step) = situation.provider_id().and_then(|id| liveness::prove_nodeless(situation, phase, id))
    {
        return step;
    }
    if let Some(node) = situation.node().filter(|node| is_fenced(node)) {
        return patch_node(situation, node, unfence(node));
    }
    let claim = situation.claim;
    if let Ok(Some(grace)) = grace(claim) {
        let deadline = later(situation.now, grace);
        if termination::deadline(claim).is_none_or(|known| known > deadline) {
            return Step::act(phase, Act::PatchClaim(termination::with_deadline(claim, deadline)));
        }
    }
    Step::act(phase, Act::DeleteClaim(reason))
}

/// Nobody asks for a reboot: what one has left, whose request was taken back, is taken off.
fn tidy(situation: &Situation<'_>) -> Option<Step> {
    let phase = Phase::Rebooting;
    if let Some(node) = situation.node().filter(|node| is_fenced(node)) {
        return Some(patch_node(situation, node, unfence(node)));
    }
    let noted = situation.claim.annotations.contains_key(labels::PRE_BOOT_ID);
    noted.then(|| Step::act(phase, Act::PatchClaim(forget(situation.claim))))
}

/// The conditions of a NodeClaim whose machine is being restarted.
pub(super) fn judge(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    let Some(request) = under_way(situation.claim) else { return };
    if let Err(problem) = grace(situation.claim) {
        conditions.set(REBOOTING, Status::False, "RebootFailed", &problem);
    } else if is_back(situation, request) && !situation.claim.annotations.contains_key(labels::PRE_BOOT_ID) {
        conditions.set(REBOOTING, Status::False, "RebootSucceeded", "");
    } else if is_issued(request) || has_been_issued(situation, request) {
        conditions.set(REBOOTING, Status::True, ISSUED, asked(request));
        conditions.set("Initialized", Status::Unknown, REBOOTING, "waiting for the node to come back from its reboot");
    } else {
        let waits = hold_up(situation, request).map(|waits| format!("{HOLD_UP}{waits}"));
        let parts = [asked(request), waits.as_deref().unwrap_or_default()];
        let message = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        conditions.set(REBOOTING, Status::True, &request.reason, &status::cut(&message));
    }
}

/// What whoever asked for a reboot said of it.
fn asked(request: &Condition) -> &str {
    request.message.split_once(HOLD_UP).map_or(&request.message, |(asked, _)| asked.trim_end_matches("; "))
}

/// What a reboot that was asked for a while ago waits for, if it is pods.
fn hold_up(situation: &Situation<'_>, request: &Condition) -> Option<String> {
    let by = drained_by(situation.claim, request, situation.now);
    if situation.claim.annotations.contains_key(labels::PRE_BOOT_ID) || by.is_some_and(|by| situation.now >= by) {
        return None;
    }
    holdup::of_reboot(situation, since(situation, request), &drain(&situation.pods, None, situation.now), by)
}

fn rebooting() -> Taint {
    Taint::new(labels::REBOOTING_TAINT, Effect::NoSchedule)
}

fn is_fenced(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.matches(&rebooting()))
}

fn fence(node: &Node) -> NodePatch {
    NodePatch { taints: Some(node.taints.iter().cloned().chain([rebooting()]).collect()), ..NodePatch::of(node) }
}

fn unfence(node: &Node) -> NodePatch {
    let taints = node.taints.iter().filter(|taint| !taint.matches(&rebooting())).cloned().collect();
    NodePatch { taints: Some(taints), ..NodePatch::of(node) }
}

fn patch_node(situation: &Situation<'_>, node: &Node, patch: NodePatch) -> Step {
    Step::patch_node(situation, Phase::Rebooting, node, patch, "the Node to show what was written")
}

fn forget(claim: &Claim) -> ClaimPatch {
    let version = Some(Arc::clone(&claim.version));
    ClaimPatch { version, without_annotations: vec![labels::PRE_BOOT_ID.into()], ..ClaimPatch::default() }
}

#[cfg(test)]
#[path = "reboot_tests.rs"]
mod tests;
