//! The most that a node can hold, counted in what its pods are worth: from above by linear programming, exactly by branching.

use smallvec::SmallVec;

use super::effort::Effort;
use super::ladder::Ladder;
use super::relax::{Bin, Want};

/// Below this a number counts as zero.
const ZERO: f64 = 1e-9;
/// A linear program of so few rows is solved long before so many steps; whatever it has then is used.
const STEPS: usize = 400;

/// What a call costs beyond the cells that it works out, in cells.
const CALL: usize = 8;

/// What fits into a bin.
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    /// No filling is worth more.
    pub(super) at_most: f64,
    /// What a unit of each resource of the bin is worth.
    pub(super) prices: Vec<f64>,
    /// Wants and how many of each; a fraction where fractions are allowed.
    pub(super) amounts: Vec<(usize, f64)>,
}

/// A pod that could go into the bin.
pub(super) struct Item<'a> {
    want: usize,
    pub(super) worth: f64,
    pub(super) need: &'a [f64],
    /// So many fit at most.
    pub(super) most: f64,
}

/// How hard to look for the best filling, and for a proof that there is no better one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Diligence {
    /// Branches.
    pub(super) patience: usize,
    /// Steps of a resource that are told apart.
    pub(super) steps: usize,
}

fn items<'a>(bin: &Bin, wants: &'a [Want], worth: &[f64], whole: bool) -> Vec<Item<'a>> {
    let useful = bin.takes.iter().filter(|(want, _)| worth[*want] > 0.0);
    let most = |fit: f64| if whole { fit } else { f64::INFINITY };
    useful
        .map(|(want, fit)| Item { want: *want, worth: worth[*want], need: &wants[*want].need, most: most(*fit) })
        .collect()
}

/// The best filling when pods may be cut. With `whole`, at least no more of a kind than fit as whole pods.
pub(super) fn cut(bin: &Bin, wants: &[Want], worth: &[f64], whole: bool, effort: &Effort) -> Filling {
    let items = items(bin, wants, worth, whole);
    let rows: Vec<usize> =
        (0..bin.room.len()).filter(|d| bin.room[*d] > 0.0 && items.iter().any(|item| item.need[*d] > 0.0)).collect();
    let mut tableau = Tableau::new(bin, &items, &rows);
    let steps = tableau.solve();
    effort.spend((steps + 2) * (rows.len() + 1) * tableau.gain.len());
    let mut prices = vec![0.0; bin.room.len()];
    for (row, dimension) in rows.iter().enumerate() {
        prices[*dimension] = (-tableau.gain[items.len() + row]).max(0.0) / bin.room[*dimension];
    }
    let amounts = items.iter().enumerate().map(|(at, item)| (item.want, tableau.value(at)));
    Filling {
        at_most: at_most(bin, &items, &prices),
        amounts: amounts.filter(|(_, amount)| *amount > ZERO).collect(),
        prices,
    }
}

/// What no filling exceeds, whatever the prices: the room at its price, and what pods are worth beyond what they would pay for room.
fn at_most(bin: &Bin, items: &[Item<'_>], prices: &[f64]) -> f64 {
    let room: f64 = bin.room.iter().zip(prices).map(|(room, price)| room * price).sum();
    let rent = |item: &Item<'_>| {
        let gain = item.worth - dot(item.need, prices);
        // Of what gains nothing to speak of there may be any number, and infinity times nothing is not a number.
        if gain <= 0.0 { 0.0 } else { gain * item.most.min(fit(item, bin)) }
    };
    room + items.iter().map(rent).sum::<f64>()
}

/// How many fit at most, fractions counted.
fn fit(item: &Item<'_>, bin: &Bin) -> f64 {
    let needed = item.need.iter().zip(&bin.room).filter(|(need, _)| **need > 0.0);
    needed.map(|(need, room)| room / need).fold(f64::INFINITY, f64::min)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The simplex method for a few rows and many bounded columns. Each row is divided by the bin's room.
struct Tableau {
    rows: Vec<Vec<f64>>,
    /// What the basic variables are at.
    level: Vec<f64>,
    basis: Vec<usize>,
    /// What one more of each column would gain.
    gain: Vec<f64>,
    upper: Vec<f64>,
    is_full: Vec<bool>,
}

impl Tableau {
    fn new(bin: &Bin, items: &[Item<'_>], dimensions: &[usize]) -> Self {
        let columns = items.len() + dimensions.len();
        let row = |(at, dimension): (usize, &usize)| {
            let mut row: Vec<f64> = items.iter().map(|item| item.need[*dimension] / bin.room[*dimension]).collect();
            row.extend((0..dimensions.len()).map(|slack| if slack == at { 1.0 } else { 0.0 }));
            row
        };
        let mut gain: Vec<f64> = items.iter().map(|item| item.worth).collect();
        gain.resize(columns, 0.0);
        let mut upper: Vec<f64> = items.iter().map(|item| item.most).collect();
        upper.resize(columns, f64::INFINITY);
        Self {
            rows: dimensions.iter().enumerate().map(row).collect(),
            level: vec![1.0; dimensions.len()],
            basis: (items.len()..columns).collect(),
            gain,
            upper,
            is_full: vec![false; columns],
        }
    }

    /// Solves it, and says in how many steps.
    fn solve(&mut self) -> usize {
        for step in 0..STEPS {
            let useful = |at: &usize| if self.is_full[*at] { -self.gain[*at] } else { self.gain[*at] };
            let best =
                (0..self.gain.len()).filter(|at| useful(at) > ZERO).max_by(|a, b| useful(a).total_cmp(&useful(b)));
            let Some(entering) = best else { return step };
            self.step(entering);
        }
        STEPS
    }

    /// Brings a column in, as far as the others allow.
    fn step(&mut self, entering: usize) {
        let sign = if self.is_full[entering] { -1.0 } else { 1.0 };
        let mut limit = self.upper[entering];
        let mut leaving: Option<(usize, bool)> = None;
        for (row, level) in self.level.iter().enumerate() {
            let change = self.rows[row][entering] * sign;
            let (room, fills) = if change > ZERO {
                (level.max(0.0) / change, false)
            } else if change < -ZERO {
                ((self.upper[self.basis[row]] - level).max(0.0) / -change, true)
            } else {
                continue;
            };
            if room < limit {
                limit = room;
                leaving = Some((row, fills));
            }
        }
        for (row, level) in self.level.iter_mut().enumerate() {
            *level -= self.rows[row][entering] * sign * limit;
        }
        let Some((row, fills)) = leaving else {
            self.is_full[entering] = !self.is_full[entering];
            return;
        };
        let start = if self.is_full[entering] { self.upper[entering] } else { 0.0 };
        let left = self.basis[row];
        self.is_full[left] = fills;
        self.is_full[entering] = false;
        self.basis[row] = entering;
        self.level[row] = start + sign * limit;
        let pivot = self.rows[row][entering];
        self.rows[row].iter_mut().for_each(|cell| *cell /= pivot);
        let own = self.rows[row].clone();
        for (other, cells) in self.rows.iter_mut().enumerate().filter(|(other, _)| *other != row) {
            let factor = cells[entering];
            if other != row && factor != 0.0 {
                cells.iter_mut().zip(&own).for_each(|(cell, own)| *cell -= factor * own);
            }
        }
        let factor = self.gain[entering];
        self.gain.iter_mut().zip(&own).for_each(|(gain, own)| *gain -= factor * own);
    }

    fn value(&self, column: usize) -> f64 {
        match self.basis.iter().position(|basic| *basic == column) {
            Some(row) => self.level[row].max(0.0),
            None if self.is_full[column] => self.upper[column],
            None => 0.0,
        }
    }
}

/// Whole pods: what is left of a cut filling when the cut ones are left out, with what else fits.
pub(super) fn rounded(bin: &Bin, wants: &[Want], worth: &[f64], cut: &Filling) -> Vec<(usize, f64)> {
    let mut room = bin.room.clone();
    let mut amounts = vec![0.0; wants.len()];
    for (want, amount) in &cut.amounts {
        take(&mut amounts, &mut room, *want, (amount + ZERO).floor(), &wants[*want].need);
    }
    let mut items = items(bin, wants, worth, true);
    // What gains most for its room comes first; where room costs nothing, what is worth most.
    let value = |item: &Item<'_>| item.worth / (dot(item.need, &cut.prices) + ZERO);
    items.sort_by(|a, b| value(b).total_cmp(&value(a)).then_with(|| b.worth.total_cmp(&a.worth)));
    for item in &items {
        let needed = item.need.iter().zip(&room).filter(|(need, _)| **need > 0.0);
        let fits = needed.map(|(need, room)| (room / need + ZERO).floor()).fold(item.most, f64::min);
        let more = fits.min(item.most - amounts[item.want]).max(0.0);
        take(&mut amounts, &mut room, item.want, more, item.need);
    }
    amounts.into_iter().enumerate().filter(|(_, amount)| *amount > 0.0).collect()
}

fn take(amounts: &mut [f64], room: &mut [f64], want: usize, many: f64, need: &[f64]) {
    amounts[want] += many;
    room.iter_mut().zip(need).for_each(|(room, need)| *room -= many * need);
}

/// The best filling with whole pods that is found with so much diligence, `start` being one that is known. `at_most` of the answer holds for
/// all fillings, whether they were looked at or not. `grains` are what all needs of a resource are multiples of.
pub(super) fn branched(
    (bin, wants, grains): (&Bin, &[Want], &[f64]),
    worth: &[f64],
    cut: &Filling,
    start: Vec<(usize, f64)>,
    diligence: Diligence,
    effort: &Effort,
) -> Filling {
    let known: f64 = start.iter().map(|(want, many)| worth[*want] * many).sum();
    if known >= cut.at_most * (1.0 - ZERO) {
        return Filling { at_most: cut.at_most, prices: cut.prices.clone(), amounts: start };
    }
    let mut items = items(bin, wants, worth, true);
    let gain = |item: &Item<'_>| item.worth - dot(item.need, &cut.prices);
    items.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then_with(|| b.worth.total_cmp(&a.worth)));
    let mut rest = vec![0.0; items.len() + 1];
    for at in (0..items.len()).rev() {
        rest[at] = rest[at + 1] + gain(&items[at]).max(0.0) * items[at].most;
    }
    let scarce = (0..bin.room.len()).filter(|dimension| cut.prices[*dimension] > 0.0);
    let ladders: Vec<Ladder> = scarce
        .map(|dimension| {
            Ladder::new(&items, &cut.prices, (dimension, bin.room[dimension], grains[dimension]), diligence.steps)
        })
        .collect();
    effort.spend(ladders.iter().map(Ladder::size).sum());
    let mut search = Search {
        items: &items,
        prices: &cut.prices,
        rest,
        ladders,
        least: known,
        patience: diligence.patience,
        at_most: known,
        chosen: vec![0.0; items.len()],
        best: None,
        looked_at: 0,
        reached: 0,
    };
    search.go(0, 0.0, &bin.room);
    let per_reach = (search.ladders.len() + 1) * (bin.room.len() + CALL);
    effort.spend(search.looked_at * bin.room.len() + search.reached * per_reach);
    let at_most = search.at_most.min(cut.at_most);
    let named = |best: Vec<f64>| {
        best.iter().enumerate().filter(|(_, many)| **many > 0.0).map(|(at, many)| (items[at].want, *many)).collect()
    };
    let amounts = search.best.take().map_or(start, named);
    Filling { at_most, prices: cut.prices.clone(), amounts }
}

/// A search in depth for fillings that are worth more than the best so far, `least`.
struct Search<'a> {
    items: &'a [Item<'a>],
    prices: &'a [f64],
    /// What the items from each on can gain beyond what they pay for room.
    rest: Vec<f64>,
    /// The same where one resource is counted in whole pods.
    ladders: Vec<Ladder>,
    least: f64,
    patience: usize,
    /// What no filling exceeds, those that were not looked at included.
    at_most: f64,
    chosen: Vec<f64>,
    best: Option<Vec<f64>>,
    /// Items, each time that one was looked at.
    looked_at: usize,
    /// How often it was worked out what can still be reached.
    reached: usize,
}

impl Search<'_> {
    fn go(&mut self, at: usize, value: f64, room: &[f64]) {
        if value > self.least {
            self.least = value;
            self.at_most = self.at_most.max(value);
            self.best = Some(self.chosen.clone());
        }
        // What does not fit any more is passed by: otherwise many items of one size would be taken leave of one by one.
        let fits =
            |item: &Item<'_>| item.need.iter().zip(room).all(|(need, room)| *need <= 0.0 || room / need + ZERO >= 1.0);
        let more = self.items[at..].iter().position(fits);
        self.looked_at += 1 + more.unwrap_or(self.items.len() - at);
        let Some(more) = more else { return };
        let at = at + more;
        let item = &self.items[at];
        self.reached += 1;
        let ladders = self.ladders.iter().map(|ladder| ladder.reach(at, room, self.prices));
        let reach = value + ladders.fold(dot(room, self.prices) + self.rest[at], f64::min);
        if reach <= self.least * (1.0 + ZERO) {
            self.at_most = self.at_most.max(reach.min(self.least * (1.0 + ZERO)));
            return;
        }
        if self.patience == 0 {
            self.at_most = self.at_most.max(reach);
            return;
        }
        self.patience -= 1;
        let needed = item.need.iter().zip(room).filter(|(need, _)| **need > 0.0);
        let most = needed.map(|(need, room)| (room / need + ZERO).floor()).fold(item.most, f64::min).max(0.0);
        let mut many = most;
        loop {
            let left: SmallVec<[f64; 6]> =
                room.iter().zip(item.need).map(|(room, need)| (room - many * need).max(0.0)).collect();
            self.chosen[at] = many;
            self.go(at + 1, value + many * item.worth, &left);
            if many <= 0.0 {
                break;
            }
            many -= 1.0;
        }
        self.chosen[at] = 0.0;
    }
}
