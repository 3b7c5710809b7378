//! Which of the nodes that can take a pod suits it best: kube-scheduler's default scores with their default weights, simplified.

use fastrand::Rng;

use super::board::{Board, Slot, SlotId};
use super::groups::KeyId;
use super::shapes::{Known, Rule};
use crate::core::facts::{Effect, PodShape};
use crate::core::resources::ResourceName;
use crate::sim::matching;

/// kube-scheduler's scores run from 0 to this.
const BEST: i64 = 100;

/// Raw scores of a node, not yet comparable with each other.
struct Raw {
    slot: SlotId,
    /// Least allocated and balanced, 0 to 100 each.
    resources: i64,
    /// Pods that it had better be away from: fewer is better.
    crowd: i64,
    /// Weighted preferences met: more is better.
    liked: i64,
    /// Taints that ask to stay away: fewer is better.
    taints: i64,
}

/// The best of the nodes that can take the pod; ties are broken by chance.
pub(super) fn best(known: &Known, board: &Board, feasible: &[SlotId], rng: &mut Rng) -> Option<SlotId> {
    if let [only] = feasible {
        return Some(*only);
    }
    let counts = Counts::new(known, board);
    let raw: Vec<Raw> = feasible
        .iter()
        .filter_map(|id| Some((*id, board.slots[*id].as_ref()?)))
        .map(|(id, slot)| Raw {
            slot: id,
            resources: resources(&known.shape, slot),
            crowd: counts.crowd(board, id),
            liked: counts.liked(board, id) + node_preferences(&known.shape, slot),
            taints: soft_taints(&known.shape, slot),
        })
        .collect();
    let most = |of: fn(&Raw) -> i64| raw.iter().map(of).max().unwrap_or(0);
    let least = |of: fn(&Raw) -> i64| raw.iter().map(of).min().unwrap_or(0);
    let (crowd, taints) = (most(|raw| raw.crowd), most(|raw| raw.taints));
    let (liked, disliked) = (most(|raw| raw.liked), least(|raw| raw.liked));
    let down = |value: i64, most: i64| if most == 0 { BEST } else { BEST * (most - value) / most };
    let up = |value: i64| if liked == disliked { 0 } else { BEST * (value - disliked) / (liked - disliked) };
    // Weights: resources 1 + 1 (already added up), spread 2, affinities 2, taints 3.
    let total =
        |raw: &Raw| raw.resources + 2 * down(raw.crowd, crowd) + 2 * up(raw.liked) + 3 * down(raw.taints, taints);
    let mut winner = None;
    let mut ties = 0;
    for raw in &raw {
        let score = total(raw);
        match winner {
            Some((best, _)) if score < best => {}
            Some((best, _)) if score == best => {
                ties += 1;
                if rng.usize(..ties) == 0 {
                    winner = Some((score, raw.slot));
                }
            }
            _ => {
                ties = 1;
                winner = Some((score, raw.slot));
            }
        }
    }
    winner.map(|(_, slot)| slot)
}

/// Least allocated plus balanced allocation of CPU and memory.
fn resources(shape: &PodShape, slot: &Slot) -> i64 {
    let share = |name: &ResourceName| {
        let all = slot.node.allocatable.get(name);
        let left = slot.free.get(name) - shape.requests.get(name);
        // In 128 bits, since thousandths of a byte times a hundred may not fit.
        if all <= 0 { 0 } else { i64::try_from(i128::from(left) * i128::from(BEST) / i128::from(all)).unwrap_or(0) }
    };
    let (cpu, memory) = (share(&ResourceName::Cpu), share(&ResourceName::Memory));
    i64::midpoint(cpu, memory) + BEST - (cpu - memory).abs() / 2
}

fn node_preferences(shape: &PodShape, slot: &Slot) -> i64 {
    let met =
        shape.node_affinity.preferred.iter().filter(|preference| {
            preference.term.iter().all(|requirement| matching::holds(requirement, &slot.node.labels))
        });
    met.map(|preference| i64::from(preference.weight)).sum()
}

fn soft_taints(shape: &PodShape, slot: &Slot) -> i64 {
    let soft = slot.node.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
    let untolerated = soft.filter(|taint| !shape.tolerations.iter().any(|toleration| toleration.tolerates(taint)));
    i64::try_from(untolerated.count()).unwrap_or(i64::MAX)
}

/// What the soft rules of a pod count, summed once for all nodes.
struct Counts {
    crowd: Vec<(KeyId, Vec<i64>)>,
    liked: Vec<(KeyId, i64, Vec<i64>)>,
    alike: super::groups::GroupId,
}

impl Counts {
    fn new(known: &Known, board: &Board) -> Self {
        let soft = known.shape.spreads.iter().zip(&known.spreads).filter(|(spread, _)| !spread.required);
        let preferred = known.preferred_affinity.iter().map(|(weight, rule)| (i64::from(*weight), rule));
        let avoided = known.preferred_anti_affinity.iter().map(|(weight, rule)| (-i64::from(*weight), rule));
        Self {
            crowd: soft.map(|(_, rule)| (rule.key, sum(board, rule))).collect(),
            liked: preferred.chain(avoided).map(|(weight, rule)| (rule.key, weight, sum(board, rule))).collect(),
            alike: known.alike,
        }
    }

    fn crowd(&self, board: &Board, slot: SlotId) -> i64 {
        let alike = board.groups.group(self.alike).by_slot.get(slot).copied().unwrap_or(0);
        let spread = |(key, held): &(KeyId, Vec<i64>)| board.groups.key(*key).by_slot[slot].map_or(0, |at| held[at]);
        i64::from(alike) + self.crowd.iter().map(spread).sum::<i64>()
    }

    fn liked(&self, board: &Board, slot: SlotId) -> i64 {
        let value = |(key, weight, held): &(KeyId, i64, Vec<i64>)| {
            board.groups.key(*key).by_slot[slot].map_or(0, |at| weight * held[at])
        };
        self.liked.iter().map(value).sum()
    }
}

fn sum(board: &Board, rule: &Rule) -> Vec<i64> {
    let (group, key) = (board.groups.group(rule.group), board.groups.key(rule.key));
    let mut held = vec![0; key.size()];
    for (domain, count) in key.by_slot.iter().zip(&group.by_slot) {
        if let Some(domain) = domain {
            held[*domain] += i64::from(*count);
        }
    }
    held
}
