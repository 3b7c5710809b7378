//! What the solver and the provisioner do.

use std::collections::BTreeMap;
use std::time::Duration;

use super::families as f;
use super::labels::NominationResult;
use super::registry::{count, forget, forget_all, set, start, took};

/// A solve that is running; its series end when this is dropped.
#[derive(Debug)]
pub struct UnderWay {
    controller: &'static str,
    id: String,
}

impl UnderWay {
    /// A solve begins. `controller` is who asked for it (`provisioner`, `disruption`), `id` tells it from others at the same time.
    pub fn begin(controller: &'static str, id: impl Into<String>, pods: usize) -> Self {
        let under_way = Self { controller, id: id.into() };
        start(&f::SCHEDULER_UNFINISHED, &[controller, &under_way.id]);
        under_way.remaining(pods);
        under_way
    }

    /// So many pods are still to be placed.
    pub fn remaining(&self, pods: usize) {
        set(&f::SCHEDULER_QUEUE, &[self.controller, &self.id], pods as f64);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        forget(&f::SCHEDULER_UNFINISHED, &[self.controller, &self.id]);
        forget(&f::SCHEDULER_QUEUE, &[self.controller, &self.id]);
    }
}

/// A solve has ended.
pub fn scheduled(controller: &'static str, duration: Duration) {
    took(&f::SCHEDULING_DURATION, &[controller], duration);
}

/// A pod was decided about for the first time, so long after it was seen to need a node.
pub fn scheduling_decided(since_seen: Duration) {
    took(&f::PODS_DECISION, &[], since_seen);
}

/// The last solve found no place for so many pods.
pub fn pods_unschedulable(controller: &'static str, pods: usize) {
    set(&f::SCHEDULER_UNSCHEDULABLE, &[controller], pods as f64);
}

/// So many pending pods are left out because they cannot be understood.
pub fn pods_ignored(pods: usize) {
    set(&f::SCHEDULER_IGNORED, &[], pods as f64);
}

/// Pods of the last solve by the zone they are tied to (`flexible` when to none, `none` when no zone would do).
pub fn pods_by_zone(controller: &'static str, zones: &BTreeMap<String, usize>) {
    forget_all(&f::SCHEDULER_BY_ZONE, controller);
    for (zone, pods) in zones {
        set(&f::SCHEDULER_BY_ZONE, &[controller, zone], *pods as f64);
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

/// Something became of a pod's nomination.
pub fn nominated(result: NominationResult) {
    count(&f::NOMINATIONS, &[result.as_str()], 1);
}
