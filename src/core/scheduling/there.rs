//! Pods for which no node can be bought, on nodes that are there.
//!
//! A spread constraint counts every domain in which a node could be made, so that the emptiest gets the next one. kube-scheduler counts those that
//! have nodes: a zone that no NodePool can open at the moment is none, and the emptiest node that is there, not one that could be, is the measure
//! of a constraint per node. Whoever would else be refused is bound by it where it finds room, whatever a plan says; so the plan says that. Nothing
//! is bought on these terms.

use rustc_hash::FxHashMap;

use super::classes::{Class, Spread, Variant};
use super::interner::number;
use super::rooms::Kind;
use super::solve::Run;
use super::topology::Topo;

impl Run<'_> {
    /// Places pods on nodes that are there, held to what kube-scheduler counts, and keeps those that have no place there either. Says whether any
    /// has been placed.
    pub(super) fn place_as_the_scheduler(&mut self, waiting: &mut Vec<usize>) -> bool {
        let before = self.placements();
        // When pods of a class failed: nothing has changed for others of it as long as nobody else is placed.
        let mut failed: FxHashMap<u32, u64> = FxHashMap::default();
        waiting.retain(|pod| {
            let which = self.world.class_of[*pod];
            if failed.get(&which) == Some(&self.placements()) {
                return true;
            }
            let placed = self.moving(*pod, |run, class| run.on_standing(*pod, class));
            if !placed {
                failed.insert(which, self.placements());
            }
            !placed
        });
        self.placements() > before
    }

    fn on_standing(&mut self, pod: usize, class: &Class) -> bool {
        let bare = class.variants.last().map(|bare| bare.level);
        let variants = class.variants.iter().filter(|variant| Some(variant.level) == bare);
        variants.filter(|variant| !variant.spreads.is_empty()).any(|variant| {
            let variant = self.as_counted(variant);
            let wants = self.wants_of(&variant, &class.repelled).and_then(|wants| self.as_dealt(pod, wants));
            let Some(wants) = wants else { return false };
            let place = (0..self.world.hosts.len()).find(|at| {
                self.host_allows_of(&variant, &class.repelled, number(*at)).is_ok()
                    && self.try_host(*at, class, &variant, &wants).is_ok()
            });
            if let Some(at) = place {
                self.put_on_host(pod, at, class);
            }
            place.is_some()
        })
    }

    /// The variant with the domains that have nodes, and with as many more on each node as the emptiest has.
    fn as_counted(&mut self, variant: &Variant) -> Variant {
        let mut variant = variant.clone();
        for spread in &mut variant.spreads {
            match spread.topo {
                Topo::Key(key) => {
                    let filter = self.world.filter_of(spread);
                    spread.domains = self.world.known_domains(&self.drafts, key, &filter);
                }
                Topo::Host => spread.max_skew += self.least_on_a_node(spread),
            }
        }
        variant
    }

    /// The fewest that a constraint per node counts on any node that it looks at, there or planned.
    fn least_on_a_node(&mut self, spread: &Spread) -> u32 {
        let filter = self.world.filter_of(spread);
        let counter = spread.counter;
        let (mut nodes, mut least) = (0, u32::MAX);
        let there = (0..self.world.hosts.len()).filter(|at| self.world.hosts[*at].usable);
        let mut all: Vec<(u32, Kind)> = there.map(|at| (number(at), self.world.hosts[at].kind())).collect();
        all.extend((0..self.drafts.len()).map(|at| (self.host_of_draft(at), self.kind_of_draft(at))));
        for (host, kind) in all {
            if kind.named && self.world.looks_at(&filter, kind) {
                nodes += 1;
                least = least.min(self.world.counters.get(counter).on_host(host));
            }
        }
        if nodes == 0 || nodes < spread.min_domains { 0 } else { least }
    }
}
