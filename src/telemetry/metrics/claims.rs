//! What happens to NodeClaims and their nodes.

use std::time::Duration;

use crate::core::facts::{Claim, ConsolidationPolicy, Node};
use crate::core::ids::PoolName;
use crate::core::labels;

use super::cluster::label;
use super::conditions::{claim_ended, node_ended};
use super::families as f;
use super::labels::{CreatedFor, DisruptedFor, RebootResult, TerminationMode, policy_word};
use super::registry::{count, took};

/// A NodeClaim was created; `relaxed` when its minValues were lowered.
pub fn claim_created(reason: CreatedFor, pool: &PoolName, relaxed: bool) {
    count(&f::NODECLAIMS_CREATED, &[reason.as_str(), pool.as_str(), if relaxed { "true" } else { "false" }], 1);
}

/// joiner decided to remove a NodeClaim; `pods` of its node have to move.
pub fn claim_disrupted(
    reason: DisruptedFor,
    pool: &PoolName,
    capacity_type: &str,
    policy: Option<ConsolidationPolicy>,
    mode: TerminationMode,
    pods: u64,
) {
    let labels = [reason.as_str(), pool.as_str(), capacity_type, policy_word(policy), mode.as_str()];
    count(&f::NODECLAIMS_DISRUPTED, &labels, 1);
    // Upstream counts pods only for NodeClaims that had a node.
    let had_node = !matches!(
        reason,
        DisruptedFor::InsufficientCapacity
            | DisruptedFor::NodeClassNotReady
            | DisruptedFor::LaunchTimeout
            | DisruptedFor::RegistrationTimeout
    );
    if had_node {
        count(&f::PODS_DISRUPTION_INITIATED, &labels, pods);
    }
}

/// joiner decided to remove a NodeClaim because a condition of its node says that it is broken.
pub fn claim_unhealthy(claim: &Claim, condition: &str, mode: TerminationMode) {
    let of = |key| label(&claim.labels, key);
    let image = claim.image.as_deref().unwrap_or_default();
    let condition = snake_case(condition);
    let labels = [&*condition, of(labels::NODEPOOL), of(labels::CAPACITY_TYPE), image, mode.as_str()];
    count(&f::NODECLAIMS_UNHEALTHY, &labels, 1);
}

/// `DiskPressure` as `disk_pressure`; letters that follow each other in upper case are one word.
fn snake_case(words: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for letter in words.chars() {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
        before = letter;
    }
    text
}

/// The finalizer of a NodeClaim was taken off, `since_deletion` after it was deleted.
pub fn claim_terminated(claim: &Claim, since_deletion: Duration) {
    let of = |key| label(&claim.labels, key);
    count(&f::NODECLAIMS_TERMINATED, &[of(labels::NODEPOOL), of(labels::CAPACITY_TYPE), of(labels::ZONE)], 1);
    took(&f::NODECLAIMS_TERMINATION, &[of(labels::NODEPOOL)], since_deletion);
    claim_ended(claim, since_deletion);
}

/// The cloud no longer knows a machine, `since_order` after it was told to end it.
pub fn instance_terminated(pool: &PoolName, since_order: Duration) {
    took(&f::NODECLAIMS_INSTANCE_TERMINATION, &[pool.as_str()], since_order);
}

/// A node was registered.
pub fn node_created(pool: &PoolName, zone: &str) {
    count(&f::NODES_CREATED, &[pool.as_str(), zone], 1);
}

/// A node was drained to the last pod.
pub fn node_drained(pool: &PoolName) {
    count(&f::NODES_DRAINED, &[pool.as_str()], 1);
}

/// A reboot has ended, so long after it was asked for.
pub fn reboot_ended(result: RebootResult, since_request: Duration) {
    count(&f::NODES_REBOOTS, &[result.as_str()], 1);
    took(&f::NODES_REBOOT_DURATION, &[result.as_str()], since_request);
}

/// A node is back from its reboot, so long after the cloud was told to restart its machine.
pub fn reboot_recovered(since_order: Duration) {
    took(&f::NODES_REBOOT_RECOVERY, &[], since_order);
}

/// The finalizer of a NodeClaim's node was taken off, `since_deletion` after it was deleted and `lifetime` after it was created.
pub fn node_terminated(claim: &Claim, node: &Node, since_deletion: Duration, lifetime: Duration) {
    let of = |key| label(&claim.labels, key);
    count(&f::NODES_TERMINATED, &[of(labels::NODEPOOL), of(labels::ZONE)], 1);
    took(&f::NODES_TERMINATION, &[of(labels::NODEPOOL)], since_deletion);
    took(&f::NODES_LIFETIME, &[of(labels::NODEPOOL)], lifetime);
    node_ended(claim, node, since_deletion);
}
