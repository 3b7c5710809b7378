//! A solve as Karpenter does it: each new node takes whatever comes as long as some instance type holds it, and is as large in the end as what
//! came. Where few pods wait that is often the best that can be done, so no plan is to be dearer.

use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::solve::Run;
use crate::core::scheduling::world::World;

/// Solves without an aim for the size of new nodes.
pub(super) fn aimless(world: World<'_>) -> (Plan, World<'_>) {
    let mut run = Run::new(world);
    run.is_aimless = true;
    let left = run.place_all(run.in_order());
    (run.finish(&left), run.world)
}
