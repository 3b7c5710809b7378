//! Pods that their volumes confine: which domains a spread constraint counts for them.
//!
//! For other pods every domain counts in which a node could be made, so that the emptiest gets the next node. A pod whose volume is in one
//! zone cannot go to an emptier one, and waiting for somebody else to open that would be waiting for ever. kube-scheduler counts the domains
//! that have nodes; so does this, once nothing else is left to do.

use rustc_hash::FxHashSet;

use super::algebra::TermId;
use super::classes::Class;
use super::draft::Draft;
use super::solve::Run;
use super::topology::{Filter, Topo};
use super::world::World;

impl Run<'_> {
    /// Lets the spread constraints of waiting pods that their volumes confine count what kube-scheduler counts. Says whether that changed
    /// any of them.
    pub(super) fn count_as_the_scheduler(&mut self, waiting: &[usize]) -> bool {
        let which: FxHashSet<u32> = waiting.iter().map(|pod| self.world.class_of[*pod]).collect();
        let mut classes = std::mem::take(&mut self.world.classes);
        let mut changed = false;
        for at in which {
            if narrow(&mut self.world, &self.drafts, &mut classes[at as usize]) {
                self.forgive(at);
                changed = true;
            }
        }
        self.world.classes = classes;
        changed
    }
}

/// Leaves out the domains that have no node, and in which the pod's volumes let none be made for it.
fn narrow(world: &mut World<'_>, drafts: &[Draft], class: &mut Class) -> bool {
    let Some(needs) = class.needs.clone() else { return false };
    let terms: Vec<TermId> = class.variants.iter().map(|variant| variant.term).collect();
    let mut changed = false;
    for spread in class.variants.iter_mut().flat_map(|variant| &mut variant.spreads) {
        let Topo::Key(key) = spread.topo else { continue };
        if !needs.speaks_of(&world.algebra.universe.key(key).name) {
            continue;
        }
        let filter = world.filter_of(spread);
        let mut domains = world.known_domains(drafts, key, &filter);
        domains.or(&world.makeable_domains(key, &Filter { terms: Some(terms.clone()), ..filter }));
        changed |= domains != spread.domains;
        spread.domains = domains;
    }
    changed
}
