//! The better of two plans.

use super::afresh::{aimless, dearest_first};
use super::along::{Yields, along};
use super::pack::packed;
use super::script::{Scope, script};
use super::weights::Weights;
use crate::core::ids::PodUid;
use crate::core::scheduling::anew::refused;
use crate::core::scheduling::bound::Effort;
use crate::core::scheduling::checks::{check, crowded};
use crate::core::scheduling::ground::Ground;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::problem::Problem;
use crate::core::scheduling::reason::Reason;
use crate::core::scheduling::turns::Turns;

/// A plan that is cheaper than this must be so by more than the rounding of sums.
const CHEAPER: f64 = 1.0 - 1e-9;

/// What is spent on seeking the cheapest mix of nodes: two to three seconds, the longest that pods are to wait for a lower price.
const EFFORT: u64 = 1_000_000_000;

/// At most so much of it, one part of so many, is set aside for packing: some tenths of a second.
const PACKING: u64 = 10;

/// What packing may spend on a few pods, and on each of many: a small problem is not to wait as long as a large one.
const PACKING_FEW: u64 = 10_000_000;
/// See [`PACKING_FEW`].
const PACKING_EACH: u64 = 40_000;

/// A plan without aims is made where there are at most so many pods times nodes: every pod looks at every node, and with many of both
/// the fillings say more.
const SMALL: usize = 2_000_000;

/// A plan without aims that is dearer than the best by more than this is not packed: it would hardly become the best.
const HOPELESS: f64 = 1.3;

/// A plan that places the same pods at the same price or a lower one, or more pods; none of them goes to a lighter NodePool for it.
///
/// What is tried depends on the problem and the plan alone, and ends by itself when its effort is spent: no clock is asked. The ground is
/// the one that the plan was made on, or any other: it only saves time.
pub fn improved(ground: &mut Ground, problem: &Problem<'_>, plan: Plan) -> Plan {
    within(ground, problem, plan, &Effort::of(EFFORT))
}

fn within(ground: &mut Ground, problem: &Problem<'_>, plan: Plan, effort: &Effort) -> Plan {
    if plan.claims.is_empty() || effort.is_spent() {
        return plan;
    }
    let packing = effort.part(PACKING);
    packing.limit(PACKING_FEW.max(PACKING_EACH * problem.pods.len() as u64));
    let weights = ground.with(problem, |mut world| (Weights::of(&mut world), world));
    let mut contest = Contest { problem, best: plan, turns: None, weights };
    // Pods that still run somewhere are to come last, and a script has an order of its own.
    let turns_matter = problem.pods.iter().any(|pod| pod.node.is_some() && pod.shape.is_topological());
    for scope in [Scope::Free, Scope::All].into_iter().filter(|_| !turns_matter) {
        let groups = ground.with(problem, |mut world| (script(&mut world, &contest.best, scope, effort), world));
        if !groups.is_empty() {
            contest.enter(ground.with(problem, |world| along(world, &groups, Yields::Nothing)));
        }
    }
    let is_small = problem.pods.len().saturating_mul(contest.best.claims.len()) <= SMALL;
    let mut others: Vec<Plan> = Vec::new();
    if is_small {
        others.push(ground.with(problem, aimless));
    }
    if !contest.best.existing.is_empty() {
        others.push(ground.with(problem, |world| dearest_first(world, &contest.best)));
    }
    let hopeful = |other: &&Plan| other.price <= contest.best.price * HOPELESS;
    let starts: Vec<Plan> = std::iter::once(&contest.best).chain(others.iter().filter(hopeful)).cloned().collect();
    let mut parts = starts.len() as u64;
    for start in starts {
        let share = packing.part(parts);
        parts -= 1;
        if let Some(other) = ground.with(problem, |mut world| (packed(&mut world, &start, &share), world)) {
            contest.enter(other);
        }
    }
    for other in others {
        contest.enter(other);
    }
    if contest.best.refused.iter().flat_map(|refusal| &refusal.reasons).any(Reason::is_of_limit) {
        // Nodes are charged to the limits with what they aim at, which may have been more than they came to be.
        let as_it_is: Vec<Vec<PodUid>> =
            contest.best.claims.iter().map(|claim| claim.pods.iter().map(|pod| pod.uid.clone()).collect()).collect();
        contest.enter(ground.with(problem, |world| along(world, &as_it_is, Yields::Wishes)));
    }
    contest.best
}

/// Plans against each other.
struct Contest<'p> {
    problem: &'p Problem<'p>,
    best: Plan,
    turns: Option<Turns<'p>>,
    weights: Option<Weights>,
}

impl Contest<'_> {
    /// One more plan, which stays if it places more or is cheaper, and is as good otherwise.
    fn enter(&mut self, other: Plan) {
        if !is_better(&other, &self.best)
            || self.weights.as_ref().is_some_and(|weights| !weights.keeps(&other, &self.best))
        {
            return;
        }
        let turns = self.turns.get_or_insert_with(|| Turns::new(self.problem));
        let other = turns.kept(other);
        if turns.late(&other) <= turns.late(&self.best)
            && check(self.problem, &other).is_empty()
            && crowded(self.problem, &other) <= crowded(self.problem, &self.best)
        {
            self.best = other;
        }
    }
}

fn is_better(other: &Plan, plan: &Plan) -> bool {
    let (now, before) = (refused(other), refused(plan));
    now.is_subset(&before) && (now.len() < before.len() || other.price < plan.price * CHEAPER)
}

#[cfg(test)]
#[path = "better_tests.rs"]
mod tests;
