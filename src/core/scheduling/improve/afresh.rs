//! Solves that go another way than the first plan did.

use crate::core::scheduling::order::{by_price, order};
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::solve::Run;
use crate::core::scheduling::world::World;

/// Solves without an aim for the size of new nodes, as Karpenter does it: each takes whatever comes as long as some instance type holds it, and
/// is as large in the end as what came. Where few pods wait that is often the best that can be done, so no plan is to be dearer.
pub(super) fn aimless(world: World<'_>) -> (Plan, World<'_>) {
    let mut run = Run::new(world);
    run.is_aimless = true;
    let left = run.place_all(run.in_order());
    (run.finish(&left), run.world)
}

/// Solves with those first for whom new nodes would cost most: they get the room that is there.
pub(super) fn dearest_first(world: World<'_>) -> (Plan, World<'_>) {
    let mut run = Run::new(world);
    let sizes = by_price(&mut run.world);
    let left = run.place_all(order(&run.world, &sizes));
    (run.finish(&left), run.world)
}
