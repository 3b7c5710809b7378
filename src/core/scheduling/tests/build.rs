//! Small worlds, built in a few words.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{
    AffinityTerm, Catalog, Claim, Condition, DaemonSet, Disruption, InstanceType, Node, Offering, Owner, Pod, PodPhase,
    PodShape, PolicyHonor, Pool, Selector, Snapshot, Status, Template, TopologySpread,
};
use crate::core::facts::{ConsolidationPolicy, samples};
use crate::core::ids::{ClassRef, NodeName, ObjectKey};
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

use super::super::{Exclusions, Ground, Plan, Problem, Settings, check, lower_bound, solve};

pub(in super::super) const MIB: i64 = 1000 << 20;

/// CPU in thousandths and memory in MiB.
pub(in super::super) fn amounts(cpu: i64, memory: i64) -> Resources {
    Resources::new().with("cpu", cpu).with("memory", memory * MIB)
}

pub(in super::super) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect()
}

pub(in super::super) fn within(key: &str, values: &[&str]) -> Requirement {
    Requirement::new(key, Operator::In, values.iter().copied())
}

pub(in super::super) fn shape(cpu: i64, memory: i64) -> PodShape {
    PodShape::plain(amounts(cpu, memory))
}

pub(in super::super) fn pod(name: &str, second: i64, shape: &PodShape) -> Arc<Pod> {
    Arc::new(Pod {
        key: ObjectKey::new("default", name),
        uid: format!("uid-{name}").into(),
        created: Timestamp::from_second(1_700_000_000 + second).unwrap(),
        shape: Arc::new(shape.clone()),
        phase: PodPhase::Pending,
        node: None,
        nominated: None,
        unschedulable: true,
        unjudged: false,
        deleting: None,
        started: None,
        scheduled: None,
        ready: None,
        owned_by: None,
        volume_claims: vec![],
    })
}

/// `count` pods of one shape.
pub(in super::super) fn pods(name: &str, count: usize, shape: &PodShape) -> Vec<Arc<Pod>> {
    let shared = Arc::new(shape.clone());
    (0..count)
        .map(|at| {
            let mut one = (*pod(&format!("{name}-{at:05}"), i64::try_from(at).unwrap(), shape)).clone();
            one.shape = Arc::clone(&shared);
            Arc::new(one)
        })
        .collect()
}

pub(in super::super) fn selector(pairs: &[(&str, &str)]) -> Selector {
    Selector { labels: labels(pairs), expressions: Vec::new() }
}

pub(in super::super) fn spread(key: &str, max_skew: i32, pairs: &[(&str, &str)]) -> TopologySpread {
    TopologySpread {
        key: key.into(),
        max_skew,
        min_domains: None,
        required: true,
        selector: Some(selector(pairs)),
        node_affinity_policy: PolicyHonor::Honor,
        node_taints_policy: PolicyHonor::Ignore,
    }
}

pub(in super::super) fn term(key: &str, pairs: &[(&str, &str)]) -> AffinityTerm {
    AffinityTerm {
        key: key.into(),
        selector: Some(selector(pairs)),
        namespaces: vec!["default".into()],
        namespace_selector: None,
    }
}

/// Zones of the test cloud.
pub(in super::super) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// An instance type with spot (two thirds of the price) and on-demand offerings in every zone.
pub(in super::super) fn instance_type(name: &str, cpu: i64, memory: i64, price: f64) -> InstanceType {
    let offerings = ZONES
        .iter()
        .flat_map(|zone| {
            [(labels::SPOT, price * 0.66), (labels::ON_DEMAND, price)].map(|(kind, price)| (zone, kind, price))
        })
        .map(|(zone, kind, price)| Offering {
            requirements: vec![within(labels::ZONE, &[zone]), within(labels::CAPACITY_TYPE, &[kind])],
            price,
            available: true,
            reservation_capacity: None,
        })
        .collect();
    InstanceType {
        name: name.into(),
        requirements: vec![
            within(labels::INSTANCE_TYPE, &[name]),
            within(labels::ARCH, &["amd64"]),
            within(labels::OS, &["linux"]),
            within(labels::ZONE, &ZONES),
            within(labels::CAPACITY_TYPE, &[labels::SPOT, labels::ON_DEMAND]),
        ],
        capacity: amounts(cpu * 1000, memory * 1024).with("pods", 110_000),
        overhead: amounts(100, 100),
        attach_limits: std::collections::BTreeMap::new(),
        offerings,
    }
}

/// 1 to 64 cores, 4 GiB per core, price in proportion.
pub(in super::super) fn types() -> Vec<InstanceType> {
    (0..7).map(|power| 1 << power).map(|n| instance_type(&format!("m-{n}x"), n, 4 * n, 0.05 * n as f64)).collect()
}

/// KWOK's default types for Linux on amd64 and arm64: 1 to 256 cores with 2, 4 or 8 GiB each, 25 milli-USD per core and 1 per 10⁹ bytes.
pub(in super::super) fn kwok() -> Vec<InstanceType> {
    let mut all = Vec::new();
    for (family, factor) in [("c", 2), ("s", 4), ("m", 8)] {
        for cpu in [1_i64, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
            let bytes = (cpu * factor) << 30;
            let price = 0.025 * cpu as f64 + 0.001 * bytes as f64 / 1e9;
            let mut one = instance_type(&format!("{family}-{cpu}x"), cpu, cpu * factor, price);
            for offering in one.offerings.iter_mut().filter(|o| o.capacity_type().is_some_and(|c| &**c == labels::SPOT))
            {
                offering.price = price * 0.7;
            }
            all.push(one);
        }
    }
    all
}

pub(in super::super) fn pool(name: &str) -> Pool {
    Pool {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        generation: 1,
        version: "1".into(),
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
            class: ClassRef { group: "karpenter.kwok.sh".into(), kind: "KWOKNodeClass".into(), name: "default".into() },
            termination_grace: None,
            expire_after: None,
        },
        disruption: Disruption { consolidate_after: None, policy: ConsolidationPolicy::WhenEmpty, budgets: Vec::new() },
        hash: "12345".into(),
        errors: Vec::new(),
        status_nodes: None,
        status_resources: Resources::new(),
        class_generation: None,
        conditions: vec![Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "Ready".into(),
            message: "".into(),
            since: Timestamp::UNIX_EPOCH,
            generation: 1,
        }],
    }
}

/// A node that joiner does not own.
pub(in super::super) fn node(name: &str, cpu: i64, memory: i64, pairs: &[(&str, &str)]) -> Node {
    let room = amounts(cpu * 1000, memory * 1024).with("pods", 110_000);
    let mut all = labels(pairs);
    all.insert(labels::HOSTNAME.into(), name.into());
    Node {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        version: "1".into(),
        labels: all,
        annotations: Labels::new(),
        finalizers: Vec::new(),
        owner_claims: Vec::new(),
        provider_id: Some(format!("test://{name}").into()),
        taints: Vec::new(),
        cordoned: false,
        boot_id: None,
        capacity: room.clone(),
        allocatable: room,
        conditions: Vec::new(),
    }
}

/// A NodeClaim that was written but has no node yet.
pub(in super::super) fn claim(name: &str, pool: &str, requirements: Vec<Requirement>, requests: Resources) -> Claim {
    Claim {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        created: Timestamp::UNIX_EPOCH,
        labels: labels(&[(labels::NODEPOOL, pool)]),
        requirements,
        requests,
        taints: Vec::new(),
        startup_taints: Vec::new(),
        ..samples::claim()
    }
}

/// A cluster, a catalog and pods, to be solved.
#[derive(Default)]
pub(in super::super) struct Scene {
    pub(in super::super) snapshot: Snapshot,
    pub(in super::super) catalog: Catalog,
    pub(in super::super) pods: Vec<Arc<Pod>>,
    pub(in super::super) settings: Settings,
    pub(in super::super) excluded: Exclusions,
}

/// What differs between random scenes, as short as it goes.
impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for pool in self.snapshot.pools.values() {
            writeln!(
                f,
                "pool {} weight {} limits {:?} taints {:?}",
                pool.name, pool.weight, pool.limits, pool.template.taints
            )?;
        }
        writeln!(f, "{} daemons", self.snapshot.daemons.len())?;
        for pod in self.snapshot.pods.values().chain(&self.pods) {
            let s = &pod.shape;
            writeln!(f, "{} on {:?}: {:?} {:?} priority {}", pod.key, pod.node, s.labels, s.requests, s.priority)?;
            writeln!(f, "  nodes {:?} ports {:?} tolerations {}", s.node_affinity, s.host_ports, s.tolerations.len())?;
            writeln!(f, "  spreads {:?}", s.spreads)?;
            writeln!(
                f,
                "  near {:?} far {:?} rather far {:?}",
                s.affinity, s.anti_affinity, s.preferred_anti_affinity
            )?;
        }
        Ok(())
    }
}

impl Scene {
    /// One pool named `default` with [`types`].
    pub(in super::super) fn new() -> Self {
        Self::default().with_pool(pool("default"), types())
    }

    pub(in super::super) fn with_pool(mut self, pool: Pool, types: Vec<InstanceType>) -> Self {
        self.catalog.pools.insert(pool.name.clone(), Arc::new(types.into_iter().map(Arc::new).collect()));
        self.snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
        self
    }

    pub(in super::super) fn with_pods(mut self, pods: Vec<Arc<Pod>>) -> Self {
        self.pods.extend(pods);
        self
    }

    pub(in super::super) fn with_node(mut self, node: Node) -> Self {
        if let Some(id) = &node.provider_id {
            self.snapshot.nodes_of.insert(id.clone(), [node.name.clone()].into_iter().collect());
        }
        self.snapshot.nodes.insert(node.name.clone(), Arc::new(node));
        self
    }

    pub(in super::super) fn with_claim(mut self, claim: Claim) -> Self {
        self.snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
        self
    }

    pub(in super::super) fn with_daemon(mut self, name: &str, mut shape: PodShape) -> Self {
        shape.owner = Owner::DaemonSet;
        let key = ObjectKey::new("kube-system", name);
        self.snapshot.daemons.insert(key.clone(), Arc::new(DaemonSet { key, shape: Arc::new(shape) }));
        self
    }

    /// A pod that runs on a node.
    pub(in super::super) fn running(mut self, name: &str, node: &str, shape: &PodShape) -> Self {
        let mut one = (*pod(name, 0, shape)).clone();
        let node = NodeName::from(node);
        one.node = Some(node.clone());
        one.phase = PodPhase::Running;
        one.unschedulable = false;
        self.snapshot.bound.entry(node).or_default().insert(one.uid.clone());
        self.snapshot.pods.insert(one.uid.clone(), Arc::new(one));
        self
    }

    pub(in super::super) fn problem(&self) -> Problem<'_> {
        Problem { excluded: &self.excluded, ..Problem::new(&self.snapshot, &self.catalog, &self.pods, &self.settings) }
    }

    /// Solves and checks.
    pub(in super::super) fn solve(&self) -> Plan {
        self.checked(solve(&self.problem()))
    }

    /// The same, improved.
    pub(in super::super) fn plan(&self) -> Plan {
        self.checked(Ground::default().plan(&self.problem()))
    }

    fn checked(&self, plan: Plan) -> Plan {
        let violations = check(&self.problem(), &plan);
        assert!(violations.is_empty(), "{violations:#?}");
        let bound = lower_bound(&self.problem(), &plan);
        assert!(bound <= plan.price + 1e-9, "a plan for {} is cheaper than its bound {bound}", plan.price);
        plan
    }
}

/// The zone that a planned NodeClaim is pinned to, if it is.
pub(in super::super) fn pinned<'a>(plan: &'a Plan, claim: usize, key: &str) -> Option<&'a str> {
    let requirements = &plan.claims[claim].draft.requirements;
    let one = requirements.iter().find(|r| &*r.key == key && r.operator == Operator::In)?;
    if one.values.len() == 1 { Some(&*one.values[0]) } else { None }
}
