//! Why a pod was refused: asked once per class, after the last round, so that it costs nothing while pods are placed.

use std::sync::Arc;

use super::classes::{Class, Variant};
use super::interner::{Domain, KeyId};
use super::masks::Mask;
use super::reason::Reason;
use super::solve::Run;

impl Run<'_> {
    /// All reasons, most helpful first.
    pub(super) fn explain(&mut self, class: &Class) -> Vec<Reason> {
        if let Some(what) = &class.shape.broken {
            return vec![Reason::Invalid(Arc::clone(what))];
        }
        if class.shape.dynamic_resources {
            return vec![Reason::DynamicResources];
        }
        if let Some(key) = class.contradiction {
            return vec![Reason::Contradiction { key: Arc::clone(&self.world.algebra.universe.key(key).name) }];
        }
        if let Some(fault) = class.needs.as_ref().and_then(|needs| needs.fault.as_ref()) {
            return vec![Reason::Volume(fault.clone())];
        }
        if let Some(key) = class.elsewhere {
            return vec![Reason::VolumesElsewhere { key: Arc::clone(&self.world.algebra.universe.key(key).name) }];
        }
        let mut reasons: Vec<Reason> = self.world.unusable.clone();
        // Where there are pools, each of them says for itself why it cannot be used.
        if self.world.pools.is_empty() && reasons.is_empty() {
            reasons.push(Reason::NoPools);
        }
        // The last variant has no wishes left; earlier ones differ by alternatives of the required node affinity.
        let Some(bare) = class.variants.last() else { return reasons };
        let alternatives: Vec<&Variant> = class.variants.iter().filter(|v| same_wishes(v, bare)).collect();
        for variant in alternatives {
            let mut open = Vec::new();
            for pool in 0..self.world.pools.len() {
                let reason = self.explain_pool(class, variant, pool);
                if matches!(reason, Reason::Topology { .. }) {
                    open.push(pool);
                }
                reasons.push(reason);
            }
            if !open.is_empty() || self.wants(class, variant).is_none() {
                self.explain_between(class, variant, &open, &mut reasons);
            }
        }
        super::facts::smallest(reasons)
    }

    fn explain_pool(&mut self, class: &Class, variant: &Variant, pool: usize) -> Reason {
        let name = self.world.pools[pool].fact.name.clone();
        let (base, taints) = (self.world.pools[pool].base, self.world.pools[pool].taints);
        if let Some(taint) = self.world.tolerance.untolerated(class.tolerations, taints, variant.ignore_soft_taints) {
            return Reason::Taint { pool: name, taint: taint.clone() };
        }
        let Some(joined) = self.world.algebra.join(base, variant.term) else {
            let (key, wanted, offered) =
                self.world.algebra.conflict(base, variant.term).expect("a join fails on some key only");
            if class.needs.as_ref().is_some_and(|needs| needs.speaks_of(&self.world.algebra.universe.key(key).name)) {
                let (name_of, wanted) =
                    (Arc::clone(&self.world.algebra.universe.key(key).name), self.text(key, &wanted));
                return Reason::VolumeTopology { pool: name, key: name_of, wanted, offered: self.text(key, &offered) };
            }
            return Reason::Requirement {
                pool: name,
                key: Arc::clone(&self.world.algebra.universe.key(key).name),
                wanted: self.text(key, &wanted),
                offered: self.text(key, &offered),
            };
        };
        let profile = self.world.algebra.profile(joined);
        let (types, bought) = (profile.possible(), profile.types.clone());
        if types.is_empty() {
            return self.explain_no_types(pool, joined);
        }
        let holding = self.world.holding(pool, &types, &class.requests, &class.shape.host_ports);
        if holding.is_empty() {
            return self.explain_size(class, pool, &types);
        }
        if let Some(reason) = self.world.explain_attaching(pool, &holding, class) {
            return reason;
        }
        let allowed = self.world.within_limits(pool, &holding);
        if allowed.is_empty() {
            return self.explain_limit(pool, &holding);
        }
        if !allowed.meets(&bought) && self.world.reservable(joined).is_empty() {
            return Reason::ReservedInUse { pool: name };
        }
        let least = Arc::clone(&self.world.pools[pool].least);
        if let Err((key, wanted, found)) = self.world.variety(pool, joined, &allowed, &least) {
            let key = Arc::clone(&self.world.algebra.universe.key(key).name);
            return Reason::MinValues { pool: name, key, wanted, found };
        }
        // The pool itself would do; what is missing is a legal domain.
        Reason::Topology { pool: name }
    }

    fn explain_no_types(&self, pool: usize, joined: super::algebra::ProfileId) -> Reason {
        let site = &self.world.pools[pool];
        let sets = &self.world.algebra.profile(joined).sets;
        let agrees = |kind: &super::shelf::Type| {
            kind.sets.iter().all(|(key, domain)| sets.iter().all(|(k, d)| k != key || d.meets(domain)))
        };
        let types = self.world.algebra.shelves[site.shelf].types.iter().filter(|kind| agrees(kind)).count();
        let pool = site.fact.name.clone();
        if types == 0 { Reason::NoMatchingType { pool } } else { Reason::NoOffering { pool, types } }
    }

    fn explain_size(&self, class: &Class, pool: usize, types: &Mask) -> Reason {
        let site = &self.world.pools[pool];
        let name = site.fact.name.clone();
        if !self.world.holding(pool, types, &class.requests, &[]).is_empty() {
            let taken = site.groups.iter().find_map(|g| super::ports::first_taken(&class.shape.host_ports, &g.ports));
            if let Some(port) = taken {
                return Reason::HostPort { pool: name, port: port.port };
            }
        }
        let shelf = &self.world.algebra.shelves[site.shelf];
        for (at, resource) in self.world.dimensions.0.iter().enumerate().filter(|(at, _)| class.requests[*at] > 0) {
            let room = |kind: usize| {
                let overhead = site.groups.iter().find(|g| g.types.has(kind)).map_or(0, |g| g.overhead[at]);
                (shelf.types[kind].allocatable[at], overhead)
            };
            let best = types.bits().map(room).max_by_key(|(has, daemons)| has - daemons).unwrap_or((0, 0));
            let wanted = class.requests[at].saturating_add(best.1);
            if wanted > best.0 {
                return Reason::TooLarge { pool: name, resource: resource.clone(), wanted, most: best.0 };
            }
        }
        Reason::NoTypeHolds { pool: name }
    }

    fn explain_limit(&self, pool: usize, holding: &Mask) -> Reason {
        let site = &self.world.pools[pool];
        let name = site.fact.name.clone();
        if let Some(nodes) = site.room.nodes.filter(|nodes| *nodes <= 0) {
            let resource = crate::core::resources::ResourceName::nodes();
            return Reason::Limit { pool: name, resource, left: nodes.saturating_mul(1000) };
        }
        let shelf = &self.world.algebra.shelves[site.shelf];
        let short = self.world.dimensions.0.iter().enumerate().find_map(|(at, resource)| {
            let left = site.room.resources[at]?;
            holding.bits().all(|kind| shelf.types[kind].capacity[at] > left).then(|| (resource.clone(), left))
        });
        match short {
            Some((resource, left)) => Reason::Limit { pool: name, resource, left },
            None => Reason::NoTypeHolds { pool: name },
        }
    }

    fn text(&self, key: KeyId, domain: &Domain) -> Arc<str> {
        let lines = self.world.algebra.universe.written(key, domain, None);
        let texts: Vec<String> =
            lines.iter().map(|line| crate::core::requirements::ValueSet::from_written(line).to_string()).collect();
        texts.join(" and ").into()
    }
}

/// Whether two variants differ by their term only.
fn same_wishes(a: &Variant, b: &Variant) -> bool {
    a.spreads.len() == b.spreads.len()
        && a.affinities.len() == b.affinities.len()
        && a.apart.len() == b.apart.len()
        && a.ignore_soft_taints == b.ignore_soft_taints
}
