//! Pods on their way out, and pods on their way to a node.

use serde_json::json;

use crate::core::ids::{NodeName, ObjectKey, PodUid};

use super::request::{JSON, MERGE, Request};

/// Asks for an eviction; the UID keeps a namesake safe.
pub(super) fn eviction(pod: &ObjectKey, uid: &PodUid) -> Request {
    Request::new("create", "", "pods/eviction", format!("Pod {pod}"))
        .within(&pod.namespace, &pod.name)
        .with(
            JSON,
            json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": { "name": &*pod.name, "namespace": &*pod.namespace },
                "deleteOptions": { "preconditions": { "uid": uid.to_string() } },
            }),
        )
        .guarded()
}

/// Deletes a pod past its budget; a grace period of zero would leave the kubelet out, so one second is the least.
pub(super) fn deletion(pod: &ObjectKey, uid: &PodUid, grace_seconds: i64) -> Request {
    Request::new("delete", "", "pods", format!("Pod {pod}"))
        .within(&pod.namespace, &pod.name)
        .with(
            JSON,
            json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": grace_seconds.max(1),
                "preconditions": { "uid": uid.to_string() },
            }),
        )
        .guarded()
}

/// Sets or clears a nomination; a UID in a patch must be the object's own.
pub(super) fn nomination(pod: &ObjectKey, uid: &PodUid, node: Option<&NodeName>) -> Request {
    Request::new("patch", "", "pods/status", format!("Pod {pod}"))
        .within(&pod.namespace, &pod.name)
        .with(
            MERGE,
            json!({
                "metadata": { "uid": uid.to_string() },
                "status": { "nominatedNodeName": node.map(NodeName::as_str) },
            }),
        )
        .guarded()
}
