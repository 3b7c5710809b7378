//! The better of two plans.

use rustc_hash::FxHashSet;

use super::along::along;
use super::script::{Scope, script};
use crate::core::ids::PodUid;
use crate::core::scheduling::bound::Effort;
use crate::core::scheduling::checks::check;
use crate::core::scheduling::ground::Ground;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::problem::Problem;
use crate::core::scheduling::turns::Turns;

/// A plan that is cheaper than this must be so by more than the rounding of sums.
const CHEAPER: f64 = 1.0 - 1e-9;

/// What is spent on seeking the cheapest mix of nodes: two to three seconds, the longest that pods are to wait for a lower price.
const EFFORT: u64 = 1_000_000_000;

/// A plan that places the same pods, and perhaps more, at the same price or a lower one.
///
/// What is tried depends on the problem and the plan alone, and ends by itself when its effort is spent: no clock is asked. The ground is
/// the one that the plan was made on, or any other: it only saves time.
pub fn improved(ground: &mut Ground, problem: &Problem<'_>, plan: Plan) -> Plan {
    within(ground, problem, plan, &Effort::of(EFFORT))
}

fn within(ground: &mut Ground, problem: &Problem<'_>, plan: Plan, effort: &Effort) -> Plan {
    let mut best = plan;
    // Pods that still run somewhere are to come last, and a script has an order of its own.
    let turns_matter = problem.pods.iter().any(|pod| pod.node.is_some() && pod.shape.is_topological());
    if best.claims.is_empty() || turns_matter {
        return best;
    }
    let mut turns: Option<Turns<'_>> = None;
    for scope in [Scope::Free, Scope::All] {
        let groups = ground.with(problem, |mut world| (script(&mut world, &best, scope, effort), world));
        if groups.is_empty() {
            continue;
        }
        let other = ground.with(problem, |world| along(world, &groups));
        if !is_better(&other, &best) {
            continue;
        }
        let turns = turns.get_or_insert_with(|| Turns::new(problem));
        let other = turns.kept(other);
        if turns.late(&other) <= turns.late(&best) && check(problem, &other).is_empty() {
            best = other;
        }
    }
    best
}

fn is_better(other: &Plan, plan: &Plan) -> bool {
    let refused: FxHashSet<&PodUid> = plan.refused.iter().map(|refusal| &refusal.pod).collect();
    other.price < plan.price * CHEAPER && other.refused.iter().all(|refusal| refused.contains(&refusal.pod))
}

#[cfg(test)]
#[path = "better_tests.rs"]
mod tests;
