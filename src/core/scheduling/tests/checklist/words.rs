//! The words in which the checklist speaks: pods, pools, types and nodes by what is special of them, and plans by what became of the pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::Plan;
use super::super::build::*;
use crate::core::facts::{
    AffinityTerm, Claim, Effect, HostPort, InstanceType, Node, Offering, Pod, PodShape, Pool, Taint, Toleration,
    TolerationOperator, TopologySpread, Weighted,
};
use crate::core::ids::NodeName;
use crate::core::labels::{self, INSTANCE_TYPE};
use crate::core::requirements::{Operator, Requirement, Requirements};
use crate::core::resources::Resources;

/// `key op values`.
pub(super) fn says(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement::new(key, operator, values.iter().copied())
}

/// A pod of the application `web`, half a core and half a GiB.
pub(super) fn web() -> PodShape {
    app("web")
}

/// A pod of an application, half a core and half a GiB.
pub(super) fn app(name: &str) -> PodShape {
    PodShape { labels: labels(&[("app", name)]), ..shape(500, 512) }
}

/// A taint with the effect NoSchedule.
pub(super) fn taint(key: &str) -> Taint {
    Taint::new(key, Effect::NoSchedule)
}

/// Pods of the application, meant by an affinity term.
pub(super) fn those_of(name: &str, key: &str) -> AffinityTerm {
    term(key, &[("app", name)])
}

/// A spread constraint that counts `web`.
pub(super) fn even(key: &str, max_skew: i32) -> TopologySpread {
    spread(key, max_skew, &[("app", "web")])
}

/// The same, `ScheduleAnyway`.
pub(super) fn rather_even(key: &str, max_skew: i32) -> TopologySpread {
    TopologySpread { required: false, ..even(key, max_skew) }
}

impl PodShape {
    pub(super) fn of(self, cpu: i64, memory: i64) -> Self {
        Self { requests: amounts(cpu, memory).with("pods", 1000), ..self }
    }

    pub(super) fn asking(mut self, resource: &str, whole: i64) -> Self {
        self.requests.set(resource.into(), whole * 1000);
        self
    }

    pub(super) fn selecting(mut self, key: &str, value: &str) -> Self {
        self.node_selector.insert(key.into(), value.into());
        self
    }

    /// One more line of the first alternative of the required node affinity.
    pub(super) fn wanting(mut self, requirement: Requirement) -> Self {
        if self.node_affinity.required.is_empty() {
            self.node_affinity.required.push(Vec::new());
        }
        self.node_affinity.required[0].push(requirement);
        self
    }

    /// One more alternative.
    pub(super) fn or_wanting(mut self, requirement: Requirement) -> Self {
        self.node_affinity.required.push(vec![requirement]);
        self
    }

    pub(super) fn preferring(mut self, weight: i32, requirement: Requirement) -> Self {
        self.node_affinity.preferred.push(Weighted { weight, term: vec![requirement] });
        self
    }

    pub(super) fn tolerating(mut self, key: &str) -> Self {
        let (key, value) = (key.into(), "".into());
        let operator = TolerationOperator::Exists;
        self.tolerations.push(Toleration { key, operator, value, effect: None, seconds: None });
        self
    }

    pub(super) fn spreading(mut self, spread: TopologySpread) -> Self {
        self.spreads.push(spread);
        self
    }

    pub(super) fn near(mut self, term: AffinityTerm) -> Self {
        self.affinity.push(term);
        self
    }

    pub(super) fn far(mut self, term: AffinityTerm) -> Self {
        self.anti_affinity.push(term);
        self
    }

    pub(super) fn rather_near(mut self, term: AffinityTerm) -> Self {
        self.preferred_affinity.push(Weighted { weight: 50, term });
        self
    }

    pub(super) fn rather_far(mut self, term: AffinityTerm) -> Self {
        self.preferred_anti_affinity.push(Weighted { weight: 50, term });
        self
    }

    pub(super) fn on_port(mut self, port: i32) -> Self {
        self.host_ports.push(HostPort { ip: "".into(), port, protocol: "TCP".into() });
        self
    }

    pub(super) fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: namespace.into(), ..self }
    }
}

impl Pool {
    pub(super) fn requiring(mut self, requirement: Requirement) -> Self {
        self.template.requirements.push(requirement);
        self
    }

    pub(super) fn labelled(mut self, key: &str, value: &str) -> Self {
        self.template.labels.insert(key.into(), value.into());
        self
    }

    pub(super) fn tainted(mut self, taint: Taint) -> Self {
        self.template.taints.push(taint);
        self
    }

    pub(super) fn starting_with(mut self, taint: Taint) -> Self {
        self.template.startup_taints.push(taint);
        self
    }

    pub(super) fn weighing(self, weight: i32) -> Self {
        Self { weight, ..self }
    }

    /// A limit in whole units.
    pub(super) fn limited(mut self, resource: &str, whole: i64) -> Self {
        self.limits.set(resource.into(), whole * 1000);
        self
    }
}

impl InstanceType {
    /// The type with other values for a label (none: without it), and only the offerings that agree with it.
    pub(super) fn labelled(mut self, key: &str, values: &[&str]) -> Self {
        self.requirements.retain(|r| &*r.key != key);
        let lacks = says(key, Operator::DoesNotExist, &[]);
        self.requirements.push(if values.is_empty() { lacks } else { within(key, values) });
        let allowed = Requirements::from_written(&self.requirements);
        self.offerings.retain(|o| allowed.intersects(&Requirements::from_written(&o.requirements)).is_ok());
        self
    }

    pub(super) fn holding(mut self, resource: &str, whole: i64) -> Self {
        self.capacity.set(resource.into(), whole * 1000);
        self
    }

    pub(super) fn sold_out(mut self, which: impl Fn(&Offering) -> bool) -> Self {
        self.offerings.iter_mut().filter(|o| which(o)).for_each(|o| o.available = false);
        self
    }
}

/// Karpenter's test cloud: `small` and `default`, two kinds of accelerator, one large machine of another architecture, and one that
/// takes a single pod. Each says how many cores it has (`integer`) and whether it is `large`.
pub(super) fn fake() -> Vec<InstanceType> {
    let kind = |name: &str, cores: i64, memory: i64, pods: i64, price: f64| {
        let size = if cores > 2 { "large" } else { "small" };
        let kind = instance_type(name, cores, memory, price).holding("pods", pods);
        kind.labelled("integer", &[&cores.to_string()]).labelled("size", &[size])
    };
    vec![
        kind("small", 2, 2, 5, 0.4),
        kind("default", 4, 4, 5, 0.8),
        kind("gpu-a", 4, 4, 5, 1.8).holding("example.com/gpu-a", 2),
        kind("gpu-b", 4, 4, 5, 1.8).holding("example.com/gpu-b", 2),
        kind("arm", 16, 128, 5, 4.4).labelled(labels::ARCH, &["arm64"]),
        kind("single-pod", 4, 4, 1, 0.9),
    ]
}

/// `n` types of 1, 2, 3... cores and twice as many GiB, ten pods for each core.
pub(super) fn ladder(n: i64) -> Vec<InstanceType> {
    let kind = |cores: i64| {
        let kind = instance_type(&format!("fake-{cores}"), cores, 2 * cores, 0.1 * cores as f64);
        kind.holding("pods", 10 * cores).labelled("integer", &[&cores.to_string()])
    };
    (1..=n).map(kind).collect()
}

/// NodePool `default` with these types.
pub(super) fn buying(types: Vec<InstanceType>) -> Scene {
    Scene::default().with_pool(pool("default"), types)
}

/// One pool with the types of the fake cloud.
pub(super) fn from(pool: Pool) -> Scene {
    Scene::default().with_pool(pool, fake())
}

impl Node {
    pub(super) fn tainted(mut self, taint: Taint) -> Self {
        self.taints.push(taint);
        self
    }

    pub(super) fn with_room(mut self, pods: i64) -> Self {
        self.allocatable.set("pods".into(), pods * 1000);
        self
    }
}

/// A node of NodePool `default` and its NodeClaim, registered and initialized.
pub(super) fn owned(name: &str, cpu: i64, memory: i64, pairs: &[(&str, &str)]) -> (Node, Claim) {
    let mut node = node(name, cpu, memory, pairs);
    for key in [labels::REGISTERED, labels::INITIALIZED] {
        node.labels.insert(key.into(), "true".into());
    }
    node.labels.insert(labels::NODEPOOL.into(), "default".into());
    let mut claim = claim(&format!("claim-{name}"), "default", Vec::new(), Resources::new());
    claim.provider_id.clone_from(&node.provider_id);
    claim.labels.extend(labels(pairs));
    (claim.capacity, claim.allocatable) = (node.capacity.clone(), node.allocatable.clone());
    (node, claim)
}

/// The same while it starts.
pub(super) fn starting(name: &str, cpu: i64, memory: i64, pairs: &[(&str, &str)]) -> (Node, Claim) {
    let (mut node, claim) = owned(name, cpu, memory, pairs);
    node.labels.remove(labels::INITIALIZED);
    (node, claim)
}

impl Scene {
    pub(super) fn with_both(self, (node, claim): (Node, Claim)) -> Self {
        self.with_node(node).with_claim(claim)
    }

    /// What becomes of a single pod.
    pub(super) fn place(self, shape: &PodShape) -> Plan {
        self.with_pods(pods("one", 1, shape)).solve()
    }

    /// The same pods, asked about anew.
    pub(super) fn asking_for(mut self, pods: Vec<Arc<Pod>>) -> Self {
        self.pods = pods;
        self
    }

    /// The cluster once a plan has come true: each machine is of the cheapest offering, its node is initialized, the pods are bound.
    pub(super) fn after(mut self, plan: &Plan) -> Self {
        for planned in &plan.claims {
            let (node, claim) = self.launched(planned);
            for pod in &planned.pods {
                self = self.bind(pod, &node.name);
            }
            self = self.with_both((node, claim));
        }
        for placed in &plan.existing {
            let name = placed.node.clone().expect("every NodeClaim of these scenes has its node");
            for pod in &placed.pods {
                self = self.bind(pod, &name);
            }
        }
        self.pods.clear();
        self.settings.name_salt += 1;
        self
    }

    /// One round of provisioning: the scene after it.
    pub(super) fn round(self, pods: Vec<Arc<Pod>>) -> Self {
        let scene = self.asking_for(pods);
        let plan = scene.solve();
        scene.after(&plan)
    }

    /// The NodeClaims of a plan are written, nothing else has happened yet.
    pub(super) fn written(mut self, plan: &Plan) -> Self {
        for planned in &plan.claims {
            let draft = &planned.draft;
            let mut one =
                claim(draft.name.as_str(), draft.pool.as_str(), draft.requirements.to_vec(), draft.requests.clone());
            one.labels.clone_from(&draft.labels);
            one.taints.clone_from(&draft.taints);
            self = self.with_claim(one);
        }
        self.settings.name_salt += 1;
        self
    }

    fn launched(&self, planned: &super::super::super::PlannedClaim) -> (Node, Claim) {
        let draft = &planned.draft;
        let wanted = Requirements::from_written(&*draft.requirements);
        let list = &self.catalog.pools[&draft.pool];
        let kind = list.iter().find(|kind| kind.name == planned.instance_types[0]).expect("a planned type is known");
        let fits =
            |o: &&Offering| o.available && wanted.intersects(&Requirements::from_written(&o.requirements)).is_ok();
        let cheapest = kind.offerings.iter().filter(fits).min_by(|a, b| a.price.total_cmp(&b.price));
        let offering = cheapest.expect("a planned type can be had");
        let mut all = (*draft.labels).clone();
        for one in kind.requirements.iter().chain(&offering.requirements) {
            if let [value] = &one.values[..] {
                all.insert(Arc::clone(&one.key), Arc::clone(value));
            }
        }
        let name = format!("node-{}", draft.name);
        let pairs: Vec<(&str, &str)> = all.iter().map(|(key, value)| (&**key, &**value)).collect();
        let (mut node, mut claim) = owned(&name, 1, 1, &pairs);
        node.labels.insert(labels::NODEPOOL.into(), draft.pool.as_str().into());
        node.taints.clone_from(&draft.taints);
        (node.capacity, node.allocatable) = (kind.capacity.clone(), kind.allocatable());
        (claim.capacity, claim.allocatable) = (kind.capacity.clone(), kind.allocatable());
        claim.name = draft.name.clone();
        (node, claim)
    }

    fn bind(mut self, pod: &Arc<Pod>, node: &NodeName) -> Self {
        let mut bound = (**pod).clone();
        (bound.node, bound.unschedulable) = (Some(node.clone()), false);
        bound.phase = crate::core::facts::PodPhase::Running;
        self.snapshot.bound.entry(node.clone()).or_default().insert(bound.uid.clone());
        self.snapshot.pods.insert(bound.uid.clone(), Arc::new(bound));
        self
    }

    /// How many running pods of an application each domain has, the emptiest first; domains without one are not there.
    pub(super) fn skew(&self, key: &str, app: &str) -> Vec<usize> {
        let mut counts: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let ours = |pod: &&Arc<Pod>| pod.shape.labels.get("app").is_some_and(|name| &**name == app);
        for pod in self.snapshot.pods.values().filter(ours) {
            let node = pod.node.as_ref().and_then(|name| self.snapshot.nodes.get(name));
            if let Some(value) = node.and_then(|node| node.labels.get(key)) {
                *counts.entry(Arc::clone(value)).or_default() += 1;
            }
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    }

    /// In which domain a running pod is.
    pub(super) fn whereabouts(&self, pod: &str, key: &str) -> Option<&str> {
        let pod = self.snapshot.pods.values().find(|one| &*one.key.name == pod)?;
        self.snapshot.nodes.get(pod.node.as_ref()?)?.labels.get(key).map(|value| &**value)
    }

    /// How many nodes there are.
    pub(super) fn size(&self) -> usize {
        self.snapshot.nodes.len()
    }
}

impl Plan {
    /// How many pods have a place.
    pub(super) fn placed(&self) -> usize {
        let new = self.claims.iter().map(|claim| claim.pods.len());
        new.chain(self.existing.iter().map(|placed| placed.pods.len())).sum()
    }

    /// How many have none.
    pub(super) fn left(&self) -> usize {
        self.refused.len()
    }

    /// The plan, in which all pods have a place.
    #[track_caller]
    pub(super) fn whole(self) -> Self {
        assert!(self.refused.is_empty(), "{:#?}", self.refused);
        self
    }

    /// Pods on each planned node, the emptiest first.
    pub(super) fn per_node(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.claims.iter().map(|claim| claim.pods.len()).collect();
        counts.sort_unstable();
        counts
    }

    /// What is planned for a key on the only planned node: one value, several (`a|b`), or nothing.
    #[track_caller]
    pub(super) fn only(&self, key: &str) -> String {
        assert_eq!(self.claims.len(), 1, "{:#?} {:#?}", self.claims, self.refused);
        let said = self.claims[0].draft.requirements.iter().find(|r| &*r.key == key && r.operator == Operator::In);
        let label = || self.claims[0].draft.labels.get(key).map(ToString::to_string);
        said.map(|r| r.values.join("|")).or_else(label).unwrap_or_default()
    }

    /// The instance types of the only planned node, cheapest first.
    #[track_caller]
    pub(super) fn types(&self) -> Vec<&str> {
        assert_eq!(self.claims.len(), 1, "{:#?} {:#?}", self.claims, self.refused);
        self.claims[0].instance_types.iter().map(crate::core::ids::InstanceTypeName::as_str).collect()
    }

    /// The cheapest type of each planned node, sorted.
    pub(super) fn cheapest(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.claims.iter().map(|claim| claim.instance_types[0].as_str()).collect();
        all.sort_unstable();
        all
    }

    /// The first reason of the first pod without a place.
    #[track_caller]
    pub(super) fn why(&self) -> String {
        assert!(!self.refused.is_empty(), "all pods are placed: {:#?}", self.claims);
        self.refused[0].reasons.first().map(ToString::to_string).unwrap_or_default()
    }

    /// Whether the requirements of a NodeClaim speak of a key.
    pub(super) fn speaks_of(&self, key: &str) -> bool {
        let said = |claim: &super::super::super::PlannedClaim| {
            claim.draft.labels.contains_key(key) || claim.draft.requirements.iter().any(|r| &*r.key == key)
        };
        key != INSTANCE_TYPE && self.claims.iter().any(said)
    }
}
