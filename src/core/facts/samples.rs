//! Objects for tests: one of each, plain, to be changed where a test is about something.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Access, Claim, Condition, ConsolidationPolicy, Disruption, Effect, Machine, Node, NodeClass, OwnerClaim, Pod,
    PodPhase, PodShape, PolicyHonor, Pool, Status, Taint, Template, TopologySpread, VolumeClaim,
};
use crate::core::ids::{ClassRef, ObjectKey};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

/// The moment at which everything begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// NodePool `web`, ready.
pub(crate) fn ready_pool() -> Pool {
    Pool { conditions: vec![condition("Ready", Status::True)], ..pool() }
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
        labels: Labels::from([
            (labels::NODEPOOL.into(), "web".into()),
            ("karpenter.kwok.sh/kwoknodeclass".into(), "default".into()),
        ]),
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
        boot_id: None,
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

/// A PersistentVolumeClaim for the pods of one node, bound if it has a volume.
pub(crate) fn volume_claim(namespace: &str, name: &str, volume: Option<&str>) -> VolumeClaim {
    VolumeClaim {
        key: ObjectKey::new(namespace, name),
        deleting: false,
        lost: false,
        class: None,
        volume: volume.map(Into::into),
        bound: volume.is_some(),
        access: Access::OneNode,
    }
}

/// A required spread over zones of all pods.
pub(crate) fn zone_spread(max_skew: i32) -> TopologySpread {
    TopologySpread {
        key: labels::ZONE.into(),
        max_skew,
        min_domains: None,
        required: true,
        selector: None,
        node_affinity_policy: PolicyHonor::Honor,
        node_taints_policy: PolicyHonor::Ignore,
    }
}

/// NodePool `web` as joiner has hashed it: nodes may be consolidated after 30 s.
pub(crate) fn pool() -> Pool {
    let hash = [(labels::NODEPOOL_HASH, "1"), (labels::NODEPOOL_HASH_VERSION, labels::HASH_VERSION)];
    Pool {
        name: "web".into(),
        uid: "pool-uid-1".into(),
        generation: 1,
        version: "1".into(),
        created: start(),
        deleting: None,
        annotations: hash.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
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
        disruption: Disruption {
            consolidate_after: Some(std::time::Duration::from_secs(30)),
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            budgets: vec![],
        },
        hash: "1".into(),
        errors: vec![],
        status_nodes: None,
        status_resources: Resources::new(),
        class_generation: None,
        conditions: vec![],
    }
}

/// NodeClass `default`, ready.
pub(crate) fn class() -> NodeClass {
    NodeClass {
        reference: claim().class,
        generation: 1,
        uid: "".into(),
        version: "".into(),
        finalizers: Vec::new(),
        deleting: None,
        conditions: vec![condition("Ready", Status::True)],
        body: Arc::new(()),
    }
}

/// A condition that has held from the start.
pub(crate) fn condition(kind: &str, status: Status) -> Condition {
    Condition { kind: kind.into(), status, reason: kind.into(), message: "".into(), since: start(), generation: 1 }
}

/// The NodeClaim once its Node serves.
pub(crate) fn serving() -> Claim {
    let mut claim = claim();
    claim.finalizers.push(labels::TERMINATION_FINALIZER.into());
    claim.provider_id = Some(machine().id);
    claim.node = Some("node-1".into());
    claim.capacity = machine().capacity;
    claim.allocatable = machine().allocatable;
    claim.labels.extend(machine().labels);
    claim.conditions =
        ["Launched", "Registered", "Initialized", "Ready"].map(|kind| condition(kind, Status::True)).into();
    claim
}

/// A NodeClaim as the owner of a Node.
pub(crate) fn owner(name: &str, uid: &str) -> OwnerClaim {
    OwnerClaim { name: name.into(), uid: uid.into() }
}

/// Its Node then.
pub(crate) fn serving_node() -> Node {
    let mut node = node();
    node.labels = serving().labels;
    node.labels.insert(labels::REGISTERED.into(), "true".into());
    node.labels.insert(labels::INITIALIZED.into(), "true".into());
    node.finalizers.push(labels::TERMINATION_FINALIZER.into());
    node.owner_claims.push(owner("web-1", "uid-1"));
    node.taints.clear();
    node.conditions.push(condition("Ready", Status::True));
    node
}
