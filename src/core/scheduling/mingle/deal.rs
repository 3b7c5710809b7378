//! Dealing: pods that differ in nothing but their labels are dealt evenly over the places that were planned for any of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::core::facts::{Pod, Snapshot};

use super::super::plan::Plan;
use super::super::problem::Problem;
use super::kind::{Minded, Seats, tables};

/// The plan with its pods dealt; nothing when there is nobody to deal to.
pub(super) fn dealt(plan: &Plan, problem: &Problem<'_>, minded: &Minded<'_>) -> Option<Plan> {
    let mut tables = tables(plan, minded);
    tables.retain(|table| table.seats.len() > 1);
    if tables.is_empty() {
        return None;
    }
    let mut plan = plan.clone();
    // A pod that is dealt stays a pod of its table: the places of the others are where they were.
    for table in tables {
        deal(&mut plan, &table.seats, problem.snapshot);
    }
    Some(plan)
}

/// One kind of labels after the other, each pod to the node that has got the smallest part of its share so far.
fn deal(plan: &mut Plan, seats: &[Seats], snapshot: &Snapshot) {
    let mut pods: Vec<Arc<Pod>> = Vec::new();
    for (claim, places) in seats {
        pods.extend(places.iter().map(|at| Arc::clone(&plan.claims[*claim].pods[*at])));
    }
    pods.sort_by_cached_key(|pod| (Arc::clone(&pod.shape), snapshot.arrival(&pod.uid), pod.created, pod.uid.clone()));
    let share = |taken: usize, of: usize| (taken as u64) * (1 << 32) / (of as u64);
    let mut next: BinaryHeap<Reverse<(u64, usize, usize)>> =
        (0..seats.len()).map(|seat| Reverse((share(0, seats[seat].1.len()), seat, 0))).collect();
    for pod in pods {
        let Some(Reverse((_, seat, taken))) = next.pop() else { break };
        let (claim, places) = &seats[seat];
        plan.claims[*claim].pods[places[taken]] = pod;
        if taken + 1 < places.len() {
            next.push(Reverse((share(taken + 1, places.len()), seat, taken + 1)));
        }
    }
}
