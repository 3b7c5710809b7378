//! What the cluster holds, sampled from a snapshot: pods, nodes, NodePools and conditions.
//!
//! One series per pod and several per node and condition: in a large cluster this is most of `/metrics`, which is why there is a flag to leave
//! it out. Each function costs one walk over the objects it names.

use jiff::Timestamp;

use crate::core::facts::{Condition, Node, Owner, Pod, PodPhase, Snapshot};
use crate::core::ids::ClassRef;
use crate::core::labels::{self, Labels};
use crate::core::resources::{ResourceName, Resources};

use super::Samples;
use super::families::{self as f, Family};
use super::samples::identifier;

/// Samples every pod.
pub fn sample_pods(samples: &mut Samples, snapshot: &Snapshot, now: Timestamp) {
    for pod in snapshot.pods.values() {
        let node = pod.node.as_ref().and_then(|name| snapshot.nodes.get(name));
        let of_node = |key: &str| node.map_or("", |node| label(&node.labels, key));
        let values = [
            &*pod.key.name,
            &*pod.key.namespace,
            owner(pod.shape.owner),
            pod.node.as_ref().map_or("", |name| name.as_str()),
            word(pod.node.is_some()),
            of_node(labels::NODEPOOL),
            of_node(labels::ZONE),
            of_node(labels::ARCH),
            of_node(labels::CAPACITY_TYPE),
            of_node(labels::INSTANCE_TYPE),
            phase(pod.phase),
            word(node.is_some_and(|node| node.labels.contains_key(labels::NODEPOOL))),
        ];
        samples.add(&f::PODS_STATE, &values, 1.0);
        sample_waiting(samples, pod, now);
    }
}

/// How long a pod has waited, if it waits.
fn sample_waiting(samples: &mut Samples, pod: &Pod, now: Timestamp) {
    if pod.phase != PodPhase::Pending || pod.deleting.is_some() {
        return;
    }
    let age = now.duration_since(pod.created).as_secs_f64();
    samples.add(&f::PODS_UNSTARTED, &[&*pod.key.name, &*pod.key.namespace], age);
    if pod.node.is_none() {
        samples.add(&f::PODS_UNBOUND, &[&*pod.key.name, &*pod.key.namespace, "false"], age);
    }
}

/// Samples every node, and what all of them are used for.
pub fn sample_nodes(samples: &mut Samples, snapshot: &Snapshot, now: Timestamp) {
    samples.add(&f::STATE_NODES, &[], snapshot.nodes.len() as f64);
    let (mut offered, mut asked) = (Resources::new(), Resources::new());
    for node in snapshot.nodes.values() {
        let (mut pods, mut daemons) = (Resources::new(), Resources::new());
        for pod in snapshot.pods_on(&node.name).filter(|pod| pod.is_active_on_node()) {
            let sum = if pod.shape.owner == Owner::DaemonSet { &mut daemons } else { &mut pods };
            sum.add(&pod.shape.requests);
        }
        let mut overhead = node.capacity.clone();
        overhead.subtract(&node.allocatable);
        offered.add(&node.allocatable);
        asked.add(&pods);
        asked.add(&daemons);
        let whose = NodeLabels::of(node);
        for (family, resources) in [
            (f::NODES_ALLOCATABLE, &node.allocatable),
            (f::NODES_POD_REQUESTS, &pods),
            (f::NODES_DAEMON_REQUESTS, &daemons),
            (f::NODES_OVERHEAD, &overhead),
        ] {
            whose.sample(samples, &family, resources);
        }
        samples.add(&f::NODES_CURRENT_LIFETIME, &whose.0, now.duration_since(node.created).as_secs_f64());
    }
    for (name, offered) in offered.iter().filter(|(_, offered)| *offered > 0) {
        let percent = 100.0 * asked.get(name) as f64 / offered as f64;
        samples.add(&f::CLUSTER_UTILIZATION, &[&identifier(name.as_str())], percent);
    }
}

/// Labels of a node's series, all but the resource.
struct NodeLabels<'a>([&'a str; 11]);

impl<'a> NodeLabels<'a> {
    fn of(node: &'a Node) -> Self {
        let of = |key: &str| label(&node.labels, key);
        Self([
            node.name.as_str(),
            // The field behind this label has been deprecated for years and is empty on today's nodes.
            "",
            word(node.labels.contains_key(labels::NODEPOOL)),
            of(labels::NODEPOOL),
            of(labels::ZONE),
            of(labels::REGION),
            of(labels::INSTANCE_TYPE),
            of(labels::ARCH),
            of(labels::OS),
            of(labels::CAPACITY_TYPE),
            of(labels::WINDOWS_BUILD),
        ])
    }

    fn sample(&self, samples: &mut Samples, family: &Family<12>, resources: &Resources) {
        for (name, milli) in resources.iter() {
            let name = identifier(name.as_str());
            let mut values = [&*name; 12];
            values[1..].copy_from_slice(&self.0);
            samples.add(family, &values, whole(milli));
        }
    }
}

/// Samples limits and use of every NodePool.
pub fn sample_pools(samples: &mut Samples, snapshot: &Snapshot) {
    for pool in snapshot.pools.values() {
        for (family, resources) in [(f::NODEPOOLS_LIMIT, &pool.limits), (f::NODEPOOLS_USAGE, &pool.status_resources)] {
            for (name, milli) in resources.iter() {
                samples.add(&family, &[&identifier(ResourceName::as_str(name)), pool.name.as_str()], whole(milli));
            }
        }
    }
}

/// Samples the conditions of NodeClaims, NodePools and nodes, and how long those that are being deleted have taken so far.
pub fn sample_conditions(samples: &mut Samples, snapshot: &Snapshot, now: Timestamp) {
    for claim in snapshot.claims.values() {
        let class = class_label(&claim.class);
        let pool = label(&claim.labels, labels::NODEPOOL);
        let more = [(class.as_str(), &*claim.class.name), ("karpenter_sh_nodepool", pool)];
        let families = [f::NODECLAIM_CONDITIONS, f::NODECLAIM_CONDITION_SECONDS];
        let object = Object { name: claim.name.as_str(), more: &more, now };
        object.conditions(samples, &families, &claim.conditions);
        object.terminating(samples, &f::NODECLAIM_TERMINATING, claim.deleting);
    }
    for pool in snapshot.pools.values() {
        let object = Object { name: pool.name.as_str(), more: &[], now };
        object.conditions(samples, &[f::NODEPOOL_CONDITIONS, f::NODEPOOL_CONDITION_SECONDS], &pool.conditions);
        object.terminating(samples, &f::NODEPOOL_TERMINATING, pool.deleting);
    }
    let classes: Vec<(String, String)> = {
        let kinds: std::collections::BTreeSet<_> = snapshot.classes.keys().map(ClassRef::label).collect();
        kinds.into_iter().map(|key| (key.clone(), identifier(&key))).collect()
    };
    for node in snapshot.nodes.values() {
        let mut more: Vec<(&str, &str)> =
            classes.iter().map(|(key, name)| (name.as_str(), label(&node.labels, key))).collect();
        more.push(("karpenter_sh_nodepool", label(&node.labels, labels::NODEPOOL)));
        more.push(("karpenter_sh_initialized", label(&node.labels, labels::INITIALIZED)));
        let object = Object { name: node.name.as_str(), more: &more, now };
        object.conditions(samples, &[f::NODE_CONDITIONS, f::NODE_CONDITION_SECONDS], &node.conditions);
        object.terminating(samples, &f::NODE_TERMINATING, node.deleting);
    }
}

/// A cluster-scoped object whose conditions are sampled.
struct Object<'a> {
    name: &'a str,
    more: &'a [(&'a str, &'a str)],
    now: Timestamp,
}

impl Object<'_> {
    fn conditions(&self, samples: &mut Samples, families: &[Family<5>; 2], conditions: &[Condition]) {
        for condition in conditions {
            let values = ["", self.name, &condition.kind, condition.status.as_str(), &condition.reason];
            samples.add_with(&families[0], &values, self.more, 1.0);
            let since = self.now.duration_since(condition.since).as_secs_f64();
            samples.add_with(&families[1], &values, self.more, since);
        }
    }

    fn terminating(&self, samples: &mut Samples, family: &Family<2>, deleting: Option<Timestamp>) {
        if let Some(deleting) = deleting {
            let since = self.now.duration_since(deleting).as_secs_f64();
            samples.add_with(family, &["", self.name], self.more, since);
        }
    }
}

/// `karpenter.kwok.sh/kwoknodeclass` as `karpenter_kwok_sh_kwoknodeclass`.
fn class_label(class: &ClassRef) -> String {
    identifier(&class.label())
}

fn label<'a>(labels: &'a Labels, key: &str) -> &'a str {
    labels.get(key).map_or("", |value| value)
}

fn word(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

/// Thousandths as whole units.
pub(super) fn whole(milli: i64) -> f64 {
    milli as f64 / 1000.0
}

fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
    }
}

/// What kind of object owns a pod; its name is not among the facts that joiner keeps.
fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::DaemonSet => "daemonset",
        Owner::Node => "node",
        Owner::StatefulSet => "statefulset",
        Owner::Controller => "controller",
        Owner::Nobody => "",
    }
}
