//! How large a planned node should become, and for which of the waiting pods: the shape with the best price for what it would hold.
//!
//! Karpenter fills whatever is open and lets the largest type decide. Here each new node aims at the instance type that, filled with
//! waiting pods that complement each other, gives most for its money, and those pods are promised the room. What a pod is worth is what
//! it would cost at least: its share of the type that suits it best. A promise only guides: a pod that may not go where it was promised
//! goes elsewhere, and the room is given to others.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::algebra::{ProfileId, TermId};
use super::daemons::room_of;
use super::fill::Filling;
use super::interner::KeyId;
use super::masks::Mask;
use super::place::Load;
use super::shelf::{Amounts, Type, add, fits};
use super::topology::CounterId;
use super::world::World;

/// Types whose value for money is within this of the best count as equal, and the largest of them wins: fewer nodes.
const CLOSE: f64 = 0.003;
/// The shortlist of a profile is renewed when the waiting pods are worth less than this part of what they were.
const STALE: f64 = 0.8;
/// How many types a shortlist holds.
const SHORT: usize = 6;
/// How many kinds of waiting pods are looked at: the ones that are worth most.
pub(super) const COMPANY: usize = 32;

/// How many pods of each entry of the demand a node is meant for.
pub(super) type Promises = SmallVec<[(usize, u32); 4]>;

impl From<Filled> for Aim {
    fn from(filled: Filled) -> Self {
        Self { room: filled.room, promises: filled.promises, value: filled.value, held: filled.held }
    }
}

/// Types that were worth looking at, and what waited then.
pub(super) struct Shortlist {
    types: SmallVec<[usize; SHORT]>,
    worth: f64,
}

/// What a new node should come to hold.
pub(super) struct Aim {
    /// Room beside daemons.
    pub(super) room: Amounts,
    /// For which of the waiting pods.
    pub(super) promises: Promises,
    /// What the pods are worth per money spent.
    value: f64,
    /// What they are worth.
    held: f64,
}

impl Aim {
    /// Whether it gives more for the money, by so much that it is worth to have less choice.
    pub(super) fn is_better_value(&self, other: &Self) -> bool {
        self.value > other.value + other.value.abs() * CLOSE
    }

    /// The better of two: more for the money, then more at all, then the smaller node.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let (value, held) = (self.value.total_cmp(&other.value), self.held.total_cmp(&other.held));
        value.then(held).then_with(|| other.room.cmp(&self.room))
    }
}

/// What a node of some type would hold.
struct Filled {
    /// What the pods are worth per money spent.
    value: f64,
    held: f64,
    at: usize,
    room: Amounts,
    promises: Promises,
}

/// Instance types that are the cheapest way to have some mix of resources: all others cost more per unit of every resource.
pub(super) fn best_buys(world: &World<'_>) -> Vec<(Amounts, f64)> {
    let mut all: Vec<(Amounts, f64)> = Vec::new();
    for site in &world.pools {
        let profile = world.algebra.profile(site.base);
        let types = &world.algebra.shelves[site.shelf].types;
        let reserved_only = profile.types.is_empty();
        for at in profile.possible().bits() {
            // Reserved capacity tells nothing of what room is worth, unless there is no other.
            let room = &types[at].allocatable;
            let price = if reserved_only { least_reserved(&types[at]) } else { profile.prices[at] };
            if price.is_infinite() {
                continue;
            }
            also_buy(&mut all, room, price);
        }
    }
    all
}

/// One more type among those that are the cheapest way to have some mix of resources, if it is one.
pub(super) fn also_buy(all: &mut Vec<(Amounts, f64)>, room: &Amounts, price: f64) {
    let as_good = |(other, cost): &(Amounts, f64), room: &Amounts, price: f64| {
        let no_dearer = |a: i64, b: i64| b <= 0 || a > 0 && cost * b as f64 <= price * a as f64;
        other.iter().zip(room).all(|(a, b)| no_dearer(*a, *b))
    };
    if all.iter().any(|known| as_good(known, room, price)) {
        return;
    }
    let own = (room.clone(), price);
    all.retain(|known| !as_good(&own, &known.0, known.1));
    all.push(own);
}

fn least_reserved(kind: &Type) -> f64 {
    let reserved = kind.offerings.iter().filter(|offer| offer.available && offer.reservation.is_some());
    reserved.map(|offer| offer.price).fold(f64::INFINITY, f64::min)
}

/// The least that so much costs: over all types, price times the largest share of any resource.
pub(super) fn worth(best_buys: &[(Amounts, f64)], requests: &[i64]) -> f64 {
    let mut least = f64::INFINITY;
    for (room, price) in best_buys {
        let share = requests
            .iter()
            .zip(room)
            .filter(|(need, _)| **need > 0)
            .map(|(need, room)| if *room > 0 { *need as f64 / *room as f64 } else { f64::INFINITY })
            .fold(0.0, f64::max);
        least = least.min(share * price);
    }
    if least.is_finite() { least } else { 0.0 }
}

impl World<'_> {
    /// The room that a new node of this profile should fill beside its daemons, and with what. `entry` is that of the pod it is opened
    /// for, which is always among those promised.
    pub(super) fn aim(&mut self, pool: usize, profile: ProfileId, mask: &Mask, entry: usize) -> Aim {
        let company = self.company(pool, profile);
        let known = self.demand.shortlists.get(&profile).filter(|known| self.demand.worth > STALE * known.worth);
        if let Some(known) = known {
            let types: SmallVec<[usize; SHORT]> = known.types.iter().copied().filter(|at| mask.has(*at)).collect();
            if let Some(best) = best(self.tried(pool, profile, &types, &company, entry)) {
                return best.into();
            }
        }
        let shelf = &self.algebra.shelves[self.pools[pool].shelf];
        let prices = &self.algebra.profile(profile).prices;
        // Of types of one size the cheapest, the first by name among equals.
        let mut types: Vec<usize> = Vec::new();
        for at in shelf.by_size.iter().copied().filter(|at| mask.has(*at) && prices[*at].is_finite()) {
            match types.last_mut().filter(|last| shelf.types[**last].allocatable == shelf.types[at].allocatable) {
                Some(last) if prices[at] < prices[*last] => *last = at,
                Some(_) => {}
                None => types.push(at),
            }
        }
        let mut tried = self.tried(pool, profile, &types, &company, entry);
        tried.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| b.held.total_cmp(&a.held)));
        let short = tried.iter().take(SHORT).map(|filled| filled.at).collect();
        self.demand.shortlists.insert(profile, Shortlist { types: short, worth: self.demand.worth });
        best(tried).map_or_else(|| self.exactly(profile, mask, &self.zero()), Into::into)
    }

    /// An aim at so much room, for pods that are known.
    pub(super) fn exactly(&self, profile: ProfileId, mask: &Mask, room: &Amounts) -> Aim {
        let prices = &self.algebra.profile(profile).prices;
        let price = mask.bits().map(|at| prices[at]).fold(f64::INFINITY, f64::min);
        Aim { room: room.clone(), promises: Promises::new(), value: -price, held: 0.0 }
    }

    /// An aim at so much room beside daemons, at the price of what holds it; where no type does, at what so much would cost in parts.
    pub(super) fn meant(&self, pool: usize, profile: ProfileId, mask: &Mask, room: &Amounts) -> Aim {
        let roomy = self.holding(pool, profile, mask, Load::of(room, &[]));
        if !roomy.is_empty() {
            return self.exactly(profile, &roomy, room);
        }
        let (groups, shelf) = (self.groups(pool, profile), &self.algebra.shelves[self.pools[pool].shelf]);
        let prices = &self.algebra.profile(profile).prices;
        let parts: Vec<(Amounts, f64)> =
            mask.bits().filter_map(|at| Some((room_of(&groups, at, shelf)?, prices[at]))).collect();
        Aim { value: -worth(&parts, room), ..self.exactly(profile, mask, room) }
    }

    /// No aim: the most of each resource that any of the types has beside its daemons.
    pub(super) fn anything(&self, pool: usize, profile: ProfileId, mask: &Mask) -> Aim {
        let (groups, shelf) = (self.groups(pool, profile), &self.algebra.shelves[self.pools[pool].shelf]);
        let mut most = self.zero();
        for at in mask.bits() {
            let Some(room) = room_of(&groups, at, shelf) else { continue };
            most.iter_mut().zip(&room).for_each(|(most, room)| *most = (*most).max(*room));
        }
        self.exactly(profile, mask, &most)
    }

    /// The kinds of pods that wait, are promised nothing yet, and could live on such a node.
    fn company(&mut self, pool: usize, profile: ProfileId) -> Vec<usize> {
        let taints = self.pools[pool].taints;
        let known = self.demand.companions.remove(&(profile, taints));
        let companions = known.unwrap_or_else(|| self.companions(profile, taints));
        let mut reach: SmallVec<[((KeyId, CounterId), bool); 8]> = SmallVec::new();
        let mut reachable = |near: (KeyId, CounterId)| {
            if let Some((_, known)) = reach.iter().find(|(known, _)| *known == near) {
                return *known;
            }
            let (counter, domain) = (self.counters.get(near.1), self.algebra.domain(profile, near.0));
            let here = || domain.bits.bits().any(|value| counter.in_domain(value) > 0);
            let answer = counter.total == 0 || !domain.is_settled() || here();
            reach.push((near, answer));
            answer
        };
        let entries = &self.demand.entries;
        let waits = |at: &usize| entries[*at].available() > 0;
        let mut company: Vec<usize> = companions
            .iter()
            .copied()
            .filter(waits)
            .filter(|at| entries[*at].near.is_none_or(&mut reachable))
            .collect();
        if company.len() > COMPANY {
            let weight = |at: usize| entries[at].worth * f64::from(entries[at].available());
            let mut weighed: Vec<(f64, usize)> = company.iter().map(|at| (weight(*at), *at)).collect();
            let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            weighed.select_nth_unstable_by(COMPANY, order);
            weighed.truncate(COMPANY);
            weighed.sort_unstable_by(order);
            company = weighed.into_iter().map(|(_, at)| at).collect();
        }
        self.demand.companions.insert((profile, taints), companions);
        company
    }

    /// Entries of the demand whose labels and tolerations allow such a node.
    fn companions(&mut self, profile: ProfileId, taints: u32) -> Vec<usize> {
        let mut all = Vec::new();
        for at in 0..self.demand.entries.len() {
            let (term, tolerations) = (self.demand.entries[at].term, self.demand.entries[at].tolerations);
            if term != TermId(u32::MAX)
                && self.tolerance.tolerates(tolerations, taints, true)
                && self.algebra.join(profile, term).is_some()
            {
                all.push(at);
            }
        }
        all
    }

    fn tried(&self, pool: usize, profile: ProfileId, types: &[usize], company: &[usize], first: usize) -> Vec<Filled> {
        let (groups, shelf) = (self.groups(pool, profile), &self.algebra.shelves[self.pools[pool].shelf]);
        let prices = &self.algebra.profile(profile).prices;
        let fair = self.demand.fair_share();
        let mut filling = Filling::new(&self.demand, company, first, fair);
        let mut all = Vec::with_capacity(types.len());
        for at in types {
            let Some(room) = room_of(&groups, *at, shelf) else { continue };
            if !fits(&self.demand.entries[first].requests, &room) {
                continue;
            }
            let (held, promises) = filling.fill(&room);
            // A type that costs nothing is worth any amount of money.
            all.push(Filled { value: held / prices[*at].max(1e-9), held, at: *at, room, promises });
        }
        all
    }
}

/// The best value; among those that are close, the one that holds most.
fn best(tried: Vec<Filled>) -> Option<Filled> {
    let most = tried.iter().map(|filled| filled.value).fold(0.0, f64::max);
    let close = tried.into_iter().filter(|filled| filled.value >= most * (1.0 - CLOSE));
    close.max_by(|a, b| a.held.total_cmp(&b.held).then_with(|| b.at.cmp(&a.at)))
}

/// The sum of two vectors.
pub(super) fn sum(a: &[i64], b: &[i64]) -> Amounts {
    let mut total: Amounts = a.into();
    add(&mut total, b);
    total
}

/// Entries of the demand that could live on nodes of a profile with these taints.
pub(super) type Companions = FxHashMap<(ProfileId, u32), Vec<usize>>;

/// Shortlists by profile.
pub(super) type Shortlists = FxHashMap<ProfileId, Shortlist>;
