//! Registration: the machine's Node is matched, gets its labels, taints, finalizer and owner, waits until it is ready and its pods are nominated to it,
//! and opens to the scheduler.

use jiff::Timestamp;

use crate::core::facts::{Effect, Node, OwnerClaim, Status, Taint, finalizers};
use crate::core::labels;
use crate::core::nomination;
use crate::core::time::rfc3339;
use crate::core::writes::NodePatch;

use super::hydration::less;
use super::step::{self, Phase, Step};
use super::{Situation, hooks, whereabouts};

/// Seconds after which a machine's Node ought to have come: they take one to two minutes.
const OVERDUE: i64 = 180;

/// Seconds after which a Node ought to have been registered; most are at once, or within the twenty for which one that is not Ready is kept closed.
const DELAYED: i64 = 15;

/// What a Node that stays closed waits for.
const KEPT_CLOSED: &str = "the Node to be ready and its pods to be nominated, to open with the other nodes of its plan";

/// Seconds after which a Node ought to have been recognised: the cloud controller manager takes a few.
const UNRECOGNISED: i64 = 60;

/// What is next until the Node is registered and the object says so; nothing after that.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    if situation.has("Registered", Status::True) {
        return again(situation);
    }
    let phase = Phase::Registering;
    let disproved = |node: &Node| node.provider_id.as_ref().is_some_and(|id| situation.memory.is_disproved(id));
    let taken = |node: &Node| node.is_owned_by(situation.claim);
    let nodes: Vec<_> = situation.nodes.iter().filter(|node| taken(node) || !disproved(node)).collect();
    let node = match nodes.as_slice() {
        [] => {
            // Nobody says when a Node comes that is not known to be this one's: whether one has is looked at when it is time that one had.
            let overdue = overdue(situation);
            let wait = Step::wait(phase, "the Node to appear");
            let again = if situation.now < overdue { Some(overdue) } else { whereabouts::look_again(situation) };
            let wait = again.into_iter().fold(wait, Step::look_at);
            return Some(step::tell_then_wait(situation, wait));
        }
        [node] => node,
        several => {
            let names: Vec<_> = several.iter().map(|node| node.name.as_str()).collect();
            let wait = Step::wait(phase, format!("all but one of the Nodes {} to go", names.join(", ")));
            return Some(step::tell_then_wait(situation, wait));
        }
    };
    if is_synced(situation, node) {
        return step::write_status(situation, phase);
    }
    if let Some(held_back) = hooks::next(situation, phase).or_else(|| kept_closed(situation, phase, node)) {
        // What others go by who make the Node ready comes first.
        return Some(if is_bare(situation, node) {
            Step::patch_node(situation, phase, node, closed(situation, node), "the Node to show its labels and taints")
        } else {
            held_back
        });
    }
    // Why it could not be changed is written down before that is tried again.
    let failed = situation.memory.cluster.failures > 0;
    if let Some(step) = failed.then(|| step::tell(situation, phase)).flatten() {
        return Some(step);
    }
    Some(Step::patch_node(situation, phase, node, patch(situation, node), "the Node to show its registration"))
}

/// The wait for the other nodes of its plan, with which it opens; nothing when it need not, or no longer.
fn kept_closed(situation: &Situation<'_>, phase: Phase, node: &Node) -> Option<Step> {
    let opens_by = node.created.min(situation.now).saturating_add(nomination::AT_MOST).unwrap_or(Timestamp::MAX);
    if !situation.expected || situation.memory.may_open || situation.now >= opens_by {
        return None;
    }
    let delayed = step::after(node.created, DELAYED);
    let look_at = if situation.now < delayed { delayed.min(opens_by) } else { opens_by };
    Some(step::tell_then_wait(situation, Step::wait(phase, KEPT_CLOSED).look_at(look_at)))
}

/// When a machine's Node ought to have come.
pub(super) fn overdue(situation: &Situation<'_>) -> Timestamp {
    step::after(situation.since("Launched"), OVERDUE)
}

/// Why a Node that is there is not registered yet, once that takes its time.
pub(super) fn delayed(situation: &Situation<'_>, node: &Node) -> Option<String> {
    if situation.now < step::after(node.created, DELAYED) {
        return None;
    }
    let why = match &situation.memory.cluster.trouble {
        Some(trouble) => format!("joiner could not change it ({trouble})"),
        None if situation.expected => format!("waiting for {KEPT_CLOSED}"),
        None => return None,
    };
    let since = rfc3339(node.created);
    let taint = labels::UNREGISTERED_TAINT;
    Some(format!("Node {} is there since {since}, and keeps pods away (taint {taint}): {why}", node.name))
}

/// A Node that may be this NodeClaim's and is nobody's, and why: it came after it with its NodePool's label, is closed, and has had nothing to be
/// recognised by for a while: no provider ID, or one that is of no NodeClaim that waits for its Node.
pub(super) fn unrecognised(situation: &Situation<'_>) -> Option<String> {
    let (claim, snapshot) = (situation.claim, situation.snapshot);
    let pool = claim.labels.get(labels::NODEPOOL)?;
    let is_awaited = |node: &Node| {
        let mut others = snapshot.claims.values().filter(|other| other.provider_id == node.provider_id);
        others.any(|other| snapshot.nodes_owned_by(other).next().is_none())
    };
    let is_nobodys = |node: &Node| node.provider_id.is_none() || node.owner_claims.is_empty() && !is_awaited(node);
    let node = snapshot.nodes.values().find(|node| {
        node.deleting.is_none()
            && node.created >= claim.created
            && step::after(node.created, UNRECOGNISED) <= situation.now
            && node.labels.get(labels::NODEPOOL) == Some(pool)
            && node.taints.iter().any(|taint| taint.matches(&unregistered()))
            && is_nobodys(node)
    })?;
    let own = claim.provider_id.as_ref().map_or("its machine", |id| id.as_str());
    let why = match &node.provider_id {
        Some(id) => format!(
            "has the spec.providerID {id}, for which no NodeClaim waits; if it is the Node of {own}, see what its kubelet (--provider-id) or the cloud \
             controller manager writes there, and delete the Node, so that it comes anew"
        ),
        None => "has no provider ID, so nobody can tell whose it is: the cloud controller manager has not recognised its machine; see its log, and on \
              Outscale check that --osc-cluster-id is the manager's cluster ID and that the machine's tag OscK8sNodeName is the Node's name"
            .to_owned(),
    };
    Some(format!("Node {} of its NodePool came after it and {why}", node.name))
}

/// A Node that was removed by force and has come back is another one: it gets everything anew, or it would stay closed for ever.
fn again(situation: &Situation<'_>) -> Option<Step> {
    let registered = situation.since("Registered");
    let node = situation.node().filter(|node| !node.is_registered() && node.created > registered)?;
    let waits_for = "the Node that came back to show its registration";
    Some(Step::patch_node(situation, Phase::Initializing, node, patch(situation, node), waits_for))
}

fn is_synced(situation: &Situation<'_>, node: &Node) -> bool {
    node.is_registered()
        && node.has_finalizer()
        && !node.taints.iter().any(|taint| taint.matches(&unregistered()))
        && node.is_owned_by(situation.claim)
}

fn unregistered() -> Taint {
    Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute)
}

/// Whether a Node that stays closed for now lacks what those look at who make it ready: labels, and taints. Startup taints come before that, or
/// nobody would take them off.
fn is_bare(situation: &Situation<'_>, node: &Node) -> bool {
    let claim = situation.claim;
    let lacks = |(key, value)| node.labels.get(key) != Some(value);
    !node.was_registered() && (!claim.startup_taints.is_empty() || claim.labels.iter().any(lacks))
}

/// The registration without what opens the Node.
fn closed(situation: &Situation<'_>, node: &Node) -> NodePatch {
    let mut patch = patch(situation, node);
    patch.labels.remove(labels::REGISTERED);
    patch
        .taints
        .get_or_insert_default()
        .extend(node.taints.iter().filter(|taint| taint.matches(&unregistered())).cloned());
    patch
}

/// Everything in one write: labels and annotations of the NodeClaim win over the kubelet's; taints are added, never overwritten. Startup taints
/// come with the first registration only: whoever takes them off does so once.
fn patch(situation: &Situation<'_>, node: &Node) -> NodePatch {
    let claim = situation.claim;
    let mut taints: Vec<Taint> = node.taints.iter().filter(|taint| !taint.matches(&unregistered())).cloned().collect();
    if node.labels.get(labels::DO_NOT_SYNC_TAINTS).is_none_or(|value| &**value != "true") {
        let startup: &[Taint] = if node.was_registered() { &[] } else { &claim.startup_taints };
        for taint in claim.taints.iter().chain(startup) {
            if !taints.iter().any(|present| present.matches(taint)) {
                taints.push(taint.clone());
            }
        }
    }
    let mut wanted = claim.labels.clone();
    wanted.insert(labels::REGISTERED.into(), "true".into());
    let disowned = intruders(situation, node);
    NodePatch {
        labels: less(wanted, &node.labels),
        annotations: less(claim.annotations.clone(), &node.annotations),
        taints: Some(taints),
        finalizers: Some(finalizers::held(&node.finalizers)),
        owner: (!node.is_owned_by(claim) || !disowned.is_empty()).then(|| OwnerClaim::of(claim)),
        disowned,
        ..NodePatch::of(node)
    }
}

/// Other NodeClaims that own a Node whose machine carries this one's mark: somebody has written its ID into them, and they took the Node.
fn intruders(situation: &Situation<'_>, node: &Node) -> Vec<OwnerClaim> {
    let claim = situation.claim;
    if situation.memory.marked_as(&claim.uid).is_none_or(|machine| node.provider_id.as_ref() != Some(&machine.id)) {
        return Vec::new();
    }
    let others = situation.snapshot.owners_of(node).filter(|owner| owner.uid != claim.uid);
    others.map(|owner| OwnerClaim::of(owner)).collect()
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
