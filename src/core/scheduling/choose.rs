//! How large a planned node should become, and for which of the waiting pods: the shape with the best price for what it would hold.
//!
//! Karpenter fills whatever is open and lets the largest type decide. Here each new node aims at the instance type that, filled with
//! waiting pods that complement each other, gives most for its money, and those pods are promised the room. What a pod is worth is what
//! it would cost at least: its share of the type that suits it best. A promise only guides: a pod that may not go where it was promised
//! goes elsewhere, and the room is given to others.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::algebra::ProfileId;
use super::demand::{Demand, Entry};
use super::masks::Mask;
use super::shelf::{Amounts, add, fits, subtract};
use super::topology::CounterId;
use super::world::World;

/// Types whose value for money is within this of the best count as equal, and the largest of them wins: fewer nodes.
const CLOSE: f64 = 0.003;
/// The shortlist of a profile is renewed when the waiting pods are worth less than this part of what they were.
const STALE: f64 = 0.8;
/// How many types a shortlist holds.
const SHORT: usize = 6;
/// How many kinds of waiting pods are looked at: the ones that are worth most.
const COMPANY: usize = 32;

/// How many pods of each entry of the demand a node is meant for.
pub(super) type Promises = SmallVec<[(usize, u32); 4]>;

/// Types that were worth looking at, and what waited then.
pub(super) struct Shortlist {
    types: SmallVec<[usize; SHORT]>,
    worth: f64,
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

/// The least that so much costs: over all types, price times the largest share of any resource.
pub(super) fn worth(world: &World<'_>, requests: &[i64]) -> f64 {
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
    /// The room that a new node of this profile should fill beside its daemons, and with what. `entry` is that of the pod it is opened
    /// for, which is always among those promised.
    pub(super) fn aim(&mut self, pool: usize, profile: ProfileId, mask: &Mask, entry: usize) -> (Amounts, Promises) {
        let company = self.company(pool, profile);
        let known = self.demand.shortlists.get(&profile).filter(|known| self.demand.worth > STALE * known.worth);
        if let Some(known) = known {
            let types: SmallVec<[usize; SHORT]> = known.types.iter().copied().filter(|at| mask.has(*at)).collect();
            if let Some(best) = best(self.tried(pool, profile, &types, &company, entry)) {
                return (best.room, best.promises);
            }
        }
        let shelf = &self.algebra.shelves[self.pools[pool].shelf];
        let prices = &self.algebra.profile(profile).prices;
        let mut types: Vec<usize> = mask.bits().filter(|at| prices[*at].is_finite()).collect();
        types.sort_by(|a, b| {
            let room = shelf.types[*a].allocatable.cmp(&shelf.types[*b].allocatable);
            room.then_with(|| prices[*a].total_cmp(&prices[*b]))
        });
        types.dedup_by(|b, a| shelf.types[*a].allocatable == shelf.types[*b].allocatable);
        let mut tried = self.tried(pool, profile, &types, &company, entry);
        tried.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| b.held.total_cmp(&a.held)));
        let short = tried.iter().take(SHORT).map(|filled| filled.at).collect();
        self.demand.shortlists.insert(profile, Shortlist { types: short, worth: self.demand.worth });
        best(tried).map_or_else(|| (self.zero(), Promises::new()), |best| (best.room, best.promises))
    }

    /// The kinds of pods that wait, are promised nothing yet, and could live on such a node.
    fn company(&mut self, pool: usize, profile: ProfileId) -> Vec<usize> {
        let taints = self.pools[pool].taints;
        let mut company: Vec<usize> = Vec::new();
        for at in 0..self.demand.entries.len() {
            let entry = &self.demand.entries[at];
            let (term, tolerations) = (entry.term, entry.tolerations);
            let reachable = entry.near.is_none_or(|(key, id)| {
                let (counter, domain) = (self.counters.get(id), self.algebra.domain(profile, key));
                let here = || domain.bits.bits().any(|value| counter.in_domain(value) > 0);
                counter.total == 0 || !domain.is_settled() || here()
            });
            if entry.available() > 0
                && reachable
                && self.tolerance.tolerates(tolerations, taints, true)
                && self.algebra.join(profile, term).is_some()
            {
                company.push(at);
            }
        }
        if company.len() > COMPANY {
            let weight = |at: &usize| {
                let entry = &self.demand.entries[*at];
                entry.worth * f64::from(entry.available())
            };
            company.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
            company.truncate(COMPANY);
        }
        company
    }

    fn tried(&self, pool: usize, profile: ProfileId, types: &[usize], company: &[usize], first: usize) -> Vec<Filled> {
        let site = &self.pools[pool];
        let shelf = &self.algebra.shelves[site.shelf];
        let prices = &self.algebra.profile(profile).prices;
        let fair = self.demand.fair_share();
        let mut all = Vec::with_capacity(types.len());
        for at in types {
            let Some(group) = site.groups.iter().find(|group| group.types.has(*at)) else { continue };
            let mut room = shelf.types[*at].allocatable.clone();
            subtract(&mut room, &group.overhead);
            if !fits(&self.demand.entries[first].requests, &room) {
                continue;
            }
            let (held, promises) = filled(&self.demand, company, first, &room, fair);
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

#[expect(clippy::cast_possible_truncation, reason = "a float beyond i64 saturates, which is what a bound should do")]
/// Fills a room: one pod of `first`, then always the kind that best uses what is left of each resource, up to a worth of `fair`.
fn filled(demand: &Demand, company: &[usize], first: usize, whole: &Amounts, fair: f64) -> (f64, Promises) {
    let entries = &demand.entries;
    let mut room = whole.clone();
    let mut held = 0.0;
    let mut promises = Promises::new();
    let mut caps: SmallVec<[(CounterId, u32); 4]> = SmallVec::new();
    let mut left: SmallVec<[u32; COMPANY]> = company.iter().map(|at| entries[*at].share()).collect();
    let mut take = |at: usize, many: u32, room: &mut Amounts, caps: &mut SmallVec<[(CounterId, u32); 4]>| {
        let entry: &Entry = &entries[at];
        for (room, need) in room.iter_mut().zip(&entry.requests) {
            *room = room.saturating_sub(need.saturating_mul(i64::from(many)));
        }
        if let Some((id, cap)) = entry.cap {
            match caps.iter_mut().find(|(known, _)| *known == id) {
                Some((_, left)) => *left = left.saturating_sub(many),
                None => caps.push((id, cap.saturating_sub(many))),
            }
        }
        match promises.iter_mut().find(|(known, _)| *known == at) {
            Some((_, known)) => *known += many,
            None => promises.push((at, many)),
        }
        entry.worth * f64::from(many)
    };
    held += take(first, 1, &mut room, &mut caps);
    if let Some(at) = company.iter().position(|at| *at == first) {
        left[at] = left[at].saturating_sub(1);
    }
    loop {
        let mut next: Option<(f64, usize, u32)> = None;
        for (place, at) in company.iter().enumerate().filter(|(place, _)| left[*place] > 0) {
            let entry = &entries[*at];
            let mut many = i64::from(left[place]);
            let mut score = 0.0;
            for ((need, room), whole) in entry.requests.iter().zip(&room).zip(whole).filter(|((need, _), _)| **need > 0)
            {
                many = many.min(room.div_euclid(*need));
                let whole = (*whole).max(1) as f64;
                score += (*need as f64 / whole) * (*room as f64 / whole);
            }
            if fair.is_finite() && entry.worth > 0.0 {
                many = many.min(((fair - held) / entry.worth).ceil() as i64);
            }
            if let Some((id, cap)) = entry.cap {
                // Those of which a node takes only a few are what decides the number of nodes: they go first.
                score += if fair.is_finite() { 1e3 } else { 0.0 };
                many = many.min(i64::from(caps.iter().find(|(known, _)| *known == id).map_or(cap, |(_, left)| *left)));
            }
            if many > 0 && next.is_none_or(|(best, ..)| score > best) {
                next = Some((score, place, u32::try_from(many).unwrap_or(u32::MAX)));
            }
        }
        let Some((_, place, many)) = next else { return (held, promises) };
        // Half at a time: the best use of what is left changes on the way.
        let many = if company.len() == 1 { many } else { many.div_ceil(2) };
        held += take(company[place], many, &mut room, &mut caps);
        left[place] -= many;
    }
}

/// The sum of two vectors.
pub(super) fn sum(a: &[i64], b: &[i64]) -> Amounts {
    let mut total: Amounts = a.into();
    add(&mut total, b);
    total
}

/// Shortlists by profile.
pub(super) type Shortlists = FxHashMap<ProfileId, Shortlist>;
