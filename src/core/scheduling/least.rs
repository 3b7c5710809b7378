//! `minValues`: how many different values of a label the instance types of a NodeClaim must have, and how far that may be lowered.

use std::sync::Arc;

use super::algebra::ProfileId;
use super::interner::{KeyId, number};
use super::masks::Mask;
use super::world::World;

/// How many values of each key are asked for.
pub(super) type Least = Arc<[(KeyId, u32)]>;

impl World<'_> {
    /// Whether the types of `mask` offer as many different values as asked for; else the key, what is asked, and what there is.
    pub(super) fn variety(
        &self,
        shelf: usize,
        profile: ProfileId,
        mask: &Mask,
        least: &[(KeyId, u32)],
    ) -> Result<(), (KeyId, u32, u32)> {
        for (key, least) in least {
            let found = self.values_of(shelf, profile, mask, *key).count();
            if found < *least as usize {
                return Err((*key, *least, number(found)));
            }
        }
        Ok(())
    }

    /// The values of a key that types of `mask` have and the profile allows.
    pub(super) fn values_of(&self, shelf: usize, profile: ProfileId, mask: &Mask, key: KeyId) -> Mask {
        let mut values = Mask::empty(self.algebra.universe.key(key).values.len());
        for at in mask.bits() {
            let kind = &self.algebra.shelves[shelf].types[at];
            if let Some((_, domain)) = kind.sets.iter().find(|(k, _)| *k == key) {
                values.or(&domain.bits);
            }
        }
        values.and(&self.algebra.domain(profile, key).bits);
        values
    }

    /// What is asked for, no more than the types of `mask` offer. A key of which they offer nothing is not asked for: the API knows no
    /// `minValues` of zero.
    pub(super) fn lowered(&self, pool: usize, profile: ProfileId, mask: &Mask, least: &Least) -> Least {
        let shelf = self.pools[pool].shelf;
        if self.variety(shelf, profile, mask, least).is_ok() {
            return Arc::clone(least);
        }
        let found = |key: KeyId| number(self.values_of(shelf, profile, mask, key).count());
        let lowered = least.iter().map(|(key, least)| (*key, found(*key).min(*least)));
        lowered.filter(|(_, least)| *least > 0).collect()
    }
}
