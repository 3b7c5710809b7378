//! What a node of a given room would hold of the pods that wait.

use smallvec::SmallVec;

use super::choose::{COMPANY, Promises};
use super::demand::{Demand, Entry};
use super::shelf::Amounts;
use super::topology::CounterId;

/// A kind of pods that may still be taken.
#[derive(Clone, Copy)]
struct Candidate {
    entry: usize,
    left: u32,
    /// Where its amounts stand in the tables.
    row: usize,
}

/// Fills rooms of several sizes with the same company.
pub(super) struct Filling<'d> {
    demand: &'d Demand,
    first: usize,
    /// The worth at which a node is full.
    fair: f64,
    company: SmallVec<[Candidate; COMPANY]>,
    /// What each kind needs, row by row.
    needs: Vec<i64>,
    /// The same as parts of the whole room.
    shares: Vec<f64>,
    width: usize,
}

/// A room while it is being filled.
struct Filled {
    room: Amounts,
    held: f64,
    promises: Promises,
    /// How many more pods each counter allows on this node.
    caps: SmallVec<[(CounterId, u32); 4]>,
}

impl Filled {
    fn take(&mut self, at: usize, entry: &Entry, many: u32) {
        for (room, need) in self.room.iter_mut().zip(&entry.requests) {
            *room = room.saturating_sub(need.saturating_mul(i64::from(many)));
        }
        if let Some((id, cap)) = entry.cap {
            match self.caps.iter_mut().find(|(known, _)| *known == id) {
                Some((_, left)) => *left = left.saturating_sub(many),
                None => self.caps.push((id, cap.saturating_sub(many))),
            }
        }
        match self.promises.iter_mut().find(|(known, _)| *known == at) {
            Some((_, known)) => *known += many,
            None => self.promises.push((at, many)),
        }
        self.held += entry.worth * f64::from(many);
    }

    fn capped(&self, entry: &Entry) -> Option<u32> {
        let (id, cap) = entry.cap?;
        Some(self.caps.iter().find(|(known, _)| *known == id).map_or(cap, |(_, left)| *left))
    }
}

impl<'d> Filling<'d> {
    /// One pod of `first`, then `company`, up to a worth of `fair`.
    pub(super) fn new(demand: &'d Demand, company: &[usize], first: usize, fair: f64) -> Self {
        let entries = &demand.entries;
        let width = entries[first].requests.len();
        let candidates = company.iter().enumerate().map(|(row, at)| {
            let share = entries[*at].share();
            Candidate { entry: *at, left: if *at == first { share.saturating_sub(1) } else { share }, row }
        });
        Self {
            demand,
            first,
            fair,
            company: candidates.collect(),
            needs: company.iter().flat_map(|at| entries[*at].requests.iter().copied()).collect(),
            shares: Vec::new(),
            width,
        }
    }

    /// Always takes the kind that best uses what is left of each resource.
    pub(super) fn fill(&mut self, whole: &Amounts) -> (f64, Promises) {
        let wholes: SmallVec<[f64; 4]> = whole.iter().map(|whole| (*whole).max(1) as f64).collect();
        self.shares.clear();
        self.shares.extend(self.needs.iter().zip(wholes.iter().cycle()).map(|(need, whole)| *need as f64 / whole));
        let mut filled = Filled { room: whole.clone(), held: 0.0, promises: Promises::new(), caps: SmallVec::new() };
        filled.take(self.first, &self.demand.entries[self.first], 1);
        let mut active: SmallVec<[Candidate; COMPANY]> = self.company.iter().copied().filter(|c| c.left > 0).collect();
        let alone = self.company.len() == 1;
        while let Some(next) = self.best(&mut active, &filled, &wholes) {
            let entry = &self.demand.entries[active[next].entry];
            let many = self.many(active[next], entry, &filled);
            // Half at a time: the best use of what is left changes on the way.
            let many = if alone { many } else { many.div_ceil(2) };
            filled.take(active[next].entry, entry, many);
            active[next].left -= many;
        }
        (filled.held, filled.promises)
    }

    /// The kind to take next. Those that will never fit again are dropped.
    fn best(&self, active: &mut SmallVec<[Candidate; COMPANY]>, filled: &Filled, wholes: &[f64]) -> Option<usize> {
        let rooms: SmallVec<[f64; 4]> =
            filled.room.iter().zip(wholes).map(|(room, whole)| *room as f64 / whole).collect();
        let full = self.fair.is_finite() && filled.held >= self.fair;
        let mut next: Option<(f64, usize)> = None;
        let mut kept = 0;
        for at in 0..active.len() {
            let candidate = active[at];
            let entry = &self.demand.entries[candidate.entry];
            let row = candidate.row * self.width..(candidate.row + 1) * self.width;
            let needs = &self.needs[row.clone()];
            let capped = filled.capped(entry);
            if candidate.left == 0
                || capped == Some(0)
                || full && entry.worth > 0.0
                || needs.iter().zip(&filled.room).any(|(need, room)| *need > 0 && need > room)
            {
                continue;
            }
            let mut score = 0.0;
            for ((share, room), _) in self.shares[row].iter().zip(&rooms).zip(needs).filter(|(_, need)| **need > 0) {
                score += share * room;
            }
            if capped.is_some() && self.fair.is_finite() {
                // Those of which a node takes only a few are what decides the number of nodes: they go first.
                score += 1e3;
            }
            active[kept] = candidate;
            if next.is_none_or(|(best, _)| score > best) {
                next = Some((score, kept));
            }
            kept += 1;
        }
        active.truncate(kept);
        next.map(|(_, at)| at)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float beyond i64 saturates, which is what a bound should do"
    )]
    fn many(&self, candidate: Candidate, entry: &Entry, filled: &Filled) -> u32 {
        let mut many = i64::from(candidate.left);
        for (need, room) in entry.requests.iter().zip(&filled.room).filter(|(need, _)| **need > 0) {
            many = many.min(room.div_euclid(*need));
        }
        if self.fair.is_finite() && entry.worth > 0.0 {
            many = many.min(((self.fair - filled.held) / entry.worth).ceil() as i64);
        }
        if let Some(cap) = filled.capped(entry) {
            many = many.min(i64::from(cap));
        }
        u32::try_from(many.max(1)).unwrap_or(u32::MAX)
    }
}
