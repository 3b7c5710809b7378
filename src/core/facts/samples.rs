//! Objects for tests: one of each, plain, to be changed where a test is about something.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Claim, Condition, ConsolidationPolicy, Disruption, Effect, Machine, Node, Pod, PodPhase, PodShape, Pool, Status,
    Taint, Template,
};
use crate::core::ids::{ClassRef, ObjectKey};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

/// The moment at which everything begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// NodePool `web`, ready and without limits.
pub(crate) fn pool() -> Pool {
    Pool {
        name: "web".into(),
        uid: "uid-web".into(),
        generation: 1,
        version: "1".into(),
        created: start(),
        deleting: None,
        annotations: Labels::new(),
        weight: 0,
        limits: Resources::new(),
        replicas: None,
        template: Template {
            labels: Labels::new(),
            annotations: Labels::new(),
            requirements: vec![],
            taints: vec![],
            startup_taints: vec![],
            class: claim().class,
            termination_grace: None,
            expire_after: None,
        },
        disruption: Disruption { consolidate_after: None, policy: ConsolidationPolicy::WhenEmpty, budgets: vec![] },
        hash: "12345".into(),
        errors: vec![],
        status_nodes: None,
        status_resources: Resources::new(),
        class_generation: None,
        conditions: vec![Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "Ready".into(),
            message: "".into(),
            since: start(),
            generation: 1,
        }],
    }
}

/// A NodeClaim of NodePool `web` as its author wrote it.
pub(crate) fn claim() -> Claim {
    Claim {
        name: "web-1".into(),
        uid: "uid-1".into(),
        generation: 1,
        version: "1".into(),
        created: start(),
        deleting: None,
        labels: Labels::from([(labels::NODEPOOL.into(), "web".into())]),
        annotations: Labels::new(),
        finalizers: vec![],
        owner_pool: None,
        requirements: vec![],
        requests: Resources::new().with("cpu", 500),
        taints: vec![Taint::new("team", Effect::NoSchedule)],
        startup_taints: vec![Taint::new("cilium", Effect::NoExecute)],
        class: ClassRef { group: "karpenter.kwok.sh".into(), kind: "KWOKNodeClass".into(), name: "default".into() },
        termination_grace: None,
        expire_after: None,
        provider_id: None,
        node: None,
        image: None,
        capacity: Resources::new(),
        allocatable: Resources::new(),
        last_pod_event: None,
        conditions: vec![],
        broken: None,
    }
}

/// Its machine.
pub(crate) fn machine() -> Machine {
    Machine {
        id: "sim://a/1".into(),
        token: Some("uid-1".into()),
        claim: Some("web-1".into()),
        created: Some(start()),
        deleting: false,
        instance_type: Some("c-1x".into()),
        labels: Labels::from([(labels::ZONE.into(), "zone-a".into())]),
        annotations: Labels::new(),
        image: None,
        capacity: Resources::new().with("cpu", 1000),
        allocatable: Resources::new().with("cpu", 900),
    }
}

/// Its Node, before it is Ready.
pub(crate) fn node() -> Node {
    Node {
        name: "node-1".into(),
        uid: "node-uid-1".into(),
        created: start(),
        deleting: None,
        version: "100".into(),
        labels: Labels::new(),
        annotations: Labels::new(),
        finalizers: vec![],
        owner_claims: vec![],
        provider_id: Some("sim://a/1".into()),
        taints: vec![
            Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute),
            Taint::new("node.kubernetes.io/not-ready", Effect::NoSchedule),
        ],
        cordoned: false,
        capacity: Resources::new().with("cpu", 1000),
        allocatable: Resources::new().with("cpu", 900),
        conditions: vec![],
    }
}

/// A pod of 100m CPU, bound or not.
pub(crate) fn pod(name: &str, node: Option<&str>) -> Pod {
    Pod {
        key: ObjectKey::new("default", name),
        uid: name.into(),
        created: start(),
        shape: Arc::new(PodShape::plain(Resources::new().with("cpu", 100))),
        phase: PodPhase::Running,
        node: node.map(Into::into),
        nominated: None,
        unschedulable: node.is_none(),
        unjudged: false,
        deleting: None,
        started: Some(start()),
        scheduled: None,
        ready: None,
        owned_by: None,
        volume_claims: vec![],
    }
}
