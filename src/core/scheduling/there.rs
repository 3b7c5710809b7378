//! Pods for which no node can be bought, on nodes that are there.
//!
//! A spread constraint counts every domain in which a node could be made, so that the emptiest gets the next one. kube-scheduler counts those that
//! have nodes: a zone that no NodePool can open at the moment is none, and the emptiest node that is there, not one that could be, is the measure
//! of a constraint per node. Whoever would else be refused is bound by it where it finds room, whatever a plan says; so the plan says that. Nothing
//! is bought on these terms.

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{Class, Variant};
use super::interner::number;
use super::masks::Mask;
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
            let filter = self.world.filter_of(spread);
            let nodes = self.nodes();
            match spread.topo {
                Topo::Key(key) => {
                    let kinds: FxHashSet<Kind> = nodes.into_iter().map(|(_, kind)| kind).collect();
                    spread.domains = Mask::empty(self.world.algebra.universe.key(key).values.len());
                    for kind in kinds {
                        if self.world.looks_at(&filter, kind) {
                            spread.domains.or(&self.world.algebra.domain(kind.profile, key).bits);
                        }
                    }
                }
                Topo::Host => {
                    let looked_at = |(_, kind): &(u32, Kind)| kind.named && self.world.looks_at(&filter, *kind);
                    let nodes: Vec<(u32, Kind)> = nodes.into_iter().filter(looked_at).collect();
                    let counter = self.world.counters.get(spread.counter);
                    let least = nodes.iter().map(|(host, _)| counter.on_host(*host)).min().unwrap_or(0);
                    spread.max_skew += if nodes.len() < spread.min_domains { 0 } else { least };
                }
            }
        }
        variant
    }

    /// All nodes that kube-scheduler sees or will see: also those on their way out, as long as they are there.
    fn nodes(&self) -> Vec<(u32, Kind)> {
        let there = self.world.hosts.iter().enumerate().filter(|(_, host)| host.usable || host.node.is_some());
        let there = there.map(|(at, host)| (number(at), host.kind()));
        there.chain((0..self.drafts.len()).map(|at| (self.host_of_draft(at), self.kind_of_draft(at)))).collect()
    }
}
