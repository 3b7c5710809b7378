//! Instance types in dense form: requirements as bits, offerings side by side, and sorted thresholds that answer "which types have
//! room for this" with one search and one AND per resource.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::core::facts::{InstanceType, Offering};
use crate::core::labels::{self, Labels};
use crate::core::resources::{ResourceName, Resources};

use super::interner::{Domain, KeyId, Universe};
use super::masks::Mask;
use super::reserved::Reservations;

/// Amounts in thousandths, one per resource of the problem.
pub(super) type Amounts = SmallVec<[i64; 4]>;

/// The resources that the problem speaks of, in order of name.
#[derive(Default)]
pub(super) struct Dimensions(pub(super) Vec<ResourceName>);

impl Dimensions {
    pub(super) fn amounts(&self, resources: &Resources) -> Amounts {
        self.0.iter().map(|name| resources.get(name)).collect()
    }

    pub(super) fn zero(&self) -> Amounts {
        SmallVec::from_elem(0, self.0.len())
    }

    pub(super) fn at(&self, name: &ResourceName) -> Option<usize> {
        self.0.binary_search(name).ok()
    }
}

/// Whether `need` fits into `room`. What is not needed may be short.
pub(super) fn fits(need: &[i64], room: &[i64]) -> bool {
    need.iter().zip(room).all(|(need, room)| *need <= 0 || need <= room)
}

pub(super) fn add(total: &mut [i64], more: &[i64]) {
    for (total, more) in total.iter_mut().zip(more) {
        *total = total.saturating_add(*more);
    }
}

/// Of each resource the less.
pub(super) fn lower(a: &[i64], b: &[i64]) -> Amounts {
    a.iter().zip(b).map(|(a, b)| *a.min(b)).collect()
}

pub(super) fn subtract(total: &mut [i64], less: &[i64]) {
    for (total, less) in total.iter_mut().zip(less) {
        *total = total.saturating_sub(*less);
    }
}

pub(super) type Sets = Vec<(KeyId, Domain)>;

pub(super) struct Type {
    pub(super) fact: Arc<InstanceType>,
    /// Its name as the value of a label.
    pub(super) name: Arc<str>,
    pub(super) sets: Sets,
    pub(super) allocatable: Amounts,
    pub(super) capacity: Amounts,
    pub(super) offerings: Vec<Offer>,
}

pub(super) struct Offer {
    pub(super) sets: Sets,
    pub(super) price: f64,
    pub(super) available: bool,
    /// The number of its reservation.
    pub(super) reservation: Option<u32>,
}

/// The instance types of one list of the catalog.
pub(super) struct Shelf {
    pub(super) types: Vec<Type>,
    /// Well-known keys of which neither an instance type says anything nor a label of the NodePool: no node has them.
    pub(super) untold: Vec<KeyId>,
    /// Per resource: amounts ascending, each with the types that have at least so much allocatable.
    thresholds: Vec<Vec<(i64, Mask)>>,
    /// Per resource: capacities ascending, each with the types that have at most so much.
    bounds: Vec<Vec<(i64, Mask)>>,
    /// Per resource: types by capacity, largest first.
    largest: Vec<Vec<usize>>,
    /// Types by what they have allocatable.
    pub(super) by_size: Vec<usize>,
}

impl Type {
    /// Says of a key of which the type says nothing, nor some of its offerings, what nodes have: a pod that insists on it would wait for ever beside
    /// a node that has it not. Answers whether nothing was said at all.
    fn complete(&mut self, key: KeyId, has: &Domain) -> bool {
        let place = |sets: &Sets| sets.binary_search_by_key(&key, |(known, _)| *known);
        let Err(at) = place(&self.sets) else { return false };
        if self.offerings.iter().all(|offer| place(&offer.sets).is_err()) {
            self.sets.insert(at, (key, has.clone()));
            return true;
        }
        for offer in &mut self.offerings {
            if let Err(at) = place(&offer.sets) {
                offer.sets.insert(at, (key, has.clone()));
            }
        }
        false
    }
}

impl Shelf {
    /// The types of a list, on nodes of NodePools with these labels.
    pub(super) fn new(
        list: &[Arc<InstanceType>],
        own: &Labels,
        universe: &Universe,
        dimensions: &Dimensions,
        reservations: &Reservations,
    ) -> Self {
        let offer = |offering: &Offering| {
            let reservation = reservations.of(offering);
            Offer {
                sets: sets(&offering.requirements, universe),
                price: offering.price,
                // Reserved capacity that nobody can name cannot be counted, and so not be used.
                available: offering.available && (reservation.is_some() || !offering.is_reserved()),
                reservation,
            }
        };
        let mut types: Vec<Type> = list
            .iter()
            .map(|fact| {
                let allocatable = fact.allocatable();
                Type {
                    sets: sets(&fact.requirements, universe),
                    allocatable: dimensions.amounts(&allocatable),
                    capacity: dimensions.amounts(&fact.capacity),
                    offerings: fact.offerings.iter().map(offer).collect(),
                    name: fact.name.as_str().into(),
                    fact: Arc::clone(fact),
                }
            })
            .collect();
        types.sort_by(|a, b| a.fact.name.cmp(&b.fact.name));
        let mut untold = Vec::new();
        // The NodePool is said by every NodeClaim.
        let is_theirs = |key: &KeyId| universe.key(*key).open && &*universe.key(*key).name != labels::NODEPOOL;
        for key in universe.ids().filter(is_theirs) {
            let label = own.get(&universe.key(key).name);
            let has = label.map_or_else(|| universe.absent(key), |value| universe.value(key, value));
            let silent = types.iter_mut().filter_map(|kind| kind.complete(key, &has).then_some(())).count();
            if silent == types.len() && label.is_none() {
                untold.push(key);
            }
        }
        let thresholds = (0..dimensions.0.len()).map(|resource| thresholds(&types, resource)).collect();
        let bounds = (0..dimensions.0.len()).map(|resource| bounds(&types, resource)).collect();
        let largest = (0..dimensions.0.len())
            .map(|resource| {
                let mut order: Vec<usize> = (0..types.len()).collect();
                order.sort_by_key(|at| std::cmp::Reverse(types[*at].capacity[resource]));
                order
            })
            .collect();
        let mut by_size: Vec<usize> = (0..types.len()).collect();
        by_size.sort_by(|a, b| types[*a].allocatable.cmp(&types[*b].allocatable));
        Self { types, untold, thresholds, bounds, largest, by_size }
    }

    /// Leaves of `mask` the types with at most so much capacity of each resource that is limited.
    pub(super) fn at_most(&self, mask: &mut Mask, limits: &[Option<i64>]) {
        for (steps, limit) in self.bounds.iter().zip(limits) {
            let Some(limit) = limit else { continue };
            match steps.partition_point(|(amount, _)| amount <= limit).checked_sub(1) {
                Some(at) if at + 1 == steps.len() => {}
                Some(at) => mask.and(&steps[at].1),
                None => mask.and(&Mask::empty(self.types.len())),
            }
        }
    }

    /// The largest capacity of each resource among the types of `mask`.
    pub(super) fn most(&self, mask: &Mask) -> Amounts {
        let most = self.largest.iter().enumerate();
        most.map(|(resource, order)| {
            order.iter().find(|at| mask.has(**at)).map_or(0, |at| self.types[*at].capacity[resource].max(0))
        })
        .collect()
    }

    /// Leaves of `mask` the types that have room for `need`.
    pub(super) fn keep_room(&self, mask: &mut Mask, need: &[i64]) {
        for (steps, need) in self.thresholds.iter().zip(need).filter(|(_, need)| **need > 0) {
            match steps.get(steps.partition_point(|(amount, _)| amount < need)) {
                Some((_, with)) => mask.and(with),
                None => mask.and(&Mask::empty(self.types.len())),
            }
        }
    }
}

/// Requirements as domains, keys ascending, each once. What excludes itself stays as an empty domain and so matches nothing.
pub(super) fn sets(requirements: &[crate::core::requirements::Requirement], universe: &Universe) -> Sets {
    let mut sets = Sets::new();
    for (key, domain) in requirements.iter().filter_map(|r| universe.requirement(r)) {
        match sets.binary_search_by_key(&key, |(k, _)| *k) {
            Ok(at) => {
                sets[at].1.bits.and(&domain.bits);
                sets[at].1.absent &= domain.absent;
            }
            Err(at) => sets.insert(at, (key, domain)),
        }
    }
    sets
}

fn thresholds(types: &[Type], resource: usize) -> Vec<(i64, Mask)> {
    let mut order: Vec<usize> = (0..types.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(types[*at].allocatable[resource]));
    let mut steps: Vec<(i64, Mask)> = Vec::new();
    let mut mask = Mask::empty(types.len());
    for at in order {
        mask.set(at);
        let amount = types[at].allocatable[resource];
        match steps.last_mut().filter(|(last, _)| *last == amount) {
            Some(last) => last.1.clone_from(&mask),
            None => steps.push((amount, mask.clone())),
        }
    }
    steps.reverse();
    steps
}

fn bounds(types: &[Type], resource: usize) -> Vec<(i64, Mask)> {
    let mut order: Vec<usize> = (0..types.len()).collect();
    order.sort_by_key(|at| types[*at].capacity[resource]);
    let mut steps: Vec<(i64, Mask)> = Vec::new();
    let mut mask = Mask::empty(types.len());
    for at in order {
        mask.set(at);
        let amount = types[at].capacity[resource];
        match steps.last_mut().filter(|(last, _)| *last == amount) {
            Some(last) => last.1.clone_from(&mask),
            None => steps.push((amount, mask.clone())),
        }
    }
    steps
}
