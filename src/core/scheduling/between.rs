//! Which of the constraints between pods are in a pod's way: those that have to go before there is a place for it.

use std::sync::Arc;

use super::algebra::ProfileId;
use super::classes::{Class, Variant};
use super::facts::fewest;
use super::interner::number;
use super::partners::meant;
use super::place::Wants;
use super::reason::Reason;
use super::solve::Run;
use super::topology::{CounterId, Filter, Topo};

/// One constraint between the pod and others, by its number among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tie {
    Spread(usize),
    Affinity(usize),
    Apart(usize),
    Repelled(usize),
}

impl Run<'_> {
    /// Names the constraints between pods without which there would be a place. `pools` would do but for such constraints.
    pub(super) fn explain_between(&mut self, class: &Class, variant: &Variant, pools: &[usize]) -> Vec<Reason> {
        let ties = ties(class, variant);
        // Nodes that are there are many: they are asked only where none could be bought, whatever the constraints.
        let named = fewest(&ties, |kept| self.could_buy(class, variant, kept, pools))
            .or_else(|| self.in_the_way_on_nodes(class, variant, &ties))
            // Whatever goes, there is no place. Then those are named that leave no domain, should there ever be one.
            .or_else(|| fewest(&ties, |kept| self.leaves_a_domain(class, variant, kept)))
            .unwrap_or(ties);
        named.into_iter().map(|tie| self.between(class, variant, tie)).collect()
    }

    /// The same of the nodes that are there; nothing where the pod fits none of them, whatever the constraints.
    pub(super) fn explain_between_on_nodes(&mut self, class: &Class, variant: &Variant) -> Vec<Reason> {
        let named = self.in_the_way_on_nodes(class, variant, &ties(class, variant)).unwrap_or_default();
        named.into_iter().map(|tie| self.between(class, variant, tie)).collect()
    }

    fn in_the_way_on_nodes(&mut self, class: &Class, variant: &Variant, ties: &[Tie]) -> Option<Vec<Tie>> {
        let hosts = self.fitting(class, variant, ties);
        fewest(ties, |kept| self.could_join(class, variant, kept, &hosts))
    }

    /// Constraints that say the same whatever the pod asks of labels: not those that find no domain only because it asks for nodes that nobody has.
    pub(super) fn ties_that_stay(&mut self, variant: &Variant, ties: &[Tie]) -> Vec<Tie> {
        let mut stays = |tie: &Tie| {
            let Tie::Spread(at) = tie else { return true };
            let spread = &variant.spreads[*at];
            let Topo::Key(key) = spread.topo else { return true };
            !spread.domains.is_empty() || self.world.domains(key, &Filter::default()).is_empty()
        };
        ties.iter().filter(|tie| stays(tie)).copied().collect()
    }

    /// The constraints that leave no domain to nodes with such labels.
    pub(super) fn in_the_way(
        &mut self,
        class: &Class,
        variant: &Variant,
        ties: &[Tie],
        profile: ProfileId,
    ) -> Vec<Tie> {
        let new = self.host_of_draft(self.drafts.len());
        let meets = |kept: &[Tie]| {
            let (variant, repelled) = only(class, variant, kept);
            self.wants_of(&variant, &repelled).is_some_and(|wants| self.could(profile, &wants))
                && self.host_allows_of(&variant, &repelled, new).is_ok()
        };
        fewest(ties, meets).unwrap_or_default()
    }

    /// Whether a node could be made for the pod if only these constraints held.
    fn could_buy(&mut self, class: &Class, variant: &Variant, kept: &[Tie], pools: &[usize]) -> bool {
        let (variant, repelled) = only(class, variant, kept);
        let Some(wants) = self.wants_of(&variant, &repelled) else { return false };
        let new = self.host_of_draft(self.drafts.len());
        self.host_allows_of(&variant, &repelled, new).is_ok()
            && pools.iter().any(|pool| self.could_open(*pool, class, &variant, &wants))
    }

    /// The nodes on which the pod fits if it has constraints and they are left out.
    fn fitting(&mut self, class: &Class, variant: &Variant, ties: &[Tie]) -> Vec<usize> {
        let bare = only(class, variant, &[]).0;
        let all = if ties.is_empty() { 0 } else { self.world.hosts.len() };
        (0..all).filter(|at| self.try_host(*at, class, &bare, &Wants::new()).is_ok()).collect()
    }

    /// Whether the pod could go to one of these nodes if only these constraints held.
    fn could_join(&mut self, class: &Class, variant: &Variant, kept: &[Tie], hosts: &[usize]) -> bool {
        let (variant, repelled) = only(class, variant, kept);
        let Some(wants) = self.wants_of(&variant, &repelled) else { return false };
        hosts.iter().any(|at| {
            self.host_allows_of(&variant, &repelled, number(*at)).is_ok()
                && self.try_host(*at, class, &variant, &wants).is_ok()
        })
    }

    /// Whether only these constraints would leave a domain of each key.
    fn leaves_a_domain(&self, class: &Class, variant: &Variant, kept: &[Tie]) -> bool {
        let (variant, repelled) = only(class, variant, kept);
        self.wants_of(&variant, &repelled).is_some()
    }

    pub(super) fn between(&mut self, class: &Class, variant: &Variant, tie: Tie) -> Reason {
        match tie {
            Tie::Spread(at) => {
                let spread = &variant.spreads[at];
                let counter = self.world.counters.get(spread.counter);
                let counts = match spread.topo {
                    Topo::Key(key) => {
                        let names = &self.world.algebra.universe.key(key).values;
                        spread.domains.bits().map(|at| (Arc::clone(&names[at]), counter.in_domain(at))).collect()
                    }
                    Topo::Host => {
                        let there = self.world.hosts.iter().enumerate();
                        let counted = there.map(|(at, host)| (host, counter.on_host(number(at))));
                        counted.filter(|(_, many)| *many > 0).map(|(host, many)| (host.name(), many)).collect()
                    }
                };
                Reason::Spread {
                    key: self.name(spread.topo),
                    max_skew: spread.max_skew,
                    // Of nodes there can always be more.
                    min_domains: if spread.topo == Topo::Host { 0 } else { spread.min_domains },
                    counts,
                }
            }
            Tie::Affinity(at) if at >= own_affinities(class) => {
                let claims = class.needs.iter().flat_map(|needs| &needs.together);
                let claim = claims.clone().nth(at - own_affinities(class)).expect("one for each such claim");
                Reason::SharedVolume { claim: claim.to_string().into() }
            }
            Tie::Affinity(at) => {
                let counters = &variant.affinities[at].counters;
                let keys: Vec<Arc<str>> = counters.iter().map(|(topo, _)| self.name(*topo)).collect();
                let partner = self.partner(class, &variant.affinities[at]);
                Reason::Affinity { key: keys.join(" and ").into(), selector: meant(&class.shape), partner }
            }
            Tie::Apart(at) => Reason::AntiAffinity { key: self.name(variant.apart[at].0) },
            Tie::Repelled(at) => Reason::Repelled { key: self.name(class.repelled[at].0) },
        }
    }

    fn name(&self, topo: Topo) -> Arc<str> {
        match topo {
            Topo::Host => crate::core::labels::HOSTNAME.into(),
            Topo::Key(key) => Arc::clone(&self.world.algebra.universe.key(key).name),
        }
    }
}

/// All constraints between pods.
pub(super) fn ties(class: &Class, variant: &Variant) -> Vec<Tie> {
    let spreads = (0..variant.spreads.len()).map(Tie::Spread);
    let affinities = (0..variant.affinities.len()).map(Tie::Affinity);
    let apart = (0..variant.apart.len()).map(Tie::Apart);
    let of_others = (0..class.repelled.len()).filter(|at| !is_own(class, class.repelled[*at].1));
    spreads.chain(affinities).chain(apart).chain(of_others.map(Tie::Repelled)).collect()
}

/// How many of the affinities of a variant without wishes the pod states itself. The others are those of its volumes.
fn own_affinities(class: &Class) -> usize {
    usize::from(!class.shape.affinity.is_empty())
}

/// Whether the pods that keep the pod away do so by an anti-affinity that it has too, such as others of its Deployment: one constraint, not two.
fn is_own(class: &Class, repelling: CounterId) -> bool {
    class.touches.binary_search(&repelling).is_ok()
}

/// The variant with these constraints only, and the counters of those who then keep the pod away.
pub(super) fn only(class: &Class, variant: &Variant, kept: &[Tie]) -> (Variant, Vec<(Topo, CounterId)>) {
    let mut bare = Variant { spreads: Vec::new(), affinities: Vec::new(), apart: Vec::new(), ..*variant };
    let mut repelled = Vec::new();
    for tie in kept {
        match *tie {
            Tie::Spread(at) => bare.spreads.push(variant.spreads[at].clone()),
            Tie::Affinity(at) => bare.affinities.push(variant.affinities[at].clone()),
            Tie::Apart(at) => {
                let term = variant.apart[at];
                bare.apart.push(term);
                let own = |(topo, id): &&(Topo, CounterId)| *topo == term.0 && is_own(class, *id);
                repelled.extend(class.repelled.iter().filter(own));
            }
            Tie::Repelled(at) => repelled.push(class.repelled[at]),
        }
    }
    (bare, repelled)
}
