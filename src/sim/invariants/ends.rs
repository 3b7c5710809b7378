//! What must hold when faults have stopped for a while, and when everything was deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::possible::{is_stalled, is_torn};
use super::watch::Invariants;
use crate::core::facts::{Claim, Node, Pod, PodPhase};
use crate::core::ids::{NodeName, PodUid};
use crate::core::labels;
use crate::core::promises::Invariant;
use crate::sim::store::Store;

/// How long a calm world may take to launch a machine, to drain it, or to run a pod: longer than the registration timeout and the longest
/// protection of a pod, and half of the time that passes between the last fault and the look.
const BOUND: SignedDuration = SignedDuration::from_mins(60);

/// What joiner says of its memory when the cluster is empty.
pub struct Memory {
    /// What is left there, and how many of it.
    pub left: Vec<(String, usize)>,
    /// Who did not say it, however often he was asked.
    pub silent: Vec<String>,
}

impl Invariants {
    /// Faults have stopped long enough ago: every pod that can run does, every NodeClaim is whole or gone unless budgets hold its pods for others that
    /// cannot run, every machine has its NodeClaim. What has happened since is given its time. `said` is what the actors of NodeClaims say that they wait for, `refused` why pods got no place.
    pub fn settled(&self, said: &BTreeMap<String, String>, refused: &BTreeMap<PodUid, Vec<String>>) {
        let mut broken = Vec::new();
        let store = self.cluster.store();
        let late = |since: Timestamp| store.now().duration_since(since) > BOUND;
        let machines = self.cloud.machines();
        for record in store.pods.values() {
            let pod = &record.pod;
            if pod.phase != PodPhase::Running && !pod.is_terminal() && late(pod.created) && !is_torn(&store, pod) {
                let place = match (&pod.node, &pod.nominated) {
                    (Some(node), _) => format!("node {node}"),
                    (None, Some(node)) => format!("no node, but a nomination to {}", seen(&store, node)),
                    (None, None) => "no node".to_owned(),
                };
                let why =
                    refused.get(&pod.uid).map_or_else(|| "joiner refuses it nothing".to_owned(), |why| why.join("; "));
                let what =
                    format!("pod {} is {:?}, has {place}, and was created {} ({why})", pod.key, pod.phase, pod.created);
                broken.push((Invariant::PodsRun, vec![pod.key.to_string()], what));
            }
        }
        for claim in store.claims.values() {
            if !late(claim.deleting.unwrap_or(claim.created)) {
                continue;
            }
            // A deadline ends a drain that a budget has stopped; without one nothing does.
            if claim.deleting.is_some() && claim.termination_grace.is_none() && is_stalled(&store, claim) {
                continue;
            }
            let id = claim.provider_id.as_ref();
            let runs = machines.iter().any(|machine| Some(&machine.machine.id) == id && machine.gone_at.is_none());
            let nodes: Vec<_> =
                store.nodes.values().filter(|node| id.is_some() && node.provider_id.as_ref() == id).collect();
            let Some(problem) = problem(claim, runs, &nodes) else { continue };
            let mut objects = vec![claim.name.to_string()];
            objects.extend(id.map(ToString::to_string));
            objects.extend(nodes.iter().map(|node| node.name.to_string()));
            let waits = said.get(claim.name.as_str()).map_or("nobody looks after it", String::as_str);
            let mut what = format!("NodeClaim {} {problem} ({waits})", claim.name);
            let pods = store.pods.values().map(|record| &record.pod);
            let is_there = |pod: &&Arc<Pod>| nodes.iter().any(|node| pod.node.as_ref() == Some(&node.name));
            for pod in pods.filter(is_there) {
                let held = if store.forbids(pod) { ", held by its budget" } else { "" };
                what = format!("{what}; on its node {} ({:?}{held})", pod.key, pod.phase);
                objects.push(pod.key.to_string());
            }
            broken.push((Invariant::Settles, objects, what));
        }
        for machine in machines.iter().filter(|machine| machine.gone_at.is_none()) {
            let id = &machine.machine.id;
            let claim = machine.machine.claim.as_ref().and_then(|name| store.claims.get(name));
            if machine.machine.created.is_some_and(late)
                && claim.is_none_or(|claim| claim.provider_id.as_ref() != Some(id))
            {
                let what = match claim {
                    None => format!("machine {id} runs and no NodeClaim claims it"),
                    Some(claim) => {
                        let waits = said.get(claim.name.as_str()).map_or("nobody looks after it", String::as_str);
                        let other = claim.provider_id.as_ref().map_or("none", |other| other.as_str());
                        format!(
                            "machine {id} runs and its NodeClaim {} names {other} as its machine ({waits})",
                            claim.name
                        )
                    }
                };
                broken.push((Invariant::NoOrphan, self.objects_of(id), what));
            }
        }
        drop(store);
        for (invariant, objects, what) in broken {
            self.broken(invariant, objects, what);
        }
    }

    /// Everything was deleted long enough ago: nothing is left, in the world or in joiner's memory. `said` is what actors of NodeClaims say that
    /// are left all the same.
    pub fn emptied(&self, memory: Memory, said: &BTreeMap<String, String>) {
        let mut left = Vec::new();
        {
            let store = self.cluster.store();
            left.extend(store.claims.keys().map(|name| (format!("NodeClaim {name}"), name.to_string())));
            left.extend(store.nodes.keys().map(|name| (format!("Node {name}"), name.to_string())));
            left.extend(
                store.pods.values().map(|record| (format!("pod {}", record.pod.key), record.pod.key.to_string())),
            );
        }
        let machines = self.cloud.machines();
        left.extend(machines.iter().map(|m| (format!("machine {}", m.machine.id), m.machine.id.to_string())));
        for (what, object) in left {
            self.broken(Invariant::NothingLeft, vec![object], format!("{what} is left"));
        }
        for name in memory.silent {
            let sentence = format!("the cluster is empty, and {name} does not say what is left in its memory");
            self.broken(Invariant::MemoryReturns, vec![name], sentence);
        }
        for (what, number) in memory.left.into_iter().filter(|(_, number)| *number > 0) {
            let sentence = format!("the cluster is empty, and joiner remembers {number} {what}");
            self.broken(Invariant::MemoryReturns, vec![what], sentence);
        }
        for (name, state) in said {
            let sentence = format!("the cluster is empty, and the actor of NodeClaim {name} lives: {state}");
            self.broken(Invariant::MemoryReturns, vec![name.clone()], sentence);
        }
    }

    /// Something waits without a reason.
    pub fn waits_without_reason(&self, name: &str, state: &str) {
        let what = format!("{name} is {state} and does not say what it waits for");
        self.broken(Invariant::WaitsHaveReasons, vec![name.to_owned()], what);
    }
}

/// What is wrong with a NodeClaim that has had its time; nothing when it is whole.
fn problem(claim: &Claim, runs: bool, nodes: &[&Arc<Node>]) -> Option<String> {
    if claim.deleting.is_some() {
        return Some("is still being deleted".to_owned());
    }
    if !runs {
        return Some("has no machine".to_owned());
    }
    let [node] = nodes else {
        return Some(if nodes.is_empty() { "has no Node".to_owned() } else { format!("has {} Nodes", nodes.len()) });
    };
    if !claim.has_finalizer() {
        return Some("has lost its finalizer".to_owned());
    }
    if !claim.is("Ready") {
        return Some("is not ready".to_owned());
    }
    let fences = [labels::UNREGISTERED_TAINT, labels::DISRUPTED_TAINT];
    let fence = node.taints.iter().find(|taint| fences.contains(&&*taint.key));
    let why = if node.deleting.is_some() {
        "is being deleted".to_owned()
    } else if !node.is_ready() {
        "is not ready".to_owned()
    } else if !node.is_registered() {
        format!("has no label {}", labels::REGISTERED)
    } else if !node.has_finalizer() {
        "has no finalizer of joiner's".to_owned()
    } else if !node.is_owned_by(claim) {
        "does not name it as its owner".to_owned()
    } else {
        format!("has the taint {}", fence?.key)
    };
    Some(format!("is Ready, and its Node {} {why}", node.name))
}

/// A node as one looks at it who wonders why a pod does not go there.
fn seen(store: &Store, name: &NodeName) -> String {
    let Some(node) = store.nodes.get(name) else { return format!("node {name}, which is not there") };
    let taints: Vec<&str> = node.taints.iter().map(|taint| &*taint.key).collect();
    let pods: Vec<String> = store.pods_on(name).map(|pod| pod.key.to_string()).collect();
    let (ready, zone) = (node.is_ready(), node.labels.get(labels::ZONE).map_or("nowhere", |zone| zone));
    format!("node {name} (in {zone}, ready: {ready}, taints: {}, pods: {})", taints.join(" "), pods.join(" "))
}

#[cfg(test)]
#[path = "ends_tests.rs"]
mod tests;
