//! Candidates by the room that they have and by what they are: the next one that could hold a pod is found without asking the others.
//!
//! Candidates stand in blocks of 64. A block knows the most of each resource that any of its candidates has, and each kind of candidate
//! (same labels, same taints) knows its members as one word per block; so a pod skips whole blocks by a few comparisons.

use rustc_hash::FxHashMap;

use super::algebra::ProfileId;
use super::interner::number;

/// Candidates in a block.
const BLOCK: usize = 64;

/// A set of candidates by number; it grows as needed.
#[derive(Clone, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    pub(super) fn set(&mut self, at: usize) {
        if self.0.len() <= at / BLOCK {
            self.0.resize(at / BLOCK + 1, 0);
        }
        self.0[at / BLOCK] |= 1 << (at % BLOCK);
    }

    fn clear(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / BLOCK) {
            *word &= !(1 << (at % BLOCK));
        }
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.word(at / BLOCK) >> (at % BLOCK) & 1 == 1
    }

    fn word(&self, block: usize) -> u64 {
        self.0.get(block).copied().unwrap_or(0)
    }
}

/// What all candidates of a kind have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) taints: u32,
    pub(super) profile: ProfileId,
    /// Whether they are domains of `kubernetes.io/hostname`: nodes that lack the label are in none.
    pub(super) named: bool,
}

/// The index.
#[derive(Clone, Default)]
pub(super) struct Rooms {
    width: usize,
    /// What is free, candidate by candidate.
    free: Vec<i64>,
    /// The most that is free in each block.
    most: Vec<i64>,
    /// The kind of each candidate; nothing for those that take no pods.
    kind_of: Vec<Option<u32>>,
    pub(super) kinds: Vec<Kind>,
    index: FxHashMap<Kind, u32>,
    members: Vec<Marks>,
    /// How many members each kind has.
    sizes: Vec<u32>,
}

impl Rooms {
    /// An index over amounts of so many resources.
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.kind_of.len()
    }

    /// Adds a candidate; without a kind it will never be found.
    pub(super) fn push(&mut self, kind: Option<Kind>, free: &[i64]) {
        let at = self.len();
        if at.is_multiple_of(BLOCK) {
            self.most.extend(std::iter::repeat_n(i64::MIN, self.width));
        }
        self.free.extend_from_slice(free);
        self.raise(at, free);
        self.kind_of.push(None);
        if let Some(kind) = kind {
            self.set_kind(at, kind);
        }
    }

    fn raise(&mut self, at: usize, free: &[i64]) {
        let start = at / BLOCK * self.width;
        for (most, free) in self.most[start..].iter_mut().zip(free) {
            *most = (*most).max(*free);
        }
    }

    /// A candidate takes no pods any more.
    pub(super) fn close(&mut self, at: usize) {
        if let Some(old) = self.kind_of[at].take() {
            self.leave(old, at);
        }
    }

    fn leave(&mut self, kind: u32, at: usize) {
        self.members[kind as usize].clear(at);
        self.sizes[kind as usize] -= 1;
    }

    /// Kinds that have candidates.
    pub(super) fn living(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().zip(&self.sizes).filter(|(_, size)| **size > 0).map(|(kind, _)| *kind)
    }

    /// What is free on a candidate has changed.
    pub(super) fn set_free(&mut self, at: usize, free: &[i64]) {
        let own = at * self.width;
        self.free[own..own + self.width].copy_from_slice(free);
        let block = at / BLOCK;
        let start = block * self.width;
        let end = (start + self.width).min(self.most.len());
        self.most[start..end].fill(i64::MIN);
        let rows = &self.free[block * BLOCK * self.width..((block + 1) * BLOCK * self.width).min(self.free.len())];
        for row in rows.chunks_exact(self.width) {
            for (most, free) in self.most[start..end].iter_mut().zip(row) {
                *most = (*most).max(*free);
            }
        }
    }

    /// A candidate has become one of another kind.
    pub(super) fn set_kind(&mut self, at: usize, kind: Kind) {
        let id = *self.index.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.members.push(Marks::default());
            self.sizes.push(0);
            number(self.kinds.len() - 1)
        });
        if self.kind_of[at] == Some(id) {
            return;
        }
        if let Some(old) = self.kind_of[at].replace(id) {
            self.leave(old, at);
        }
        self.members[id as usize].set(at);
        self.sizes[id as usize] += 1;
    }

    /// Whether a candidate is of one of these kinds.
    pub(super) fn is_one_of(&self, at: usize, kinds: &[u32]) -> bool {
        self.kind_of[at].is_some_and(|kind| kinds.contains(&kind))
    }

    /// The first candidate from `from` on that is of one of these kinds, not among `gone`, and has room. What is not needed may be short.
    pub(super) fn next(&self, from: usize, need: Option<&[i64]>, kinds: &[u32], gone: [&Marks; 2]) -> Option<usize> {
        let fits =
            |free: &[i64]| need.is_none_or(|need| need.iter().zip(free).all(|(need, free)| *need <= 0 || need <= free));
        for block in from / BLOCK..self.len().div_ceil(BLOCK) {
            if !fits(&self.most[block * self.width..(block + 1) * self.width]) {
                continue;
            }
            let mut word = kinds.iter().fold(0, |word, kind| word | self.members[*kind as usize].word(block));
            word &= !(gone[0].word(block) | gone[1].word(block));
            if block == from / BLOCK {
                word &= u64::MAX << (from % BLOCK);
            }
            while word != 0 {
                let at = block * BLOCK + word.trailing_zeros() as usize;
                if fits(&self.free[at * self.width..(at + 1) * self.width]) {
                    return Some(at);
                }
                word &= word - 1;
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "rooms_tests.rs"]
mod tests;
