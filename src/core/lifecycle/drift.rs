//! Drift: whether a machine still is what its NodePool, its NodeClass and the cloud's catalog ask for. It only says so; replacing is a
//! disruption.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, InstanceType, Offering, Pool, Status, find_condition};
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Requirement, Requirements, ValueSet};
use crate::core::time::later;

use super::Situation;

/// The condition that says it.
pub(super) const DRIFTED: &str = "Drifted";
/// Static fields of the NodePool's template have changed.
const POOL: &str = "NodePoolDrifted";
/// The NodePool's requirements no longer admit the NodeClaim's labels.
const REQUIREMENTS: &str = "RequirementsDrifted";
/// The cloud no longer sells this instance type here.
const TYPE: &str = "InstanceTypeNotFound";
/// Younger NodeClaims are not compared with the catalog: it may be older than their launch (Karpenter's value).
const SETTLED: SignedDuration = SignedDuration::from_hours(1);
/// Pause before a question to the cloud that failed is asked again.
const RETRY: Duration = Duration::from_mins(1);

/// What the cloud said of drift when it was last asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CloudDrift {
    /// When it was asked.
    pub asked: Option<Timestamp>,
    /// Generation of the NodeClass, and when its conditions last changed: another one is asked about anew.
    pub class: Option<(i64, Option<Timestamp>)>,
    /// Its last answer: drifted for this reason, or not; nothing when it has not answered.
    pub answer: Option<Option<Arc<str>>>,
    /// Whether the last question failed.
    pub failed: bool,
}

/// What the condition ought to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Judgement {
    /// True, for this reason.
    Drifted(Arc<str>),
    /// Absent.
    Fine,
    /// As it is: nothing can be said.
    Open,
}

/// Compares the NodeClaim with what it was made from; the first difference counts.
pub(super) fn judge(situation: &Situation<'_>) -> Judgement {
    let claim = situation.claim;
    if claim.deleting.is_some() {
        return Judgement::Open;
    }
    // A NodePool that is gone or cannot be understood is nothing to be compared with.
    let Some(pool) = situation.pool.filter(|pool| pool.errors.is_empty()) else { return Judgement::Open };
    if !situation.has("Launched", Status::True) {
        return Judgement::Fine;
    }
    if let Some(reason) = difference(situation, pool) {
        return Judgement::Drifted(reason.into());
    }
    // While hashes are written anew by another recipe, what has drifted has drifted.
    let recipe = |annotations: &Labels| annotations.get(labels::NODEPOOL_HASH_VERSION).cloned();
    let known = find_condition(&claim.conditions, DRIFTED);
    if known.is_some_and(|known| &*known.reason == POOL) && recipe(&claim.annotations) != recipe(&pool.annotations) {
        return Judgement::Open;
    }
    match &situation.memory.drift.answer {
        Some(Some(reason)) => Judgement::Drifted(Arc::clone(reason)),
        Some(None) => Judgement::Fine,
        // What an earlier life of this actor heard from the cloud holds until the cloud is heard again.
        None => match find_condition(&claim.conditions, DRIFTED) {
            Some(drifted) if ![POOL, REQUIREMENTS, TYPE].contains(&&*drifted.reason) => Judgement::Open,
            _ => Judgement::Fine,
        },
    }
}

/// When the cloud is to be asked (again), if at all: when its last answer is `every` old, at once when the NodeClass has changed, and only
/// when nothing else has been found.
pub(super) fn ask_at(situation: &Situation<'_>) -> Option<Timestamp> {
    let claim = situation.claim;
    let class = situation.class?;
    let pool = situation.pool.filter(|pool| pool.errors.is_empty())?;
    let settled = claim.deleting.is_none() && claim.provider_id.is_some() && situation.has("Launched", Status::True);
    if !settled || difference(situation, pool).is_some() {
        return None;
    }
    let drift = &situation.memory.drift;
    let Some(asked) = drift.asked else { return Some(situation.now) };
    if drift.failed {
        return Some(later(asked, RETRY));
    }
    if drift.class != Some(class_version(class)) {
        return Some(situation.now);
    }
    situation.drift_every.map(|every| later(asked, every))
}

/// What tells one edit of a NodeClass from the next: its generation, and when its status last changed its mind.
pub fn class_version(class: &crate::core::facts::NodeClass) -> (i64, Option<Timestamp>) {
    (class.generation, class.conditions.iter().map(|condition| condition.since).max())
}

/// When the catalog will be looked at, if not yet.
pub(super) fn catalog_at(situation: &Situation<'_>) -> Option<Timestamp> {
    let at = situation.claim.created.saturating_add(SETTLED).unwrap_or(Timestamp::MAX);
    (situation.claim.deleting.is_none() && situation.pool.is_some() && at > situation.now).then_some(at)
}

/// The first difference from what it was made from; worked out once for a situation, as its labels make a set of requirements each time.
fn difference(situation: &Situation<'_>, pool: &Pool) -> Option<&'static str> {
    let found = || by_pool(situation.claim, pool).or_else(|| by_catalog(situation));
    *situation.difference.get_or_init(found)
}

fn by_pool(claim: &Claim, pool: &Pool) -> Option<&'static str> {
    if hash_differs(&claim.annotations, &pool.annotations) {
        return Some(POOL);
    }
    let asks = Requirements::from_written(&pool.template.requirements);
    (!asks.admits(&claim.labels)).then_some(REQUIREMENTS)
}

/// Hashes of different versions do not compare; those that are written count, and none is worked out anew.
fn hash_differs(claim: &Labels, pool: &Labels) -> bool {
    let both = |key: &str| claim.get(key).zip(pool.get(key));
    both(labels::NODEPOOL_HASH_VERSION).is_some_and(|(ours, theirs)| ours == theirs)
        && both(labels::NODEPOOL_HASH).is_some_and(|(ours, theirs)| ours != theirs)
}

/// Whether the instance type, or every offering of it that suits the labels, has left the catalog. Sold out is not gone; and a catalog
/// without a single type says more about the catalog than about the machines.
fn by_catalog(situation: &Situation<'_>) -> Option<&'static str> {
    let types = situation.types.filter(|types| !types.is_empty())?;
    let claim = situation.claim;
    if situation.now.duration_since(claim.created) < SETTLED {
        return None;
    }
    let sold = claim.labels.get(labels::INSTANCE_TYPE).is_some_and(|name| {
        types.iter().filter(|kind| *kind.name.as_str() == **name).any(|kind| is_sold(kind, &claim.labels))
    });
    (!sold).then_some(TYPE)
}

fn is_sold(kind: &InstanceType, labels: &Labels) -> bool {
    let reserved = labels.get(labels::CAPACITY_TYPE).is_some_and(|word| &**word == labels::RESERVED);
    let admits = |requirement: &Requirement| {
        let set = ValueSet::from_written(requirement);
        match labels::normalized(&requirement.key) {
            // A machine of a reservation that has ended goes on as one on demand; what the reservation was called does not matter.
            labels::CAPACITY_TYPE if reserved => set.has(labels::RESERVED) || set.has(labels::ON_DEMAND),
            key if reserved && key != labels::ZONE => true,
            key => labels::value(labels, key).is_none_or(|value| set.has(value)),
        }
    };
    // Most offerings are of other zones, which shows before anything else of them is looked at.
    let zone = labels.get(labels::ZONE);
    let is_here = |offering: &Offering| offering.zone().is_none() || zone.is_none() || offering.zone() == zone;
    kind.offerings.iter().any(|offering| is_here(offering) && offering.requirements.iter().all(admits))
}

/// How often a cloud is asked about drift that may come about outside of the cluster (Karpenter's value).
pub const EVERY: Duration = Duration::from_mins(5);

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;
