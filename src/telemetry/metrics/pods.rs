//! What happens to pods.

use std::time::Duration;

use crate::core::facts::{Pod, Reached};

use super::cluster::word;
use super::families as f;
use super::registry::{clear_all, count, set, started, took};

/// The API server answered a request to evict a pod. Success is 200, as upstream counts it, whatever the server wrote.
pub fn eviction_requested(code: u16) {
    let code = if (200..300).contains(&code) { 200 } else { code };
    count(&f::PODS_EVICTIONS, &[&code.to_string()], 1);
}

/// The pods that PodDisruptionBudgets keep on nodes that are to go: namespace, budget, how many, and for how long the first of them. Takes the place
/// of what was said before.
pub fn evictions_blocked<'a>(blocked: impl IntoIterator<Item = (&'a str, &'a str, usize, Duration)>) {
    clear_all(&f::EVICTIONS_BLOCKED);
    clear_all(&f::EVICTIONS_BLOCKED_SECONDS);
    for (namespace, budget, pods, longest) in blocked {
        set(&f::EVICTIONS_BLOCKED, &[namespace, budget], pods as f64);
        started(&f::EVICTIONS_BLOCKED_SECONDS, &[namespace, budget], longest);
    }
}

/// A pod left a node that was drained. `reason` is that of the NodeClaim's condition `DisruptionReason` (`Empty`, `Drifted`, ...),
/// `Forceful Termination` for a pod that was deleted before its time, or empty.
pub fn pod_drained(reason: &str) {
    count(&f::PODS_DRAINED, &[reason], 1);
}

/// A pod has been bound, or is ready, or both.
pub fn pod_reached(pod: &Pod, reached: &Reached) {
    let devices = word(pod.shape.dynamic_resources);
    if let Some(bound) = reached.bound {
        took(&f::PODS_BOUND, &[devices], bound.since_created);
        if let Some(since) = bound.since_planned {
            took(&f::PODS_PROVISIONING_BOUND, &[devices], since);
        }
    }
    if let Some(started) = reached.started {
        took(&f::PODS_STARTUP, &[], started.since_created);
        if let Some(since) = started.since_planned {
            took(&f::PODS_PROVISIONING_STARTUP, &[], since);
        }
    }
}

/// A plan decided about a pod for the first time, `since` it was first seen to need a node.
pub fn pod_decided(since: Duration) {
    took(&f::PODS_DECISION, &[], since);
}
