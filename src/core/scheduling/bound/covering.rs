//! The linear program over fillings: the cheapest mix of them that takes all pods, and what each pod is worth in it.
//!
//! Gilmore and Gomory's scheme: the program starts with fillings of one kind of pod each, and is given better ones as they are found. It
//! is kept solved by the revised simplex method with an explicit inverse, which for a few hundred kinds of pods is the simplest that is fast.

use super::effort::Effort;
use super::relax::{Bin, Relaxed};

/// Below this a number counts as zero.
const ZERO: f64 = 1e-9;
/// Exchanges in one go, per row. More of them mean that the program goes round in circles.
const EXCHANGES: usize = 30;

/// What rows are worth is carried along from exchange to exchange, and worked out afresh after so many, for the rounding.
const AFRESH: usize = 64;

/// Wants and how many pods of each.
pub(super) type Amounts = Vec<(usize, f64)>;

/// A column: a filling and its price.
struct Column {
    price: f64,
    /// The bin, where it can be bought.
    bin: Option<usize>,
    cells: Vec<(usize, f64)>,
}

/// The program. Rows are the wants (at least so many are taken) and then the free bins (each is there once).
pub(super) struct Covering {
    wants: usize,
    demand: Vec<f64>,
    columns: Vec<Column>,
    /// Which column stands in each row; what is left over of a row stands there as a place of its own.
    basis: Vec<Place>,
    inverse: Vec<Vec<f64>>,
    level: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Column(usize),
    /// What a row has too much (wants) or has left (free bins).
    Slack(usize),
}

impl Covering {
    /// A program in which each want has nodes of its own. Wants that fit into nothing that can be bought are not counted.
    pub(super) fn new(relaxed: &Relaxed) -> Self {
        let (wants, rows) = (relaxed.wants.len(), relaxed.wants.len() + relaxed.free.len());
        let mut demand: Vec<f64> = relaxed.wants.iter().map(|want| want.count).collect();
        demand.resize(rows, 1.0);
        let mut best: Vec<Option<(f64, f64, usize)>> = vec![None; wants];
        for (at, bin) in relaxed.bins.iter().enumerate() {
            for (want, fit) in &bin.takes {
                let each = bin.price / fit;
                if best[*want].is_none_or(|(price, fit, _)| each < price / fit) {
                    best[*want] = Some((bin.price, *fit, at));
                }
            }
        }
        let mut all = Self {
            wants,
            level: demand.clone(),
            demand,
            columns: Vec::new(),
            basis: (0..rows).map(Place::Slack).collect(),
            inverse: (0..rows).map(|row| (0..rows).map(|at| if at == row { 1.0 } else { 0.0 }).collect()).collect(),
        };
        for (row, best) in best.into_iter().enumerate() {
            let Some((price, fit, bin)) = best else {
                // Zero of them are asked for, and how many more there are stands in the row.
                all.demand[row] = 0.0;
                all.level[row] = 0.0;
                all.inverse[row][row] = -1.0;
                continue;
            };
            all.basis[row] = Place::Column(all.columns.len());
            all.inverse[row][row] = 1.0 / fit;
            all.level[row] = all.demand[row] / fit;
            all.columns.push(Column { price, bin: Some(bin), cells: vec![(row, fit)] });
        }
        all
    }

    /// Adds a filling of a bin that can be bought.
    pub(super) fn add(&mut self, (at, bin): (usize, &Bin), amounts: &[(usize, f64)]) {
        self.columns.push(Column { price: bin.price, bin: Some(at), cells: amounts.to_vec() });
    }

    /// Adds a filling of a free bin.
    pub(super) fn add_free(&mut self, at: usize, amounts: &[(usize, f64)]) {
        let mut cells = amounts.to_vec();
        cells.push((self.wants + at, 1.0));
        self.columns.push(Column { price: 0.0, bin: None, cells });
    }

    /// What the cheapest mix costs.
    pub(super) fn price(&self) -> f64 {
        self.basis.iter().zip(&self.level).map(|(place, level)| self.cost(*place) * level).sum()
    }

    /// What each want is worth, and what each free bin saves, in the cheapest mix.
    pub(super) fn worth(&self) -> (Vec<f64>, Vec<f64>) {
        let all = self.multipliers();
        let (worth, saved) = all.split_at(self.wants);
        (worth.iter().map(|worth| worth.max(0.0)).collect(), saved.iter().map(|saved| (-saved).max(0.0)).collect())
    }

    /// How many nodes there are in the cheapest mix, each time the bin and its filling.
    pub(super) fn mix(&self) -> Vec<(f64, usize, Amounts)> {
        let columns = self.basis.iter().zip(&self.level).filter_map(|(place, level)| match place {
            Place::Column(at) => Some((*level, self.columns[*at].bin?, self.columns[*at].cells.clone())),
            Place::Slack(_) => None,
        });
        columns.filter(|(level, ..)| *level > ZERO).collect()
    }

    /// Solves it with the columns that it has, as far as the effort goes.
    pub(super) fn solve(&mut self, effort: &Effort) {
        let rows = self.basis.len();
        let mut multipliers = self.multipliers();
        let mut kept = 0;
        for _ in 0..EXCHANGES * rows.max(10) {
            if effort.is_spent() {
                return;
            }
            effort.spend(rows * rows + 4 * self.columns.len());
            let Some(entering) = self.entering(&multipliers) else {
                if kept == 0 {
                    return;
                }
                (multipliers, kept) = (self.multipliers(), 0);
                continue;
            };
            let gain = self.worth_of(entering, &multipliers) - self.cost(entering);
            let Some(row) = self.exchange(entering) else { return };
            kept += 1;
            if kept == AFRESH {
                (multipliers, kept) = (self.multipliers(), 0);
            } else {
                multipliers.iter_mut().zip(&self.inverse[row]).for_each(|(all, own)| *all -= gain * own);
            }
        }
    }

    /// What a place takes of each row, at what the rows are worth.
    fn worth_of(&self, place: Place, multipliers: &[f64]) -> f64 {
        match place {
            Place::Column(at) => self.columns[at].cells.iter().map(|(row, amount)| multipliers[*row] * amount).sum(),
            Place::Slack(row) => self.slack(row) * multipliers[row],
        }
    }

    /// What is too much of a want, or left of a free bin.
    fn slack(&self, row: usize) -> f64 {
        if row < self.wants { -1.0 } else { 1.0 }
    }

    fn cost(&self, place: Place) -> f64 {
        match place {
            Place::Column(at) => self.columns[at].price,
            Place::Slack(_) => 0.0,
        }
    }

    fn multipliers(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.basis.len()];
        for (place, row) in self.basis.iter().zip(&self.inverse) {
            let cost = self.cost(*place);
            if cost != 0.0 {
                all.iter_mut().zip(row).for_each(|(sum, cell)| *sum += cost * cell);
            }
        }
        all
    }

    /// The column that would save most.
    fn entering(&self, multipliers: &[f64]) -> Option<Place> {
        let mut best = (ZERO, None);
        for (at, column) in self.columns.iter().enumerate() {
            let saved = (self.worth_of(Place::Column(at), multipliers) - column.price) / column.price.max(ZERO.sqrt());
            if saved > best.0 {
                best = (saved, Some(Place::Column(at)));
            }
        }
        for (row, multiplier) in multipliers.iter().enumerate() {
            // A surplus of a want enters when its worth is negative, the rest of a free bin when using it costs.
            let saved = self.slack(row) * multiplier;
            if saved > best.0 {
                best = (saved, Some(Place::Slack(row)));
            }
        }
        best.1
    }

    /// Brings a place into the basis, and says in which row; nothing when nothing limits it.
    fn exchange(&mut self, entering: Place) -> Option<usize> {
        let cells = match entering {
            Place::Column(at) => self.columns[at].cells.clone(),
            Place::Slack(row) => vec![(row, self.slack(row))],
        };
        let change: Vec<f64> = self.inverse.iter().map(|row| cells.iter().map(|(at, n)| row[*at] * n).sum()).collect();
        let mut leaving: Option<(usize, f64)> = None;
        for (row, change) in change.iter().enumerate().filter(|(_, change)| **change > ZERO) {
            let limit = self.level[row].max(0.0) / change;
            let closer = leaving.is_none_or(|(_, least)| limit < least);
            if closer {
                leaving = Some((row, limit));
            }
        }
        let (row, limit) = leaving?;
        for (level, change) in self.level.iter_mut().zip(&change) {
            *level = (*level - change * limit).max(0.0);
        }
        self.level[row] = limit;
        self.basis[row] = entering;
        let pivot = change[row];
        self.inverse[row].iter_mut().for_each(|cell| *cell /= pivot);
        let own = self.inverse[row].clone();
        for (cells, change) in
            self.inverse.iter_mut().zip(&change).enumerate().filter(|(at, _)| *at != row).map(|(_, pair)| pair)
        {
            if *change != 0.0 {
                cells.iter_mut().zip(&own).for_each(|(cell, own)| *cell -= change * own);
            }
        }
        Some(row)
    }
}
