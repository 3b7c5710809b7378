//! What the solver and the provisioner do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::core::facts::Landed;

use super::families as f;
use super::labels::NominationResult;
use super::registry::{clear, count, set, start, took};

/// A solve has begun, of so many pods; `id` tells it from all others.
pub fn scheduling(controller: &'static str, id: &str, pods: usize) {
    clear(&f::SCHEDULER_QUEUE, controller);
    clear(&f::SCHEDULER_UNFINISHED, controller);
    set(&f::SCHEDULER_QUEUE, &[controller, id], pods as f64);
    start(&f::SCHEDULER_UNFINISHED, &[controller, id]);
}

/// The solve that was under way has ended.
pub fn scheduled(controller: &'static str, duration: Duration) {
    clear(&f::SCHEDULER_UNFINISHED, controller);
    took(&f::SCHEDULING_DURATION, &[controller], duration);
}

/// What the last solve left: pods without a place, and among them those that cannot be understood.
pub fn scheduling_left(controller: &'static str, id: &str, unplaced: usize, ignored: usize) {
    set(&f::SCHEDULER_QUEUE, &[controller, id], unplaced as f64);
    set(&f::SCHEDULER_UNSCHEDULABLE, &[controller], unplaced as f64);
    set(&f::SCHEDULER_IGNORED, &[], ignored as f64);
}

/// No pod needs a place: nothing is left of the last solve.
pub fn nothing_to_schedule(controller: &'static str) {
    clear(&f::SCHEDULER_QUEUE, controller);
    clear(&f::SCHEDULER_ZONES, controller);
    set(&f::SCHEDULER_UNSCHEDULABLE, &[controller], 0.0);
    set(&f::SCHEDULER_IGNORED, &[], 0.0);
}

/// How many pods of the last solve are confined to which zone, by the words of
/// [`effective_zones`](crate::core::scheduling::effective_zones).
pub fn pods_by_zone(controller: &'static str, zones: &BTreeMap<Arc<str>, usize>) {
    clear(&f::SCHEDULER_ZONES, controller);
    for (zone, pods) in zones {
        set(&f::SCHEDULER_ZONES, &[controller, zone], *pods as f64);
    }
}

/// The provisioner has a plan: its price in USD per hour, its NodeClaims, and the pods on new nodes, on existing ones, and refused.
pub fn plan_made(price: f64, claims: usize, pods: [usize; 3]) {
    count(&f::PLANS, &[], 1);
    set(&f::PLAN_PRICE, &[], price);
    set(&f::PLAN_CLAIMS, &[], claims as f64);
    for (outcome, pods) in ["new", "existing", "refused"].into_iter().zip(pods) {
        set(&f::PLAN_PODS, &[outcome], pods as f64);
    }
}

/// No plan that places the same pods as the last one that bought nodes costs less than this, in USD per hour.
pub fn plan_bounded(bound: f64) {
    set(&f::PLAN_BOUND, &[], bound);
}

/// So many planned pods were bound, by where.
pub fn pods_landed(landed: Landed) {
    let places = [("planned", landed.planned), ("exchanged", landed.exchanged), ("elsewhere", landed.elsewhere)];
    for (place, pods) in places.into_iter().filter(|(_, pods)| *pods > 0) {
        count(&f::PODS_LANDED, &[place], pods as u64);
    }
}

/// Something became of a pod's nomination.
pub fn nominated(result: NominationResult) {
    count(&f::NOMINATIONS, &[result.as_str()], 1);
}
