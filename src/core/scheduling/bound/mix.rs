//! The cheapest mix of nodes for given pods, fractions of nodes counted.

use super::effort::Effort;
use super::relax::{WHOLE, to_buy};
use super::search::{Aim, sought};
use super::spokesmen::{OF_MIX, Speaks, spokesmen};
use crate::core::scheduling::shelf::Amounts;
use crate::core::scheduling::world::World;

/// How many nodes, and what is in each.
pub(in crate::core::scheduling) struct Share {
    /// Nodes, fractions counted.
    pub(in crate::core::scheduling) nodes: f64,
    /// The room of one, beside daemons.
    pub(in crate::core::scheduling) room: Amounts,
    /// Pods of each want.
    pub(in crate::core::scheduling) amounts: Vec<(usize, f64)>,
}

/// The cheapest mix of fillings, fractions of nodes counted.
pub(in crate::core::scheduling) struct Mix {
    /// What it consists of.
    pub(in crate::core::scheduling) fillings: Vec<Share>,
    /// What a pod of each want is worth.
    pub(in crate::core::scheduling) worth: Vec<f64>,
    /// The classes of each want.
    pub(in crate::core::scheduling) classes: Vec<Vec<usize>>,
    /// Whether a want stands for pods that differ in size, so that a filling holds more or fewer of them.
    pub(in crate::core::scheduling) is_rough: bool,
}

/// The cheapest mix of new nodes for so many pods of each class, or the cheapest that was found when the effort was spent; nothing when
/// there are no pods.
pub(in crate::core::scheduling) fn mix(world: &mut World<'_>, counts: &[u32], effort: &Effort) -> Option<Mix> {
    let (mut relaxed, mut classes) = to_buy(world, counts);
    if relaxed.wants.is_empty() {
        return None;
    }
    let is_rough = relaxed.wants.len() > WHOLE;
    if is_rough {
        let (few, parts) = spokesmen(&relaxed, OF_MIX, Speaks::Mean);
        let together = |part: &Vec<usize>| part.iter().flat_map(|want| classes[*want].iter().copied()).collect();
        classes = parts.iter().map(together).collect();
        relaxed = few;
    }
    let program = sought(&relaxed, Aim::Mix, effort).program;
    let (worth, _) = program.worth();
    let fillings = program.mix().into_iter().map(|(nodes, bin, amounts)| {
        let room = relaxed.bins[bin].room.iter().zip(&relaxed.unit).map(|(room, unit)| whole(room * unit)).collect();
        Share { nodes, room, amounts }
    });
    Some(Mix { fillings: fillings.collect(), worth, classes, is_rough })
}

#[expect(clippy::cast_possible_truncation, reason = "rooms were whole numbers before they were made shares")]
fn whole(amount: f64) -> i64 {
    amount.round() as i64
}
