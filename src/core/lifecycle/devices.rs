//! Dynamic resources: the drivers that a NodeClaim names publish the devices of its Node once they run there, in ResourceSlices.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::facts::{Claim, DeviceSlice};
use crate::core::labels;

use super::step::{self, Step};
use super::{Act, Situation};

/// Karpenter's reason while a driver has not published them all.
pub(super) const UNPUBLISHED: &str = "DRADriverPoolsNotPublished";
/// Seconds between two looks at the ResourceSlices of a Node: no watch shows them.
const LOOK_AGAIN: i64 = 10;

/// The drivers whose devices the pods of a NodeClaim ask for (annotation `karpenter.sh/requested-dra-drivers`, separated by commas).
pub(super) fn drivers(claim: &Claim) -> Vec<&str> {
    let listed = claim.annotations.get(labels::REQUESTED_DRA_DRIVERS).map_or("", |drivers| drivers);
    listed.split(',').map(str::trim).filter(|driver| !driver.is_empty()).collect()
}

/// What is waited for, as a reason and a sentence; nothing when all drivers have published their devices.
pub(super) fn blocker(situation: &Situation<'_>) -> Option<(&'static str, String)> {
    let slices = situation.memory.slices.as_ref().map_or(&[][..], |(_, slices)| slices);
    let missing: Vec<_> = situation.drivers.iter().filter(|driver| !is_published(driver, slices)).copied().collect();
    (!missing.is_empty())
        .then(|| (UNPUBLISHED, format!("the Node's devices to be published by driver {}", missing.join(", driver "))))
}

/// Asks the API server which ResourceSlices the Node has, or waits until it is time to ask again.
pub(super) fn next(situation: &Situation<'_>, wait: Step) -> Option<Step> {
    let node = situation.node()?;
    let again = situation.memory.slices.as_ref().map(|(asked, _)| step::after(*asked, LOOK_AGAIN));
    Some(match again.filter(|again| situation.now < *again) {
        Some(again) => step::tell_then_wait(situation, wait.look_at(again)),
        None => Step::act(wait.phase, Act::ListSlices(node.name.clone())),
    })
}

/// Whether a driver has published a pool whole: as many slices of its highest generation as they themselves say there are.
fn is_published(driver: &str, slices: &[Arc<DeviceSlice>]) -> bool {
    let mut pools: BTreeMap<&str, Vec<&DeviceSlice>> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| &*slice.driver == driver) {
        pools.entry(&slice.pool).or_default().push(slice);
    }
    pools.into_values().any(|mut slices| {
        let newest = slices.iter().map(|slice| slice.generation).max();
        slices.retain(|slice| Some(slice.generation) == newest);
        slices.iter().all(|slice| usize::try_from(slice.of).is_ok_and(|of| of == slices.len()))
    })
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
