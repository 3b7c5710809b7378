//! NodeClaims of pools with limits: they list no type that is larger than what they aim at.
//!
//! A NodeClaim is charged to its pool's limits with the largest type that it lists, because the cloud may choose any. Listing all types
//! would let the first NodeClaim take all that is left.

use super::algebra::ProfileId;
use super::choose::sum;
use super::interner::KeyId;
use super::masks::Mask;
use super::shelf::fits;
use super::world::World;

impl World<'_> {
    /// The types of `mask` that take no more of what the pool limits than the cheapest one with so much room beside daemons.
    pub(super) fn modest(
        &self,
        pool: usize,
        profile: ProfileId,
        mask: Mask,
        room: &[i64],
        least: &[(KeyId, u32)],
    ) -> Mask {
        let site = &self.pools[pool];
        if site.room.resources.iter().all(Option::is_none) {
            return mask;
        }
        let groups = self.groups(pool, profile);
        let (shelf, prices) = (&self.algebra.shelves[site.shelf], &self.algebra.profile(profile).prices);
        let holds = |at: &usize| {
            let group = groups.iter().find(|group| group.types.has(*at));
            group.is_some_and(|group| fits(&sum(&group.overhead, room), &shelf.types[*at].allocatable))
        };
        let cheapest = mask.bits().filter(holds).min_by(|a, b| prices[*a].total_cmp(&prices[*b]).then(a.cmp(b)));
        let Some(cheapest) = cheapest else { return mask };
        let most = &shelf.types[cheapest].capacity;
        let mut modest = mask.clone();
        for at in mask.bits() {
            let limited = site.room.resources.iter().zip(&shelf.types[at].capacity).zip(most);
            if limited.into_iter().any(|((room, has), most)| room.is_some() && has > most) {
                modest.clear(at);
            }
        }
        // A pool that asks for variety gets it, and is charged for it.
        if self.variety(self.pools[pool].shelf, profile, &modest, least).is_ok() { modest } else { mask }
    }
}
