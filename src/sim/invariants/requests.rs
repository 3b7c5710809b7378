//! What is looked at before each request of joiner that could do harm.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::watch::Invariants;
use crate::core::facts::{Claim, Node};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, ProviderId};
use crate::core::labels;
use crate::core::lifecycle::is_waited_for;
use crate::core::promises::Invariant;
use crate::sim::kubelet::node_name;
use crate::sim::store::Store;

/// What came no longer ago, a pod or a volume, may not be known yet: the API server's own word on what is there is good for a minute, and it and the order
/// may each be a minute on their way. That a watch is late is no excuse: nobody relies on it. The same is true of a volume that is free since a pod that
/// nobody waited for has gone at last.
const JUST_NOW: Duration = Duration::from_mins(3);

/// The NodeClaim and the token in the mark of a machine.
type Mark<'a> = (&'a ClaimName, &'a ClaimUid);

impl Invariants {
    /// joiner is about to order a machine down.
    pub(in crate::sim) fn machine_to_be_deleted(&self, id: &ProviderId) {
        let Some((claim, token)) = self.mark_of(id) else { return };
        let (Some(name), Some(token)) = (claim, token) else {
            let what = format!("machine {id} carries no mark and is ordered down");
            return self.broken(Invariant::NoClaimedMachineDeleted, self.objects_of(id), what);
        };
        let claimed = claim_of(&self.cluster.store(), (&name, &token))
            .is_some_and(|claim| claim.deleting.is_none() && !self.is_twin(id, &token, claim.provider_id.as_ref()));
        let is_given = self.was_ordered_down(id);
        self.node_to_be_left(id, (&name, &token), is_given);
        self.orphan_to_be_left(id, (&name, &token), is_given);
        if claimed {
            let what =
                format!("machine {id} is ordered down, and NodeClaim {name}, which nobody has deleted, claims it");
            self.broken(Invariant::NoClaimedMachineDeleted, self.objects_of(id), what);
        }
    }

    /// A machine is about to be ordered down: the pods of its node must have left it, and their volumes must have gone. What came a moment ago does
    /// not count, nor, once it was ordered, who comes though the node is closed.
    fn node_to_be_left(&self, id: &ProviderId, whose: Mark<'_>, is_given: bool) {
        let all_left = {
            let store = self.cluster.store();
            let Some(claim) = claim_of(&store, whose).filter(|claim| claim.deleting.is_some()) else { return };
            let now = store.now().max((self.clock)());
            if self.deadline(claim).is_some_and(|deadline| deadline <= now) {
                return;
            }
            // An order that was given is not taken back for the pods that came after it; but they are asked to leave.
            let nodes: Vec<_> = nodes_of(&store, id).filter(|node| !is_given || !is_disrupted(node)).collect();
            left_on(&store, &nodes, now)
        };
        self.ordered_too_early(id, whose.0, all_left, "");
    }

    /// The same of a machine that no NodeClaim is deleted for: its pods may be taken past their time, but not without having been asked to leave, nor
    /// before that time is over.
    fn orphan_to_be_left(&self, id: &ProviderId, whose: Mark<'_>, is_given: bool) {
        let (now, nodes, is_stripped) = {
            let store = self.cluster.store();
            if claim_of(&store, whose).is_some_and(|claim| claim.deleting.is_some()) {
                return;
            }
            let nodes: Vec<_> = nodes_of(&store, id).cloned().collect();
            (store.now().max((self.clock)()), nodes, store.stripped.contains(labels::DISRUPTED_TAINT))
        };
        let is_early = |node: &Node| !is_given && self.deadlines_of(node).iter().all(|deadline| *deadline > now);
        // Where a policy takes the taint back, that joiner has asked for it is enough: it writes the deadline with it.
        let is_open = |node: &Node| !is_disrupted(node) && !is_stripped;
        let early: Vec<_> = nodes.iter().filter(|node| is_open(node) || is_early(node)).collect();
        let all_left = left_on(&self.cluster.store(), &early, now);
        self.ordered_too_early(id, whose.0, all_left, ", that of an orphan, and their time to leave is not over");
    }

    fn ordered_too_early(&self, id: &ProviderId, name: &ClaimName, all_left: [Left; 2], whose: &str) {
        for (invariant, left, how) in all_left.into_iter().filter(|(_, left, _)| !left.is_empty()) {
            let what = format!("machine {id} is ordered down with {} {how} its node{whose}", left.join(", "));
            let objects = [name.to_string(), id.to_string()].into_iter().chain(left).collect();
            self.broken(invariant, objects, what);
        }
    }

    /// joiner is about to delete a NodeClaim. Of a namesake the API server takes no notice.
    pub(in crate::sim) fn nodeclaim_to_be_deleted(&self, name: &ClaimName, uid: &ClaimUid) {
        let serving = {
            let store = self.cluster.store();
            let is_meant = |claim: &&Arc<Claim>| claim.uid == *uid && claim.deleting.is_none();
            let Some(claim) = store.claims.get(name).filter(is_meant) else { return };
            // The machine that was launched for it, whatever ID somebody has written into it.
            self.machines_of(claim).into_iter().find(|id| {
                let registered = |node: &Arc<Node>| node.provider_id.as_ref() == Some(id) && node.is_registered();
                (claim.is("Registered") || store.nodes.values().any(registered))
                    && !is_expired(claim, store.now().max((self.clock)()))
                    // A reboot that fails ends like this, and says so.
                    && !(claim.is_rebooting() && self.reboot_has_failed(id))
                    && is_wanted(&store, id)
            })
        };
        if let Some(id) = serving {
            let what =
                format!("joiner deletes NodeClaim {name}, whose machine {id} runs and whose Node nobody has deleted");
            self.broken(Invariant::NoServingClaimDeleted, vec![name.to_string(), id.to_string()], what);
        }
    }
}

/// The NodeClaim that a machine's mark names: one that was made anew under that name is another.
fn claim_of<'a>(store: &'a Store, (name, token): Mark<'_>) -> Option<&'a Arc<Claim>> {
    store.claims.get(name).filter(|claim| claim.uid == *token)
}

fn nodes_of<'a>(store: &'a Store, id: &'a ProviderId) -> impl Iterator<Item = &'a Arc<Node>> {
    store.nodes.values().filter(move |node| node.provider_id.as_ref() == Some(id))
}

/// What has not left a node, as of which promise, and how it is there.
type Left = (Invariant, Vec<String>, &'static str);

/// The pods and the volumes that have not left the nodes of a machine.
fn left_on(store: &Store, nodes: &[&Arc<Node>], now: Timestamp) -> [Left; 2] {
    let nodes: Vec<_> = nodes.iter().map(|node| &node.name).collect();
    let old = |since: &Instant| since.elapsed() > JUST_NOW;
    // A pod that nobody waits for, a stuck one say, goes on using its volumes.
    let staying = nodes.iter().flat_map(|node| store.pods_on(node)).filter(|pod| !is_waited_for(pod, now));
    let used: Vec<_> = staying.flat_map(|pod| store.attachable(pod)).collect();
    let all = store.volumes.attachments.values().filter(|one| nodes.contains(&&one.node));
    let all = all.filter(|one| one.volume.as_ref().is_none_or(|volume| !used.contains(volume)));
    let known = all.filter(|one| store.volumes.since.get(&one.name).is_some_and(old));
    let volumes = known.filter(|one| {
        store.volumes.last_user.get(&one.name).is_none_or(|(went, pod)| {
            let then = now.saturating_sub(went.elapsed().try_into().unwrap_or(SignedDuration::MAX));
            old(went) || then.is_ok_and(|then| is_waited_for(pod, then))
        })
    });
    let volumes = volumes.map(|one| one.name.to_string()).collect();
    let pods = nodes.iter().flat_map(|node| settled_pods(store, node, now)).collect();
    [(Invariant::PodsFirst, pods, "running on"), (Invariant::VolumesFirst, volumes, "attached to")]
}

/// Pods that run on a node since more than a moment, and that a drain of it would wait for, by joiner's own clock.
fn settled_pods(store: &Store, node: &NodeName, now: Timestamp) -> Vec<String> {
    let settled = store.pods_on(node).filter(|pod| {
        let started = pod.started.is_some_and(|at| store.now().duration_since(at).unsigned_abs() > JUST_NOW);
        started && is_waited_for(pod, now)
    });
    settled.map(|pod| pod.key.to_string()).collect()
}

fn is_expired(claim: &Claim, now: Timestamp) -> bool {
    let age = claim.expire_after.and_then(|age| SignedDuration::try_from(age).ok());
    age.is_some_and(|age| claim.created.saturating_add(age).is_ok_and(|end| end <= now))
}

/// Whether a machine has its Node, the one that its kubelet has made, and nobody deletes that.
fn is_wanted(store: &Store, id: &ProviderId) -> bool {
    store.nodes.get(&node_name(id)).is_some_and(|node| node.deleting.is_none())
}

fn is_disrupted(node: &Node) -> bool {
    node.taints.iter().any(|taint| &*taint.key == labels::DISRUPTED_TAINT)
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
