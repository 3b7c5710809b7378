//! Pods of a higher priority that a pod's affinity to its like means, and those that it means and does not bind: none of it may be the first before
//! these have had their turn.
//!
//! kube-scheduler takes pods by priority, and whom nothing binds as soon as there is room. Where a plan takes some out of that order, because they
//! were refused in it, one that is placed as the first of its kind could keep to that only if it were bound before those: a node would be bought on
//! which nobody can be.

use rustc_hash::FxHashMap;

use super::classes::{Affinity, Class};
use super::solve::Run;

/// Whose turn has come, and who has to wait for whom, in a pass that is out of order.
#[derive(Default)]
pub(super) struct Seniors {
    /// By class: those whose turn comes before.
    before: FxHashMap<u32, Vec<u32>>,
    /// By class of such a senior: its pods that have not been tried.
    untried: FxHashMap<u32, Vec<usize>>,
    /// Whether a pod was put off since this was last asked.
    put_off: bool,
}

impl Run<'_> {
    /// These pods are taken in this order, which is not that of their priority. `dealt`: an order was sought for those who mind each other; then
    /// only priority is before it.
    pub(super) fn heed_seniors(&mut self, waiting: &[usize], dealt: bool) {
        let classes = &self.world.classes;
        let mut seniors = Seniors::default();
        for (junior, class) in (0..).zip(classes) {
            let bare = class.variants.last().into_iter().flat_map(|bare| &bare.affinities);
            let own: Vec<_> = bare.filter(|affinity| affinity.own).collect();
            if own.is_empty() {
                continue;
            }
            let is_senior = |other: &Class| {
                let is_meant =
                    |affinity: &&Affinity| affinity.counters.iter().all(|(_, id)| other.touches.contains(id));
                let is_alike = other.shape.affinity == class.shape.affinity;
                (other.shape.priority > class.shape.priority || !dealt && !is_alike) && own.iter().any(is_meant)
            };
            let before: Vec<u32> = (0..).zip(classes).filter(|(_, other)| is_senior(other)).map(|(at, _)| at).collect();
            if !before.is_empty() {
                seniors.untried.extend(before.iter().map(|senior| (*senior, Vec::new())));
                seniors.before.insert(junior, before);
            }
        }
        // Whoever is on its way from a node is counted there until it has another place.
        for pod in waiting.iter().filter(|pod| !self.world.still_on.contains_key(pod)) {
            if let Some(untried) = seniors.untried.get_mut(&self.world.class_of[*pod]) {
                untried.push(*pod);
            }
        }
        self.seniors = seniors;
    }

    /// Whether a pod has to wait for others to have their turn.
    pub(super) fn waits_for_seniors(&mut self, pod: usize) -> bool {
        let Seniors { before, untried, put_off } = &mut self.seniors;
        if before.is_empty() {
            return false;
        }
        let class = self.world.class_of[pod];
        if let Some(untried) = untried.get_mut(&class) {
            untried.retain(|other| *other != pod);
        }
        let waits = before.get(&class).is_some_and(|before| before.iter().any(|senior| !untried[senior].is_empty()));
        *put_off |= waits;
        waits
    }

    /// Whether any pod was put off since this was last asked.
    pub(super) fn has_put_off(&mut self) -> bool {
        std::mem::take(&mut self.seniors.put_off)
    }
}
