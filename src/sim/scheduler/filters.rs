//! Which nodes can take a pod: resources, taints, node affinity, host ports, topology spread, pod (anti-)affinity both ways.

use super::board::{Board, Slot, SlotId};
use super::groups::{Group, Key};
use super::shapes::{Known, Rule, tolerated};
use crate::core::facts::{PolicyHonor, TopologySpread};
use crate::core::ids::PodUid;
use crate::sim::matching;

/// The topology rules of a pod against the pods there are: what each value of each key holds now.
pub(super) struct Topology {
    spreads: Vec<Spread>,
    affinity: Vec<Vec<u64>>,
    /// No pod that the affinity means is anywhere, and the pod means itself: it may be the first.
    first_of_its_kind: bool,
    /// Own anti-affinity and that of others: values that hold any of these pods are out.
    repelled: Vec<(Rule, Vec<u64>)>,
}

struct Spread {
    rule: Rule,
    held: Vec<u64>,
    /// The most that a value may hold before the pod is added.
    most: u64,
}

impl Topology {
    /// Counts once for all nodes.
    pub(super) fn count(known: &mut Known, board: &Board) -> Self {
        let required: Vec<(TopologySpread, Rule)> = known
            .shape
            .spreads
            .iter()
            .zip(&known.spreads)
            .filter(|(spread, _)| spread.required)
            .map(|(spread, rule)| (spread.clone(), *rule))
            .collect();
        let spreads = required.into_iter().map(|(spread, rule)| Spread::count(known, board, &spread, rule)).collect();
        let held = |rule: &Rule| sum(board.groups.group(rule.group), board.groups.key(rule.key));
        let nowhere = known.affinity.iter().all(|rule| held(rule).iter().sum::<u64>() == 0);
        Self {
            spreads,
            affinity: known.affinity.iter().map(held).collect(),
            first_of_its_kind: nowhere && known.affinity.iter().all(|rule| rule.own),
            repelled: known.anti_affinity.iter().chain(&known.inverse).map(|rule| (*rule, held(rule))).collect(),
        }
    }

    /// Whether a node keeps the rules.
    pub(super) fn allows(&self, known: &Known, board: &Board, slot: SlotId) -> bool {
        let domain = |rule: &Rule| board.groups.key(rule.key).by_slot[slot];
        self.spreads.iter().all(|spread| domain(&spread.rule).is_some_and(|at| spread.held[at] <= spread.most))
            && known
                .affinity
                .iter()
                .zip(&self.affinity)
                .all(|(rule, held)| domain(rule).is_some_and(|at| held[at] > 0 || self.first_of_its_kind))
            && self.repelled.iter().all(|(rule, held)| domain(rule).is_none_or(|at| held[at] == 0))
    }
}

impl Spread {
    fn count(known: &mut Known, board: &Board, spread: &TopologySpread, rule: Rule) -> Self {
        let (group, key) = (board.groups.group(rule.group), board.groups.key(rule.key));
        let mut held = vec![0; key.size()];
        let mut counted = vec![false; key.size()];
        for (id, slot) in board.iter() {
            let Some(domain) = key.by_slot[id] else { continue };
            // Only nodes that carry all the keys of the pod's spread rules are looked at, as in kube-scheduler.
            let complete = known.spreads.iter().all(|other| board.groups.key(other.key).by_slot[id].is_some());
            if complete && takes_part(known, spread, id, slot) {
                counted[domain] = true;
                held[domain] += u64::from(group.by_slot.get(id).copied().unwrap_or(0));
            }
        }
        let domains = counted.iter().filter(|counted| **counted).count();
        let enough = spread.min_domains.is_none_or(|least| usize::try_from(least).is_ok_and(|least| domains >= least));
        let least = held.iter().zip(&counted).filter(|(_, counted)| **counted).map(|(held, _)| *held).min();
        let least = if enough { least.unwrap_or(0) } else { 0 };
        let skew = u64::try_from(spread.max_skew).unwrap_or(1);
        // held + own - least <= skew. With a pod that does not count itself one more is legal.
        Self { rule, held, most: (least + skew).saturating_sub(u64::from(rule.own)) }
    }
}

/// Whether a node is counted by a spread rule.
fn takes_part(known: &mut Known, spread: &TopologySpread, id: SlotId, slot: &Slot) -> bool {
    match (spread.node_affinity_policy, spread.node_taints_policy) {
        (PolicyHonor::Honor, PolicyHonor::Honor) => known.suits(id, slot),
        (affinity, taints) => {
            (affinity == PolicyHonor::Ignore || matching::attracted(&known.shape, &slot.node.labels))
                && (taints == PolicyHonor::Ignore || tolerated(&known.shape, slot))
        }
    }
}

/// Whether a node has the room and the ports, the room that is kept for nominated pods left out.
pub(super) fn has_room(known: &Known, slot: &Slot, uid: &PodUid) -> bool {
    let shape = &known.shape;
    if !shape.requests.fits(&slot.free) {
        return false;
    }
    let taken = |port| slot.ports.values().flatten().any(|other| matching::collide(port, other));
    if shape.host_ports.iter().any(taken) {
        return false;
    }
    if shape.requests.fits(&slot.open) {
        return true;
    }
    let reserved = slot.reserved.range(shape.priority..);
    let mut room = slot.free.clone();
    for (_, kept) in reserved {
        room.subtract(kept);
    }
    if slot.nominated.contains_key(uid) {
        // What is kept for the pod itself does not stand in its way.
        room.add(&shape.requests);
    }
    shape.requests.fits(&room)
}

fn sum(group: &Group, key: &Key) -> Vec<u64> {
    let mut held = vec![0; key.size()];
    for (domain, count) in key.by_slot.iter().zip(&group.by_slot) {
        if let Some(domain) = domain {
            held[*domain] += u64::from(*count);
        }
    }
    held
}
