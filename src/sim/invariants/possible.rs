//! Which pods can run, and which can be evicted: for some there is no place anywhere, whatever is bought, and their budget keeps the others where
//! they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::{Claim, Node, Owner, Pod, PolicyHonor, TopologySpread, Volume};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;
use crate::core::requirements::Operator;
use crate::sim::matching;
use crate::sim::store::Store;

/// Whether a pod's volumes are only where one of its spread constraints lets no pod more be.
///
/// The volumes of a `StatefulSet` stay when it shrinks, and its pods return to them when it grows. Nothing says that the volumes of its first pods
/// are spread as evenly as those of all: where they are not, kube-scheduler refuses every node in the zone of such a volume, a new one, too.
pub(super) fn is_torn(store: &Store, pod: &Pod) -> bool {
    let volumes = volumes_of(store, pod);
    pod.shape.spreads.iter().filter(|spread| spread.required).any(|spread| forbids_all(store, pod, spread, &volumes))
}

/// Whether a budget holds a pod for the sake of others that can run nowhere: it misses them for as long as they wait, and lets nobody go.
///
/// As long as nobody changes the workload or its budget, a drain without a deadline has no end then, whoever drains.
fn is_held_for_torn(store: &Store, pod: &Pod) -> bool {
    store.forbids_for_want_of(pod, |other| other.node.is_none() && is_torn(store, other))
}

/// Whether every pod for which the drain of a NodeClaim's Nodes waits is held like that. Its Nodes are those that name it, whatever ID somebody has
/// written into its status, and those of that ID that name nobody else.
pub(super) fn is_stalled(store: &Store, claim: &Claim) -> bool {
    let named = |node: &Node| claim.provider_id.is_some() && node.provider_id == claim.provider_id;
    let is_own = |node: &&Arc<Node>| node.is_owned_by(claim) || (node.owner_claims.is_empty() && named(node.as_ref()));
    let nodes = store.nodes.values().filter(is_own);
    let pods = nodes.flat_map(|node| store.pods_on(&node.name));
    let waits_for = |pod: &&Arc<Pod>| !pod.is_terminal() && !matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node);
    let mut awaited = pods.filter(waits_for).peekable();
    awaited.peek().is_some() && awaited.all(|pod| is_held_for_torn(store, pod))
}

/// Whether a spread constraint lets a pod be in none of the domains from which its volumes can be reached.
fn forbids_all(store: &Store, pod: &Pod, spread: &TopologySpread, volumes: &[&Arc<Volume>]) -> bool {
    let counts = counts(store, pod, spread);
    let named = volumes.iter().filter_map(|volume| volume.topologies.as_ref()).flatten().flatten();
    let named = named.filter(|line| line.key == spread.key && line.operator == Operator::In);
    let named: BTreeSet<&Arc<str>> = named.flat_map(|line| &line.values).collect();
    // Volumes that can be reached from anywhere tear no pod apart.
    let mut reachable = named.into_iter().filter(|domain| is_reachable(volumes, &spread.key, domain)).peekable();
    reachable.peek().is_some() && reachable.all(|domain| !allows(pod, spread, &counts, domain))
}

fn volumes_of<'s>(store: &'s Store, pod: &Pod) -> Vec<&'s Arc<Volume>> {
    let volume = |name: &Arc<str>| {
        let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
        store.volumes.made.get(store.volumes.claims.get(&key)?.volume.as_ref()?)
    };
    pod.volume_claims.iter().filter_map(volume).collect()
}

fn is_reachable(volumes: &[&Arc<Volume>], key: &Arc<str>, domain: &Arc<str>) -> bool {
    let there = Labels::from([(Arc::clone(key), Arc::clone(domain))]);
    volumes.iter().filter_map(|volume| volume.topologies.as_ref()).all(|terms| {
        terms.iter().any(|term| term.iter().filter(|line| line.key == *key).all(|line| matching::holds(line, &there)))
    })
}

/// How many pods each domain holds that kube-scheduler counts.
fn counts(store: &Store, pod: &Pod, spread: &TopologySpread) -> BTreeMap<Arc<str>, i64> {
    let shape = &pod.shape;
    let takes_part = |node: &&Arc<Node>| {
        shape.spreads.iter().filter(|other| other.required).all(|other| node.labels.contains_key(&other.key))
            && (spread.node_affinity_policy == PolicyHonor::Ignore || matching::attracted(shape, &node.labels))
            && (spread.node_taints_policy == PolicyHonor::Ignore
                || matching::tolerates(&shape.tolerations, &node.taints))
    };
    let mut counts = BTreeMap::new();
    for node in store.nodes.values().filter(takes_part) {
        let Some(domain) = node.labels.get(&spread.key) else { continue };
        let counted = store
            .pods_on(&node.name)
            .filter(|other| !other.is_terminal() && other.deleting.is_none() && is_meant(spread, pod, other));
        *counts.entry(Arc::clone(domain)).or_insert(0) += i64::try_from(counted.count()).unwrap_or(i64::MAX);
    }
    counts
}

fn is_meant(spread: &TopologySpread, pod: &Pod, other: &Pod) -> bool {
    let selects = spread.selector.as_ref().is_some_and(|selector| matching::selects(selector, &other.shape.labels));
    selects && other.key.namespace == pod.key.namespace
}

/// Whether a spread constraint lets a pod be in a domain, on a node that is there or on a new one.
fn allows(pod: &Pod, spread: &TopologySpread, counts: &BTreeMap<Arc<str>, i64>, domain: &Arc<str>) -> bool {
    // With its first node a domain is there, and empty.
    let held = counts.get(domain).copied().unwrap_or(0);
    let domains = counts.len() + usize::from(!counts.contains_key(domain));
    let is_enough = spread.min_domains.is_none_or(|least| usize::try_from(least).is_ok_and(|least| domains >= least));
    let least = if is_enough { counts.values().copied().fold(held, i64::min) } else { 0 };
    held + i64::from(is_meant(spread, pod, pod)) - least <= i64::from(spread.max_skew)
}

#[cfg(test)]
#[path = "possible_tests.rs"]
mod tests;
