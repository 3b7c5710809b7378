//! Which place of the plan is whose at this moment: pods that equal each other change places as turns and nodes come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{Pod, PodShape, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::labels;

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
pub(super) struct Door<'a> {
    closed: bool,
    claim: &'a ClaimName,
    pub(super) node: &'a NodeName,
}

/// The NodeClaims that pods are planned for, and the doors of those whose nodes are there.
pub(super) type Doors<'a> = BTreeMap<&'a ClaimName, Option<Door<'a>>>;

/// The values of the keys by which pods spread, but for the host name.
type Domain<'a> = Vec<Option<&'a str>>;

/// A free place in the order in which it is given away: nodes that are there first, and in rounds.
type Given<'a> = Reverse<(bool, usize, Option<Door<'a>>)>;

/// A pod that waits, and its place in the plan.
type Planned<'a> = (&'a Arc<Pod>, Place<'a>);

/// A place on a planned node: its NodeClaim, and the door, if the node is there.
#[derive(Clone, Copy)]
struct Place<'a> {
    claim: &'a ClaimName,
    door: Option<Door<'a>>,
}

/// Who sits where.
pub(super) struct Seats<'a> {
    /// The pods that are nominated to the nodes of their places, as far as nobody has just tried that.
    pub(super) kept: Vec<(&'a Arc<Pod>, &'a NodeName)>,
    /// Those that are to be nominated, in the order of their turns.
    pub(super) open: Vec<Seat>,
    /// The pods of groups in which everybody was tried to be nominated to a place that is there: as long as none of them goes elsewhere and places stay
    /// what they are, they need not be looked at.
    pub(super) content: Vec<&'a PodUid>,
}

/// A place that is to be given to a pod.
pub(super) struct Seat {
    pub(super) nomination: Nomination,
    /// Its node is about to open.
    pub(super) closed: bool,
}

/// The pods that are planned for nodes that are there.
///
/// Of pods that equal each other, those whose turns come first get the places on the nodes that open first: kube-scheduler goes through its queue
/// as soon as one node is open, and a pod whose own node is closed then takes room that is meant for another. Pods that spread go from domain to domain
/// in the order in which kube-scheduler takes them, which keeps the balance, and take turns with the nodes of each. Who is nominated to a place, or was
/// just tried to be, keeps it. Those who are `content` are left out.
pub(super) fn seats<'a>(
    snapshot: &'a Snapshot,
    doors: &Doors<'a>,
    content: &FxHashSet<PodUid>,
    tried_to: impl Fn(&PodUid) -> Option<&'a NodeName>,
) -> Seats<'a> {
    let mut kept: Vec<(&Arc<Pod>, &NodeName)> = Vec::new();
    let mut open: Vec<(Turn, Seat)> = Vec::new();
    let mut newly_content: Vec<&PodUid> = Vec::new();
    for group in groups(snapshot, doors, content) {
        if let Some(settled) = settled(&group, &tried_to) {
            if settled.is_empty() {
                newly_content.extend(group.iter().map(|(pod, _)| &pod.uid));
            }
            kept.extend(settled);
            continue;
        }
        let keys = group.first().map(|(pod, _)| spread_keys(&pod.shape)).unwrap_or_default();
        let Party { holders, seekers, mut free } = Party::of(snapshot, &group, &tried_to);
        kept.extend(holders.iter().filter(|holder| !holder.was_tried).map(|holder| (holder.pod, holder.node)));
        if free.iter().all(|place| place.door.is_none()) {
            continue;
        }
        let given: Vec<Option<Door<'_>>> = if keys.is_empty() {
            free.sort_by_key(|place| (place.door.is_none(), place.door));
            free.iter().map(|place| place.door).collect()
        } else {
            in_balance(snapshot, &keys, &holders, &seekers, &free)
        };
        for ((turn, pod), door) in seekers.into_iter().zip(given) {
            match door {
                Some(door) if pod.nominated.as_ref() == Some(door.node) => kept.push((pod, door.node)),
                Some(Door { closed, node, .. }) => {
                    let nomination = Nomination { pod: Arc::clone(pod), node: node.clone() };
                    open.push((turn, Seat { nomination, closed }));
                }
                None => {}
            }
        }
    }
    open.sort_by_key(|(turn, _)| *turn);
    Seats { kept, open: open.into_iter().map(|(_, seat)| seat).collect(), content: newly_content }
}

/// A pod of a group that is nominated to a place of it, or was just tried to be.
struct Holder<'a> {
    turn: Turn,
    pod: &'a Arc<Pod>,
    node: &'a NodeName,
    place: Place<'a>,
    was_tried: bool,
}

/// A group: who holds a place, and who is to get one of the others, which are as many.
struct Party<'a> {
    holders: Vec<Holder<'a>>,
    /// In the order of their turns.
    seekers: Vec<(Turn, &'a Arc<Pod>)>,
    free: Vec<Place<'a>>,
}

impl<'a> Party<'a> {
    fn of(snapshot: &'a Snapshot, group: &[Planned<'a>], tried_to: &impl Fn(&PodUid) -> Option<&'a NodeName>) -> Self {
        let mut on: FxHashMap<&NodeName, Vec<Place<'a>>> = FxHashMap::default();
        let mut free = Vec::new();
        for (_, place) in group {
            match place.door {
                Some(door) => on.entry(door.node).or_default().push(*place),
                None => free.push(*place),
            }
        }
        let mut pods: Vec<(Turn, &Arc<Pod>)> = group.iter().map(|(pod, _)| (turn(snapshot, pod), *pod)).collect();
        pods.sort_by_key(|(turn, _)| *turn);
        let (mut holders, mut seekers) = (Vec::new(), Vec::new());
        for (turn, pod) in pods {
            let tried = tried_to(&pod.uid);
            let own = tried.or(pod.nominated.as_ref());
            match own.and_then(|node| Some((node, on.get_mut(node)?.pop()?))) {
                Some((node, place)) => {
                    holders.push(Holder { turn, pod, node, place, was_tried: tried.is_some() });
                }
                None => seekers.push((turn, pod)),
            }
        }
        free.extend(on.into_values().flatten());
        Self { holders, seekers, free }
    }
}

/// When every pod of a group keeps a place, so that nobody is to be nominated: those that keep theirs without having been tried. Most groups are like this
/// as soon as their nodes are open, and whose turn is when does not matter then.
fn settled<'a>(
    group: &[Planned<'a>],
    tried_to: impl Fn(&PodUid) -> Option<&'a NodeName>,
) -> Option<Vec<(&'a Arc<Pod>, &'a NodeName)>> {
    let mut room: FxHashMap<&NodeName, usize> = FxHashMap::default();
    for door in group.iter().filter_map(|(_, place)| place.door) {
        *room.entry(door.node).or_default() += 1;
    }
    let mut kept = Vec::new();
    for (pod, _) in group {
        let tried = tried_to(&pod.uid);
        let node = tried.or(pod.nominated.as_ref())?;
        let left = room.get_mut(node).filter(|left| **left > 0)?;
        *left -= 1;
        if tried.is_none() {
            kept.push((*pod, node));
        }
    }
    Some(kept)
}

/// The pods that wait for a place of the plan: those in a group can change places. Pods with volumes keep the places that suit these.
fn groups<'a>(snapshot: &'a Snapshot, doors: &Doors<'a>, content: &FxHashSet<PodUid>) -> Vec<Vec<Planned<'a>>> {
    let mut groups: Vec<Vec<Planned<'_>>> = Vec::new();
    let mut by_shape: BTreeMap<&PodShape, usize> = BTreeMap::new();
    // Equal shapes are mostly one and the same, and comparing them takes its time.
    let mut group_of: FxHashMap<*const PodShape, usize> = FxHashMap::default();
    for (name, uids) in &snapshot.planned_for {
        let door = doors.get(name).copied().flatten();
        let uids = uids.iter().filter(|uid| !content.contains(*uid));
        for pod in uids.filter_map(|uid| snapshot.pods.get(uid)).filter(|pod| pod.node.is_none()) {
            let next = groups.len();
            let group = if pod.volume_claims.is_empty() {
                *group_of.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| *by_shape.entry(&pod.shape).or_insert(next))
            } else {
                next
            };
            if group == next {
                groups.push(Vec::new());
            }
            groups[group].push((pod, Place { claim: name, door }));
        }
    }
    groups
}

/// The keys by which pods of a shape have to spread.
fn spread_keys(shape: &PodShape) -> Vec<&str> {
    shape.spreads.iter().filter(|spread| spread.required).map(|spread| &*spread.key).collect()
}

/// The doors of free places for pods that spread, one for each of the seekers.
///
/// kube-scheduler lets a pod into a domain only as long as that is not ahead of the others, counting who is bound when its turn comes, wherever the plan has
/// put whom. In the end domains are balanced; so they are at every turn at which as many are still to come in each. Therefore the last come first: whoever has
/// the last turn goes where the fewest follow. In a domain nodes take turns, those that are there first: of pods that spread only a few can be nominated to
/// one node at a time, so those that cannot be are to be the ones whose turns come last.
fn in_balance<'a>(
    snapshot: &'a Snapshot,
    keys: &[&str],
    holders: &[Holder<'a>],
    seekers: &[(Turn, &'a Arc<Pod>)],
    free: &[Place<'a>],
) -> Vec<Option<Door<'a>>> {
    let mut domain_of: FxHashMap<&ClaimName, Domain<'_>> = FxHashMap::default();
    for place in holders.iter().map(|holder| &holder.place).chain(free) {
        domain_of.entry(place.claim).or_insert_with(|| domain(snapshot, keys, place));
    }
    let mut domains: Vec<&Domain<'_>> = domain_of.values().collect();
    domains.sort_unstable();
    domains.dedup();
    let number = |place: &Place<'_>| domains.binary_search(&&domain_of[place.claim]).unwrap_or_default();
    let mut rounds: FxHashMap<&ClaimName, usize> = FxHashMap::default();
    for holder in holders {
        *rounds.entry(holder.place.claim).or_default() += 1;
    }
    // Of each domain; those that are given first are at the end.
    let mut doors: Vec<Vec<Given<'a>>> = vec![Vec::new(); domains.len()];
    for place in free {
        let round = rounds.entry(place.claim).or_default();
        *round += 1;
        doors[number(place)].push(Reverse((place.door.is_none(), *round, place.door)));
    }
    for doors in &mut doors {
        doors.sort_unstable();
    }
    let (mut left, mut follow) = (doors.iter().map(Vec::len).collect::<Vec<_>>(), vec![0_usize; domains.len()]);
    let seeking = seekers.iter().map(|(turn, _)| (*turn, None));
    let held = holders.iter().map(|holder| (holder.turn, Some(number(&holder.place))));
    let mut turns: Vec<(Turn, Option<usize>)> = seeking.chain(held).collect();
    turns.sort_by_key(|(turn, _)| Reverse(*turn));
    let mut to: Vec<usize> = Vec::new();
    for (_, held) in turns {
        let at = if let Some(at) = held {
            at
        } else {
            let open = (0..domains.len()).filter(|at| left[*at] > 0);
            let Some(at) = open.min_by_key(|at| (follow[*at], Reverse(left[*at]), Reverse(*at))) else { break };
            left[at] -= 1;
            to.push(at);
            at
        };
        follow[at] += 1;
    }
    to.into_iter().rev().map(|at| doors[at].pop().and_then(|Reverse((_, _, door))| door)).collect()
}

/// The domain of a place.
fn domain<'a>(snapshot: &'a Snapshot, keys: &[&str], place: &Place<'a>) -> Domain<'a> {
    let claim = snapshot.claims.get(place.claim);
    let node = place.door.and_then(|door| snapshot.nodes.get(door.node));
    let value = |key: &str| {
        let mut labels = node.map(|node| &node.labels).into_iter().chain(claim.map(|claim| &claim.labels));
        labels.find_map(|labels| labels.get(key)).map(|value| &**value)
    };
    keys.iter().filter(|key| **key != labels::HOSTNAME).map(|key| value(key)).collect()
}

fn turn(snapshot: &Snapshot, pod: &Pod) -> Turn {
    let since = snapshot.weighed.get(&pod.uid).copied().or_else(|| snapshot.arrival(&pod.uid));
    (Reverse(pod.shape.priority), since.unwrap_or(u64::MAX))
}

/// The doors of the plan.
pub(super) fn doors<'a>(snapshot: &'a Snapshot, opening: &BTreeSet<ClaimName>) -> Doors<'a> {
    snapshot.planned_for.keys().map(|name| (name, door(snapshot, name, opening))).collect()
}

/// The door of a NodeClaim's node, when pods can be nominated to that: it is open, or about to be.
pub(super) fn door<'a>(snapshot: &'a Snapshot, name: &'a ClaimName, opening: &BTreeSet<ClaimName>) -> Option<Door<'a>> {
    let claim = snapshot.claims.get(name).filter(|claim| claim.deleting.is_none() && !claim.is_rebooting())?;
    let node = snapshot.node_of(claim).filter(|node| node.deleting.is_none())?;
    let closed = !node.is_registered();
    (!closed || opening.contains(name)).then_some(Door { closed, claim: name, node: &node.name })
}
