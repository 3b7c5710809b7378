//! Upstream's benchmark workloads: its fake instance types, its diverse mix of pods and its pods with preferences.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use joiner::core::facts::{
    AffinityTerm, Catalog, Condition, ConsolidationPolicy, Disruption, InstanceType, Offering, Pod, PodPhase, PodShape,
    PolicyHonor, Pool, Selector, Snapshot, Status, Template, TopologySpread, Weighted,
};
use joiner::core::ids::{ClassRef, ObjectKey};
use joiner::core::labels::{self, Labels};
use joiner::core::requirements::{Operator, Requirement};
use joiner::core::resources::Resources;

/// A fixed sequence of draws; upstream's own generator is Go's, so the draws differ and the distribution is the same.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n).expect("below a small bound")
    }

    fn label(&mut self) -> &'static str {
        ["a", "b", "c", "d", "e", "f", "g"][self.below(7)]
    }

    /// CPU and memory of a pod.
    pub(crate) fn requests(&mut self) -> Resources {
        let cpu = [100, 250, 500, 1000, 1500][self.below(5)];
        let memory: i64 = [100, 256, 512, 1024, 2048, 4096][self.below(6)];
        Resources::new().with("cpu", cpu).with("memory", (memory << 20) * 1000)
    }
}

/// A requirement of one of some values.
pub(crate) fn one(key: &str, values: &[&str]) -> Requirement {
    Requirement::new(key, Operator::In, values.iter().copied())
}

/// Upstream's fake instance types: n cores and 2n GiB.
pub(crate) fn instance_types(count: i64) -> Vec<Arc<InstanceType>> {
    let zones = ["test-zone-1", "test-zone-2", "test-zone-3"];
    let kind = |n: i64| {
        let name = format!("fake-it-{}", n - 1);
        let memory = (2 * n) << 30;
        let price = 0.1 * n as f64 + 0.1 * memory as f64 / 1e9;
        let offered = [("spot", 0), ("spot", 1), ("on-demand", 0), ("on-demand", 1), ("on-demand", 2)];
        let offerings = offered.map(|(kind, zone)| Offering {
            requirements: vec![one(labels::ZONE, &[zones[zone]]), one(labels::CAPACITY_TYPE, &[kind])],
            price,
            available: true,
            reservation_capacity: None,
        });
        let mut requirements = vec![
            one(labels::INSTANCE_TYPE, &[&name]),
            one(labels::ARCH, &["amd64"]),
            one(labels::OS, &["linux", "windows", "darwin"]),
            one(labels::ZONE, &zones),
            one(labels::CAPACITY_TYPE, &["spot", "on-demand"]),
            one("size", &[if n >= 5 { "large" } else { "small" }]),
            one("integer", &[&n.to_string()]),
        ];
        let special = if n >= 5 {
            one("special", &["optional"])
        } else {
            Requirement::new("special", Operator::DoesNotExist, [""; 0])
        };
        requirements.push(special);
        Arc::new(InstanceType {
            name: name.as_str().into(),
            requirements,
            capacity: Resources::new().with("cpu", n * 1000).with("memory", memory * 1000).with("pods", 10 * n * 1000),
            overhead: Resources::new().with("cpu", 100).with("memory", (10 << 20) * 1000),
            offerings: offerings.to_vec(),
        })
    };
    (1..=count).map(kind).collect()
}

/// A cluster with nothing but one NodePool that may use these instance types.
pub(crate) fn empty_cluster(types: Vec<Arc<InstanceType>>) -> (Snapshot, Catalog) {
    let mut template = Labels::new();
    template.insert("testing/cluster".into(), "unspecified".into());
    let pool = Pool {
        name: "default".into(),
        uid: "uid".into(),
        generation: 1,
        version: "1".into(),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        annotations: Labels::new(),
        weight: 0,
        // Upstream limits memory too, to more than can be said in thousandths of a byte.
        limits: Resources::new().with("cpu", 10_000_000_000),
        replicas: None,
        template: Template {
            labels: template,
            annotations: Labels::new(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            class: ClassRef { group: "karpenter.test.sh".into(), kind: "TestNodeClass".into(), name: "default".into() },
            termination_grace: None,
            expire_after: None,
        },
        disruption: Disruption { consolidate_after: None, policy: ConsolidationPolicy::WhenEmpty, budgets: Vec::new() },
        hash: "1".into(),
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
    };
    let mut snapshot = Snapshot::default();
    let mut catalog = Catalog::default();
    catalog.pools.insert(pool.name.clone(), Arc::new(types));
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    (snapshot, catalog)
}

/// Pods with this label.
pub(crate) fn selector(key: &str, value: &str) -> Selector {
    Selector { labels: [(Arc::from(key), Arc::from(value))].into(), expressions: Vec::new() }
}

/// A required spread constraint of skew one.
pub(crate) fn spread(key: &str, value: &str) -> TopologySpread {
    TopologySpread {
        key: key.into(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: Some(selector("my-label", value)),
        node_affinity_policy: PolicyHonor::Honor,
        node_taints_policy: PolicyHonor::Ignore,
    }
}

/// An affinity term.
pub(crate) fn term(key: &str, label: &str, value: &str) -> AffinityTerm {
    AffinityTerm {
        key: key.into(),
        selector: Some(selector(label, value)),
        namespaces: vec!["default".into()],
        namespace_selector: None,
    }
}

/// A fifth each of plain pods, zone spread, host spread, zone affinity and host anti-affinity; the rest plain.
pub(crate) fn diverse(count: usize) -> Vec<Arc<Pod>> {
    let mut draws = Draws(42);
    let part = count / 5;
    let shape = |at: usize, draws: &mut Draws| {
        let block = at.checked_div(part).unwrap_or(5);
        let label = if block == 4 { "nginx" } else { draws.label() };
        let other = if matches!(block, 1 | 2) { draws.label() } else { label };
        let mut shape = PodShape::plain(draws.requests());
        let key = match block {
            3 => "my-affininity",
            4 => "app",
            _ => "my-label",
        };
        shape.labels.insert(key.into(), label.into());
        shape.labels.insert("testing/cluster".into(), "unspecified".into());
        match block {
            1 => shape.spreads.push(spread(labels::ZONE, other)),
            2 => shape.spreads.push(spread(labels::HOSTNAME, other)),
            3 => shape.affinity.push(term(labels::ZONE, "my-affininity", label)),
            4 => shape.anti_affinity.push(term(labels::HOSTNAME, "app", "nginx")),
            _ => {}
        }
        shape
    };
    let mut known = BTreeSet::new();
    (0..count).map(|at| pod(at, shared(&mut known, shape(at, &mut draws)))).collect()
}

/// Equal shapes are shared, as the watch shares them.
pub(crate) fn shared(known: &mut BTreeSet<Arc<PodShape>>, shape: PodShape) -> Arc<PodShape> {
    let shape = Arc::new(shape);
    known.get(&shape).cloned().unwrap_or_else(|| {
        known.insert(Arc::clone(&shape));
        shape
    })
}

/// A pending pod; its UID says nothing of its age.
pub(crate) fn pod(at: usize, shape: Arc<PodShape>) -> Arc<Pod> {
    let second = i64::try_from(at).expect("few pods");
    let draw = Draws(second.unsigned_abs()).below(1 << 32);
    Arc::new(Pod {
        key: ObjectKey::new("default", format!("pod-{at}")),
        uid: format!("{draw:08x}-{at}").into(),
        created: Timestamp::from_second(1_700_000_000 + second).expect("a time of this age"),
        shape,
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
    })
}

/// `count` equal pods.
pub(crate) fn equal(count: usize) -> Vec<Arc<Pod>> {
    let shape = Arc::new(PodShape::plain(Resources::new().with("cpu", 500).with("memory", (512 << 20) * 1000)));
    (0..count).map(|at| pod(at, Arc::clone(&shape))).collect()
}

/// Pods that would rather be in the first zone, away from each other's zone, and away from each other's node.
pub(crate) fn preferring(count: usize) -> Vec<Arc<Pod>> {
    let mut shape = PodShape::plain(Resources::new().with("cpu", 100).with("memory", (4096 << 20) * 1000));
    shape.labels.insert("app".into(), "nginx".into());
    shape.node_affinity.preferred.push(Weighted { weight: 1, term: vec![one(labels::ZONE, &["test-zone-1"])] });
    shape.preferred_anti_affinity = vec![
        Weighted { weight: 10, term: term(labels::ZONE, "app", "nginx") },
        Weighted { weight: 1, term: term(labels::HOSTNAME, "app", "nginx") },
    ];
    let shape = Arc::new(shape);
    (0..count).map(|at| pod(at, Arc::clone(&shape))).collect()
}
