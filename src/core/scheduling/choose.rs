//! How large a planned node should become: the shape with the best price for what it would really hold.
//!
//! Karpenter fills whatever is open and lets the largest type decide. Here each new node aims at the instance type that, filled with
//! pods that are still waiting, gives most for its money. What a pod is worth is what it would cost at least: its share of the type
//! that suits it best.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::algebra::{ProfileId, TermId};
use super::masks::Mask;
use super::shelf::{Amounts, add, fits, subtract};
use super::topology::{CounterId, Topo};
use super::world::World;

/// Types whose value for money is within this of the best count as equal, and the largest of them wins: fewer nodes.
const CLOSE: f64 = 0.005;
/// A choice is reused until the waiting pods are worth less than this part of what they were.
const STALE: f64 = 0.8;
/// A choice is reused only while more than this many such nodes would still be filled.
const PLENTY: f64 = 3.0;

/// Waiting pods that ask for the same.
pub(super) struct Entry {
    pub(super) requests: Amounts,
    term: TermId,
    tolerations: u32,
    /// At most so many of a kind on one node.
    cap: Option<(CounterId, u32)>,
    pub(super) waiting: u32,
    /// What one of them costs at least, in USD per hour.
    worth: f64,
}

/// All waiting pods by what they ask for, largest first.
#[derive(Default)]
pub(super) struct Demand {
    pub(super) entries: Vec<Entry>,
    /// What all waiting pods cost at least.
    pub(super) worth: f64,
    chosen: FxHashMap<(ProfileId, usize), Chosen>,
}

struct Chosen {
    room: Amounts,
    price: f64,
    worth: f64,
}

impl Demand {
    /// The demand, and the entry of each class.
    pub(super) fn new(world: &World<'_>) -> (Self, Vec<usize>) {
        let mut index: FxHashMap<(Amounts, TermId, u32, Option<(CounterId, u32)>), usize> = FxHashMap::default();
        let mut entries: Vec<Entry> = Vec::new();
        let mut of_class = vec![0; world.classes.len()];
        for (at, class) in world.classes.iter().enumerate() {
            let Some(bare) = class.variants.last() else { continue };
            let spread =
                bare.spreads.iter().filter(|s| s.topo == Topo::Host && s.own > 0).map(|s| (s.counter, s.max_skew));
            let apart = bare
                .apart
                .iter()
                .filter(|(t, id)| *t == Topo::Host && class.touches.contains(id))
                .map(|(_, id)| (*id, 1));
            let cap = spread.chain(apart).min_by_key(|(_, cap)| *cap);
            let key = (class.requests.clone(), bare.term, class.tolerations, cap);
            let entry = *index.entry(key).or_insert_with(|| {
                let worth = worth(world, &class.requests);
                let requests = class.requests.clone();
                entries.push(Entry {
                    requests,
                    term: bare.term,
                    tolerations: class.tolerations,
                    cap,
                    waiting: 0,
                    worth,
                });
                entries.len() - 1
            });
            of_class[at] = entry;
        }
        for class in &world.class_of {
            entries[of_class[*class as usize]].waiting += 1;
        }
        let total = entries.iter().map(|e| e.worth * f64::from(e.waiting)).sum();
        Self { entries, worth: total, chosen: FxHashMap::default() }.sorted(of_class)
    }

    /// Entries from the most to the least worth, so that filling meets the large ones first.
    fn sorted(mut self, mut of_class: Vec<usize>) -> (Self, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&self.entries[*a], &self.entries[*b]);
            b.worth.total_cmp(&a.worth).then_with(|| b.requests.cmp(&a.requests))
        });
        let mut place = vec![0; order.len()];
        for (now, before) in order.iter().enumerate() {
            place[*before] = now;
        }
        let mut old: Vec<Option<Entry>> = self.entries.into_iter().map(Some).collect();
        self.entries = order.iter().map(|at| old[*at].take().expect("each place is taken once")).collect();
        for entry in &mut of_class {
            *entry = place.get(*entry).copied().unwrap_or(0);
        }
        (self, of_class)
    }

    /// One pod waits no more.
    pub(super) fn placed(&mut self, entry: usize) {
        let entry = &mut self.entries[entry];
        entry.waiting = entry.waiting.saturating_sub(1);
        self.worth -= entry.worth;
    }
}

/// The least that so much costs: over all types, price times the largest share of any resource.
fn worth(world: &World<'_>, requests: &[i64]) -> f64 {
    let mut least = f64::INFINITY;
    for site in &world.pools {
        let profile = world.algebra.profile(site.base);
        for at in profile.types.bits() {
            let room = &world.algebra.shelves[site.shelf].types[at].allocatable;
            let share = requests
                .iter()
                .zip(room)
                .filter(|(need, _)| **need > 0)
                .map(|(need, room)| if *room > 0 { *need as f64 / *room as f64 } else { f64::INFINITY })
                .fold(0.0, f64::max);
            least = least.min(share * profile.prices[at]);
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

impl World<'_> {
    /// The room that a new node of this profile should fill, beside its daemons.
    pub(super) fn aim(&mut self, pool: usize, profile: ProfileId, mask: &Mask, entry: usize) -> Amounts {
        if let Some(known) = self.demand.chosen.get(&(profile, entry)) {
            let plenty = self.demand.worth > PLENTY * known.price && self.demand.worth > STALE * known.worth;
            if plenty && fits(&self.demand.entries[entry].requests, &known.room) {
                return known.room.clone();
            }
        }
        let taints = self.pools[pool].taints;
        let mut company: Vec<usize> = Vec::new();
        for at in 0..self.demand.entries.len() {
            let (term, tolerations, waiting) = {
                let e = &self.demand.entries[at];
                (e.term, e.tolerations, e.waiting)
            };
            if waiting > 0
                && self.tolerance.tolerates(tolerations, taints, true)
                && self.algebra.join(profile, term).is_some()
            {
                company.push(at);
            }
        }
        let site = &self.pools[pool];
        let shelf = &self.algebra.shelves[site.shelf];
        let prices = &self.algebra.profile(profile).prices;
        let mut order: Vec<usize> = mask.bits().filter(|at| prices[*at].is_finite()).collect();
        order.sort_by(|a, b| {
            let (x, y) = (&shelf.types[*a], &shelf.types[*b]);
            x.allocatable.cmp(&y.allocatable).then_with(|| prices[*a].total_cmp(&prices[*b]))
        });
        order.dedup_by(|b, a| shelf.types[*a].allocatable == shelf.types[*b].allocatable);
        let mut tried: Vec<(f64, f64, Amounts, f64)> = Vec::new();
        for at in order {
            let Some(group) = site.groups.iter().find(|group| group.types.has(at)) else { continue };
            let mut room = shelf.types[at].allocatable.clone();
            subtract(&mut room, &group.overhead);
            let held = self.filled(&company, entry, room.clone());
            // A type that costs nothing is worth any amount of money.
            tried.push((held / prices[at].max(1e-9), held, room, prices[at]));
        }
        let best = tried.iter().map(|(value, ..)| *value).fold(0.0, f64::max);
        let chosen = tried
            .into_iter()
            .filter(|(value, ..)| *value >= best * (1.0 - CLOSE))
            .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.3.total_cmp(&a.3)));
        let Some((_, _, room, price)) = chosen else { return self.zero() };
        self.demand.chosen.insert((profile, entry), Chosen { room: room.clone(), price, worth: self.demand.worth });
        room
    }

    /// What the pods are worth that a node with this room would hold: one of `first`, then the largest that wait.
    fn filled(&self, company: &[usize], first: usize, mut room: Amounts) -> f64 {
        let entries = &self.demand.entries;
        subtract(&mut room, &entries[first].requests);
        let mut held = entries[first].worth;
        let mut caps: SmallVec<[(CounterId, u32); 4]> = SmallVec::new();
        if let Some((id, cap)) = entries[first].cap {
            caps.push((id, cap.saturating_sub(1)));
        }
        for at in company {
            let entry = &entries[*at];
            let mut many = i64::from(entry.waiting) - i64::from(*at == first);
            for (need, room) in entry.requests.iter().zip(&room).filter(|(need, _)| **need > 0) {
                many = many.min(room.div_euclid(*need));
            }
            if many <= 0 {
                continue;
            }
            if let Some((id, cap)) = entry.cap {
                let at = caps.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    caps.push((id, cap));
                    caps.len() - 1
                });
                many = many.min(i64::from(caps[at].1));
                caps[at].1 -= u32::try_from(many).unwrap_or(0);
            }
            let mut taken = entry.requests.clone();
            taken.iter_mut().for_each(|amount| *amount = amount.saturating_mul(many));
            subtract(&mut room, &taken);
            held += entry.worth * many as f64;
        }
        held
    }
}

/// The sum of two vectors.
pub(super) fn sum(a: &[i64], b: &[i64]) -> Amounts {
    let mut total: Amounts = a.into();
    add(&mut total, b);
    total
}
