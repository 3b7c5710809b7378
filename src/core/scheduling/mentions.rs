//! Who mentions which labels and resources: all of it is known before the first requirement is compiled.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::facts::{Claim, InstanceType, PodShape, Pool};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirement;
use crate::core::resources::ResourceName;

use super::interner::Collector;
use super::problem::Problem;
use super::reason::Reason;
use super::shelf::Dimensions;
use super::world::List;

/// Pools that may be used, heaviest first and then by name descending, as Karpenter has them, and why the others may not.
pub(super) fn usable_pools(problem: &Problem<'_>) -> (Vec<(Arc<Pool>, List)>, Vec<Reason>) {
    let mut usable = Vec::new();
    let mut unusable = Vec::new();
    for pool in problem.snapshot.pools.values().filter(|pool| pool.replicas.is_none() && pool.deleting.is_none()) {
        match problem.catalog.pools.get(&pool.name) {
            _ if !pool.is_ready() => {
                let why = crate::core::pools::why_not_ready(pool).into();
                unusable.push(Reason::PoolNotReady { pool: pool.name.clone(), why });
            }
            Some(list) if !list.is_empty() => usable.push((Arc::clone(pool), Arc::clone(list))),
            _ => unusable.push(Reason::NoCatalog { pool: pool.name.clone() }),
        }
    }
    usable.sort_by(|(a, _), (b, _)| (b.weight, &b.name).cmp(&(a.weight, &a.name)));
    (usable, unusable)
}

pub(super) fn collect_shape(all: &mut Collector, shape: &PodShape) {
    for (key, value) in &shape.node_selector {
        all.value(key, value);
    }
    let preferred = shape.node_affinity.preferred.iter().map(|w| &w.term);
    for requirement in shape.node_affinity.required.iter().chain(preferred).flatten() {
        all.requirement(requirement);
    }
    let wished = shape.preferred_affinity.iter().chain(&shape.preferred_anti_affinity).map(|w| &w.term);
    let terms = shape.affinity.iter().chain(&shape.anti_affinity).chain(wished).map(|term| &term.key);
    for key in terms.chain(shape.spreads.iter().map(|s| &s.key)).filter(|key| &***key != labels::HOSTNAME) {
        all.key(key);
    }
}

/// Everything that anybody mentions: the cluster, its pods, what can be bought, and the pods that are asked about with their volumes.
pub(super) fn collect<'a>(
    problem: &Problem<'a>,
    shapes: impl Iterator<Item = &'a Arc<PodShape>>,
    of_volumes: impl Iterator<Item = &'a Requirement>,
    pools: &[(Arc<Pool>, List)],
    open: &BTreeSet<&str>,
) -> Collector {
    let mut all = Collector::default();
    // Volumes that are yet to come will be in some zone.
    all.key(labels::ZONE);
    of_volumes.for_each(|requirement| all.requirement(requirement));
    let snapshot = problem.snapshot;
    for shape in shapes.chain(snapshot.daemons.values().map(|daemon| &daemon.shape)) {
        collect_shape(&mut all, shape);
    }
    let mut seen: Vec<*const Vec<Arc<InstanceType>>> = Vec::new();
    for (pool, list) in pools {
        for (key, values) in super::pools::template(pool).iter() {
            for value in values.values() {
                all.value(key, value);
            }
            // A custom label that the pool leaves open gets this value, so it must be known as one.
            if let Some(value) = values.concrete().filter(|_| !open.contains(&**key)) {
                all.value(key, &value);
            }
            all.key(key);
        }
        if seen.contains(&Arc::as_ptr(list)) {
            continue;
        }
        seen.push(Arc::as_ptr(list));
        for kind in list.iter() {
            let offered = kind.offerings.iter().flat_map(|offering| &offering.requirements);
            kind.requirements.iter().chain(offered).for_each(|requirement| all.requirement(requirement));
        }
    }
    for claim in snapshot.claims.values() {
        collect_claim(&mut all, claim);
    }
    for node in snapshot.nodes.values() {
        collect_labels(&mut all, &node.labels);
    }
    all
}

/// What a NodeClaim says of keys that somebody asks about.
pub(super) fn collect_claim(all: &mut Collector, claim: &Claim) {
    for requirement in claim.requirements.iter().filter(|r| all.knows(&r.key)).collect::<Vec<_>>() {
        all.requirement(requirement);
    }
    collect_labels(all, &claim.labels);
}

/// Values of labels that somebody asks about.
pub(super) fn collect_labels(all: &mut Collector, labels: &Labels) {
    for (key, value) in labels.iter().filter(|(key, _)| &***key != labels::HOSTNAME) {
        if all.knows(key) {
            all.value(key, value);
        }
    }
}

/// Every resource that anybody asks for or limits.
pub(super) fn dimensions<'a>(
    problem: &Problem<'a>,
    shapes: impl Iterator<Item = &'a Arc<PodShape>>,
    pools: &[(Arc<Pool>, List)],
) -> Dimensions {
    let mut names: BTreeSet<ResourceName> = [ResourceName::Cpu, ResourceName::Memory, ResourceName::Pods].into();
    let daemons = problem.snapshot.daemons.values().map(|daemon| &daemon.shape);
    for (name, _) in shapes.chain(daemons).flat_map(|shape| shape.requests.iter()) {
        if !names.contains(name) {
            names.insert(name.clone());
        }
    }
    for (name, _) in
        pools.iter().flat_map(|(pool, _)| pool.limits.iter()).filter(|(name, _)| **name != ResourceName::nodes())
    {
        names.insert(name.clone());
    }
    Dimensions(names.into_iter().collect())
}
