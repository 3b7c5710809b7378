//! Termination: taint, drain, volumes detached, machine gone (confirmed), finalizers off, in this order and never another.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Effect, Node, Status, Taint};
use crate::core::labels::{self, Labels};
use crate::core::writes::{ClaimPatch, NodePatch};

use super::drain::drain;
use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation, detach};

/// How often the cloud is asked whether a machine is gone (Karpenter's value).
const ASK_AGAIN: i64 = 5;
/// How often a drain is looked at though no pod was heard of: deadlines and stuck pods need the clock.
const LOOK_AGAIN: i64 = 10;
/// Shortest drain: kube-scheduler needs a moment to see the taint (Karpenter's `MinDrainTime`).
const SHORTEST_DRAIN: SignedDuration = SignedDuration::from_secs(5);

/// What is next for a NodeClaim that is being deleted.
pub(super) fn next(situation: &Situation<'_>) -> Step {
    let claim = situation.claim;
    if !claim.has_finalizer() {
        return Step::rest(Phase::Gone);
    }
    if let Some(patch) = announce_deadline(claim) {
        return Step::act(Phase::Draining, Act::PatchClaim(patch));
    }
    // Every Node is told to go first: its finalizer keeps it until the machine is confirmed gone.
    if let Some(node) = situation.nodes.iter().find(|node| node.deleting.is_none() && is_ours(node)) {
        return Step::act(Phase::Draining, Act::DeleteNode(node.name.clone(), node.uid.clone()));
    }
    if let Some(step) = empty_nodes(situation) {
        return step;
    }
    if let Some(step) = detach::next(situation) {
        return step;
    }
    if let Some(step) = take_down(situation) {
        return step;
    }
    if let Some(node) = situation.nodes.iter().find(|node| holds(&node.finalizers)) {
        if situation.memory.patched_node.as_ref() == Some(&node.version) {
            return Step::wait(Phase::Terminating, "the Node to vanish");
        }
        return Step::act(Phase::Terminating, Act::PatchNode(node.name.clone(), without_finalizer(node)));
    }
    let version = Some(Arc::clone(&claim.version));
    let finalizers = Some(without(&claim.finalizers));
    Step::act(Phase::Terminating, Act::PatchClaim(ClaimPatch { version, finalizers, ..ClaimPatch::default() }))
}

/// When the drain must be over, if there is a deadline that can be read. Without one the drain goes on politely: nothing is deleted
/// by mistake, and nothing stands still.
pub(super) fn deadline(claim: &Claim) -> Option<Timestamp> {
    claim.annotations.get(labels::TERMINATION_TIMESTAMP)?.parse().ok()
}

fn is_ours(node: &Node) -> bool {
    node.is_registered() || holds(&node.finalizers)
}

fn holds(finalizers: &[Arc<str>]) -> bool {
    finalizers.iter().any(|finalizer| &**finalizer == labels::TERMINATION_FINALIZER)
}

fn without(finalizers: &[Arc<str>]) -> Vec<Arc<str>> {
    finalizers.iter().filter(|finalizer| &***finalizer != labels::TERMINATION_FINALIZER).cloned().collect()
}

/// The annotation that fixes the deadline of a NodeClaim with a termination grace period. Written once, and never moved.
fn announce_deadline(claim: &Claim) -> Option<ClaimPatch> {
    let grace = claim.termination_grace?;
    if claim.annotations.contains_key(labels::TERMINATION_TIMESTAMP) {
        return None;
    }
    let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
    let deadline = claim.deleting?.saturating_add(grace).unwrap_or(Timestamp::MAX);
    let text = deadline.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let annotations = Labels::from([(labels::TERMINATION_TIMESTAMP.into(), text.into())]);
    Some(ClaimPatch { version: Some(Arc::clone(&claim.version)), annotations, ..ClaimPatch::default() })
}

/// Taints the nodes and lets their pods leave; nothing once they are empty.
fn empty_nodes(situation: &Situation<'_>) -> Option<Step> {
    // A machine that is gone has no pods to wait for.
    if situation.memory.sight == Sight::Gone || situation.has("Drained", Status::True) {
        return None;
    }
    let nodes: Vec<&Arc<Node>> = situation.nodes.iter().copied().filter(|node| is_ours(node)).collect();
    if nodes.is_empty() {
        return None;
    }
    // The kubelet of a node that is not Ready may never confirm a pod's end: ask the cloud whether there is a machine at all.
    if nodes.iter().all(|node| !node.is_ready())
        && situation.memory.sight == Sight::Unasked
        && let Some(id) = situation.provider_id()
    {
        return Some(Step::act(Phase::Draining, Act::Get(id.clone())));
    }
    if let Some(node) = nodes.iter().find(|node| !is_closed(node)) {
        if situation.memory.patched_node.as_ref() == Some(&node.version) {
            return Some(Step::wait(Phase::Draining, "the Node to show its taint"));
        }
        return Some(Step::act(Phase::Draining, Act::PatchNode(node.name.clone(), close(node))));
    }
    let drain = drain(&situation.pods, deadline(situation.claim), situation.now);
    // First say that the drain has begun; when nobody is left for a while, that it is over.
    let begun = situation.has("Drained", Status::Unknown);
    if begun && drain.waiting == 0 && !shortest_drain_is_over(situation) {
        let wait = Step::wait(Phase::Draining, "the shortest time of a drain to pass");
        return Some(wait.look_at(end_of_shortest_drain(situation)));
    }
    if !begun || drain.waiting == 0 {
        return step::write_status(situation, Phase::Draining);
    }
    let look = step::after(situation.now, LOOK_AGAIN);
    let look = drain.force_at.map_or(look, |force_at| look.min(force_at));
    if !drain.evict.is_empty() || !drain.force.is_empty() {
        let wait = format!("{} pods to leave", drain.waiting);
        let mut step = Step::act(Phase::Draining, Act::Drain { evict: drain.evict, force: drain.force });
        step.waits_for = Some(wait);
        return Some(step.look_at(look));
    }
    let mut wait = format!("{} pods to leave", drain.waiting);
    if !drain.protected.is_empty() {
        wait = format!("{wait}; {} must not be disrupted (karpenter.sh/do-not-disrupt)", drain.protected.join(", "));
    }
    Some(Step::wait(Phase::Draining, wait).look_at(look))
}

fn end_of_shortest_drain(situation: &Situation<'_>) -> Timestamp {
    situation.since("Drained").saturating_add(SHORTEST_DRAIN).unwrap_or(Timestamp::MAX)
}

/// Whether a drain that finds no pods may be believed.
pub(super) fn shortest_drain_is_over(situation: &Situation<'_>) -> bool {
    situation.has("Drained", Status::Unknown) && situation.now >= end_of_shortest_drain(situation)
}

fn is_closed(node: &Node) -> bool {
    let taint = Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule);
    node.taints.iter().any(|present| present.matches(&taint)) && node.labels.contains_key(labels::EXCLUDE_BALANCERS)
}

fn close(node: &Node) -> NodePatch {
    let taint = Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule);
    let mut taints: Vec<Taint> = node.taints.iter().filter(|present| present.key != taint.key).cloned().collect();
    taints.push(taint);
    NodePatch {
        version: Some(Arc::clone(&node.version)),
        taints: Some(taints),
        labels: Labels::from([(labels::EXCLUDE_BALANCERS.into(), "karpenter".into())]),
        ..NodePatch::default()
    }
}

fn without_finalizer(node: &Node) -> NodePatch {
    NodePatch {
        version: Some(Arc::clone(&node.version)),
        finalizers: Some(without(&node.finalizers)),
        ..NodePatch::default()
    }
}

/// The cloud knows no machine. A launch that is still on its way may yet make one: it is asked again when that can no longer be.
fn doubt(situation: &Situation<'_>) -> Option<Step> {
    let phase = Phase::Terminating;
    let until = situation.memory.doubt_until?;
    if situation.memory.looked.is_some_and(|looked| looked >= until) {
        return None;
    }
    if situation.now < until {
        return Some(
            Step::wait(phase, "a launch without an answer to show its machine, or to be too old for one")
                .look_at(until),
        );
    }
    Some(Step::act(phase, Act::Find(situation.claim.uid.clone())))
}

/// Takes the machine down; nothing once the cloud is certain that there is none.
fn take_down(situation: &Situation<'_>) -> Option<Step> {
    let phase = Phase::Terminating;
    match (&situation.memory.sight, situation.provider_id()) {
        (Sight::Gone, _) => step::write_status(situation, phase),
        // Nothing says that there ever was a machine. Only the cloud can: an answer may have been lost with a predecessor.
        (Sight::Unasked | Sight::Uncertain, None) => Some(Step::act(phase, Act::Find(situation.claim.uid.clone()))),
        (Sight::Absent, None) => doubt(situation),
        (Sight::Present(_), None) => None,
        // What stands in `status.providerID` can be edited. The machine that is taken down is the one that carries the NodeClaim's token.
        (Sight::Unasked | Sight::Uncertain, Some(_)) if situation.by_token => {
            Some(Step::act(phase, Act::Find(situation.claim.uid.clone())))
        }
        (Sight::Absent, Some(id)) if situation.by_token => {
            // A list by token may lag behind; whoever is asked for the one machine knows better.
            let asked = situation.memory.looked.is_some();
            Some(Step::act(phase, if asked { Act::Get(id.clone()) } else { Act::Find(situation.claim.uid.clone()) }))
        }
        (_, Some(id)) => {
            let asked = situation.memory.delete_asked;
            if asked.is_some()
                && let Some(step) = step::write_status(situation, phase)
            {
                return Some(step);
            }
            match asked.map(|asked| step::after(asked, ASK_AGAIN)) {
                Some(again) if situation.now < again => {
                    Some(Step::wait(phase, "the cloud to confirm that the machine is gone").look_at(again))
                }
                _ => Some(Step::act(phase, Act::DeleteMachine(id.clone()))),
            }
        }
    }
}
