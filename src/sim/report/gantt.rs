//! The timeline of nodes: a row for each, or a row for many.

use plotters::prelude::Rectangle;
use plotters::style::Color;

use crate::sim::outcome::{NodeRow, Outcome};

use super::axis::{self, Axis};
use super::chart::{Fault, Frame, Plot, WIDE, draw};
use super::palette::Colour;

/// Most rows: more cannot be told apart.
pub(super) const ROWS: usize = 400;
/// Up to so many rows are named.
const NAMED: usize = 40;
/// Cells of time in a row that stands for many nodes.
const CELLS: u32 = 180;
/// How strong the colour of a machine is whose node is not ready yet.
const STARTING: f64 = 0.35;

/// A timeline with the number of nodes that each of its rows stands for.
pub(super) struct Timeline {
    /// The picture.
    pub(super) svg: String,
    /// Nodes in a row.
    pub(super) nodes_in_row: usize,
}

/// Draws the timeline. `rank` says which colour an instance type has.
pub(super) fn timeline(outcome: &Outcome, rank: impl Fn(&NodeRow) -> usize) -> Result<Timeline, Fault> {
    let nodes_in_row = outcome.nodes.len().div_ceil(ROWS).max(1);
    let rows = outcome.nodes.len().div_ceil(nodes_in_row).max(1);
    let named = rows <= NAMED && nodes_in_row == 1;
    let marks = if named {
        outcome.nodes.iter().enumerate().map(|(row, node)| (middle(rows, row), node.name.to_string())).collect()
    } else {
        let step = [10, 20, 50, 100].into_iter().find(|step| rows / step <= 10).unwrap_or(100);
        (0..rows).step_by(step).map(|row| (middle(rows, row), (row * nodes_in_row + 1).to_string())).collect()
    };
    let title = if named { "" } else { "nodes in order of launch" };
    let y = Axis { ends: (0.0, rows as f64), marks, title: title.to_owned() };
    let longest = outcome.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    let frame = Frame {
        x: axis::time(outcome.simulated_seconds),
        y,
        width: WIDE,
        height: 70 + u32::try_from(rows * height(rows)).unwrap_or(u32::MAX),
        // A letter of the charts' text is about 7 units wide.
        left: if named { u32::try_from(longest * 7 + 16).unwrap_or(240).clamp(64, 240) } else { 64 },
    };
    let svg = draw(&frame, "when each node was there", |plot| {
        for (row, nodes) in outcome.nodes.chunks(nodes_in_row).enumerate() {
            let band = Band { low: middle(rows, row) - 0.42, high: middle(rows, row) + 0.42 };
            match nodes {
                [node] if nodes_in_row == 1 => bar(plot, band, node, outcome.simulated_seconds, rank(node))?,
                many => shade(plot, band, many, outcome.simulated_seconds)?,
            }
        }
        Ok(())
    })?;
    Ok(Timeline { svg, nodes_in_row })
}

/// The middle of a row; the first row is on top.
fn middle(rows: usize, row: usize) -> f64 {
    rows as f64 - row as f64 - 0.5
}

/// Height of a row, in the chart's units.
fn height(rows: usize) -> usize {
    match rows {
        0..=NAMED => 16,
        41..=120 => 6,
        121..=250 => 3,
        _ => 2,
    }
}

/// The lower and upper edge of a row.
#[derive(Clone, Copy)]
struct Band {
    low: f64,
    high: f64,
}

impl Band {
    fn corners(self, from: f64, to: f64) -> [(f64, f64); 2] {
        [(from, self.low), (to, self.high)]
    }
}

/// One node: pale from launch to ready, full from then on.
fn bar(plot: &mut Plot<'_>, band: Band, node: &NodeRow, end: f64, rank: usize) -> Result<(), Fault> {
    let gone = node.gone.unwrap_or(end);
    let ready = node.ready.unwrap_or(gone).clamp(node.launched, gone.max(node.launched));
    let colour = Colour::of(rank).stand_in();
    plot.draw_series([
        Rectangle::new(band.corners(node.launched, ready), colour.mix(STARTING).filled()),
        Rectangle::new(band.corners(ready, gone), colour.mix(1.0).filled()),
    ])?;
    Ok(())
}

/// Many nodes: the more of them are there, the stronger the colour.
fn shade(plot: &mut Plot<'_>, band: Band, nodes: &[NodeRow], end: f64) -> Result<(), Fault> {
    let there = |cell: u32| {
        let at = end * (f64::from(cell) + 0.5) / f64::from(CELLS);
        let count = nodes.iter().filter(|n| n.launched <= at && n.gone.is_none_or(|gone| gone > at)).count();
        // Quarters are enough for the eye, and let neighbours become one rectangle.
        (count * 4).div_ceil(nodes.len())
    };
    let cells = (0..CELLS).map(|cell| (cell, there(cell))).collect::<Vec<_>>();
    for run in cells.chunk_by(|one, other| one.1 == other.1) {
        let (Some((first, quarters)), Some((last, _))) = (run.first(), run.last()) else { continue };
        if *quarters > 0 {
            let at = |cell: u32| end * f64::from(cell) / f64::from(CELLS);
            let colour = Colour::Series(0).stand_in().mix(*quarters as f64 / 4.0);
            plot.draw_series([Rectangle::new(band.corners(at(*first), at(last + 1)), colour.filled())])?;
        }
    }
    Ok(())
}
