//! Terms and profiles: what pods ask of labels, what candidates may still become, and the memo of what happens when they meet.
//!
//! A candidate's labels are a [`Profile`], shared by all candidates of the same kind. Placing a pod or pinning a zone *joins* the
//! profile with a [`TermId`]; the result is found in a table after the first time. Profiles carry the instance types that are still
//! possible and the cheapest price of each, so that a candidate costs one number.

use rustc_hash::FxHashMap;

use crate::core::facts::Offering;
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirement;

use super::interner::{Domain, KeyId, Universe, number};
use super::masks::Mask;
use super::reserved::Reservations;
use super::shelf::{Offer, Sets, Shelf, Type};

/// A conjunction of requirements on labels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TermId(pub(super) u32);

/// The labels that a candidate may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct ProfileId(pub(super) u32);

/// What a profile says of keys that it does not mention.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Source {
    /// A planned node: well-known keys are open, others absent. The number is that of the shelf with its instance types. Reserved
    /// capacity is not for it.
    Shelf(u32),
    /// A planned node that holds a reservation (the second number), and can be nothing else.
    Held(u32, u32),
    /// A node that exists, or is under way: what it does not have, it has not.
    Node,
}

pub(super) struct Profile {
    pub(super) source: Source,
    pub(super) sets: Sets,
    /// Instance types that match and have an available offering that matches.
    pub(super) types: Mask,
    /// Cheapest such offering of each type; infinite where there is none.
    pub(super) prices: Box<[f64]>,
    /// Instance types that match and have an available reserved offering that matches, with the number of the reservation.
    pub(super) reserved: Box<[(u32, u32)]>,
}

impl Profile {
    /// Instance types that match, reserved capacity included.
    pub(super) fn possible(&self) -> Mask {
        let mut all = self.types.clone();
        self.reserved.iter().for_each(|(at, _)| all.set(*at as usize));
        all
    }
}

impl Type {
    /// Whether a node with this source and these labels could have one of the type's offerings, if none were sold out.
    fn offers(&self, source: Source, sets: &Sets) -> bool {
        let is_for = |offer: &Offer, fact: &Offering| match source {
            Source::Held(_, held) => offer.reservation == Some(held),
            // Reserved capacity that nobody can name cannot be used.
            _ => offer.reservation.is_some() || !fact.is_reserved(),
        };
        let mut all = self.offerings.iter().zip(&self.fact.offerings);
        all.any(|(offer, fact)| is_for(offer, fact) && agree(&offer.sets, sets))
    }

    /// Whether the type, or else each of its offerings, says something of a key.
    pub(super) fn tells(&self, key: KeyId) -> bool {
        let tells = |sets: &Sets| sets.iter().any(|(known, _)| *known == key);
        tells(&self.sets) || self.offerings.iter().all(|offer| tells(&offer.sets))
    }
}

impl Source {
    /// The shelf of a planned node.
    pub(super) fn shelf(self) -> Option<u32> {
        match self {
            Self::Shelf(shelf) | Self::Held(shelf, _) => Some(shelf),
            Self::Node => None,
        }
    }
}

/// What the sets of a profile leave of a shelf: types, prices, reserved capacity.
type Stock = (Mask, Box<[f64]>, Box<[(u32, u32)]>);

/// The tables.
#[derive(Default)]
pub(super) struct Algebra {
    pub(super) universe: Universe,
    pub(super) shelves: Vec<Shelf>,
    pub(super) reservations: Reservations,
    terms: Vec<Sets>,
    term_index: FxHashMap<Sets, TermId>,
    profiles: Vec<Profile>,
    profile_index: FxHashMap<(Source, Sets), ProfileId>,
    joins: FxHashMap<(ProfileId, TermId), Option<ProfileId>>,
    pins: FxHashMap<(KeyId, Option<u32>), TermId>,
    holds: FxHashMap<(ProfileId, u32), Option<ProfileId>>,
}

impl Algebra {
    pub(super) fn new(universe: Universe, shelves: Vec<Shelf>, reservations: Reservations) -> Self {
        Self { universe, shelves, reservations, ..Self::default() }
    }

    /// How much is remembered.
    pub(super) fn size(&self) -> usize {
        self.terms.len() + self.profiles.len() + self.joins.len() + self.holds.len()
    }

    /// The term that says all of the labels and requirements, or the key on which they contradict each other.
    pub(super) fn term<'a>(
        &mut self,
        labels: &Labels,
        requirements: impl IntoIterator<Item = &'a Requirement>,
    ) -> Result<TermId, KeyId> {
        let mut sets = Sets::new();
        for (key, value) in labels {
            if let Some(key) = self.universe.find(key) {
                let domain = self.universe.value(key, value);
                narrow(&mut sets, &self.universe, key, &domain)?;
            }
        }
        for (key, domain) in requirements.into_iter().filter_map(|r| self.universe.requirement(r)) {
            narrow(&mut sets, &self.universe, key, &domain)?;
        }
        Ok(self.intern(sets))
    }

    pub(super) fn intern(&mut self, sets: Sets) -> TermId {
        if let Some(known) = self.term_index.get(&sets) {
            return *known;
        }
        let id = TermId(number(self.terms.len()));
        self.terms.push(sets.clone());
        self.term_index.insert(sets, id);
        id
    }

    /// The term that pins a key to one value, or to absence.
    pub(super) fn pin(&mut self, key: KeyId, value: Option<usize>) -> TermId {
        let at = (key, value.map(number));
        if let Some(known) = self.pins.get(&at) {
            return *known;
        }
        let mut domain = self.universe.absent(key);
        if let Some(value) = value {
            domain.absent = false;
            domain.bits.set(value);
        }
        let id = self.intern(vec![(key, domain)]);
        self.pins.insert(at, id);
        id
    }

    pub(super) fn sets_of(&self, term: TermId) -> &Sets {
        &self.terms[term.0 as usize]
    }

    pub(super) fn profile(&self, profile: ProfileId) -> &Profile {
        &self.profiles[profile.0 as usize]
    }

    /// What a profile says of a key.
    pub(super) fn domain(&self, profile: ProfileId, key: KeyId) -> std::borrow::Cow<'_, Domain> {
        let profile = self.profile(profile);
        match profile.sets.binary_search_by_key(&key, |(k, _)| *k) {
            Ok(at) => std::borrow::Cow::Borrowed(&profile.sets[at].1),
            Err(_) => std::borrow::Cow::Owned(self.default_domain(profile.source, key)),
        }
    }

    fn default_domain(&self, source: Source, key: KeyId) -> Domain {
        match source {
            Source::Shelf(_) | Source::Held(..) if self.universe.key(key).open => self.universe.open(key),
            _ => self.universe.absent(key),
        }
    }

    /// The profile with exactly these sets.
    pub(super) fn add_profile(&mut self, source: Source, sets: Sets) -> ProfileId {
        let stock = self.stock(source, &sets, None);
        self.insert(source, sets, stock)
    }

    fn insert(&mut self, source: Source, sets: Sets, (types, prices, reserved): Stock) -> ProfileId {
        if let Some(known) = self.profile_index.get(&(source, sets.clone())) {
            return *known;
        }
        let id = ProfileId(number(self.profiles.len()));
        self.profile_index.insert((source, sets.clone()), id);
        self.profiles.push(Profile { source, sets, types, prices, reserved });
        id
    }

    /// What the given sets leave, starting from the types of a wider profile.
    fn stock(&self, source: Source, sets: &Sets, wider: Option<&Mask>) -> Stock {
        let Some(shelf) = source.shelf() else { return Stock::default() };
        let held = if let Source::Held(_, held) = source { Some(held) } else { None };
        let shelf = &self.shelves[shelf as usize];
        let mut mask = Mask::empty(shelf.types.len());
        let mut prices = vec![f64::INFINITY; shelf.types.len()].into_boxed_slice();
        let mut reserved: Vec<(u32, u32)> = Vec::new();
        for (at, kind) in shelf.types.iter().enumerate().filter(|(at, _)| wider.is_none_or(|w| w.has(*at))) {
            if !agree(&kind.sets, sets) {
                continue;
            }
            for offer in kind.offerings.iter().filter(|offer| offer.available && agree(&offer.sets, sets)) {
                if offer.reservation == held {
                    prices[at] = prices[at].min(offer.price);
                } else if let Some(id) = offer.reservation.filter(|_| held.is_none()) {
                    reserved.push((number(at), id));
                }
            }
            if prices[at].is_finite() {
                mask.set(at);
            }
        }
        reserved.dedup();
        (mask, prices, reserved.into())
    }

    /// The profile of a node that holds a reservation, or nothing when it may not.
    pub(super) fn hold(&mut self, profile: ProfileId, reservation: u32) -> Option<ProfileId> {
        if let Some(known) = self.holds.get(&(profile, reservation)) {
            return *known;
        }
        let held = self.held(profile, reservation);
        self.holds.insert((profile, reservation), held);
        held
    }

    fn held(&mut self, profile: ProfileId, reservation: u32) -> Option<ProfileId> {
        let shelf = self.profile(profile).source.shelf()?;
        let capacity_type = self.universe.find(labels::CAPACITY_TYPE)?;
        let one = &self.reservations.0[reservation as usize];
        let wanted = [
            (capacity_type, self.universe.value(capacity_type, labels::RESERVED)),
            (one.key, self.universe.value(one.key, &one.id)),
        ];
        let mut sets = self.profile(profile).sets.clone();
        for (key, domain) in &wanted {
            narrow(&mut sets, &self.universe, *key, domain).ok()?;
        }
        Some(self.add_profile(Source::Held(shelf, reservation), sets))
    }

    /// The profile narrowed by the term, or nothing when they exclude each other.
    pub(super) fn join(&mut self, profile: ProfileId, term: TermId) -> Option<ProfileId> {
        if let Some(known) = self.joins.get(&(profile, term)) {
            return *known;
        }
        let joined = self.joined(profile, term);
        self.joins.insert((profile, term), joined);
        joined
    }

    fn joined(&mut self, profile: ProfileId, term: TermId) -> Option<ProfileId> {
        let sets = self.met(profile, term)?;
        let old = self.profile(profile);
        if sets == old.sets {
            return Some(profile);
        }
        let source = old.source;
        let stock = match source {
            Source::Node => Stock::default(),
            Source::Shelf(_) | Source::Held(..) => self.stock(source, &sets, Some(&old.possible())),
        };
        Some(self.insert(source, sets, stock))
    }

    /// What a profile says once it is narrowed by the term, or nothing when they exclude each other.
    fn met(&self, profile: ProfileId, term: TermId) -> Option<Sets> {
        let old = self.profile(profile);
        let mut sets = old.sets.clone();
        for (key, wanted) in self.sets_of(term) {
            match sets.binary_search_by_key(key, |(k, _)| *k) {
                Ok(at) => sets[at].1 = self.universe.meet(*key, &sets[at].1, wanted)?,
                Err(at) => {
                    let known = self.default_domain(old.source, *key);
                    let met = self.universe.meet(*key, &known, wanted)?;
                    if met != known {
                        sets.insert(at, (*key, met));
                    }
                }
            }
        }
        Some(sets)
    }

    /// The instance types of which some node that a profile allows meets the term. What is sold out counts: it may be had again by the time
    /// that the node is bought.
    pub(super) fn sometimes(&self, profile: ProfileId, term: TermId) -> Mask {
        let source = self.profile(profile).source;
        let kinds = source.shelf().map_or(&[][..], |shelf| &self.shelves[shelf as usize].types);
        let mut types = Mask::empty(kinds.len());
        let Some(sets) = self.met(profile, term) else { return types };
        for (at, kind) in kinds.iter().enumerate() {
            if agree(&kind.sets, &sets) && kind.offers(source, &sets) {
                types.set(at);
            }
        }
        types
    }

    /// What excludes each of these terms by one of these keys of which it speaks, in at most so many ways; what cannot be said, or contradicts
    /// itself, is none.
    pub(super) fn opposites(&self, terms: &[TermId], is_one: impl Fn(KeyId) -> bool, most: usize) -> Vec<Sets> {
        let mut all = vec![Sets::new()];
        for term in terms {
            let mut longer: Vec<Sets> = Vec::new();
            for sets in &all {
                for (key, wanted) in self.sets_of(*term).iter().filter(|(key, _)| is_one(*key)) {
                    let Some(domain) = self.universe.complement(*key, wanted) else { continue };
                    let mut sets = sets.clone();
                    if narrow(&mut sets, &self.universe, *key, &domain).is_ok() && !longer.contains(&sets) {
                        longer.push(sets);
                    }
                }
            }
            longer.truncate(most);
            all = longer;
        }
        all.retain(|sets| !sets.is_empty());
        all
    }

    /// Whether every node of this instance type that a profile allows meets the term.
    pub(super) fn always(&self, profile: ProfileId, shelf: usize, at: usize, term: TermId) -> bool {
        let kind = &self.shelves[shelf].types[at].sets;
        self.sets_of(term).iter().all(|(key, wanted)| {
            let known = self.domain(profile, *key);
            let of_kind = kind.iter().find(|(k, _)| k == key).map(|(_, domain)| domain);
            let known = match of_kind {
                Some(domain) => self.universe.meet(*key, &known, domain),
                None => Some(known.into_owned()),
            };
            known.is_some_and(|known| self.universe.meet(*key, &known, wanted).is_some_and(|met| met == known))
        })
    }

    /// The keys on which profile and term exclude each other, with what is wanted and what is offered: for explanations.
    pub(super) fn conflicts(&self, profile: ProfileId, term: TermId) -> Vec<(KeyId, Domain, Domain)> {
        let conflict = |(key, wanted): &(KeyId, Domain)| {
            let offered = self.domain(profile, *key);
            let excluded = self.universe.meet(*key, &offered, wanted).is_none();
            excluded.then(|| (*key, wanted.clone(), offered.into_owned()))
        };
        self.sets_of(term).iter().filter_map(conflict).collect()
    }

    /// What a term says of these keys only.
    pub(super) fn only(&mut self, term: TermId, keys: &[KeyId]) -> TermId {
        let sets = self.sets_of(term).iter().filter(|(key, _)| keys.contains(key)).cloned().collect();
        self.intern(sets)
    }

    /// The values of a key that a planned node with such labels could come to have.
    pub(super) fn within_reach(&self, profile: ProfileId, key: KeyId) -> Mask {
        let mut all = self.domain(profile, key).into_owned().bits;
        let known = self.profile(profile);
        let types = known.source.shelf().map_or(&[][..], |shelf| &self.shelves[shelf as usize].types);
        if known.possible().bits().all(|at| types[at].tells(key)) {
            all.and(&self.values_had(profile, key).bits);
        }
        all
    }

    /// The values of a key that instance types have which match a profile and can be had.
    pub(super) fn values_had(&self, profile: ProfileId, key: KeyId) -> Domain {
        let mut all = self.universe.absent(key);
        all.absent = false;
        let profile = self.profile(profile);
        let Some(shelf) = profile.source.shelf() else { return all };
        let find = |sets: &Sets| sets.iter().find(|(k, _)| *k == key).map(|(_, domain)| domain.bits.clone());
        for kind in profile.possible().bits().map(|at| &self.shelves[shelf as usize].types[at]) {
            let of_type = find(&kind.sets);
            for offer in kind.offerings.iter().filter(|offer| offer.available && agree(&offer.sets, &profile.sets)) {
                match (&of_type, find(&offer.sets)) {
                    (Some(bits), None) => all.bits.or(bits),
                    (None, Some(bits)) => all.bits.or(&bits),
                    (Some(of_type), Some(mut bits)) => {
                        bits.and(of_type);
                        all.bits.or(&bits);
                    }
                    (None, None) => {}
                }
            }
        }
        all
    }
}

/// Narrows one key of a list of sets, or names the key that then admits nothing.
pub(super) fn narrow(sets: &mut Sets, universe: &Universe, key: KeyId, domain: &Domain) -> Result<(), KeyId> {
    match sets.binary_search_by_key(&key, |(k, _)| *k) {
        Ok(at) => sets[at].1 = universe.meet(key, &sets[at].1, domain).ok_or(key)?,
        Err(_) if domain.is_empty() => return Err(key),
        Err(at) => sets.insert(at, (key, domain.clone())),
    }
    Ok(())
}

/// Whether two lists of sets agree on every key that both mention.
pub(super) fn agree(a: &Sets, b: &Sets) -> bool {
    a.iter().all(|(key, domain)| match b.binary_search_by_key(key, |(k, _)| *k) {
        Ok(at) => domain.meets(&b[at].1),
        Err(_) => true,
    })
}
