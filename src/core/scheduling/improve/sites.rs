//! Sites: what new nodes of one NodePool with the same labels can be bought.

use crate::core::labels;
use crate::core::requirements::Operator;
use crate::core::scheduling::algebra::ProfileId;
use crate::core::scheduling::daemons::room_of;
use crate::core::scheduling::plan::PlannedClaim;
use crate::core::scheduling::shelf::{Amounts, fits};
use crate::core::scheduling::world::World;

/// An instance type that is worth buying.
pub(super) struct Good {
    /// USD per hour.
    pub(super) price: f64,
    /// Room beside daemons.
    pub(super) room: Amounts,
}

/// A kind of new nodes.
pub(super) struct Site {
    pub(super) pool: usize,
    pub(super) profile: ProfileId,
    /// Cheapest first; none has less of everything than a cheaper one.
    pub(super) goods: Vec<Good>,
    /// How many labels are narrowed: where a node could be of several sites, it is to be of the one that leaves most open.
    pub(super) narrowed: usize,
}

impl Site {
    pub(super) fn new(world: &World<'_>, pool: usize, profile: ProfileId) -> Self {
        let (site, known) = (&world.pools[pool], world.algebra.profile(profile));
        let (groups, shelf) = (world.groups(pool, profile), &world.algebra.shelves[site.shelf]);
        let good = |at: usize| Some(Good { price: known.prices[at], room: room_of(&groups, at, shelf)? });
        let mut all: Vec<Good> = world.within_limits(pool, &known.types).bits().filter_map(good).collect();
        all.sort_by(|a, b| a.price.total_cmp(&b.price).then_with(|| b.room.cmp(&a.room)));
        let mut goods: Vec<Good> = Vec::new();
        for good in all {
            if !goods.iter().any(|known| known.room.iter().zip(&good.room).all(|(known, room)| known >= room)) {
                goods.push(good);
            }
        }
        Self { pool, profile, goods, narrowed: known.sets.len() }
    }

    /// What a node costs that holds so much.
    pub(super) fn price(&self, load: &[i64]) -> Option<f64> {
        self.goods.iter().find(|good| fits(load, &good.room)).map(|good| good.price)
    }
}

/// The pool and the labels of a NodeClaim; nothing where it is bound to a reservation, or its pool is not there.
pub(super) fn site_of(world: &mut World<'_>, claim: &PlannedClaim) -> Option<(usize, ProfileId)> {
    let draft = &claim.draft;
    let pool = world.pools.iter().position(|site| site.fact.name == draft.pool)?;
    let capacity_type = |key: &str| key == labels::CAPACITY_TYPE;
    let is_reserved = |value: &str| value == labels::RESERVED;
    if draft.requirements.iter().any(|one| capacity_type(&one.key) && one.values.iter().any(|value| is_reserved(value)))
    {
        return None;
    }
    // Instance types follow from what is on the node, and so do capacity types where several are listed.
    let tells = draft.requirements.iter().filter(|one| match &*one.key {
        labels::INSTANCE_TYPE => false,
        labels::CAPACITY_TYPE => one.operator == Operator::In && one.values.len() == 1,
        _ => true,
    });
    let term = world.algebra.term(&labels::Labels::new(), tells).ok()?;
    let profile = world.algebra.join(world.pools[pool].base, term)?;
    Some((pool, profile))
}
