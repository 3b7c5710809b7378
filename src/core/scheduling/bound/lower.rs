//! The bound itself: prices of pods are sought, and then made sure of.

use super::effort::Effort;
use super::relax::{Relaxed, WHOLE, relax};
use super::search::{Aim, sought};
use super::spokesmen::{OF_CUT_PODS, OF_PROOF, Speaks, spokesmen};
use crate::core::scheduling::ground::Ground;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::problem::Problem;
use crate::core::scheduling::world::World;

/// What is spent on a bound at most: some three seconds. What is certain by then is the answer.
const EFFORT: u64 = 2_000_000_000;
/// The same for [`quick_lower_bound`]: half a second.
const QUICK: u64 = 250_000_000;
/// What is taken off for the rounding of floating-point numbers, which is a thousand times smaller.
const SAFETY: f64 = 1e-9;

/// The least that any plan costs which places the pods that `plan` places, in USD per hour: no such plan is cheaper.
///
/// Pods on nodes that exist cost nothing. Constraints between pods, limits and weights of NodePools only make plans dearer, and are not
/// looked at, but for pods that cannot share a node with their like.
pub fn lower_bound(problem: &Problem<'_>, plan: &Plan) -> f64 {
    if plan.claims.is_empty() {
        return 0.0;
    }
    of(&relax(&mut World::new(problem), plan), &Effort::of(EFFORT))
}

/// The same with less effort, and so perhaps lower, for whoever has other things to do and keeps a [`Ground`]: that is needed for a moment
/// only; what takes long is left to the caller.
pub fn quick_lower_bound(ground: &mut Ground, problem: &Problem<'_>, plan: &Plan) -> impl FnOnce() -> f64 + use<> {
    let buys = !plan.claims.is_empty();
    let relaxed = buys.then(|| ground.with(problem, |mut world| (relax(&mut world, plan), world)));
    move || relaxed.map_or(0.0, |relaxed| of(&relaxed, &Effort::of(QUICK)))
}

/// The bound of a covering problem.
pub(super) fn of(relaxed: &Relaxed, effort: &Effort) -> f64 {
    let kinds = relaxed.wants.len();
    let many = if kinds > OF_CUT_PODS { of_many(relaxed, effort) } else { 0.0 };
    let bound = many.max(if kinds > WHOLE {
        sought(&spokesmen(relaxed, OF_PROOF, Speaks::Least).0, Aim::Bound, effort).bound
    } else {
        sought(relaxed, Aim::Bound, effort).bound
    });
    if bound.is_finite() { (bound * (1.0 - SAFETY)).max(0.0) } else { 0.0 }
}

/// The bound for more kinds of pods than a program can have rows: a program of a few that stand for the others tells what room is worth
/// in each bin, and a pod is worth the least that it would pay for room in any bin that it may go to.
fn of_many(relaxed: &Relaxed, effort: &Effort) -> f64 {
    let (few, _) = spokesmen(relaxed, OF_CUT_PODS, Speaks::Mean);
    let prices = sought(&few, Aim::CutBound, effort).prices;
    if prices.is_empty() {
        return 0.0;
    }
    let mut worth = vec![f64::INFINITY; relaxed.wants.len()];
    let mut saved = 0.0;
    let free = relaxed.free.iter().map(|bin| (bin, true));
    let bins = relaxed.bins.iter().map(|bin| (bin, false)).chain(free);
    let usual = usual(&few, &prices);
    for ((bin, is_free), prices) in bins.zip(&prices) {
        let room: f64 = bin.room.iter().zip(prices).map(|(room, price)| room * price).sum();
        // Room in a bin that nobody wanted is priced as elsewhere, so that the bin costs what it costs.
        let (prices, room) = if room > 0.0 { (prices, room) } else { (&usual, dot(&usual, &bin.room)) };
        let scale = if is_free {
            saved += room;
            1.0
        } else if room > 0.0 {
            bin.price / room
        } else {
            0.0
        };
        for (want, _) in &bin.takes {
            worth[*want] = worth[*want].min(scale * dot(prices, &relaxed.wants[*want].need));
        }
    }
    let all: f64 = relaxed
        .wants
        .iter()
        .zip(&worth)
        .filter(|(_, worth)| worth.is_finite())
        .map(|(want, worth)| want.count * worth)
        .sum();
    all - saved
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What a unit of each resource is worth on the average of the bins that somebody wanted.
fn usual(relaxed: &Relaxed, prices: &[Vec<f64>]) -> Vec<f64> {
    let dimensions = relaxed.wants.first().map_or(0, |want| want.need.len());
    let priced = relaxed.bins.iter().zip(prices).filter(|(_, prices)| prices.iter().any(|price| *price > 0.0));
    let (mut sum, mut count) = (vec![0.0; dimensions], 0.0);
    for (_, prices) in priced {
        sum.iter_mut().zip(prices).for_each(|(sum, price)| *sum += price);
        count += 1.0;
    }
    sum.into_iter().map(|price| if count > 0.0 { price / count } else { 0.0 }).collect()
}

#[cfg(test)]
#[path = "lower_tests.rs"]
mod tests;
