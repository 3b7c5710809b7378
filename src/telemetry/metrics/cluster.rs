//! What the cluster holds, sampled from a snapshot: pods, nodes and NodePools.
//!
//! One series per pod and several per node: in a large cluster this is most of `/metrics`, which is why there is a flag to leave
//! it out. Each function costs one walk over the objects it names.

use jiff::Timestamp;

use crate::core::budgets::{self, Reason};
use crate::core::facts::{Node, Owner, Pod, PodPhase, Pool, Snapshot, Wait, Waits};
use crate::core::labels::{self, Labels};
use crate::core::resources::{ResourceName, Resources};

use super::Samples;
use super::families::{self as f, Family};
use super::samples::identifier;

/// Samples every pod, and how long those in `waits` have waited.
pub fn sample_pods(samples: &mut Samples, snapshot: &Snapshot, waits: &Waits, now: Timestamp) {
    for pod in snapshot.pods.values() {
        let node = pod.node.as_ref().and_then(|name| snapshot.nodes.get(name));
        let of_node = |key: &str| node.map_or("", |node| label(&node.labels, key));
        let values = [
            &*pod.key.name,
            &*pod.key.namespace,
            pod.owned_by.as_deref().unwrap_or_default(),
            pod.node.as_ref().map_or("", |name| name.as_str()),
            word(pod.node.is_some()),
            of_node(labels::NODEPOOL),
            of_node(labels::ZONE),
            of_node(labels::ARCH),
            of_node(labels::CAPACITY_TYPE),
            of_node(labels::INSTANCE_TYPE),
            phase(pod.phase),
            word(pod.ready.is_some()),
            word(node.is_some_and(|node| node.labels.contains_key(labels::NODEPOOL))),
        ];
        samples.add(&f::PODS_STATE, &values, 1.0);
        sample_waiting(samples, pod, waits.get(&pod.uid), now);
    }
}

/// How long a pod has waited, if it waits.
fn sample_waiting(samples: &mut Samples, pod: &Pod, wait: Option<&Wait>, now: Timestamp) {
    // Pods that run and were seen pending still wait to be ready.
    let waits = pod.phase == PodPhase::Pending || wait.is_some() && pod.ready.is_none();
    if !waits || pod.is_terminal() || pod.deleting.is_some() {
        return;
    }
    let since = |moment: Timestamp| now.duration_since(moment).as_secs_f64();
    let (which, devices) = ([&*pod.key.name, &*pod.key.namespace], word(pod.shape.dynamic_resources));
    let planned = wait.and_then(|wait| wait.planned);
    samples.add(&f::PODS_UNSTARTED, &which, since(pod.created));
    if let Some(planned) = planned {
        samples.add(&f::PODS_PROVISIONING_UNSTARTED, &which, since(planned));
    }
    if pod.node.is_some() {
        return;
    }
    let unbound = [which[0], which[1], devices];
    samples.add(&f::PODS_UNBOUND, &unbound, since(pod.created));
    if let Some(planned) = planned {
        samples.add(&f::PODS_PROVISIONING_UNBOUND, &unbound, since(planned));
    }
    if let Some(acked) = wait.filter(|wait| wait.decided.is_none()).and_then(|wait| wait.acked) {
        samples.add(&f::PODS_UNDECIDED, &which, since(acked));
    }
}

/// Samples every node, and what all of them are used for.
pub fn sample_nodes(samples: &mut Samples, snapshot: &Snapshot, now: Timestamp) {
    samples.add(&f::STATE_NODES, &[], snapshot.nodes.len() as f64);
    let (mut offered, mut asked) = (Resources::new(), Resources::new());
    for node in snapshot.nodes.values() {
        let (mut pods, mut daemons) = (Load::default(), Load::default());
        for pod in snapshot.pods_on(&node.name).filter(|pod| pod.is_active_on_node()) {
            pods.add(pod);
            if pod.shape.owner == Owner::DaemonSet {
                daemons.add(pod);
            }
        }
        let mut overhead = node.capacity.clone();
        overhead.subtract(&node.allocatable);
        offered.add(&node.allocatable);
        asked.add(&pods.requests);
        let whose = NodeLabels::of(node);
        for (family, resources) in [
            (f::NODES_ALLOCATABLE, &node.allocatable),
            (f::NODES_POD_REQUESTS, &pods.requests),
            (f::NODES_POD_LIMITS, &pods.limits),
            (f::NODES_DAEMON_REQUESTS, &daemons.requests),
            (f::NODES_DAEMON_LIMITS, &daemons.limits),
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

/// What pods of a node ask for, and may use at most, together.
#[derive(Default)]
struct Load {
    requests: Resources,
    limits: Resources,
}

impl Load {
    fn add(&mut self, pod: &Pod) {
        self.requests.add(&pod.shape.requests);
        self.limits.add(&pod.shape.limits);
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

/// What is allowed where no budget bounds it: Go's largest 32-bit number, as Karpenter shows it.
const UNBOUNDED: u64 = i32::MAX as u64;

/// NodePools whose NodeClasses are of these kinds (group and kind). Others are another autoscaler's to show.
fn managed<'a>(snapshot: &'a Snapshot, kinds: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Pool> {
    snapshot.pools.values().map(AsRef::as_ref).filter(|pool| pool.is_managed(kinds))
}

/// Samples limits and use of every NodePool of these kinds of NodeClass.
pub fn sample_pools(samples: &mut Samples, snapshot: &Snapshot, kinds: &[(&str, &str)]) {
    for pool in managed(snapshot, kinds) {
        for (family, resources) in [(f::NODEPOOLS_LIMIT, &pool.limits), (f::NODEPOOLS_USAGE, &pool.status_resources)] {
            for (name, milli) in resources.iter() {
                samples.add(&family, &[&identifier(ResourceName::as_str(name)), pool.name.as_str()], whole(milli));
            }
        }
    }
}

/// Samples what the budgets of every NodePool of these kinds of NodeClass allow.
pub fn sample_budgets(samples: &mut Samples, snapshot: &Snapshot, kinds: &[(&str, &str)], now: Timestamp) {
    let census = budgets::census(snapshot);
    for pool in managed(snapshot, kinds) {
        let census = census.get(&pool.name).copied().unwrap_or_default();
        for reason in Reason::ALL {
            let of = [pool.name.as_str(), reason.label()];
            let allowed = budgets::allowed(pool, reason, census.nodes, now).unwrap_or(UNBOUNDED);
            samples.add(&f::NODEPOOLS_ALLOWED, &of, allowed as f64);
            samples.add(&f::NODEPOOLS_CONSUMING, &of, census.consuming(reason) as f64);
        }
    }
}

pub(super) fn label<'a>(labels: &'a Labels, key: &str) -> &'a str {
    labels.get(key).map_or("", |value| value)
}

pub(super) fn word(flag: bool) -> &'static str {
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

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
