//! The weights of NodePools, to which an improved plan keeps: no lower price draws pods to a lighter one.

use rustc_hash::FxHashMap;

use crate::core::ids::{PodUid, PoolName};
use crate::core::scheduling::order::all_alone;
use crate::core::scheduling::plan::{Plan, PlannedClaim};
use crate::core::scheduling::world::World;

/// What the weights of NodePools say of the plans for a problem.
pub(super) struct Weights {
    of: FxHashMap<PoolName, i32>,
    /// The heaviest weight of which a new node would do for a pod, limits aside.
    heaviest: FxHashMap<PodUid, i32>,
}

impl Weights {
    /// Nothing where all NodePools have one weight.
    pub(super) fn of(world: &mut World<'_>) -> Option<Self> {
        let of: FxHashMap<PoolName, i32> =
            world.pools.iter().map(|pool| (pool.fact.name.clone(), pool.fact.weight)).collect();
        let first = world.pools.first()?.fact.weight;
        if of.values().all(|weight| *weight == first) {
            return None;
        }
        let alone = all_alone(world);
        let pods = world.pods.iter().zip(&world.class_of);
        let heaviest = pods.filter_map(|(pod, class)| Some((pod.uid.clone(), alone[*class as usize]?.0))).collect();
        Some(Self { of, heaviest })
    }

    /// Whether `other` keeps to them as `plan` does: no more pods are on new nodes of lighter NodePools, but for those that had no place, and no more
    /// new nodes are of a lighter one than any of their pods needs.
    pub(super) fn keeps(&self, other: &Plan, plan: &Plan) -> bool {
        let mut weights: Vec<i32> = plan.claims.iter().chain(&other.claims).map(|claim| self.weight(claim)).collect();
        weights.sort_unstable();
        weights.dedup();
        // Of all together there may be more: what exists may be used less.
        weights.pop();
        let more = plan.refused.len().saturating_sub(other.refused.len());
        weights.into_iter().all(|most| self.up_to(other, most) <= self.up_to(plan, most) + more)
            && self.needless(other) <= self.needless(plan) + more
    }

    fn weight(&self, claim: &PlannedClaim) -> i32 {
        self.of.get(&claim.draft.pool).copied().unwrap_or_default()
    }

    /// Pods on new nodes of NodePools of at most this weight.
    fn up_to(&self, plan: &Plan, most: i32) -> usize {
        plan.claims.iter().filter(|claim| self.weight(claim) <= most).map(|claim| claim.pods.len()).sum()
    }

    /// New nodes of lighter NodePools than any of their pods needs.
    fn needless(&self, plan: &Plan) -> usize {
        let is_needless = |claim: &&PlannedClaim| {
            let own = self.weight(claim);
            claim.pods.iter().all(|pod| self.heaviest.get(&pod.uid).is_some_and(|heaviest| *heaviest > own))
        };
        plan.claims.iter().filter(is_needless).count()
    }
}
