//! A few kinds of pods in place of thousands: a linear program has room for so many.

use super::relax::{Bin, Relaxed, Want};

/// What the rounding of floating-point numbers may have taken from a whole number.
const ROUNDING: f64 = 1e-9;

/// How many kinds of pods stand for the others in a program in which pods may be cut.
pub(super) const OF_CUT_PODS: usize = 120;
/// The same in a program of whole pods, which takes longer: for the mix of nodes to buy.
pub(super) const OF_MIX: usize = 80;
/// The same for a bound in whole pods, where fillings must be proved to be the best.
pub(super) const OF_PROOF: usize = 60;

/// Who speaks for a part of the wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// Their mean: what they need all in all is what they need.
    Mean,
    /// One that needs no more of anything than any of them: a bound for it is a bound for them.
    Least,
}

/// A few wants in place of many, and which of them each speaks for: those that may go to the same bins are halved where they differ most,
/// until there are enough.
pub(super) fn spokesmen(relaxed: &Relaxed, most: usize, speaks: Speaks) -> (Relaxed, Vec<Vec<usize>>) {
    let mut parts: Vec<Vec<usize>> = same_bins(relaxed);
    while parts.len() < most {
        let widest =
            (0..parts.len()).map(|at| (at, spread(relaxed, &parts[at]))).max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let Some((at, (dimension, width))) = widest else { break };
        if width <= 0.0 {
            break;
        }
        let mut part = std::mem::take(&mut parts[at]);
        part.sort_by(|a, b| relaxed.wants[*a].need[dimension].total_cmp(&relaxed.wants[*b].need[dimension]));
        let upper = part.split_off(part.len() / 2);
        parts[at] = part;
        parts.push(upper);
    }
    let mut part_of = vec![0; relaxed.wants.len()];
    for (number, part) in parts.iter().enumerate() {
        for want in part {
            part_of[*want] = number;
        }
    }
    let wants: Vec<Want> = parts.iter().map(|part| spokesman(relaxed, part, speaks)).collect();
    let bin = |bin: &Bin| {
        // As many as fit of all members together, and no more than have room.
        let mut fits = vec![0.0; parts.len()];
        bin.takes.iter().for_each(|(want, fit)| fits[part_of[*want]] += fit);
        let takes = fits.into_iter().enumerate().filter(|(_, fit)| *fit > 0.0);
        let takes = takes.map(|(part, fit)| {
            let needed = wants[part].need.iter().zip(&bin.room).filter(|(need, _)| **need > 0.0);
            let room = needed.map(|(need, room)| (room / need + ROUNDING).floor()).fold(f64::INFINITY, f64::min);
            (part, fit.min(room.max(1.0)))
        });
        Bin { takes: takes.collect(), ..bin.clone() }
    };
    let (bins, free) = (relaxed.bins.iter().map(bin).collect(), relaxed.free.iter().map(bin).collect());
    let grains = vec![0.0; relaxed.unit.len()];
    (Relaxed { unit: relaxed.unit.clone(), grains, wants, bins, free }, parts)
}

fn spokesman(relaxed: &Relaxed, part: &[usize], speaks: Speaks) -> Want {
    let members = || part.iter().map(|want| &relaxed.wants[*want]);
    let count: f64 = members().map(|want| want.count).sum();
    let need = (0..relaxed.wants[part[0]].need.len()).map(|dimension| match speaks {
        Speaks::Mean => members().map(|want| want.need[dimension] * want.count / count).sum(),
        Speaks::Least => members().map(|want| want.need[dimension]).fold(f64::INFINITY, f64::min),
    });
    Want { need: need.collect(), count }
}

/// Wants by the bins that they may go to.
fn same_bins(relaxed: &Relaxed) -> Vec<Vec<usize>> {
    let mut bins_of: Vec<Vec<usize>> = vec![Vec::new(); relaxed.wants.len()];
    for (at, bin) in relaxed.bins.iter().chain(&relaxed.free).enumerate() {
        bin.takes.iter().for_each(|(want, _)| bins_of[*want].push(at));
    }
    let mut parts: std::collections::BTreeMap<Vec<usize>, Vec<usize>> = std::collections::BTreeMap::new();
    for (want, bins) in bins_of.into_iter().enumerate() {
        parts.entry(bins).or_default().push(want);
    }
    parts.into_values().collect()
}

/// The dimension in which a part is widest, and how wide, counted in pods.
fn spread(relaxed: &Relaxed, part: &[usize]) -> (usize, f64) {
    if part.len() < 2 {
        return (0, 0.0);
    }
    let count: f64 = part.iter().map(|want| relaxed.wants[*want].count).sum();
    let dimensions = relaxed.wants[part[0]].need.len();
    let width = |dimension: usize| {
        let needs = || part.iter().map(|want| relaxed.wants[*want].need[dimension]);
        (needs().fold(0.0, f64::max) - needs().fold(f64::INFINITY, f64::min)) * count
    };
    (0..dimensions).map(|at| (at, width(at))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}
