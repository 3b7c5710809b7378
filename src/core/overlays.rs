//! NodeOverlays: which of them hold, and what instance types are with them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::conditions::Conditions;
use crate::core::facts::{
    Catalog, InstanceType, Judgement, Overlaid, Overlay, Pool, PriceChange, Snapshot, Status, Verdict,
};
use crate::core::ids::PoolName;
use crate::core::labels;
use crate::core::requirements::{Requirements, ValueSet};
use crate::core::resources::ResourceName;
use crate::core::writes::OverlayStatusPatch;

/// Dependents of a NodeOverlay's `Ready`.
const DEPENDENTS: [&str; 1] = ["ValidationSucceeded"];

/// A list of instance types, shared by all who read it.
type Types = Arc<Vec<Arc<InstanceType>>>;

/// Judges all NodeOverlays, and puts what those that hold say into `catalog.pools`, which has what the cloud says. Lists, types and
/// offerings that no NodeOverlay speaks of stay shared.
pub fn apply(catalog: &mut Catalog, snapshot: &Snapshot) {
    let mut overlays: Vec<&Arc<Overlay>> = snapshot.overlays.values().collect();
    if overlays.is_empty() {
        return;
    }
    // The heaviest first; of one weight the last by name, as Karpenter has it.
    overlays.sort_by_key(|overlay| Reverse((overlay.weight, Arc::clone(&overlay.name))));
    let mut sheets: Vec<Sheet<'_>> = Vec::new();
    for (name, types) in &catalog.pools {
        let Some(pool) = snapshot.pools.get(name) else { continue };
        // NodePools of one NodeClass share their list: it is read once.
        let known = sheets.iter().find(|sheet| Arc::ptr_eq(&sheet.types, types));
        let offered = known.map_or_else(
            || Arc::new(types.iter().map(|kind| Offered::of(kind)).collect()),
            |sheet| Arc::clone(&sheet.offered),
        );
        sheets.push(Sheet::new(pool, Arc::clone(types), offered));
    }
    for overlay in overlays {
        let verdict = judge(overlay, &sheets);
        if verdict == Verdict::Applied {
            for sheet in &mut sheets {
                sheet.take_in(overlay);
            }
        }
        catalog.overlays.insert(Arc::clone(&overlay.name), Judgement { generation: overlay.generation, verdict });
    }
    for sheet in sheets {
        if let Some((name, types, overlaid)) = sheet.changed() {
            catalog.pools.insert(name.clone(), types);
            catalog.overlaid.insert(name, overlaid);
        }
    }
}

/// An overlay holds everywhere or nowhere.
fn judge(overlay: &Overlay, sheets: &[Sheet<'_>]) -> Verdict {
    if !overlay.errors.is_empty() {
        return Verdict::Invalid(overlay.errors.join("; "));
    }
    match sheets.iter().find_map(|sheet| sheet.conflict(overlay)) {
        Some(conflict) => Verdict::Conflict(conflict),
        None => Verdict::Applied,
    }
}

/// Who was the last to say something, and with what weight.
type Last = (i32, Arc<str>);

/// The labels of an instance type's nodes, and what each of its offerings adds to them.
struct Offered {
    labels: Requirements,
    offerings: Vec<Requirements>,
}

impl Offered {
    fn of(kind: &InstanceType) -> Self {
        let offerings = kind.offerings.iter().map(|one| Requirements::from_written(&one.requirements));
        Self { labels: Requirements::from_written(&kind.requirements), offerings: offerings.collect() }
    }
}

/// One NodePool's instance types, and what is said of them.
struct Sheet<'a> {
    pool: &'a Pool,
    types: Types,
    offered: Arc<Vec<Offered>>,
    /// Labels of all nodes of the NodePool.
    common: Requirements,
    said: BTreeMap<usize, Said>,
}

/// Whether a label that all these speak of together may be as wanted; one that none speaks of is absent.
fn meets(sources: &[&Requirements], key: &str, wanted: &ValueSet) -> bool {
    let offered = sources
        .iter()
        .filter_map(|source| source.get(key))
        .fold(None, |all: Option<ValueSet>, set| Some(all.map_or_else(|| set.clone(), |all| all.intersection(set))));
    match offered {
        None => wanted.allows_absence(),
        Some(offered) => offered.has_intersection(wanted) || offered.allows_absence() && wanted.allows_absence(),
    }
}

/// What overlays say of one instance type. The first to say something wins: the heaviest comes first.
#[derive(Default)]
struct Said {
    prices: BTreeMap<usize, (PriceChange, Last)>,
    capacity: BTreeMap<ResourceName, (i64, Last)>,
}

impl<'a> Sheet<'a> {
    fn new(pool: &'a Pool, types: Types, offered: Arc<Vec<Offered>>) -> Self {
        let mut common = Requirements::from_labels(&pool.template.labels);
        common.add(&labels::NODEPOOL.into(), &ValueSet::of([pool.name.as_str()]));
        Self { pool, types, offered, common, said: BTreeMap::new() }
    }

    /// The types that an overlay selects, by number, each with the offerings that it selects: at least one.
    fn selected(&self, overlay: &Overlay) -> Vec<(usize, Vec<usize>)> {
        let wanted = Requirements::from_written(&overlay.requirements);
        let mut selected = Vec::new();
        for (at, kind) in self.offered.iter().enumerate() {
            if self.common.intersects(&wanted).is_err() || kind.labels.intersects(&wanted).is_err() {
                continue;
            }
            let fits = |offering: &Requirements| {
                wanted.iter().all(|(key, set)| meets(&[&self.common, &kind.labels, offering], key, set))
            };
            let offerings: Vec<usize> =
                kind.offerings.iter().enumerate().filter(|(_, one)| fits(one)).map(|(at, _)| at).collect();
            if !offerings.is_empty() {
                selected.push((at, offerings));
            }
        }
        selected
    }

    /// What another overlay of the same weight has said already.
    fn conflict(&self, overlay: &Overlay) -> Option<String> {
        for (at, offerings) in self.selected(overlay) {
            let Some(said) = self.said.get(&at) else { continue };
            let kind = &self.types[at];
            let same = |last: &Last| last.0 == overlay.weight;
            let rival = |what: String, last: &Last| {
                format!(
                    "{what} of instance type {} in NodePool {} is also set by NodeOverlay {}, which has the same weight; give \
                     them different weights, or requirements that do not meet",
                    kind.name, self.pool.name, last.1
                )
            };
            for offering in offerings.into_iter().filter(|_| overlay.price.is_some()) {
                if let Some((_, last)) = said.prices.get(&offering).filter(|(_, last)| same(last)) {
                    let offering = &kind.offerings[offering];
                    let place = [offering.zone(), offering.capacity_type()].into_iter().flatten();
                    let place: Vec<&str> = place.map(|value| &**value).collect();
                    return Some(rival(format!("the price ({})", place.join(", ")), last));
                }
            }
            for (name, _) in overlay.capacity.iter() {
                if let Some((_, last)) = said.capacity.get(name).filter(|(_, last)| same(last)) {
                    return Some(rival(format!("capacity {}", name.as_str()), last));
                }
            }
        }
        None
    }

    fn take_in(&mut self, overlay: &Overlay) {
        let last = (overlay.weight, Arc::clone(&overlay.name));
        for (at, offerings) in self.selected(overlay) {
            let said = self.said.entry(at).or_default();
            for (offering, price) in offerings.into_iter().filter_map(|at| Some((at, overlay.price?))) {
                said.prices.entry(offering).or_insert_with(|| (price, last.clone())).1 = last.clone();
            }
            for (name, milli) in overlay.capacity.iter() {
                said.capacity.entry(name.clone()).or_insert_with(|| (milli, last.clone())).1 = last.clone();
            }
        }
    }

    /// The list as it is now, where anything is said of it.
    fn changed(self) -> Option<(PoolName, Types, Overlaid)> {
        let mut overlaid = Overlaid::default();
        let mut types = Vec::clone(&self.types);
        for (at, said) in self.said {
            if said.prices.is_empty() && said.capacity.is_empty() {
                continue;
            }
            let mut kind = InstanceType::clone(&types[at]);
            for (offering, (price, _)) in &said.prices {
                let offering = &mut kind.offerings[*offering];
                offering.price = price.of(offering.price);
                overlaid.priced.insert(kind.name.clone());
            }
            for (name, (milli, _)) in said.capacity {
                kind.capacity.set(name, milli);
                overlaid.enlarged.insert(kind.name.clone());
            }
            types[at] = Arc::new(kind);
        }
        (overlaid != Overlaid::default()).then(|| (self.pool.name.clone(), Arc::new(types), overlaid))
    }
}

/// The status that a NodeOverlay ought to have, where it has another.
pub fn wanted(overlay: &Overlay, judgement: &Judgement, now: Timestamp) -> Option<OverlayStatusPatch> {
    if judgement.generation != overlay.generation {
        return None;
    }
    let mut conditions = Conditions::of(&overlay.conditions, &DEPENDENTS, overlay.generation, overlay.created, now);
    match &judgement.verdict {
        Verdict::Applied => conditions.set_true("ValidationSucceeded"),
        Verdict::Invalid(why) => conditions.set("ValidationSucceeded", Status::False, "RuntimeValidation", why),
        Verdict::Conflict(why) => conditions.set("ValidationSucceeded", Status::False, "Conflict", why),
    }
    let conditions = conditions.finish();
    (conditions != overlay.conditions)
        .then(|| OverlayStatusPatch { version: Some(Arc::clone(&overlay.version)), conditions })
}

#[cfg(test)]
#[path = "overlays_tests.rs"]
mod tests;
