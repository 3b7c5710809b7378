//! Who is nominated next: the first of those that kube-scheduler will take, each to its place in the plan.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{Pod, PodShape, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};

use super::seats::{Doors, Nomination, Seat, Seats, doors, seats};

/// A pod that has lost more nominations than this gets no further one: kube-scheduler has another opinion, and each costs a request.
const RENOMINATIONS: u32 = 1;
/// The order is worked out anew this often while pods wait: kube-scheduler changes it when it tries a pod in vain, and binds those for which others
/// that spread were held back.
const REORDER: SignedDuration = SignedDuration::from_millis(250);
/// It is worked out less often where many wait: this long for each, which is some ten times what it costs.
const REORDER_PER_POD: SignedDuration = SignedDuration::from_micros(50);

/// Who is still to be nominated, in the order of their turns, and who was.
#[derive(Debug, Default)]
pub struct Nominations {
    queue: VecDeque<Nomination>,
    ordered: Option<Timestamp>,
    /// The pods that were tried to be nominated. One attempt each, until kube-scheduler takes it away: a node that stays closed hurts more than a
    /// pod that goes elsewhere.
    tried: FxHashMap<PodUid, Try>,
    /// Pods that only wait for kube-scheduler, in `places` that are what they were: most of them, most of the time, and each that is looked at costs.
    content: FxHashSet<PodUid>,
    places: Places,
    looked: Looked,
}

/// The pods as they were when the order was last worked out: only what has changed since is looked at.
#[derive(Debug, Default)]
struct Looked {
    pods: OrdMap<PodUid, Arc<Pod>>,
    denominated: OrdMap<PodUid, u32>,
}

#[derive(Debug)]
struct Try {
    node: NodeName,
    /// How many nominations the pod had lost by then.
    lost: u32,
    /// Whom it could change places with.
    shape: Arc<PodShape>,
}

impl Try {
    /// Whether the pod waits for its place, or has taken it.
    fn is_as_it_was(&self, pod: &Pod) -> bool {
        pod.node.as_ref().is_none_or(|node| *node == self.node) && Arc::ptr_eq(&pod.shape, &self.shape)
    }

    /// Whether kube-scheduler has taken the nomination away since.
    fn is_lost(&self, snapshot: &Snapshot, pod: &PodUid) -> bool {
        self.lost < lost(snapshot, pod)
    }
}

/// What the places of a plan depend on.
#[derive(Debug, Default)]
struct Places {
    replanned: u64,
    nodes: BTreeMap<ClaimName, Option<NodeName>>,
}

impl Places {
    fn of(snapshot: &Snapshot, doors: &Doors<'_>) -> Self {
        let nodes = doors.iter().map(|(name, door)| ((*name).clone(), door.map(|door| door.node.clone())));
        Self { replanned: snapshot.replanned, nodes: nodes.collect() }
    }

    /// Whether these are the same, but for NodeClaims that nobody is planned for any more.
    fn are_still(&self, now: &Self) -> bool {
        self.replanned == now.replanned && now.nodes.iter().all(|(name, node)| self.nodes.get(name) == Some(node))
    }
}

impl Nominations {
    /// Who is to be nominated now, as far as nodes are open or among those that are `opening`: no more than `most` of those that are `wanted`, and each
    /// counts as tried.
    ///
    /// Of pods that spread, only so many are nominated to a node at a time as the spread allows: when kube-scheduler weighs a node, it counts
    /// the pods that are nominated to it as if they were there, and of two pods with `maxSkew: 1` neither would be let in.
    pub fn next(
        &mut self,
        snapshot: &Snapshot,
        opening: &BTreeSet<ClaimName>,
        wanted: impl Fn(&Pod, &NodeName) -> bool,
        most: usize,
        now: Timestamp,
    ) -> Vec<Nomination> {
        let many = i32::try_from(snapshot.planned.len()).unwrap_or(i32::MAX);
        let rest = REORDER.max(REORDER_PER_POD.saturating_mul(many));
        if snapshot.planned.is_empty() {
            // Nothing of a burst is kept when it is over.
            *self = Self::default();
        } else if self.ordered.is_none_or(|then| now.duration_since(then) >= rest || then > now) {
            self.ordered = Some(now);
            self.line_up(snapshot, opening, wanted);
        }
        let mut next = Vec::new();
        while next.len() < most
            && let Some(first) = self.queue.pop_front()
        {
            let uid = &first.pod.uid;
            if snapshot.pods.get(uid).is_some_and(|pod| pod.node.is_none()) {
                let (node, shape) = (first.node.clone(), Arc::clone(&first.pod.shape));
                self.tried.insert(uid.clone(), Try { node, lost: lost(snapshot, uid), shape });
                next.push(first);
            }
        }
        next
    }

    /// Follows what has befallen those who were tried. Answers whether somebody went elsewhere, or lost a nomination.
    fn catch_up(&mut self, snapshot: &Snapshot) -> bool {
        let mut is_disturbed = false;
        for change in self.looked.pods.diff(&snapshot.pods) {
            let (uid, pod) = match change {
                DiffItem::Add(uid, pod) | DiffItem::Update { new: (uid, pod), .. } => (uid, Some(pod)),
                DiffItem::Remove(uid, _) => (uid, None),
            };
            let Some(tried) = self.tried.get_mut(uid) else { continue };
            is_disturbed |= pod.is_none_or(|pod| !tried.is_as_it_was(pod));
            match pod.filter(|pod| pod.node.is_none()) {
                Some(pod) => tried.shape = Arc::clone(&pod.shape),
                None => drop(self.tried.remove(uid)),
            }
        }
        for change in self.looked.denominated.diff(&snapshot.denominated) {
            if let DiffItem::Add(uid, _) | DiffItem::Update { new: (uid, _), .. } = change {
                is_disturbed |= self.tried.get(uid).is_some_and(|tried| tried.is_lost(snapshot, uid));
            }
        }
        self.looked = Looked { pods: snapshot.pods.clone(), denominated: snapshot.denominated.clone() };
        is_disturbed
    }

    /// Works out the order.
    fn line_up(
        &mut self,
        snapshot: &Snapshot,
        opening: &BTreeSet<ClaimName>,
        wanted: impl Fn(&Pod, &NodeName) -> bool,
    ) {
        let mut standing: FxHashMap<(NodeName, Arc<PodShape>), usize> = FxHashMap::default();
        let mut stands = |node: &NodeName, shape: &Arc<PodShape>, most: usize| {
            let standing = standing.entry((node.clone(), Arc::clone(shape))).or_default();
            let fits = *standing < most;
            *standing += usize::from(fits);
            fits
        };
        let is_disturbed = self.catch_up(snapshot);
        for (uid, tried) in &self.tried {
            if at_a_time(&tried.shape).is_some() && !tried.is_lost(snapshot, uid) {
                stands(&tried.node, &tried.shape, usize::MAX);
            }
        }
        let doors = doors(snapshot, opening);
        let places = Places::of(snapshot, &doors);
        if is_disturbed || !self.places.are_still(&places) {
            self.content.clear();
        }
        self.places = places;
        let tried_to = |uid: &PodUid| {
            let tried = self.tried.get(uid).filter(|tried| !tried.is_lost(snapshot, uid));
            tried.map(|tried| &tried.node)
        };
        let Seats { kept, open, content } = seats(snapshot, &doors, &self.content, tried_to);
        self.content.extend(content.into_iter().cloned());
        // Nominated before this instance was born.
        for (pod, node) in kept {
            if at_a_time(&pod.shape).is_some() && !self.tried.contains_key(&pod.uid) {
                stands(node, &pod.shape, usize::MAX);
            }
        }
        let (closed, open): (Vec<Seat>, Vec<Seat>) = open
            .into_iter()
            .filter(|Seat { nomination: Nomination { pod, node }, .. }| {
                lost(snapshot, &pod.uid) <= RENOMINATIONS
                    && wanted(pod, node)
                    && at_a_time(&pod.shape).is_none_or(|most| stands(node, &pod.shape, most))
            })
            .partition(|seat| seat.closed);
        // As long as a node is closed kube-scheduler tries those whose turns come first in vain, takes their nominations away, and puts them at the end of
        // its queue. So these come last, and by then it is known whose turns those are.
        let in_order = open.into_iter().chain(closed.into_iter().rev());
        self.queue = in_order.map(|seat| seat.nomination).collect();
    }

    /// The nomination of a pod was not written, and is to be tried again.
    pub fn forget(&mut self, pod: &PodUid) {
        self.tried.remove(pod);
        self.content.clear();
    }

    /// Forgets the order: other nodes open.
    pub fn reorder(&mut self) {
        self.ordered = None;
    }

    /// Whether the order is older than this moment: what has changed since is looked at later.
    pub fn is_outdated(&self, now: Timestamp) -> bool {
        self.ordered != Some(now)
    }

    /// How many are still to be nominated, as far as is known.
    pub fn left(&self) -> usize {
        self.queue.len()
    }

    /// How many pods are nominated and not bound.
    pub fn standing(&self) -> usize {
        self.tried.len()
    }
}

/// How often a pod's nomination was taken away.
fn lost(snapshot: &Snapshot, pod: &PodUid) -> u32 {
    snapshot.denominated.get(pod).copied().unwrap_or_default()
}

/// How many pods of this shape may be nominated to one node at a time; nothing when there is no limit.
fn at_a_time(shape: &PodShape) -> Option<usize> {
    let skews = shape.spreads.iter().filter(|spread| spread.required).map(|spread| spread.max_skew);
    skews.min().map(|skew| usize::try_from(skew).unwrap_or(usize::MAX).max(1))
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
