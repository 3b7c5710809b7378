//! What happens to pods.

use super::families as f;
use super::registry::count;

/// The API server answered a request to evict a pod. Success is 200, as upstream counts it, whatever the server wrote.
pub fn eviction_requested(code: u16) {
    let code = if (200..300).contains(&code) { 200 } else { code };
    count(&f::PODS_EVICTIONS, &[&code.to_string()], 1);
}

/// A pod left a node that was drained. `reason` is that of the NodeClaim's condition `DisruptionReason` (`Empty`, `Drifted`, ...),
/// `Forceful Termination` for a pod that was deleted before its time, or empty.
pub fn pod_drained(reason: &str) {
    count(&f::PODS_DRAINED, &[reason], 1);
}
