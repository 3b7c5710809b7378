//! The pods that wait, by what they ask for, and the room that planned nodes hold ready for them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::algebra::TermId;
use super::choose::{Companions, Shortlists, worth};
use super::draft::Draft;
use super::interner::KeyId;
use super::shelf::{Amounts, subtract};
use super::topology::{CounterId, Topo};
use super::world::World;

/// Waiting pods that ask for the same.
pub(super) struct Entry {
    pub(super) requests: Amounts,
    pub(super) term: TermId,
    pub(super) tolerations: u32,
    /// At most so many of a kind on one node.
    pub(super) cap: Option<(CounterId, u32)>,
    /// What one of them costs at least, in USD per hour.
    pub(super) worth: f64,
    /// The pods, counted by a key that is not the host name, near which they must be.
    pub(super) near: Option<(KeyId, CounterId)>,
    /// Over how many domains a required spread constraint divides them.
    parts: u32,
    waiting: u32,
    /// How many of those that wait are promised room on planned nodes.
    promised: u32,
    /// Planned nodes with room promised to such pods; some of it may be taken by now.
    pub(super) drafts: Vec<u32>,
}

impl Entry {
    /// Waiting pods that are promised nothing.
    pub(super) fn available(&self) -> u32 {
        self.waiting.saturating_sub(self.promised)
    }

    /// How many of those one node may count on.
    pub(super) fn share(&self) -> u32 {
        self.available().div_ceil(self.parts)
    }
}

/// All waiting pods.
#[derive(Default)]
pub(super) struct Demand {
    pub(super) entries: Vec<Entry>,
    /// What all waiting pods cost at least.
    pub(super) worth: f64,
    pub(super) shortlists: Shortlists,
    pub(super) companions: Companions,
}

/// What makes two classes ask for the same.
type Identity = (Amounts, TermId, u32, Option<(CounterId, u32)>, u32, Option<(KeyId, CounterId)>);

impl Demand {
    /// The demand, and the entry of each class. Classes that contradict themselves share one of no consequence.
    pub(super) fn new(world: &World<'_>, best_buys: &[(Amounts, f64)]) -> (Self, Vec<usize>) {
        let mut index: FxHashMap<Identity, usize> = FxHashMap::default();
        let mut entries: Vec<Entry> = Vec::new();
        let mut of_class = Vec::with_capacity(world.classes.len());
        for class in &world.classes {
            let term = class.variants.last().map_or(TermId(u32::MAX), |bare| bare.term);
            let spreads = || class.variants.last().into_iter().flat_map(|bare| &bare.spreads).filter(|s| s.own > 0);
            let apart = class.variants.last().into_iter().flat_map(|bare| class.away_from_its_like(bare));
            let per_host = spreads().filter(|s| s.topo == Topo::Host).map(|s| (s.counter, s.max_skew));
            let alone = apart.filter(|(topo, _)| *topo == Topo::Host).map(|(_, id)| (id, 1));
            let cap = per_host.chain(alone).min_by_key(|(id, cap)| (*cap, *id));
            let parts = spreads().filter(|s| s.topo != Topo::Host).map(|s| s.domains.count()).max().unwrap_or(1);
            let parts = super::interner::number(parts.max(1));
            let affinities = class.variants.last().into_iter().flat_map(|bare| &bare.affinities);
            let near = affinities.flat_map(|a| &a.counters).find_map(|(topo, id)| match topo {
                Topo::Key(key) => Some((*key, *id)),
                Topo::Host => None,
            });
            let key = (class.requests.clone(), term, class.tolerations, cap, parts, near);
            let entry = *index.entry(key).or_insert_with(|| {
                entries.push(Entry {
                    requests: class.requests.clone(),
                    term,
                    tolerations: class.tolerations,
                    cap,
                    worth: worth(best_buys, &class.requests),
                    near,
                    parts,
                    waiting: 0,
                    promised: 0,
                    drafts: Vec::new(),
                });
                entries.len() - 1
            });
            of_class.push(entry);
        }
        for class in &world.class_of {
            if !world.classes[*class as usize].variants.is_empty() {
                entries[of_class[*class as usize]].waiting += 1;
            }
        }
        let worth = entries.iter().map(|e| e.worth * f64::from(e.waiting)).sum();
        (Self { entries, worth, shortlists: Shortlists::default(), companions: Companions::default() }, of_class)
    }

    /// What a node should hold at most when pods that keep apart force many nodes anyway: then the others are spread over those, rather
    /// than packed into a few that are large. Infinite when nothing forces.
    pub(super) fn fair_share(&self) -> f64 {
        let mut groups: SmallVec<[(CounterId, u32, u32); 8]> = SmallVec::new();
        let mut worth = 0.0;
        for entry in self.entries.iter().filter(|entry| entry.available() > 0) {
            worth += entry.worth * f64::from(entry.available());
            let Some((id, cap)) = entry.cap else { continue };
            match groups.iter_mut().find(|(known, ..)| *known == id) {
                Some((_, _, waiting)) => *waiting += entry.available(),
                None => groups.push((id, cap, entry.available())),
            }
        }
        let nodes = groups.iter().map(|(_, cap, waiting)| waiting.div_ceil(*cap)).max().unwrap_or(0);
        if nodes == 0 { f64::INFINITY } else { worth / f64::from(nodes) }
    }

    /// Notes what a new planned node is meant for.
    pub(super) fn promise(&mut self, at: u32, draft: &Draft) {
        for (entry, many) in &draft.promises {
            let entry = &mut self.entries[*entry];
            entry.promised += many;
            entry.drafts.push(at);
        }
    }

    /// A pod has found a place; `on` says on which planned node, if on one. Promises that nobody is left for are taken back; the answer
    /// is from which planned nodes.
    pub(super) fn placed(&mut self, which: usize, on: Option<usize>, drafts: &mut [Draft]) -> SmallVec<[u32; 2]> {
        let entry = &mut self.entries[which];
        let mut freed = SmallVec::new();
        entry.waiting = entry.waiting.saturating_sub(1);
        self.worth -= entry.worth;
        if on.is_some_and(|on| drafts[on].take_back(which, &entry.requests)) {
            entry.promised -= 1;
        }
        while entry.promised > entry.waiting {
            let Some(last) = entry.drafts.last() else { break };
            if drafts[*last as usize].take_back(which, &entry.requests) {
                entry.promised -= 1;
                freed.push(*last);
            } else {
                entry.drafts.pop();
            }
        }
        freed
    }
}

impl Draft {
    /// What is left of the aim beside the pods that are there and those that are promised room.
    pub(super) fn left(&self) -> Amounts {
        let mut left = self.aim.clone();
        subtract(&mut left, &self.requests);
        subtract(&mut left, &self.reserved);
        left
    }

    /// Whether room is promised to pods of this entry.
    pub(super) fn expects(&self, entry: usize) -> bool {
        self.promises.iter().any(|(known, many)| *known == entry && *many > 0)
    }

    /// Ends one promise, if there is one.
    fn take_back(&mut self, entry: usize, requests: &[i64]) -> bool {
        let Some((_, many)) = self.promises.iter_mut().find(|(known, many)| *known == entry && *many > 0) else {
            return false;
        };
        *many -= 1;
        subtract(&mut self.reserved, requests);
        true
    }
}
