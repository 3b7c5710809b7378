//! Solves that go another way than the first plan did.

use crate::core::scheduling::anew::refused;
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

/// Solves with those first for whom new nodes would cost most: they get the room that is there. Whoever has no place in the plan so far comes
/// last, and takes none from others.
pub(super) fn dearest_first<'p>(world: World<'p>, plan: &Plan) -> (Plan, World<'p>) {
    let mut run = Run::new(world);
    let (sizes, refused) = (by_price(&mut run.world), refused(plan));
    let mut waiting = order(&run.world, &sizes);
    waiting.sort_by_key(|pod| refused.contains(&run.world.pods[*pod].uid));
    let left = run.place_all(waiting);
    (run.finish(&left), run.world)
}
