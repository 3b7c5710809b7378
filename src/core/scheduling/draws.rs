//! Pods that are drawn to where others need them.
//!
//! A pod with affinity to others can only be where one of them is. Where it can itself be in few domains only, and those others anywhere, they might
//! come to be elsewhere: a plan that refuses the pod for it is made anew, and one of them is placed where the pod can be.

use rustc_hash::FxHashSet;

use super::classes::{Affinity, Class, Variant};
use super::interner::KeyId;
use super::masks::Mask;
use super::place::{Allowed, Wants, also};
use super::solve::Run;
use super::topology::{CounterId, Filter, Topo};
use crate::core::ids::PodUid;

/// Domains in which there is to be one of the pods that a counter counts.
pub(super) struct Draw {
    key: KeyId,
    counter: CounterId,
    domains: Mask,
}

impl Run<'_> {
    /// Those whom the affinity of these pods means are to come where these pods can be. Returns the counters of those who are meant.
    pub(super) fn draw_to(&mut self, pods: &FxHashSet<PodUid>) -> FxHashSet<CounterId> {
        let mut known = FxHashSet::default();
        let (mut draws, mut meant) = (Vec::new(), FxHashSet::default());
        for pod in 0..self.world.pods.len() {
            if !pods.contains(&self.world.pods[pod].uid) {
                continue;
            }
            self.seek_company(pod);
            if !known.insert(self.world.class_of[pod]) {
                continue;
            }
            let class = self.world.class_at(pod);
            let Some(bare) = class.variants.last() else { continue };
            let filter = own_filter(class);
            let all: Vec<(Topo, CounterId)> = bare.affinities.iter().flat_map(|one| one.counters.to_vec()).collect();
            for (topo, counter) in all {
                meant.insert(counter);
                let Topo::Key(key) = topo else { continue };
                draws.push(Draw { key, counter, domains: self.world.domains(key, &filter) });
            }
        }
        self.draws = draws;
        meant
    }

    /// What the topology allows a pod, as far as others need it there; nothing when nobody does, or the pod cannot be there.
    pub(super) fn drawn(&self, class: &Class, wants: &Wants) -> Option<Wants> {
        let is_missing = |draw: &&Draw| {
            class.touches.contains(&draw.counter)
                && !self.world.counters.get(draw.counter).domains(true).meets(&draw.domains)
        };
        let mut missing = self.draws.iter().filter(is_missing).peekable();
        missing.peek()?;
        let mut wants = wants.clone();
        for Draw { key, domains, .. } in missing {
            also(&mut wants, Allowed { key: *key, values: domains.clone(), absent: false, rank: None })?;
        }
        Some(wants)
    }

    /// What the topology allows a pod that may be the first of its kind, where older ones of its kind are that are on their way out: kube-scheduler
    /// would bind it nowhere else before they are gone. Nothing where there are none, or it can be the first of many.
    pub(super) fn beside_leaving(&self, variant: &Variant, wants: &Wants) -> Option<Wants> {
        let total = |(_, id): &(Topo, CounterId)| self.world.counters.get(*id).total;
        let is_first = |one: &&Affinity| {
            one.counters.iter().all(|at| total(at) == 0) && one.leaving.iter().any(|at| total(at) > 0)
        };
        let mut all = variant.affinities.iter().filter(is_first).peekable();
        all.peek()?;
        let mut wants = wants.clone();
        for (topo, id) in all.flat_map(|one| &one.leaving) {
            let Topo::Key(key) = topo else { continue };
            let values = self.world.counters.get(*id).domains(true);
            also(&mut wants, Allowed { key: *key, values, absent: false, rank: None })?;
        }
        Some(wants)
    }

    /// The domains in which a pod could be, were it not for the others that wait.
    pub(super) fn choices(&mut self, pod: usize, key: KeyId) -> Mask {
        let class = self.world.class_at(pod);
        let Some(bare) = class.variants.last() else { return Mask::default() };
        let filter = own_filter(class);
        let apart = bare.apart.iter().chain(&class.repelled).filter(|(topo, _)| *topo == Topo::Key(key));
        let apart: Vec<CounterId> = apart.map(|(_, id)| *id).collect();
        let mut domains = self.world.domains(key, &filter);
        for id in apart {
            domains.and(&self.world.counters.get(id).domains(false));
        }
        domains
    }
}

/// The nodes that the pods of a class may be on, as far as these say what they are.
fn own_filter(class: &Class) -> Filter {
    Filter { terms: Some(class.bare_terms()), tolerations: Some(class.tolerations), ..Filter::default() }
}
