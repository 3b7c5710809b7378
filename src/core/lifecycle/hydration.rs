//! Hydration: labels, the finalizer and the owner that a NodeClaim and its Node must carry, written back when they are missing. Whoever takes a
//! cluster over from an older release, or from somebody who edited by hand, finds objects without them.

use std::sync::Arc;

use crate::core::facts::{Claim, Node, OwnerClaim, Status, Taint, finalizers};
use crate::core::labels::{self, Labels};
use crate::core::writes::{ClaimPatch, NodePatch};

use super::Situation;
use super::act::Act;
use super::drift::DRIFTED;
use super::reboot;

/// What is missing on the NodeClaim, then on its registered Node; nothing when nothing is.
pub(super) fn next(situation: &Situation<'_>) -> Option<Act> {
    let claim = situation.claim;
    let class = || Labels::from([(claim.class.label().into(), Arc::clone(&claim.class.name))]);
    let mut wanted = class();
    // One that names another NodePool is somebody's word, and a mistake; one that names none has lost it.
    if let Some(owner) = situation.owner().filter(|_| !claim.labels.contains_key(labels::NODEPOOL)) {
        wanted.insert(labels::NODEPOOL.into(), owner.name.as_str().into());
    }
    let missing = less(wanted, &claim.labels);
    if !missing.is_empty() {
        return Some(Act::PatchClaim(ClaimPatch { labels: missing, ..ClaimPatch::default() }));
    }
    if let Some(annotations) = rehashed(situation) {
        return Some(Act::PatchClaim(ClaimPatch { annotations, ..ClaimPatch::default() }));
    }
    let node = situation.node().filter(|node| node.deleting.is_none())?;
    if !situation.has("Registered", Status::True) || situation.has_patched(node) {
        return None;
    }
    let mut wanted = class();
    wanted.insert(labels::REGISTERED.into(), "true".into());
    wanted.extend(claim.labels.get_key_value(labels::NODEPOOL).map(|(key, pool)| (Arc::clone(key), Arc::clone(pool))));
    if is_initialized(situation, node) {
        wanted.insert(labels::INITIALIZED.into(), "true".into());
    }
    let missing = less(wanted, &node.labels);
    let finalizers = with_finalizer(node);
    let owner = without_owner(claim, node).then(|| OwnerClaim::of(claim));
    let taints = without_fences(situation, node);
    (!missing.is_empty() || finalizers.is_some() || owner.is_some() || taints.is_some()).then(|| {
        let patch = NodePatch { labels: missing, finalizers, owner, taints, ..NodePatch::of(node) };
        Act::PatchNode(node.name.clone(), node.uid.clone(), patch)
    })
}

/// Whether somebody took the NodeClaim off its Node: both still name each other otherwise.
fn without_owner(claim: &Claim, node: &Node) -> bool {
    !node.is_owned_by(claim) && claim.node.as_ref() == Some(&node.name) && claim.provider_id == node.provider_id
}

/// Whether this very Node was initialized, and is not about to be anew.
fn is_initialized(situation: &Situation<'_>, node: &Node) -> bool {
    situation.has("Initialized", Status::True)
        && !reboot::is_rebooting(situation.claim)
        && node.created <= situation.since("Initialized")
}

/// The taints without those that only a registration or a removal under way brings: whoever put one there by hand, or died in the middle of a
/// disruption, keeps pods from a node that serves. Karpenter takes off the second on every pass.
fn without_fences(situation: &Situation<'_>, node: &Node) -> Option<Vec<Taint>> {
    // What the auditor has closed is his to open.
    if reboot::is_rebooting(situation.claim) || node.is_being_evacuated() {
        return None;
    }
    let is_fence = |taint: &Taint| [labels::DISRUPTED_TAINT, labels::UNREGISTERED_TAINT].contains(&&*taint.key);
    let stay: Vec<Taint> = node.taints.iter().filter(|taint| !is_fence(taint)).cloned().collect();
    (stay.len() < node.taints.len()).then_some(stay)
}

/// The hash by the current recipe, for a NodeClaim that was hashed by another and whose NodePool still is. One that has drifted keeps its
/// hash, which stays another one than the NodePool's.
fn rehashed(situation: &Situation<'_>) -> Option<Labels> {
    let pool = situation.pool.filter(|pool| !pool.hash.is_empty() && pool.errors.is_empty())?;
    let is_current = |annotations: &Labels| {
        annotations.get(labels::NODEPOOL_HASH_VERSION).is_some_and(|version| &**version == labels::HASH_VERSION)
    };
    if is_current(&pool.annotations) || is_current(&situation.claim.annotations) {
        return None;
    }
    let mut hash = Labels::from([(labels::NODEPOOL_HASH_VERSION.into(), labels::HASH_VERSION.into())]);
    if !situation.has(DRIFTED, Status::True) {
        hash.insert(labels::NODEPOOL_HASH.into(), Arc::clone(&pool.hash));
    }
    Some(hash)
}

/// The labels, or annotations, that are not there as they should be.
pub(super) fn less(mut wanted: Labels, present: &Labels) -> Labels {
    wanted.retain(|key, value| present.get(key) != Some(value));
    wanted
}

fn with_finalizer(node: &Node) -> Option<Vec<Arc<str>>> {
    (!node.has_finalizer()).then(|| finalizers::held(&node.finalizers))
}

#[cfg(test)]
#[path = "hydration_tests.rs"]
mod tests;
