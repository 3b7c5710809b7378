//! Groups of pods: what kube-scheduler spreads together when pods say nothing of spreading themselves.

use std::sync::Arc;

use super::{Kind, Selector};

/// A Service, or a controller whose selector counts (ReplicaSet, StatefulSet, ReplicationController).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Which of them.
    pub kind: Kind,
    /// What it is called in a pod's `owned_by`: `/apis/apps/v1/namespaces/shop/replicasets/web-5d4f`.
    pub path: Arc<str>,
    /// `spec.selector`; nothing selects no pod.
    pub selector: Option<Selector>,
}

impl Group {
    /// The path of an object of these kinds; of any other kind there is none.
    pub fn path(kind: Kind, namespace: &str, name: &str) -> Option<Arc<str>> {
        let (version, plural) = match kind {
            Kind::Service => ("v1", "services"),
            Kind::ReplicationController => ("v1", "replicationcontrollers"),
            Kind::ReplicaSet => ("apps/v1", "replicasets"),
            Kind::StatefulSet => ("apps/v1", "statefulsets"),
            _ => return None,
        };
        Some(format!("/apis/{version}/namespaces/{namespace}/{plural}/{name}").into())
    }
}
