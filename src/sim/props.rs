//! Stage props: small objects and worlds for the tests of this room.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::cluster::{Latency, SimCluster};
use super::store::NewPod;
use super::{Clock, Seed};
use crate::clouds::LaunchSpec;
use crate::clouds::catalog::generated;
use crate::clouds::simulated::{Conduct, Simulated};
use crate::core::facts::samples;
use crate::core::facts::{
    Claim, ClaimDraft, Condition, ConsolidationPolicy, Disruption, Node, NodeClass, PodShape, Pool, Status, Template,
};
use crate::core::ids::{ClaimName, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, PoolUid};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

/// A clock that starts at a round time and follows tokio's.
pub(super) fn clock() -> Clock {
    let start = Instant::now();
    let base = Timestamp::from_second(1_800_000_000).unwrap();
    Arc::new(move || base + SignedDuration::try_from(start.elapsed()).unwrap())
}

pub(super) fn cluster(seed: u64) -> SimCluster {
    SimCluster::new(Seed(seed), clock(), Latency::default())
}

pub(super) fn cloud(seed: u64, conduct: Conduct) -> Simulated {
    Simulated::new(generated(), conduct, clock(), Seed(seed).stream("cloud"))
}

pub(super) fn class_ref() -> ClassRef {
    ClassRef { group: "karpenter.kwok.sh".into(), kind: "KWOKNodeClass".into(), name: "default".into() }
}

pub(super) fn draft(name: &str) -> ClaimDraft {
    ClaimDraft {
        name: ClaimName::from(name),
        pool: PoolName::from("pool"),
        pool_uid: PoolUid::from("pool-uid"),
        labels: Arc::new(BTreeMap::from([(labels::NODEPOOL.into(), "pool".into())])),
        annotations: Arc::default(),
        requirements: Arc::default(),
        requests: Resources::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        class: class_ref(),
        termination_grace: None,
        expire_after: None,
    }
}

/// What a NodeClaim actor would ask for: any type with this many cores.
pub(super) fn launch(claim: &Arc<Claim>, cpus: i64) -> LaunchSpec {
    let class = NodeClass { reference: class_ref(), ..samples::class() };
    let fitting = generated().into_iter().filter(|kind| kind.capacity.get(&"cpu".into()) == cpus * 1_000);
    let candidates = fitting.map(Arc::new).collect();
    LaunchSpec { token: claim.uid.clone(), claim: Arc::clone(claim), class: Arc::new(class), candidates }
}

pub(super) fn resources(cpu_milli: i64, memory_mib: i64) -> Resources {
    Resources::new().with("cpu", cpu_milli).with("memory", memory_mib * (1 << 20) * 1_000)
}

/// A ready node with room for 110 pods.
pub(super) fn node(name: &str, zone: &str, cpu_milli: i64, memory_mib: i64) -> Node {
    let room = resources(cpu_milli, memory_mib).with("pods", 110_000);
    let all = [(labels::ZONE, zone), (labels::HOSTNAME, name)];
    Node {
        name: NodeName::from(name),
        uid: NodeUid::from(""),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        version: "".into(),
        labels: all.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        annotations: Labels::new(),
        finalizers: Vec::new(),
        owner_claims: Vec::new(),
        provider_id: None,
        taints: Vec::new(),
        cordoned: false,
        boot_id: None,
        capacity: room.clone(),
        allocatable: room,
        conditions: Vec::new(),
    }
}

/// A shape with the label `app`.
pub(super) fn shape(app: &str, cpu_milli: i64, memory_mib: i64) -> PodShape {
    let labels = BTreeMap::from([("app".into(), app.into())]);
    PodShape { labels, ..PodShape::plain(resources(cpu_milli, memory_mib)) }
}

/// Creates a pod and answers its UID.
pub(super) fn add_pod(cluster: &SimCluster, name: &str, shape: &Arc<PodShape>) -> PodUid {
    let new = NewPod {
        key: ObjectKey::new("default", name),
        shape: Arc::clone(shape),
        runs_for: None,
        workload: None,
        node: None,
        volumes: Vec::new(),
    };
    cluster.store().create_pod(new).unwrap()
}

/// The node of a pod.
pub(super) fn place_of(cluster: &SimCluster, uid: &PodUid) -> Option<NodeName> {
    cluster.store().pods.get(uid).and_then(|record| record.pod.node.clone())
}

/// A NodePool that allows everything.
pub(super) fn pool(name: &str) -> Pool {
    Pool {
        name: PoolName::from(name),
        uid: PoolUid::from(""),
        generation: 0,
        version: "".into(),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        annotations: Labels::new(),
        weight: 0,
        limits: Resources::new(),
        replicas: None,
        template: Template {
            labels: Labels::new(),
            annotations: Labels::new(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            class: class_ref(),
            termination_grace: None,
            expire_after: None,
        },
        disruption: Disruption {
            consolidate_after: None,
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            budgets: Vec::new(),
        },
        hash: "1".into(),
        errors: Vec::new(),
        status_nodes: None,
        status_resources: Resources::new(),
        class_generation: None,
        conditions: Vec::new(),
    }
}

/// The condition of a node that is ready.
pub(super) fn ready() -> Condition {
    Condition {
        kind: "Ready".into(),
        status: Status::True,
        reason: "KubeletReady".into(),
        message: "".into(),
        since: Timestamp::UNIX_EPOCH,
        generation: 0,
    }
}
