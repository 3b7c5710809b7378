//! Static NodePools (`spec.replicas`): how many NodeClaims they lack, which ones are too many, and what new ones look like.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Claim, ClaimDraft, Owner, Pod, Pool, Snapshot};
use crate::core::ids::{ClaimName, PoolName};
use crate::core::labels::{self, Labels};
use crate::core::lifecycle::is_protected;
use crate::core::requirements::{Requirements, ValueSet};
use crate::core::resources::ResourceName;

/// What was ordered and does not show in the snapshot yet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ordered {
    /// NodeClaims that are being created or were created, and their NodePools.
    pub coming: BTreeMap<ClaimName, PoolName>,
    /// NodeClaims that are being deleted or were.
    pub going: BTreeSet<ClaimName>,
}

/// The NodeClaims of a NodePool by what becomes of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// They stay, or are on their way.
    pub active: i64,
    /// They serve until their replacements do: a disruption has chosen them.
    pub leaving: i64,
    /// They are being deleted.
    pub deleting: i64,
}

/// What a static NodePool needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing: it is dynamic, cannot be used, or has what it asks for.
    Nothing,
    /// NodeClaims.
    More {
        /// So many are to be created.
        create: i64,
        /// So many it would need besides, which `limits.nodes` forbids for now.
        held_back: i64,
    },
    /// These NodeClaims are to go: those that are missed least first.
    Fewer(Vec<ClaimName>),
}

/// Counts the NodeClaims of a NodePool.
pub fn census(snapshot: &Snapshot, pool: &PoolName, ordered: &Ordered) -> Census {
    let mut census = Census::default();
    for claim in claims_of(snapshot, pool) {
        if claim.deleting.is_some() || ordered.going.contains(&claim.name) {
            census.deleting += 1;
        } else if is_leaving(claim) {
            census.leaving += 1;
        } else {
            census.active += 1;
        }
    }
    let unseen = |(name, of): &(&ClaimName, &PoolName)| *of == pool && !snapshot.claims.contains_key(*name);
    let coming = ordered.coming.iter().filter(unseen).count();
    census.active += i64::try_from(coming).unwrap_or(i64::MAX);
    census
}

/// What a NodePool needs now.
///
/// NodeClaims that a disruption has chosen count as there, because the disruption replaces them; they are not in the way of a scale-down,
/// which counts only what stays. So the two never work against each other.
pub fn need(snapshot: &Snapshot, pool: &Pool, ordered: &Ordered, now: Timestamp) -> Need {
    let Some(replicas) = pool.replicas.filter(|_| pool.deleting.is_none()) else { return Need::Nothing };
    let census = census(snapshot, &pool.name, ordered);
    let excess = census.active - replicas;
    if excess > 0 {
        return Need::Fewer(least_missed(snapshot, pool, ordered, usize::try_from(excess).unwrap_or(0), now));
    }
    let missing = replicas - census.active - census.leaving;
    if missing <= 0 || !pool.is_ready() {
        return Need::Nothing;
    }
    let all = census.active + census.leaving + census.deleting;
    let room = pool.limits.mentioned(&ResourceName::nodes()).map_or(i64::MAX, |milli| milli.div_euclid(1000) - all);
    let create = missing.min(room.max(0));
    Need::More { create, held_back: missing - create }
}

fn claims_of<'a>(snapshot: &'a Snapshot, pool: &'a PoolName) -> impl Iterator<Item = &'a Arc<Claim>> {
    let of = |claim: &Claim| claim.labels.get(labels::NODEPOOL).is_some_and(|name| **name == *pool.as_str());
    snapshot.claims.values().filter(move |claim| of(claim))
}

/// Whether a disruption has chosen it.
fn is_leaving(claim: &Claim) -> bool {
    claim.is("DisruptionReason")
}

/// How much a NodeClaim would be missed; the order of the variants is the order of going.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Missed {
    /// It has no machine yet.
    Unlaunched,
    /// Nothing runs there but what follows the node.
    Empty,
    /// Pods have to move, at this cost.
    Serving { protected: bool, cost: f64 },
}

/// So many NodeClaims of those that stay; of equals the youngest, then by name.
fn least_missed(snapshot: &Snapshot, pool: &Pool, ordered: &Ordered, count: usize, now: Timestamp) -> Vec<ClaimName> {
    let stays =
        |claim: &&Arc<Claim>| claim.deleting.is_none() && !ordered.going.contains(&claim.name) && !is_leaving(claim);
    let mut all: Vec<(Missed, &Arc<Claim>)> =
        claims_of(snapshot, &pool.name).filter(stays).map(|claim| (missed(snapshot, claim, now), claim)).collect();
    all.sort_by(|(a, one), (b, other)| {
        let by_loss = a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
        by_loss.then_with(|| other.created.cmp(&one.created)).then_with(|| one.name.cmp(&other.name))
    });
    all.into_iter().take(count).map(|(_, claim)| claim.name.clone()).collect()
}

fn missed(snapshot: &Snapshot, claim: &Claim, now: Timestamp) -> Missed {
    if claim.provider_id.is_none() {
        return Missed::Unlaunched;
    }
    let pods: Vec<&Arc<Pod>> =
        snapshot.node_of(claim).into_iter().flat_map(|node| snapshot.pods_on(&node.name)).collect();
    let protected = pods.iter().any(|pod| is_protected(pod, now));
    let moving: Vec<_> = pods.iter().filter(|pod| !matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node)).collect();
    if moving.is_empty() && !protected {
        return Missed::Empty;
    }
    let cost: f64 = moving.iter().map(|pod| eviction_cost(pod)).sum();
    Missed::Serving { protected, cost: cost * life_left(claim, now) }
}

/// What it costs to evict a pod: 1, and more or less by its priority, between -10 and 10 (Karpenter: priority / 2^25).
fn eviction_cost(pod: &Pod) -> f64 {
    (1.0 + f64::from(pod.shape.priority) / f64::from(1 << 25)).clamp(-10.0, 10.0)
}

/// The share of its life that a node still has before it: one that expires soon is missed less.
fn life_left(claim: &Claim, now: Timestamp) -> f64 {
    let Some(life) = claim.expire_after.filter(|life| !life.is_zero()) else { return 1.0 };
    let age = now.duration_since(claim.created).as_secs_f64();
    ((life.as_secs_f64() - age) / life.as_secs_f64()).clamp(0.0, 1.0)
}

/// A NodeClaim straight from the template: which machine it becomes is left open. `open` says of a key that machines state it themselves;
/// every other required label gets one value, always the same.
pub fn draft(pool: &Pool, name: ClaimName, open: impl Fn(&str) -> bool) -> ClaimDraft {
    let template = &pool.template;
    let mut required = Requirements::from_written(&template.requirements);
    required.add_all(&Requirements::from_labels(&template.labels));
    required.add(&labels::NODEPOOL.into(), &ValueSet::of([pool.name.as_str()]));
    required.add(&template.class.label().into(), &ValueSet::of([Arc::clone(&template.class.name)]));
    let mut labels = template.labels.clone();
    let chosen = required.iter().filter(|(key, set)| !open(key) && !set.allows_absence());
    labels.extend(chosen.filter_map(|(key, set)| Some((Arc::clone(key), set.concrete()?))).collect::<Labels>());
    labels.insert(labels::NODEPOOL.into(), pool.name.as_str().into());
    labels.insert(template.class.label().into(), Arc::clone(&template.class.name));
    let mut annotations = template.annotations.clone();
    annotations.insert(labels::NODEPOOL_HASH.into(), Arc::clone(&pool.hash));
    annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), labels::HASH_VERSION.into());
    ClaimDraft {
        name,
        pool: pool.name.clone(),
        pool_uid: pool.uid.clone(),
        labels: Arc::new(labels),
        annotations: Arc::new(annotations),
        requirements: required.to_written().into(),
        requests: crate::core::resources::Resources::new(),
        taints: template.taints.clone(),
        startup_taints: template.startup_taints.clone(),
        class: template.class.clone(),
        termination_grace: template.termination_grace,
        expire_after: template.expire_after,
    }
}

#[cfg(test)]
#[path = "statics_tests.rs"]
mod tests;
