//! Which place of the plan is whose at this moment: pods that equal each other change places as turns and nodes come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{Pod, PodShape, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};

/// A pod, and the node that it is to be nominated to.
#[derive(Clone, PartialEq, Debug)]
pub struct Nomination {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The node that was planned for it, or for a pod that equals it.
    pub node: NodeName,
}

/// When kube-scheduler takes a pod: the highest priority first, then by when it came into the queue, or was last tried in vain.
type Turn = (Reverse<i32>, u64);

/// A node to which pods can be nominated. Those that are closed open in the order of their NodeClaims' names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Door<'a> {
    closed: bool,
    claim: &'a ClaimName,
    node: &'a NodeName,
}

/// A pod that waits, and the door of its place in the plan, if its node is there.
type Planned<'a> = (&'a Arc<Pod>, Option<Door<'a>>);

/// The pods that are planned for nodes that are there, in the order of their turns.
///
/// Of pods that equal each other, those whose turns come first get the places on the nodes that open first: kube-scheduler goes through its queue
/// as soon as one node is open, and a pod whose own node is closed then takes room that is meant for another. Places for pods that spread stay in the
/// order in which kube-scheduler was thought to take them, which keeps the balance. Who is nominated to a place, or was just tried to be, keeps it.
pub(super) fn seats<'a>(
    snapshot: &'a Snapshot,
    opening: &BTreeSet<ClaimName>,
    tried_to: impl Fn(&PodUid) -> Option<&'a NodeName>,
) -> Vec<Nomination> {
    let mut seated: Vec<(Turn, Nomination)> = Vec::new();
    let mut sit = |pod: &Arc<Pod>, node: &NodeName| {
        seated.push((turn(snapshot, pod), Nomination { pod: Arc::clone(pod), node: node.clone() }));
    };
    for mut group in groups(snapshot, opening) {
        if group.first().is_some_and(|(pod, _)| pod.shape.spreads.iter().any(|spread| spread.required)) {
            group.sort_by_cached_key(|(pod, _)| snapshot.arrival(&pod.uid));
        } else {
            group.sort_by_key(|(_, door)| (door.is_none(), *door));
        }
        let mut free: Vec<Option<Door<'_>>> = group.iter().map(|(_, door)| *door).collect();
        let mut on: FxHashMap<&NodeName, VecDeque<usize>> = FxHashMap::default();
        for (place, door) in (0..).zip(&free) {
            if let Some(door) = door {
                on.entry(door.node).or_default().push_back(place);
            }
        }
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        group.retain(|(pod, _)| {
            let own = tried_to(&pod.uid).or(pod.nominated.as_ref());
            let place = own.and_then(|node| on.get_mut(node)?.pop_front());
            if let (Some(place), Some(node)) = (place, own) {
                kept.insert(place);
                sit(pod, node);
            }
            place.is_none()
        });
        let mut place = 0..;
        free.retain(|_| place.next().is_some_and(|place| !kept.contains(&place)));
        group.sort_by_cached_key(|(pod, _)| turn(snapshot, pod));
        for ((pod, _), door) in group.into_iter().zip(free) {
            if let Some(door) = door {
                sit(pod, door.node);
            }
        }
    }
    seated.sort_by_key(|(turn, _)| *turn);
    seated.into_iter().map(|(_, place)| place).collect()
}

/// The pods that wait for a place of the plan: those in a group can change places. Pods with volumes keep the places that suit these.
fn groups<'a>(snapshot: &'a Snapshot, opening: &BTreeSet<ClaimName>) -> Vec<Vec<Planned<'a>>> {
    let mut groups: Vec<Vec<Planned<'_>>> = Vec::new();
    let mut by_shape: BTreeMap<&PodShape, usize> = BTreeMap::new();
    // Equal shapes are mostly one and the same, and comparing them takes its time.
    let mut group_of: FxHashMap<*const PodShape, usize> = FxHashMap::default();
    for (name, uids) in &snapshot.planned_for {
        let door = door(snapshot, name, opening);
        for pod in uids.iter().filter_map(|uid| snapshot.pods.get(uid)).filter(|pod| pod.node.is_none()) {
            let next = groups.len();
            let group = if pod.volume_claims.is_empty() {
                *group_of.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| *by_shape.entry(&pod.shape).or_insert(next))
            } else {
                next
            };
            if group == next {
                groups.push(Vec::new());
            }
            groups[group].push((pod, door));
        }
    }
    groups
}

fn turn(snapshot: &Snapshot, pod: &Pod) -> Turn {
    let since = snapshot.weighed.get(&pod.uid).copied().or_else(|| snapshot.arrival(&pod.uid));
    (Reverse(pod.shape.priority), since.unwrap_or(u64::MAX))
}

/// The door of a NodeClaim's node, when pods can be nominated to that: it is open, or about to be.
fn door<'a>(snapshot: &'a Snapshot, name: &'a ClaimName, opening: &BTreeSet<ClaimName>) -> Option<Door<'a>> {
    let claim = snapshot.claims.get(name).filter(|claim| claim.deleting.is_none() && !claim.is_rebooting())?;
    let node = snapshot.node_of(claim).filter(|node| node.deleting.is_none())?;
    let closed = !node.is_registered();
    (!closed || opening.contains(name)).then_some(Door { closed, claim: name, node: &node.name })
}
