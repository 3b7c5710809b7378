//! Alternatives of what a pod requires of its node, such as several `nodeSelectorTerms`: room that is there under any of them comes before a new
//! node, and a new node is that of the alternative which is the best value.

use std::ops::Range;

use smallvec::SmallVec;

use super::classes::{Class, Variant};
use super::solve::Run;

impl Run<'_> {
    /// Tries the variants of a class, from all wishes to bare requirements.
    pub(super) fn place_somehow(&mut self, pod: usize, which: u32, class: &Class) -> bool {
        let mut levels = class.variants.chunk_by(|a, b| a.level == b.level);
        let mut from = 0;
        levels.any(|level| {
            let ways = from..from + level.len();
            from = ways.end;
            if level.len() == 1 {
                self.place_variant(pod, which, ways.start, class)
            } else {
                self.place_some_way(pod, which, class, ways)
            }
        })
    }

    fn place_some_way(&mut self, pod: usize, which: u32, class: &Class, ways: Range<usize>) -> bool {
        // The way in which a node was bought comes first: another could let that node grow dearer than it has to be.
        let bought = self.bought_as.get(&which).copied();
        let mut ways: SmallVec<[usize; 4]> = ways.collect();
        ways.sort_by_key(|at| Some(*at) != bought);
        self.buys_nothing = true;
        let is_there = ways.iter().any(|at| self.place_variant(pod, which, *at, class));
        self.buys_nothing = false;
        is_there || ways.iter().any(|at| self.place_variant(pod, which, *at, class))
    }
}

impl Class {
    /// The variants that give up as much as this one, itself first, and their numbers.
    pub(super) fn alternatives<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = (usize, &'a Variant)> {
        let all = || self.variants.iter().enumerate().filter(|(_, other)| other.level == variant.level);
        let own = all().filter(|(_, other)| std::ptr::eq(*other, variant));
        own.chain(all().filter(|(_, other)| !std::ptr::eq(*other, variant)))
    }
}
