//! The weights of NodePools, to which an improved plan keeps: no lower price draws pods to a lighter one.

use rustc_hash::FxHashMap;

use crate::core::ids::{PodUid, PoolName};
use crate::core::scheduling::classes::Class;
use crate::core::scheduling::place::Load;
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
        let classes = std::mem::take(&mut world.classes);
        let by_class: Vec<Option<i32>> = classes.iter().map(|class| heaviest(world, class)).collect();
        world.classes = classes;
        let pods = world.pods.iter().zip(&world.class_of);
        let heaviest = pods.filter_map(|(pod, class)| Some((pod.uid.clone(), by_class[*class as usize]?))).collect();
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

/// The weight of the heaviest NodePool that can make a node for a pod alone. The pools of a world are in the order of their weights.
fn heaviest(world: &mut World<'_>, class: &Class) -> Option<i32> {
    (0..world.pools.len()).find_map(|pool| {
        let site = &world.pools[pool];
        let (base, taints, weight) = (site.base, site.taints, site.fact.weight);
        let holds = class.variants.iter().any(|variant| {
            world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints)
                && world.algebra.join(base, variant.term).is_some_and(|joined| {
                    let types = world.algebra.profile(joined).types.clone();
                    !world.holding_at_best(pool, joined, &types, Load::of_pod(class)).is_empty()
                })
        });
        holds.then_some(weight)
    })
}
