//! Bit masks: over the values of a label key, over instance types, over offerings.

use smallvec::SmallVec;

/// A fixed number of bits. Two masks that meet in an operation have the same length.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Mask(SmallVec<[u64; 2]>);

impl Mask {
    /// No bit of `len` set.
    pub(super) fn empty(len: usize) -> Self {
        Self(SmallVec::from_elem(0, len.div_ceil(64)))
    }

    /// Every bit of `len` set.
    pub(super) fn full(len: usize) -> Self {
        let mut all = Self(SmallVec::from_elem(u64::MAX, len.div_ceil(64)));
        if let Some(last) = all.0.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last = (1 << (len % 64)) - 1;
        }
        all
    }

    pub(super) fn set(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    pub(super) fn clear(&mut self, bit: usize) {
        self.0[bit / 64] &= !(1 << (bit % 64));
    }

    pub(super) fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn and(&mut self, other: &Self) {
        for (word, also) in self.0.iter_mut().zip(&other.0) {
            *word &= also;
        }
    }

    pub(super) fn or(&mut self, other: &Self) {
        for (word, also) in self.0.iter_mut().zip(&other.0) {
            *word |= also;
        }
    }

    /// Leaves the bits that are to be kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if !is_kept(at * 64 + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, also)| word & also != 0)
    }

    /// Positions of the bits that are set, ascending.
    pub(super) fn bits(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }

    /// The lowest bit that is set.
    pub(super) fn first(&self) -> Option<usize> {
        self.bits().next()
    }
}
