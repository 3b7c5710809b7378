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
        // How many thousandths of what the cheapest takes a type takes, of the resource of which that is most.
        let takes = |at: &usize| {
            let limited = site.room.resources.iter().zip(&shelf.types[*at].capacity).zip(most);
            let limited = limited.filter(|((room, _), _)| room.is_some());
            let share = |((_, has), most): ((_, &i64), &i64)| 1000 * i128::from(*has) / i128::from((*most).max(1));
            limited.map(share).max().unwrap_or_default()
        };
        let mut all: Vec<(i128, usize)> = mask.bits().map(|at| (takes(&at), at)).collect();
        all.sort_unstable();
        let first = |many: usize| {
            let mut some = Mask::empty(shelf.types.len());
            all[..many].iter().for_each(|(_, at)| some.set(*at));
            some
        };
        let modest = all.partition_point(|(takes, _)| *takes <= 1000);
        // A pool that asks for variety gets it, and is charged for no more than it takes.
        let varied = |many: usize| self.variety(site.shelf, profile, &first(many), least).is_ok();
        let sizes: Vec<usize> = (modest..=all.len()).collect();
        let enough = sizes.partition_point(|many| !varied(*many));
        sizes.get(enough).map_or(mask, |many| first(*many))
    }
}
