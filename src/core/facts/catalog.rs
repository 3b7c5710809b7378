//! The catalog: instance types with their offerings and prices, for each NodePool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::ids::{ClassRef, InstanceTypeName, PoolName};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::{ResourceName, Resources};

use super::{Judgement, Overlaid};

/// Where and how an instance type can be had, and at what price.
#[derive(Clone, PartialEq, Debug)]
pub struct Offering {
    /// Zone and capacity type at least, each `In` one value; a cloud may add keys of its own.
    pub requirements: Vec<Requirement>,
    /// Price in USD per hour.
    pub price: f64,
    /// Whether it can be had now, as far as is known.
    pub available: bool,
    /// For reserved capacity: how many machines of this cluster the reservation has room for in all. NodeClaims that are in it already
    /// are among them; the solver counts those.
    pub reservation_capacity: Option<u32>,
}

impl Offering {
    /// The one value that it states for a key.
    pub fn value(&self, key: &str) -> Option<&Arc<str>> {
        self.requirements
            .iter()
            .find(|r| &*r.key == key && r.operator == Operator::In && r.values.len() == 1)
            .and_then(|r| r.values.first())
    }

    /// Its zone, or nothing for a cloud without zones.
    pub fn zone(&self) -> Option<&Arc<str>> {
        self.value(labels::ZONE)
    }

    /// Its capacity type.
    pub fn capacity_type(&self) -> Option<&Arc<str>> {
        self.value(labels::CAPACITY_TYPE)
    }

    /// Whether it was paid for beforehand.
    pub fn is_reserved(&self) -> bool {
        self.capacity_type().is_some_and(|kind| &**kind == labels::RESERVED)
    }

    /// For reserved capacity: the label that names the reservation, and its name.
    pub fn reservation(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        let named = self.requirements.iter().find(|r| labels::is_reservation_id(&r.key))?;
        Some((&named.key, self.value(&named.key).filter(|_| self.is_reserved())?))
    }
}

/// A kind of machine that a cloud sells. Where offerings of a type differ in what their machines have, a list has it once for each such difference,
/// under one name.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceType {
    /// The cloud's name of it.
    pub name: InstanceTypeName,
    /// What its nodes' labels will be: instance type, architecture, operating systems, and the cloud's own keys.
    pub requirements: Vec<Requirement>,
    /// What the machine has.
    pub capacity: Resources,
    /// What the system keeps of it; capacity less this is allocatable.
    pub overhead: Resources,
    /// How many volumes of each CSI driver a fresh machine can hold, as far as the cloud knows; others are taken as unlimited until the
    /// node's CSINode tells.
    pub attach_limits: BTreeMap<Arc<str>, u32>,
    /// Where and how it can be had.
    pub offerings: Vec<Offering>,
}

impl InstanceType {
    /// What pods may use of it: capacity less overhead, never below zero. Huge pages are set aside at boot: they are not memory any more.
    pub fn allocatable(&self) -> Resources {
        let huge = |name: &ResourceName| name.as_str().starts_with("hugepages-");
        let set_aside = self.capacity.iter().filter(|(name, _)| huge(name)).map(|(_, milli)| milli);
        let set_aside = set_aside.fold(0, i64::saturating_add);
        let kept = |name: &ResourceName| {
            let pages = if *name == ResourceName::Memory { set_aside } else { 0 };
            self.overhead.get(name).saturating_add(pages)
        };
        self.capacity.iter().map(|(name, milli)| (name.clone(), milli.saturating_sub(kept(name)).max(0))).collect()
    }
}

/// What can be bought now, by NodePool. Pools of one NodeClass share one list.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Rises with every change, so that a reader can tell whether what it derived is still good.
    pub epoch: u64,
    /// Instance types of each NodeClass, as `pools` has them.
    pub classes: BTreeMap<ClassRef, Arc<Vec<Arc<InstanceType>>>>,
    /// NodeClasses of whose lists something may be missing that is sold all the same, as not all could be read that they depend on.
    pub partial: BTreeSet<ClassRef>,
    /// Instance types in the cloud's order; sold-out offerings are there with `available` false.
    pub pools: BTreeMap<PoolName, Arc<Vec<Arc<InstanceType>>>>,
    /// What became of each NodeOverlay.
    pub overlays: BTreeMap<Arc<str>, Judgement>,
    /// Where NodeOverlays have changed something in `pools`.
    pub overlaid: BTreeMap<PoolName, Overlaid>,
}

impl Catalog {
    /// Everything that is sold with a NodeClass; nothing as long as that is not certain.
    pub fn whole(&self, class: &ClassRef) -> Option<&[Arc<InstanceType>]> {
        self.classes.get(class).filter(|_| !self.partial.contains(class)).map(|types| types.as_slice())
    }

    /// The annotations of a NodeClaim that may become one of these instance types: which kinds of NodeOverlay had a say.
    pub fn overlay_marks<'a>(
        &self,
        pool: &PoolName,
        names: &(impl Iterator<Item = &'a InstanceTypeName> + Clone),
    ) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        let of = |changed: &BTreeSet<InstanceTypeName>| names.clone().any(|name| changed.contains(name));
        let overlaid = self.overlaid.get(pool);
        let priced = overlaid.is_some_and(|overlaid| of(&overlaid.priced)).then_some(labels::PRICE_OVERLAY_APPLIED);
        let enlarged =
            overlaid.is_some_and(|overlaid| of(&overlaid.enlarged)).then_some(labels::CAPACITY_OVERLAY_APPLIED);
        priced.into_iter().chain(enlarged).map(|key| (key.into(), "true".into()))
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
