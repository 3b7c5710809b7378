//! Opening together: the nodes of one plan lose their `karpenter.sh/unregistered` taint at one time, as far as that can be had.
//!
//! kube-scheduler goes through its queue whenever a node can take pods, and a pod whose own node cannot yet takes room on another, if there is some
//! that no nomination keeps; with it goes the balance that the plan had for pods that spread. On a real control plane a quarter of 300 mixed
//! pods landed elsewhere, some found no place any more, and more nodes were bought. So a node that is there and ready waits for the others, for
//! a while, and only where a pod is concerned whose place depends on others.
//!
//! Nodes get ready at different times, too, and an open node that is not ready is as good as closed: in the simulated world, whose nodes are ready 3 to
//! 8 seconds after they appear, 13 nodes that were opened together when all were there became 15 to 17. So a node stays closed until it is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Node, Pod, Snapshot, Taint};
use crate::core::ids::{ClaimName, NodeName, PodUid, PoolName};
use crate::core::labels;

/// Nodes that are not there are given up after this long in which none has come. Machines of real clouds take tens of seconds and do not come at one
/// time: of seven whose boot takes 20 to 40 seconds, two in a row are more than 10 seconds apart in one of eight histories, more than 15 in one of hundreds.
const QUIET: SignedDuration = SignedDuration::from_secs(15);
/// Longest wait for nodes that are not there. A node that is bought in addition, because pods found their places taken, takes twice as long.
const FOR_NODES: SignedDuration = SignedDuration::from_secs(30);
/// A node that does not get ready is kept closed for no longer than this: what makes it ready (its network, say) may not tolerate the taint.
const FOR_READINESS: SignedDuration = SignedDuration::from_secs(20);
/// Nodes stay closed while the pods that wait for open ones, times those that wait for closed ones, are more than this. kube-scheduler takes those of an
/// earlier plan first, and whenever it weighs all nodes for one of them it copies each pod that is nominated to any (15 µs): of 10,000 pods in two plans
/// those of the first came in at 12 a second while those of the second were nominated too, and at 60 without.
const IN_FRONT: usize = 1_000_000;
/// For no longer than this.
const FOR_THOSE_IN_FRONT: SignedDuration = SignedDuration::from_secs(75);
/// kube-scheduler is thought to have seen nominations to closed nodes when this has passed for each of them since they were written. It watches nodes and pods one
/// beside the other: where both cores were busy, it knew that nodes were open up to seconds before it knew who was nominated to them, and of 1,000 pods
/// 7 to 35 % were not bound where they were planned, as others without a nomination were there before them. With this wait it is 2 to 8 %.
const HEARD: Duration = Duration::from_millis(2);
/// It is not thought to take longer than this.
const HEARD_AT_MOST: Duration = Duration::from_secs(3);
/// A node that is there opens by itself after this long, should word of it get lost: longer than others are waited for and nominations take.
pub const AT_MOST: SignedDuration = SignedDuration::from_mins(2);

/// The NodeClaims whose nodes are there and closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// They are not ready; since when they are there.
    starting: BTreeMap<ClaimName, Timestamp>,
    /// They are ready and wait for others; since when.
    waiting: BTreeMap<ClaimName, Timestamp>,
    /// They may open, and have not yet been seen open.
    released: BTreeSet<ClaimName>,
    /// NodePools whose last node was not ready in time: their nodes open as soon as they are there, until one of them is ready while it is closed.
    impatient: BTreeSet<PoolName>,
    /// What it was looked at last.
    looked: Looked,
}

/// What decides on who is at the door, and on whether they open.
#[derive(Clone, Debug, Default, PartialEq)]
struct Looked {
    claims: OrdMap<ClaimName, Arc<Claim>>,
    nodes: OrdMap<NodeName, Arc<Node>>,
    replanned: u64,
    /// For how many NodeClaims pods that wait were planned.
    expected: usize,
    /// There were too many pods before those whose nodes are at the door: that changes with the pods.
    behind: bool,
}

impl Looked {
    fn at(snapshot: &Snapshot, behind: bool) -> Self {
        let (claims, nodes) = (snapshot.claims.clone(), snapshot.nodes.clone());
        Self { claims, nodes, replanned: snapshot.replanned, expected: snapshot.planned_for.len(), behind }
    }

    fn is_still(&self, snapshot: &Snapshot) -> bool {
        !self.behind
            && self.replanned == snapshot.replanned
            && self.expected == snapshot.planned_for.len()
            && self.claims.ptr_eq(&snapshot.claims)
            && self.nodes.ptr_eq(&snapshot.nodes)
    }
}

impl Opening {
    /// Looks who is there, and lets those open that may: all, when nobody is missing who may be waited for.
    pub fn look(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<ClaimName> {
        // Pods are bound by the hundred while nobody comes to the door and nobody's time is up.
        if self.looked.is_still(snapshot) && self.look_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        let is_there = |name: &ClaimName| at_the_door(snapshot, name).is_some();
        self.starting.retain(|name, _| is_there(name) && is_expected(snapshot, name));
        self.waiting.retain(|name, _| is_there(name) && is_expected(snapshot, name));
        self.released.retain(is_there);
        for name in snapshot.planned_for.keys() {
            if !self.released.contains(name)
                && !self.waiting.contains_key(name)
                && let Some((claim, node)) = at_the_door(snapshot, name)
                && self.is_done_starting(claim, node, now)
            {
                self.starting.remove(name);
                self.waiting.insert(name.clone(), now);
            }
        }
        self.looked = Looked::at(snapshot, self.is_behind(snapshot, now));
        let names: Vec<ClaimName> = if self.looked.behind {
            Vec::new()
        } else if self.is_anybody_missing(snapshot, now) {
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

    /// How many wait to be ready, or for others.
    pub fn waiting(&self) -> usize {
        self.starting.len() + self.waiting.len()
    }

    /// When time alone lets somebody open; nothing when nobody waits. All else is a change of the snapshot.
    pub fn look_at(&self) -> Option<Timestamp> {
        let ready = self.starting.values().min().map(|since| (since, FOR_READINESS));
        let quiet = self.waiting.values().max().map(|last| (last, QUIET));
        let late = self.waiting.values().min().map(|first| (first, FOR_NODES));
        let moments = [ready, quiet, late].into_iter().flatten();
        moments.map(|(since, wait)| since.saturating_add(wait).unwrap_or(Timestamp::MAX)).min()
    }

    /// Whether a node is ready but for being closed, or has had its time.
    fn is_done_starting(&mut self, claim: &Claim, node: &Node, now: Timestamp) -> bool {
        let pool = claim.pool();
        if is_ready(claim, node) {
            pool.map(|pool| self.impatient.remove(&pool));
            return true;
        }
        let since = *self.starting.entry(claim.name.clone()).or_insert(now);
        let had_its_time = now.duration_since(since) >= FOR_READINESS;
        if had_its_time {
            self.impatient.extend(pool.clone());
        }
        had_its_time || pool.is_some_and(|pool| self.impatient.contains(&pool))
    }

    /// Whether the first has waited for this long.
    fn has_waited(&self, now: Timestamp, wait: SignedDuration) -> bool {
        self.waiting.values().min().is_none_or(|first| now.duration_since(*first) >= wait)
    }

    /// Whether kube-scheduler is to get on with the pods of open nodes first.
    fn is_behind(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        if self.has_waited(now, FOR_THOSE_IN_FRONT) {
            return false;
        }
        let (mut before, mut after) = (0_usize, 0_usize);
        for (name, pods) in &snapshot.planned_for {
            let node = snapshot.claims.get(name).and_then(|claim| snapshot.node_of(claim));
            *if node.is_some_and(|node| node.is_registered()) { &mut before } else { &mut after } += pods.len();
        }
        before.saturating_mul(after) > IN_FRONT
    }

    /// Whether a node is to be waited for that is not there, or not ready.
    fn is_anybody_missing(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        let quiet = self.waiting.values().max().is_none_or(|last| now.duration_since(*last) >= QUIET);
        if quiet || self.has_waited(now, FOR_NODES) {
            return false;
        }
        let mut others = snapshot.planned_for.keys().filter(|name| !self.waiting.contains_key(*name));
        others.any(|name| match snapshot.claims.get(name) {
            None => true,
            Some(claim) => {
                is_on_its_way(claim) && (snapshot.node_of(claim).is_none() || self.starting.contains_key(name))
            }
        })
    }
}

/// How long after the last of so many nominations nodes may open.
pub fn heard_after(nominations: usize) -> Duration {
    HEARD.saturating_mul(u32::try_from(nominations).unwrap_or(u32::MAX)).min(HEARD_AT_MOST)
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

/// A NodeClaim whose node is there and closed, and that node.
fn at_the_door<'a>(snapshot: &'a Snapshot, name: &ClaimName) -> Option<(&'a Claim, &'a Node)> {
    let claim = snapshot.claims.get(name).filter(|claim| is_on_its_way(claim))?;
    let node = snapshot.node_of(claim).filter(|node| !node.is_registered())?;
    Some((claim, node))
}

/// Whether pods could be bound to a node if it were open. Startup taints that it has not got yet are on their way.
fn is_ready(claim: &Claim, node: &Node) -> bool {
    let keeps_out = |taint: &Taint| &*taint.key != labels::UNREGISTERED_TAINT && claim.goes_at_start(taint);
    (claim.startup_taints.is_empty() || node.was_registered()) && !node.taints.iter().any(keeps_out)
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
