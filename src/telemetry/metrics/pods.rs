//! What happens to pods.

use std::time::Duration;

use super::families as f;
use super::registry::{count, took};

/// A pod was bound to a node: so long after its creation, and after the first plan that placed it if there was one.
pub fn pod_bound(since_creation: Duration, since_planned: Option<Duration>, dynamic_resources: bool) {
    let labels = [if dynamic_resources { "true" } else { "false" }];
    took(&f::PODS_BOUND, &labels, since_creation);
    if let Some(since_planned) = since_planned {
        took(&f::PODS_PROVISIONING_BOUND, &labels, since_planned);
    }
}

/// A pod that was seen pending became ready: so long after its creation, and after the first plan that placed it if there was one.
pub fn pod_started(since_creation: Duration, since_planned: Option<Duration>) {
    took(&f::PODS_STARTUP, &[], since_creation);
    if let Some(since_planned) = since_planned {
        took(&f::PODS_PROVISIONING_STARTUP, &[], since_planned);
    }
}

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
