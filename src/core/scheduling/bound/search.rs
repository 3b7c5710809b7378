//! The search for fillings: the program over those known says what pods are worth, and for that worth better fillings are sought.

use super::covering::Covering;
use super::effort::Effort;
use super::knapsack::{Diligence, Filling, branched, cut, rounded};
use super::relax::{Bin, Relaxed};

/// How often new fillings are sought. What has been found by then is used.
const ROUNDS: usize = 120;
/// How far from the best certain prices towards the program's own fillings are sought.
const STEP: f64 = 0.4;
/// A bound that is this close to the best that could come of it is good enough.
const CLOSE: f64 = 2e-4;
/// How hard to look for fillings.
const SEARCH: Diligence = Diligence { patience: 400, steps: 256 };
/// How hard to look in the end, to prove that there are no better ones: each time harder.
const PROOF: [Diligence; 3] = [
    Diligence { patience: 4_000, steps: 4_096 },
    Diligence { patience: 40_000, steps: 4_096 },
    Diligence { patience: 400_000, steps: 4_096 },
];
/// The part of the effort that goes into the bound for cut pods, from which that for whole pods begins.
const OF_CUT: u64 = 4;
/// The search ends when the price of the mix falls by less than [`FLAT`] in so many rounds.
const PLATEAU: usize = 10;
/// See [`PLATEAU`].
const FLAT: f64 = 3e-4;

/// What is sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// The cheapest mix of nodes. How close it is to the best is not proved.
    Mix,
    /// A bound that counts whole pods.
    Bound,
    /// A bound for pods that may be cut.
    CutBound,
}

/// What was found.
pub(super) struct Found {
    /// The program with the fillings that are known.
    pub(super) program: Covering,
    /// The best bound.
    pub(super) bound: f64,
    /// What a unit of each resource of each bin (the free ones last) was worth in it.
    pub(super) prices: Vec<Vec<f64>>,
    /// What pods are worth in it.
    sure: Option<Vec<f64>>,
}

/// Seeks until nothing better is found, or the effort is spent; what has been found by then is used.
///
/// Fillings are sought for prices between those of the program and the best that are certain: the program's own jump about, and what is
/// found for them is seldom of use for long.
///
/// A bound in whole pods begins with the one for cut pods, which is found soon and seldom far away: from the worth of pods in a program that knows few
/// fillings, it would take more rounds than there are where kinds of pods are a hundred.
pub(super) fn sought(relaxed: &Relaxed, aim: Aim, effort: &Effort) -> Found {
    let (wants, whole) = (&relaxed.wants, aim != Aim::CutBound);
    let cut_bound = (aim == Aim::Bound).then(|| sought(relaxed, Aim::CutBound, &effort.part(OF_CUT)));
    let mut program = Covering::new(relaxed);
    let (mut best, mut centre, mut prices) =
        cut_bound.map_or_else(Default::default, |cut| (cut.bound, cut.sure, cut.prices));
    let mut is_between = centre.is_some();
    let mut before = f64::INFINITY;
    let mut diligence = SEARCH;
    let mut harder = PROOF.iter().filter(|_| aim == Aim::Bound);
    for round in 1..=ROUNDS {
        program.solve(effort);
        let (worth, _) = program.worth();
        let tried = match centre.as_ref().filter(|_| is_between) {
            Some(centre) => worth.iter().zip(centre).map(|(own, sure)| sure + (own - sure) * STEP).collect(),
            None => worth.clone(),
        };
        let fill = |bin| {
            if whole { filled(bin, relaxed, &tried, diligence, effort) } else { cut(bin, wants, &tried, false, effort) }
        };
        let fillings: Vec<Filling> = relaxed.bins.iter().map(fill).collect();
        let free: Vec<Filling> = relaxed.free.iter().map(|bin| cut(bin, wants, &tried, whole, effort)).collect();
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
                let cut = cut(bin, wants, &worth, whole, effort);
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
        let (certain, sure) = certain(relaxed, &tried, &fillings, whole, effort);
        if certain > best || prices.is_empty() {
            best = best.max(certain);
            prices = fillings.iter().chain(&free).map(|filling| filling.prices.clone()).collect();
            centre = Some(sure);
        }
        if effort.is_spent() || best >= program.price() * (1.0 - CLOSE) {
            break;
        }
        // What is certain counts when nothing else does.
        let open = if diligence == SEARCH { program.price() } else { program.price() - best };
        let is_flat = round % PLATEAU == 0 && std::mem::replace(&mut before, open) - open < FLAT * program.price();
        let is_done = found == 0 && free.is_empty() && !is_between;
        // Nothing new between the two: then at the program's own prices.
        is_between = found > 0;
        if is_done || is_flat {
            let Some(harder) = harder.next() else { break };
            (diligence, before, is_between) = (*harder, f64::INFINITY, false);
        }
    }
    Found { program, bound: best, prices, sure: centre }
}

/// The best filling with whole pods that is found in time.
fn filled(bin: &Bin, relaxed: &Relaxed, worth: &[f64], diligence: Diligence, effort: &Effort) -> Filling {
    let wants = &relaxed.wants;
    let cut = cut(bin, wants, worth, true, effort);
    let start = rounded(bin, wants, worth, &cut);
    if cut.at_most <= bin.price || effort.is_spent() {
        // Nothing that is sought can come of it, or there is no time for it.
        return Filling { amounts: start, ..cut };
    }
    branched((bin, wants, &relaxed.grains), worth, &cut, start, diligence, effort)
}

/// What is certain whatever the worth of the pods, and their worth that makes it so: each is scaled until no bin that it may go to can
/// hold more than it costs. Then all pods together are a bound, less what the free bins can hold.
fn certain(relaxed: &Relaxed, worth: &[f64], fillings: &[Filling], whole: bool, effort: &Effort) -> (f64, Vec<f64>) {
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
    let saved: f64 = relaxed.free.iter().map(|bin| cut(bin, &relaxed.wants, &sure, whole, effort).at_most).sum();
    (all - saved, sure)
}
