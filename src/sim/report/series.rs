//! What the charts show of an outcome: thinned to what a screen can show, and sorted by weight.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sim::outcome::{Outcome, Sample};

use super::palette::SERIES;

/// Most cells of time that a chart tells apart: about two to a pixel column would be lost.
const CELLS: usize = 360;

/// A course over time, as the corners of a staircase: each value holds until the next.
pub(super) fn course(outcome: &Outcome, value: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let points = outcome.samples.iter().map(|sample| (sample.at_seconds, value(sample))).collect::<Vec<_>>();
    staircase(&thinned(&points, outcome.simulated_seconds), outcome.simulated_seconds)
}

/// Keeps of each cell of time its lowest and highest value and its last: peaks stay, and so does the end.
fn thinned(points: &[(f64, f64)], span: f64) -> Vec<(f64, f64)> {
    if points.len() <= 2 * CELLS {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(3 * CELLS);
    for cell in points.chunk_by(|one, other| cell(one.0, span) == cell(other.0, span)) {
        let by = |one: &usize, other: &usize| cell[*one].1.total_cmp(&cell[*other].1);
        let low = (0..cell.len()).min_by(by).unwrap_or_default();
        let high = (0..cell.len()).max_by(by).unwrap_or_default();
        let mut corners = vec![low, high, cell.len() - 1];
        corners.sort_unstable();
        corners.dedup();
        kept.extend(corners.into_iter().map(|at| cell[at]));
    }
    kept
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to CELLS")]
fn cell(at: f64, span: f64) -> usize {
    (at / span.max(1e-9) * CELLS as f64).clamp(0.0, CELLS as f64) as usize
}

/// The corners of a staircase through points, up to `end`.
fn staircase(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len() + 1);
    for (at, value) in points {
        if let Some((_, before)) = corners.last().copied() {
            corners.push((*at, before));
        }
        corners.push((*at, *value));
    }
    if let Some((at, value)) = corners.last().copied()
        && at < end
    {
        corners.push((end, value));
    }
    corners
}

/// The instance types that get a colour, those with the most node-hours first; the others are lumped together.
pub(super) fn ranked_types(outcome: &Outcome) -> Vec<Arc<str>> {
    let mut hours = BTreeMap::<Arc<str>, f64>::new();
    for node in &outcome.nodes {
        *hours.entry(Arc::clone(&node.instance_type)).or_default() += node.hours(outcome.simulated_seconds);
    }
    let mut ranked = hours.into_iter().collect::<Vec<_>>();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    ranked.into_iter().map(|(name, _)| name).collect()
}

/// A layer of a stacked area: staircases of its lower and its upper edge.
pub(super) struct Layer {
    /// Its rank, from which it has its colour.
    pub(super) rank: usize,
    /// Lower edge.
    pub(super) lower: Vec<(f64, f64)>,
    /// Upper edge.
    pub(super) upper: Vec<(f64, f64)>,
}

/// Nodes by instance type, stacked: the type with the most node-hours at the bottom, the lump of the rest on top.
pub(super) fn layers(outcome: &Outcome, ranked: &[Arc<str>]) -> Vec<Layer> {
    let span = outcome.simulated_seconds;
    let cells = outcome.samples.chunk_by(|one, other| cell(one.at_seconds, span) == cell(other.at_seconds, span));
    // The fullest moment stands for its cell, so that the outline reaches the peak that the page names.
    let size = |sample: &Sample| sample.nodes_by_type.values().sum::<u64>();
    let samples: Vec<&Sample> = if outcome.samples.len() <= CELLS {
        outcome.samples.iter().collect()
    } else {
        cells.filter_map(|cell| cell.iter().max_by_key(|sample| size(sample))).collect()
    };
    let ranks = ranked.len().min(SERIES + 1);
    let count = |sample: &Sample, rank: usize| -> u64 {
        let names = if rank < SERIES { ranked.get(rank..=rank) } else { ranked.get(SERIES..) };
        names.unwrap_or_default().iter().filter_map(|name| sample.nodes_by_type.get(name)).sum()
    };
    let mut floor = vec![0_u64; samples.len()];
    let mut layers = Vec::with_capacity(ranks);
    for rank in 0..ranks {
        let edge = |floor: &[u64]| {
            let points = samples.iter().zip(floor).map(|(sample, level)| (sample.at_seconds, *level as f64));
            staircase(&points.collect::<Vec<_>>(), span)
        };
        let lower = edge(&floor);
        for (level, sample) in floor.iter_mut().zip(&samples) {
            *level += count(sample, rank);
        }
        layers.push(Layer { rank, lower, upper: edge(&floor) });
    }
    layers
}
