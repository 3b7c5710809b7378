//! NodeOverlays as they were last seen, and what became of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::ids::InstanceTypeName;
use crate::core::requirements::Requirement;
use crate::core::resources::Resources;

use super::Condition;

/// A NodeOverlay object.
#[derive(Clone, PartialEq, Debug)]
pub struct Overlay {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`.
    pub version: Arc<str>,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `spec.weight`; 0 when absent. Heavier ones win.
    pub weight: i32,
    /// `spec.requirements`: which instance types and offerings are meant.
    pub requirements: Vec<Requirement>,
    /// `spec.price` or `spec.priceAdjustment`.
    pub price: Option<PriceChange>,
    /// `spec.capacity`: what nodes have beyond what the cloud says.
    pub capacity: Resources,
    /// What is wrong with it, one sentence each, field and remedy named; one with any is not applied.
    pub errors: Vec<Arc<str>>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// What happens to a price, in USD per hour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PriceChange {
    /// It is this one.
    To(f64),
    /// This is added.
    By(f64),
    /// So many percent of it are added.
    Percent(f64),
}

impl PriceChange {
    /// The new price; never below zero.
    pub fn of(self, price: f64) -> f64 {
        let changed = match self {
            Self::To(price) => price,
            Self::By(amount) => price + amount,
            Self::Percent(share) => price * (1.0 + share / 100.0),
        };
        changed.max(0.0)
    }
}

/// What became of one version of a NodeOverlay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The version's `metadata.generation`.
    pub generation: i64,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a NodeOverlay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is applied, wherever its requirements are met.
    Applied,
    /// It is wrong in itself.
    Invalid(String),
    /// Another of the same weight says something of the same offering or resource: one sentence, with the remedy.
    Conflict(String),
}

/// The instance types of one NodePool that are not as the cloud says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overlaid {
    /// Types of which an offering has another price.
    pub priced: BTreeSet<InstanceTypeName>,
    /// Types that have more resources.
    pub enlarged: BTreeSet<InstanceTypeName>,
}
