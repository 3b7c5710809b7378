//! The bound itself: prices of pods are sought, and then made sure of.

use super::covering::Covering;
use super::knapsack::{Filling, branched, cut, rounded};
use super::relax::{Bin, Relaxed, WHOLE, Want, relax, to_buy};
use super::spokesmen::{OF_CUT_PODS, OF_MIX, OF_PROOF, Speaks, spokesmen};
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::problem::Problem;
use crate::core::scheduling::shelf::Amounts;
use crate::core::scheduling::world::World;

/// How often new fillings are sought. What has been found by then is used.
const ROUNDS: usize = 120;
/// How far from the best certain prices towards the program's own fillings are sought.
const STEP: f64 = 0.4;
/// A bound that is this close to the best that could come of it is good enough.
const CLOSE: f64 = 2e-4;
/// Branches that are looked at to prove that nothing better fits into a bin.
const PATIENCE: usize = 400;
/// So many times more are looked at in the end.
const PROOF: usize = 10;
/// The search ends when the price of the mix falls by less than [`FLAT`] in so many rounds.
const PLATEAU: usize = 10;
/// See [`PLATEAU`].
const FLAT: f64 = 1e-3;
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
    let relaxed = relax(&mut World::new(problem), plan);
    of(&relaxed)
}

/// How many nodes, and what is in each.
pub(in crate::core::scheduling) struct Share {
    /// Nodes, fractions counted.
    pub(in crate::core::scheduling) nodes: f64,
    /// The room of one, beside daemons.
    pub(in crate::core::scheduling) room: Amounts,
    /// Pods of each want.
    pub(in crate::core::scheduling) amounts: Vec<(usize, f64)>,
}

/// The cheapest mix of fillings, fractions of nodes counted.
pub(in crate::core::scheduling) struct Mix {
    /// What it consists of.
    pub(in crate::core::scheduling) fillings: Vec<Share>,
    /// What a pod of each want is worth.
    pub(in crate::core::scheduling) worth: Vec<f64>,
    /// The classes of each want.
    pub(in crate::core::scheduling) classes: Vec<Vec<usize>>,
    /// Whether a want stands for pods that differ in size, so that a filling holds more or fewer of them.
    pub(in crate::core::scheduling) is_rough: bool,
}

/// The cheapest mix of new nodes for so many pods of each class; nothing when there are no pods.
pub(in crate::core::scheduling) fn mix(world: &mut World<'_>, counts: &[u32]) -> Option<Mix> {
    let (mut relaxed, mut classes) = to_buy(world, counts);
    if relaxed.wants.is_empty() {
        return None;
    }
    let is_rough = relaxed.wants.len() > WHOLE;
    if is_rough {
        let (few, parts) = spokesmen(&relaxed, OF_MIX, Speaks::Mean);
        let together = |part: &Vec<usize>| part.iter().flat_map(|want| classes[*want].iter().copied()).collect();
        classes = parts.iter().map(together).collect();
        relaxed = few;
    }
    let (program, ..) = sought(&relaxed, true);
    let (worth, _) = program.worth();
    let fillings = program.mix().into_iter().map(|(nodes, bin, amounts)| {
        let room = relaxed.bins[bin].room.iter().zip(&relaxed.unit).map(|(room, unit)| whole(room * unit)).collect();
        Share { nodes, room, amounts }
    });
    Some(Mix { fillings: fillings.collect(), worth, classes, is_rough })
}

#[expect(clippy::cast_possible_truncation, reason = "rooms were whole numbers before they were made shares")]
fn whole(amount: f64) -> i64 {
    amount.round() as i64
}

/// The bound of a covering problem.
pub(super) fn of(relaxed: &Relaxed) -> f64 {
    let bound = if relaxed.wants.len() > WHOLE {
        let (fewer, _) = spokesmen(relaxed, OF_PROOF, Speaks::Least);
        of_many(relaxed).max(sought(&fewer, true).1)
    } else {
        sought(relaxed, true).1
    };
    if bound.is_finite() { (bound * (1.0 - SAFETY)).max(0.0) } else { 0.0 }
}

/// The program, the best bound found, and what a unit of each resource of each bin (the free ones last) was worth in it.
///
/// Fillings are sought for prices between those of the program and the best that are certain: the program's own jump about, and what is
/// found for them is seldom of use for long.
fn sought(relaxed: &Relaxed, whole: bool) -> (Covering, f64, Vec<Vec<f64>>) {
    let wants = &relaxed.wants;
    let mut program = Covering::new(relaxed);
    let (mut best, mut prices) = (0.0_f64, Vec::new());
    let mut centre: Option<Vec<f64>> = None;
    let mut is_between = false;
    let mut before = f64::INFINITY;
    for round in 1..=ROUNDS {
        program.solve();
        let (worth, _) = program.worth();
        let tried = match centre.as_ref().filter(|_| is_between) {
            Some(centre) => worth.iter().zip(centre).map(|(own, sure)| sure + (own - sure) * STEP).collect(),
            None => worth.clone(),
        };
        let fill = |bin| if whole { filled(bin, wants, &tried, PATIENCE) } else { cut(bin, wants, &tried, false) };
        let fillings: Vec<Filling> = relaxed.bins.iter().map(fill).collect();
        let free: Vec<Filling> = relaxed.free.iter().map(|bin| cut(bin, wants, &tried, whole)).collect();
        let mut found = 0;
        for (bin, filling) in relaxed.bins.iter().enumerate().zip(&fillings) {
            let value: f64 = filling.amounts.iter().map(|(want, many)| worth[*want] * many).sum();
            if value > bin.1.price * (1.0 + CLOSE / 4.0) {
                program.add(bin, &filling.amounts);
                found += 1;
            }
        }
        if is_between {
            // The program's own prices show what is still missing in it, roughly.
            for (at, bin) in relaxed.bins.iter().enumerate() {
                let cut = cut(bin, wants, &worth, whole);
                if cut.at_most > bin.price * (1.0 + CLOSE) {
                    let amounts = if whole { rounded(bin, wants, &worth, &cut) } else { cut.amounts };
                    let value: f64 = amounts.iter().map(|(want, many)| worth[*want] * many).sum();
                    if value > bin.price * (1.0 + CLOSE) {
                        program.add((at, bin), &amounts);
                        found += 1;
                    }
                }
            }
        }
        for (at, filling) in free.iter().enumerate().filter(|(_, filling)| !filling.amounts.is_empty()) {
            program.add_free(at, &filling.amounts);
        }
        let (certain, sure) = certain(relaxed, &tried, &fillings, whole);
        if certain > best || prices.is_empty() {
            best = best.max(certain);
            prices = fillings.iter().chain(&free).map(|filling| filling.prices.clone()).collect();
            centre = Some(sure);
        }
        let is_done = found == 0 && free.is_empty() && !is_between;
        let is_flat =
            round % PLATEAU == 0 && std::mem::replace(&mut before, program.price()) * (1.0 - FLAT) < program.price();
        if is_done || is_flat || best >= program.price() * (1.0 - CLOSE) {
            break;
        }
        // Nothing new between the two: then at the program's own prices.
        is_between = found > 0;
    }
    // The search is over; what it found is worth a closer look at what cannot be better.
    if let Some(centre) = centre.filter(|_| whole && best < program.price() * (1.0 - CLOSE)) {
        program.solve();
        for worth in [centre, program.worth().0] {
            let fillings: Vec<Filling> =
                relaxed.bins.iter().map(|bin| filled(bin, wants, &worth, PATIENCE * PROOF)).collect();
            best = best.max(certain(relaxed, &worth, &fillings, whole).0);
        }
    }
    (program, best, prices)
}

/// The best filling with whole pods that is found in time.
fn filled(bin: &Bin, wants: &[Want], worth: &[f64], patience: usize) -> Filling {
    let cut = cut(bin, wants, worth, true);
    let start = rounded(bin, wants, worth, &cut);
    branched(bin, wants, worth, &cut, start, patience)
}

/// What is certain whatever the worth of the pods, and their worth that makes it so: each is scaled until no bin that it may go to can
/// hold more than it costs. Then all pods together are a bound, less what the free bins can hold.
fn certain(relaxed: &Relaxed, worth: &[f64], fillings: &[Filling], whole: bool) -> (f64, Vec<f64>) {
    let mut scales = vec![f64::INFINITY; worth.len()];
    for (bin, filling) in relaxed.bins.iter().zip(fillings).filter(|(_, filling)| filling.at_most > 0.0) {
        let scale = bin.price / filling.at_most;
        for (want, _) in &bin.takes {
            scales[*want] = scales[*want].min(scale);
        }
    }
    // What may go nowhere, or is worth nothing wherever it goes, stays worth nothing.
    let scaled = |(worth, scale): (&f64, f64)| if scale.is_finite() { worth * scale } else { 0.0 };
    let sure: Vec<f64> = worth.iter().zip(scales).map(scaled).collect();
    let all: f64 = relaxed.wants.iter().zip(&sure).map(|(want, worth)| want.count * worth).sum();
    let saved: f64 = relaxed.free.iter().map(|bin| cut(bin, &relaxed.wants, &sure, whole).at_most).sum();
    (all - saved, sure)
}

/// The bound for more kinds of pods than a program can have rows: a program of a few that stand for the others tells what room is worth
/// in each bin, and a pod is worth the least that it would pay for room in any bin that it may go to.
fn of_many(relaxed: &Relaxed) -> f64 {
    let (few, _) = spokesmen(relaxed, OF_CUT_PODS, Speaks::Mean);
    let (_, _, prices) = sought(&few, false);
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
