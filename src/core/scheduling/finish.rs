//! From a filled draft to a NodeClaim that leaves whoever writes it no choice.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::ClaimDraft;
use crate::core::ids::InstanceTypeName;
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

use super::algebra::{ProfileId, Source};
use super::draft::Draft;
use super::interner::{Domain, KeyId, Rest};
use super::least::Least;
use super::masks::Mask;
use super::name::Names;
use super::plan::PlannedClaim;
use super::reason::Reason;
use super::shelf::{Amounts, Offer, lower};
use super::world::World;

/// What NodeClaims have in common whose pool, labels and possible instance types are the same: most of what is written in them.
struct Mould {
    listed: Arc<[InstanceTypeName]>,
    overhead: Amounts,
    labels: Arc<Labels>,
    annotations: Arc<Labels>,
    requirements: Arc<[Requirement]>,
    price: f64,
}

/// Moulds that were made already.
#[derive(Default)]
pub(super) struct Moulds(FxHashMap<(usize, ProfileId, Mask, Least), Result<Mould, Reason>>);

/// The NodeClaim of a draft.
pub(super) fn finished(
    world: &World<'_>,
    draft: &Draft,
    moulds: &mut Moulds,
    names: &mut Names<'_>,
) -> Result<PlannedClaim, Reason> {
    let kind = (draft.pool, draft.profile, draft.types.clone(), Arc::clone(&draft.least));
    let mould = moulds.0.entry(kind).or_insert_with(|| mould(world, draft)).as_ref().map_err(Clone::clone)?;
    let fact = &world.pools[draft.pool].fact;
    let mut total = Resources::new();
    for pod in &draft.pods {
        total.add(&world.pods[*pod].shape.requests);
    }
    for (name, milli) in world.dimensions.0.iter().zip(&mould.overhead).filter(|(_, milli)| **milli > 0) {
        total.set(name.clone(), total.get(name).saturating_add(*milli));
    }
    let claim = ClaimDraft {
        name: names.name(&fact.name),
        pool: fact.name.clone(),
        pool_uid: fact.uid.clone(),
        labels: Arc::clone(&mould.labels),
        annotations: Arc::clone(&mould.annotations),
        requirements: Arc::clone(&mould.requirements),
        requests: total,
        taints: fact.template.taints.clone(),
        startup_taints: fact.template.startup_taints.clone(),
        class: fact.template.class.clone(),
        termination_grace: fact.template.termination_grace,
        expire_after: fact.template.expire_after,
    };
    Ok(PlannedClaim {
        draft: claim,
        pods: draft.pods.iter().map(|pod| Arc::clone(&world.pods[*pod])).collect(),
        instance_types: Arc::clone(&mould.listed),
        price: mould.price,
    })
}

fn mould(world: &World<'_>, draft: &Draft) -> Result<Mould, Reason> {
    let site = &world.pools[draft.pool];
    let shelf = &world.algebra.shelves[site.shelf];
    let profile = world.algebra.profile(draft.profile);
    let (listed, least) = listed(world, draft)?;
    let fact = &site.fact;
    let mut labels = fact.template.labels.clone();
    labels.insert(labels::NODEPOOL.into(), fact.name.as_str().into());
    labels.insert(fact.template.class.label().into(), Arc::clone(&fact.template.class.name));
    labels.extend(custom_labels(world, &profile.sets));
    let mut annotations = fact.template.annotations.clone();
    annotations.insert(labels::NODEPOOL_HASH.into(), Arc::clone(&fact.hash));
    annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), labels::HASH_VERSION.into());
    let relaxed = if least == site.least { "false" } else { "true" };
    annotations.insert(labels::MIN_VALUES_RELAXED.into(), relaxed.into());
    let names = listed.iter().map(|at| &shelf.types[*at].fact.name);
    annotations.extend(world.problem.catalog.overlay_marks(&fact.name, &names));
    Ok(Mould {
        overhead: least_overhead(world, draft, &listed),
        labels: Arc::new(labels),
        annotations: Arc::new(annotations),
        requirements: requirements(world, draft, &listed, &least).into(),
        price: listed.iter().map(|at| profile.prices[*at]).fold(f64::INFINITY, f64::min),
        listed: once(listed.iter().map(|at| shelf.types[*at].fact.name.clone())).into(),
    })
}

/// Names in their order, each once: a type may be there in several sizes.
fn once<T: Clone + Eq + std::hash::Hash>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = FxHashSet::default();
    names.filter(|name| seen.insert(name.clone())).collect()
}

/// The instance types to list: cheapest first, at most so many, and with the variety that is asked for, or what is left of it.
fn listed(world: &World<'_>, draft: &Draft) -> Result<(Vec<usize>, Least), Reason> {
    let site = &world.pools[draft.pool];
    let prices = &world.algebra.profile(draft.profile).prices;
    let mut all: Vec<usize> = draft.types.bits().collect();
    all.sort_by(|a, b| prices[*a].total_cmp(&prices[*b]).then(a.cmp(b)));
    let most = world.problem.settings.max_instance_types.max(1);
    let mut chosen = Mask::empty(world.algebra.shelves[site.shelf].types.len());
    // Where the cheapest alone lack variety, types that add a value come first.
    let short = {
        let mut first = chosen.clone();
        all.iter().take(most).for_each(|at| first.set(*at));
        world.variety(site.shelf, draft.profile, &first, &draft.least).is_err()
    };
    if short {
        for (key, least) in draft.least.iter() {
            for at in &all {
                let before = world.values_of(site.shelf, draft.profile, &chosen, *key).count();
                if before >= *least as usize || chosen.count() >= most {
                    break;
                }
                let mut with = chosen.clone();
                with.set(*at);
                if world.values_of(site.shelf, draft.profile, &with, *key).count() > before {
                    chosen = with;
                }
            }
        }
    }
    for at in &all {
        if chosen.count() >= most {
            break;
        }
        chosen.set(*at);
    }
    let mut least = Arc::clone(&draft.least);
    if world.problem.settings.lower_min_values {
        least = world.lowered(draft.pool, draft.profile, &chosen, &least);
    } else if let Err((key, wanted, found)) = world.variety(site.shelf, draft.profile, &chosen, &least) {
        let key = Arc::clone(&world.algebra.universe.key(key).name);
        return Err(Reason::MinValues { pool: site.fact.name.clone(), key, wanted, found });
    }
    all.retain(|at| chosen.has(*at));
    Ok((all, least))
}

/// What daemons take at least on any of the listed types.
fn least_overhead(world: &World<'_>, draft: &Draft, listed: &[usize]) -> Amounts {
    let groups = world.groups(draft.pool, draft.profile);
    let groups = groups.iter().filter(|group| listed.iter().any(|at| group.types.has(*at)));
    groups.map(|group| group.overhead.clone()).reduce(|a, b| lower(&a, &b)).unwrap_or_else(|| world.zero())
}

/// Custom labels that the requirements leave to the node: each gets one value, always the same.
fn custom_labels(world: &World<'_>, sets: &[(KeyId, Domain)]) -> Labels {
    let universe = &world.algebra.universe;
    let mut labels = Labels::new();
    for (key, domain) in sets.iter().filter(|(key, _)| !universe.key(*key).open) {
        let name = &universe.key(*key).name;
        if matches!(&**name, labels::HOSTNAME | labels::REGISTERED | labels::INITIALIZED) {
            continue;
        }
        if let Some(value) = domain.bits.first() {
            labels.insert(Arc::clone(name), Arc::clone(&universe.key(*key).values[value]));
        } else if let Rest::Within(low, high) = domain.rest {
            // Integers that are known are excluded, or else would be among the bits.
            let all = (low.max(0)..=high).chain((low..=high.min(-1)).rev()).map(|integer| integer.to_string());
            let free = all.into_iter().find(|text| universe.key(*key).value(text).is_none());
            labels.extend(free.map(|text| (Arc::clone(name), text.into())));
        }
    }
    labels
}

/// `spec.requirements`: all that the draft came to require, the listed types, and the capacity types in which they can be had.
fn requirements(world: &World<'_>, draft: &Draft, listed: &[usize], least: &[(KeyId, u32)]) -> Vec<Requirement> {
    let universe = &world.algebra.universe;
    let site = &world.pools[draft.pool];
    let shelf = &world.algebra.shelves[site.shelf];
    let profile = world.algebra.profile(draft.profile);
    let min_values: BTreeMap<KeyId, u32> = least.iter().copied().collect();
    let least = |key: &str| universe.find(key).and_then(|key| min_values.get(&key)).copied();
    let mut all: BTreeMap<Arc<str>, Vec<Requirement>> = BTreeMap::new();
    for (key, domain) in &profile.sets {
        let name = Arc::clone(&universe.key(*key).name);
        if !matches!(&*name, labels::HOSTNAME | labels::REGISTERED | labels::INITIALIZED) {
            all.insert(name, universe.written(*key, domain, min_values.get(key).copied()));
        }
    }
    // What no instance type says is handed on all the same: the cloud may know.
    for line in site.fact.template.requirements.iter().filter(|line| world.is_untold(site.shelf, &line.key)) {
        all.entry(Arc::clone(&line.key)).or_default().push(line.clone());
    }
    let names = once(listed.iter().map(|at| Arc::clone(&shelf.types[*at].name)));
    let types = Requirement::new(labels::INSTANCE_TYPE, Operator::In, names);
    all.insert(labels::INSTANCE_TYPE.into(), vec![Requirement { min_values: least(labels::INSTANCE_TYPE), ..types }]);

    let offered = |sets: &[(KeyId, Domain)]| {
        sets.iter().all(|(key, domain)| profile.sets.iter().all(|(k, d)| k != key || d.meets(domain)))
    };
    let held = if let Source::Held(_, held) = profile.source { Some(held) } else { None };
    let mut capacity_types: Vec<Arc<str>> = Vec::new();
    for at in listed {
        let kind = &shelf.types[*at];
        let had = |offer: &Offer| offer.available && offer.reservation == held;
        for (offer, fact) in kind.offerings.iter().zip(&kind.fact.offerings).filter(|(offer, _)| had(offer)) {
            let Some(capacity_type) = fact.capacity_type() else { continue };
            if !capacity_types.contains(capacity_type) && offered(&offer.sets) {
                capacity_types.push(Arc::clone(capacity_type));
            }
        }
    }
    capacity_types.sort_unstable();
    if !capacity_types.is_empty() {
        let one = Requirement::new(labels::CAPACITY_TYPE, Operator::In, capacity_types);
        all.insert(labels::CAPACITY_TYPE.into(), vec![Requirement { min_values: least(labels::CAPACITY_TYPE), ..one }]);
    }
    all.into_values().flatten().collect()
}
