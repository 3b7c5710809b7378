//! What the solver and the provisioner do.

use std::time::Duration;

use super::families as f;
use super::labels::NominationResult;
use super::registry::{count, set, took};

/// A solve has ended.
pub fn scheduled(controller: &'static str, duration: Duration) {
    took(&f::SCHEDULING_DURATION, &[controller], duration);
}

/// The last solve found no place for so many pods.
pub fn pods_unschedulable(controller: &'static str, pods: usize) {
    set(&f::SCHEDULER_UNSCHEDULABLE, &[controller], pods as f64);
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

/// So many pods were bound where they were planned, and elsewhere.
pub fn pods_landed(planned: usize, elsewhere: usize) {
    for (place, pods) in [("planned", planned), ("elsewhere", elsewhere)].into_iter().filter(|(_, pods)| *pods > 0) {
        count(&f::PODS_LANDED, &[place], pods as u64);
    }
}

/// Something became of a pod's nomination.
pub fn nominated(result: NominationResult) {
    count(&f::NOMINATIONS, &[result.as_str()], 1);
}
