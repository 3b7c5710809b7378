//! Opening together: the nodes of one plan lose their `karpenter.sh/unregistered` taint at one time, as far as that can be had.
//!
//! kube-scheduler takes pods in an order of its own. A spread pod whose node is still closed when its turn comes goes to another one, if that has
//! room left, and with it goes the balance that the plan had for the pods behind it: on a real control plane a quarter of 300 mixed pods
//! landed elsewhere, some found no place any more, and more nodes were bought. So a node that is there waits for the others, for a short
//! while, and only where a pod is concerned whose place depends on others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Pod, Snapshot};
use crate::core::ids::{ClaimName, PodUid};

/// Nodes that have not appeared are given up after this long in which none has. Machines of real clouds take tens of seconds and do not come at one
/// time; this is a small part of that, and more than nodes need to appear whose machines come at one time.
const QUIET: SignedDuration = SignedDuration::from_secs(3);
/// Longest wait for nodes that have not appeared.
const FOR_NODES: SignedDuration = SignedDuration::from_secs(10);
/// A node that is there opens by itself after this long, should word of it get lost: longer than others are waited for and nominations take.
pub const AT_MOST: SignedDuration = SignedDuration::from_mins(2);

/// The NodeClaims whose nodes are there and wait to open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// Since when.
    waiting: BTreeMap<ClaimName, Timestamp>,
    /// They may open, and have not yet been seen open.
    released: BTreeSet<ClaimName>,
}

impl Opening {
    /// Looks who is there, and lets those open that may: all, when nobody is missing who may be waited for.
    pub fn look(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<ClaimName> {
        let ready = |name: &ClaimName| snapshot.claims.get(name).is_some_and(|claim| is_at_the_door(claim, snapshot));
        self.waiting.retain(|name, _| ready(name) && is_expected(snapshot, name));
        self.released.retain(ready);
        for name in snapshot.planned_for.keys().filter(|name| !self.released.contains(*name) && ready(name)) {
            self.waiting.entry(name.clone()).or_insert(now);
        }
        let names: Vec<ClaimName> = if self.is_anybody_missing(snapshot, now) {
            self.waiting.keys().filter(|name| !is_balanced(snapshot, name)).cloned().collect()
        } else {
            self.waiting.keys().cloned().collect()
        };
        for name in &names {
            self.waiting.remove(name);
            self.released.insert(name.clone());
        }
        names
    }

    /// How many wait for others.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a node is to be waited for that is not there.
    fn is_anybody_missing(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        let (Some(first), Some(last)) = (self.waiting.values().min(), self.waiting.values().max()) else {
            return false;
        };
        if now.duration_since(*first) >= FOR_NODES || now.duration_since(*last) >= QUIET {
            return false;
        }
        let mut others = snapshot.planned_for.keys().filter(|name| !self.waiting.contains_key(*name));
        others.any(|name| match snapshot.claims.get(name) {
            None => true,
            Some(claim) => is_on_its_way(claim) && snapshot.node_of(claim).is_none(),
        })
    }
}

/// Whether pods that wait are planned for a NodeClaim: its node opens when it is told to.
pub fn is_expected(snapshot: &Snapshot, claim: &ClaimName) -> bool {
    waiting_for(snapshot, claim).next().is_some()
}

fn waiting_for<'a>(snapshot: &'a Snapshot, claim: &ClaimName) -> impl Iterator<Item = &'a Pod> {
    let uids = snapshot.planned_for.get(claim).into_iter().flatten();
    uids.filter_map(|uid: &PodUid| snapshot.pods.get(uid)).map(|pod| &**pod).filter(|pod| pod.node.is_none())
}

/// Whether a NodeClaim's node will open, as far as can be seen.
fn is_on_its_way(claim: &Claim) -> bool {
    claim.deleting.is_none() && claim.broken.is_none() && !claim.is("Registered")
}

/// Whether its node is there, and closed.
fn is_at_the_door(claim: &Claim, snapshot: &Snapshot) -> bool {
    is_on_its_way(claim) && snapshot.node_of(claim).is_some_and(|node| !node.is_registered())
}

/// Whether the place of a pod that is planned for a NodeClaim depends on other pods: the balance of the plan is not to be lost.
fn is_balanced(snapshot: &Snapshot, claim: &ClaimName) -> bool {
    waiting_for(snapshot, claim).any(depends_on_others)
}

/// Whether other pods decide on where this one may go.
fn depends_on_others(pod: &Pod) -> bool {
    let shape = &pod.shape;
    shape.spreads.iter().any(|spread| spread.required) || !shape.affinity.is_empty() || !shape.anti_affinity.is_empty()
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
