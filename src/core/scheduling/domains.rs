//! Domains: the values that a label has on nodes that are there, or could have on new ones, and which nodes a spread constraint looks at.

use super::algebra::ProfileId;
use super::classes::Spread;
use super::draft::Draft;
use super::interner::{Domain, KeyId};
use super::masks::Mask;
use super::rooms::Kind;
use super::topology::{Filter, FilterId};
use super::world::World;

impl World<'_> {
    /// Whether a spread constraint with this filter looks at such a node; each question is answered once.
    pub(super) fn looks_at_by(&mut self, filter: FilterId, kind: Kind) -> bool {
        if let Some(known) = self.looks.get(&(filter, kind)) {
            return *known;
        }
        let answer = self.looks_at(&self.counters.filter_of(filter).clone(), kind);
        self.looks.insert((filter, kind), answer);
        answer
    }

    /// Whether a spread constraint with this filter looks at such a node.
    pub(super) fn looks_at(&mut self, filter: &Filter, kind: Kind) -> bool {
        let Kind { taints, profile, named } = kind;
        let has = |key: &KeyId| {
            let domain = self.algebra.domain(profile, *key);
            domain.is_settled() && !domain.absent
        };
        filter.keys.iter().all(has)
            && (named || !filter.named)
            && filter.tolerations.is_none_or(|t| self.tolerance.tolerates(t, taints, true))
            && filter
                .terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| self.algebra.join(profile, *term) == Some(profile)))
    }

    /// The domains of a key that exist on nodes or could be made from pools, as far as a filter looks at them.
    pub(super) fn domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        if let Some(known) = self.domains_of.get(&(key, filter.clone())) {
            return known.clone();
        }
        let all = self.find_domains(key, filter);
        self.domains_of.insert((key, filter.clone()), all.clone());
        all
    }

    fn find_domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        let mut all = self.makeable_domains(key, filter);
        all.or(&self.standing_domains(key, filter));
        all
    }

    /// The domains in which pools could make a node that a filter looks at.
    pub(super) fn makeable_domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        let mut all = Mask::empty(self.algebra.universe.key(key).values.len());
        for at in 0..self.pools.len() {
            let (base, taints) = (self.pools[at].base, self.pools[at].taints);
            if filter.tolerations.is_some_and(|t| !self.tolerance.tolerates(t, taints, true)) {
                continue;
            }
            let profiles: Vec<ProfileId> = match &filter.terms {
                None => vec![base],
                Some(terms) => terms.iter().filter_map(|term| self.algebra.join(base, *term)).collect(),
            };
            for profile in profiles {
                if filter.keys.iter().all(|other| !self.offered(profile, *other).is_empty()) {
                    all.or(&self.offered(profile, key));
                }
            }
        }
        all
    }

    /// The domains of the nodes that are there and that a filter looks at: those that kube-scheduler knows.
    pub(super) fn standing_domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        let mut all = Mask::empty(self.algebra.universe.key(key).values.len());
        for kind in self.rooms.living().collect::<Vec<_>>() {
            if self.looks_at(filter, kind) {
                let domain = self.algebra.domain(kind.profile, key);
                if domain.is_settled() {
                    all.or(&domain.bits);
                }
            }
        }
        all
    }

    /// The same, and those of the nodes that are planned.
    pub(super) fn known_domains(&mut self, drafts: &[Draft], key: KeyId, filter: &Filter) -> Mask {
        let mut domains = self.standing_domains(key, filter);
        for draft in drafts {
            let kind = Kind { taints: self.pools[draft.pool].taints, profile: draft.profile, named: true };
            if self.looks_at(filter, kind) {
                domains.or(&self.algebra.domain(draft.profile, key).bits);
            }
        }
        domains
    }

    /// Which nodes a spread constraint looks at.
    pub(super) fn filter_of(&self, spread: &Spread) -> Filter {
        let filter = self.counters.get(spread.counter).filter;
        filter.map_or_else(Filter::default, |id| self.counters.filter_of(id).clone())
    }

    /// The values that a planned node of this profile could have, whether or not they can be bought at the moment.
    fn offered(&self, profile: ProfileId, key: KeyId) -> Mask {
        let domain = self.algebra.domain(profile, key);
        let Some(shelf) = self.algebra.profile(profile).source.shelf() else { return domain.bits.clone() };
        let find = |sets: &[(KeyId, Domain)]| sets.iter().find(|(k, _)| *k == key).map(|(_, d)| d.bits.clone());
        let mut all = Mask::empty(self.algebra.universe.key(key).values.len());
        let mut carried = false;
        for kind in &self.algebra.shelves[shelf as usize].types {
            for offer in &kind.offerings {
                let values = match (find(&kind.sets), find(&offer.sets)) {
                    (Some(mut a), Some(b)) => {
                        a.and(&b);
                        Some(a)
                    }
                    (a, b) => a.or(b),
                };
                if let Some(values) = values {
                    carried = true;
                    all.or(&values);
                }
            }
        }
        if carried {
            all.and(&domain.bits);
        } else {
            // Of a label that the pool leaves open, every value that somebody names can come into being: pods that ask for it make it.
            all.or(&domain.bits);
        }
        all
    }
}
