//! Reserved capacity: which reservations there are, and what NodeClaims leave of them.
//!
//! A planned node holds one reservation or none, from its first pod on: its profile then knows the offerings of that reservation only.
//! So no two NodeClaims of a plan can be launched into the last machine of a reservation, and none has to wait for another to settle.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::facts::{Claim, Offering, Snapshot};
use crate::core::requirements::{Operator, Requirement};

use super::algebra::ProfileId;
use super::interner::{KeyId, Universe, number};
use super::world::{List, World};

/// A reservation.
pub(super) struct Reservation {
    pub(super) id: Arc<str>,
    /// The label that names it.
    pub(super) key: KeyId,
    /// How many machines of this cluster it has room for.
    pub(super) size: u32,
}

/// All reservations of a catalog, by name.
#[derive(Default)]
pub(super) struct Reservations(pub(super) Vec<Reservation>);

impl Reservations {
    /// Those of all offerings, whether or not they can be had. Where lists differ in the size, the least counts.
    pub(super) fn new<'a>(lists: impl IntoIterator<Item = &'a List>, universe: &Universe) -> Self {
        let mut all: BTreeMap<Arc<str>, Reservation> = BTreeMap::new();
        let kinds = lists.into_iter().flat_map(|list| list.iter());
        for offering in kinds.flat_map(|kind| &kind.offerings).filter(|offering| offering.is_reserved()) {
            let Some((name, id)) = offering.reservation() else { continue };
            let Some(key) = universe.find(name) else { continue };
            let size = offering.reservation_capacity.unwrap_or(0);
            let known = all.entry(Arc::clone(id)).or_insert_with(|| Reservation { id: Arc::clone(id), key, size });
            known.size = known.size.min(size);
        }
        Self(all.into_values().collect())
    }

    /// The number of an offering's reservation.
    pub(super) fn of(&self, offering: &Offering) -> Option<u32> {
        let (_, id) = offering.reservation()?;
        self.0.binary_search_by(|known| known.id.cmp(id)).ok().map(number)
    }

    /// What NodeClaims leave of each. A NodeClaim that may still be launched into several reservations takes from all of them.
    pub(super) fn left(&self, snapshot: &Snapshot, universe: &Universe) -> Vec<u32> {
        let mut left: Vec<u32> = self.0.iter().map(|known| known.size).collect();
        if left.is_empty() {
            return left;
        }
        for claim in snapshot.claims.values() {
            for (left, known) in left.iter_mut().zip(&self.0) {
                if uses(claim, &universe.key(known.key).name, &known.id) {
                    *left = left.saturating_sub(1);
                }
            }
        }
        left
    }
}

/// Whether a NodeClaim says that it is, or may be, in a reservation.
fn uses(claim: &Claim, key: &str, id: &str) -> bool {
    match claim.labels.get(key) {
        Some(own) => **own == *id,
        None => claim.requirements.iter().any(|requirement| names(requirement, key, id)),
    }
}

fn names(requirement: &Requirement, key: &str, id: &str) -> bool {
    &*requirement.key == key && requirement.operator == Operator::In && requirement.values.iter().any(|v| **v == *id)
}

impl World<'_> {
    /// Reservations with room for another machine whose offerings such a node could have.
    pub(super) fn reservable(&self, profile: ProfileId) -> Vec<u32> {
        let offered = self.algebra.profile(profile).reserved.iter().map(|(_, id)| *id);
        let mut all: Vec<u32> = offered.filter(|id| self.left_reserved[*id as usize] > 0).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
