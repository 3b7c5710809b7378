//! NodePools: what their nodes use, and the status that they ought to have.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::audit::Alarm;
use crate::core::conditions::Conditions;
use crate::core::facts::{Catalog, Claim, Condition, InstanceType, NodeClass, Pool, Snapshot, Status, find_condition};
use crate::core::health::{self, HEALTHY, Health};
use crate::core::ids::PoolName;
use crate::core::labels::{self, Labels};
use crate::core::resources::{ResourceName, Resources};
use crate::core::writes::{PoolPatch, PoolStatusPatch};

/// Dependents of a NodePool's `Ready`.
const DEPENDENTS: [&str; 2] = ["ValidationSucceeded", "NodeClassReady"];

/// Reason of a NodePool's condition `NodeClassReady` where its NodeClass is ready, and of no use to this NodePool.
const MISFIT: &str = "NodeClassDoesNotFit";

/// A condition of all NodePools while the auditor removes nothing, for want of trust in what it sees; otherwise it is not there. Karpenter has no
/// such thing. The machines in question may belong to no NodePool any more, but every NodePool has a stake in what happens to them.
const BREAKER: &str = "AuditBreakerOpen";

/// A NodePool that is not judged after this long is somebody else's, or cannot be written to.
const JUDGED_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// A change that a NodePool needs. One at a time: what it leads to is seen at the next look.
#[derive(Clone, PartialEq, Debug)]
pub enum Wanted {
    /// Hash annotations.
    Annotations(PoolPatch),
    /// Status.
    Status(Box<PoolStatusPatch>),
}

/// What the machines of each NodePool have, `nodes` included, those left out that are being deleted. A NodeClaim counts as its Node once that
/// is registered, and as what the cloud estimated before that and for what its Node has not reported until it is initialized.
pub fn usage(snapshot: &Snapshot) -> BTreeMap<PoolName, Resources> {
    let mut usage: BTreeMap<&Arc<str>, (Resources, i64)> = BTreeMap::new();
    for claim in snapshot.claims.values().filter(|claim| claim.deleting.is_none()) {
        let Some(pool) = claim.labels.get(labels::NODEPOOL) else { continue };
        let (used, nodes) = usage.entry(pool).or_default();
        match snapshot.node_of(claim).filter(|node| node.is_registered()) {
            None => used.add(&claim.capacity),
            Some(node) if node.is_initialized() => used.add(&node.capacity),
            Some(node) => {
                used.add(&node.capacity);
                let unreported = claim.capacity.iter().filter(|(name, _)| node.capacity.get(name) == 0);
                used.add(&unreported.map(|(name, milli)| (name.clone(), milli)).collect());
            }
        }
        // What is not launched is no node yet: attempts that fail would be counted one after the other.
        *nodes += if claim.provider_id.is_some() { 1000 } else { 0 };
    }
    let whole = |(pool, (used, nodes)): (&Arc<str>, (Resources, i64))| {
        (PoolName::from(Arc::clone(pool)), used.with("nodes", nodes))
    };
    usage.into_iter().map(whole).collect()
}

/// What the machines of each NodePool cost in USD per hour, by the labels of its NodeClaims. A machine whose offering is no longer in the
/// catalog counts nothing.
pub fn costs(snapshot: &Snapshot, catalog: &Catalog) -> BTreeMap<PoolName, f64> {
    let mut costs: BTreeMap<_, f64> = snapshot.pools.keys().map(|pool| (pool.clone(), 0.0)).collect();
    // Pools share their lists: each is indexed once.
    let mut indexes: BTreeMap<*const Vec<Arc<InstanceType>>, BTreeMap<&str, Vec<&InstanceType>>> = BTreeMap::new();
    for claim in snapshot.claims.values().filter(|claim| claim.provider_id.is_some()) {
        let Some(pool) = claim.pool() else { continue };
        let Some(list) = catalog.pools.get(&pool) else { continue };
        let index = indexes.entry(Arc::as_ptr(list)).or_insert_with(|| {
            let mut index: BTreeMap<&str, Vec<&InstanceType>> = BTreeMap::new();
            list.iter().for_each(|entry| index.entry(entry.name.as_str()).or_default().push(entry));
            index
        });
        let label = |key: &str| claim.labels.get(key);
        let price = label(labels::INSTANCE_TYPE).and_then(|name| index.get(&**name)).and_then(|sizes| {
            let matching = sizes.iter().flat_map(|size| &size.offerings).filter(|offering| {
                offering.zone() == label(labels::ZONE) && offering.capacity_type() == label(labels::CAPACITY_TYPE)
            });
            matching.map(|offering| offering.price).reduce(f64::min)
        });
        *costs.entry(pool).or_default() += price.unwrap_or_default();
    }
    costs
}

/// Whether every NodeClaim of a NodePool carries the current version of the hash recipe. Before that the NodePool keeps the old one, so that
/// none is compared by a recipe that it was not hashed by.
pub fn is_rehashed(pool: &Pool, snapshot: &Snapshot) -> bool {
    let current = |claim: &Claim| {
        claim.annotations.get(labels::NODEPOOL_HASH_VERSION).is_some_and(|version| &**version == labels::HASH_VERSION)
    };
    let mut claims = snapshot.claims.values().filter(|claim| claim.pool().as_ref() == Some(&pool.name));
    claims.all(|claim| current(claim) || claim.deleting.is_some() || claim.broken.is_some())
}

/// The NodeClass that a NodePool names.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// As it was seen.
    pub class: &'a NodeClass,
    /// Why the cloud can make no machine for this NodePool with it.
    pub misfit: Option<&'a str>,
}

/// The next change that brings a NodePool up to date; nothing when it is. `rehashed`: see [`is_rehashed`], which is asked only where it matters.
pub fn wanted(
    pool: &Pool,
    used: &Resources,
    backing: Option<Backing<'_>>,
    health: &Health,
    alarm: &Alarm,
    rehashed: impl FnOnce() -> bool,
    now: Timestamp,
) -> Option<Wanted> {
    let hash = [(labels::NODEPOOL_HASH, &*pool.hash), (labels::NODEPOOL_HASH_VERSION, labels::HASH_VERSION)];
    let stale = hash.iter().any(|(key, value)| pool.annotations.get(*key).is_none_or(|written| **written != **value));
    let same_recipe =
        pool.annotations.get(labels::NODEPOOL_HASH_VERSION).is_some_and(|version| &**version == labels::HASH_VERSION);
    if stale && pool.deleting.is_none() && !pool.hash.is_empty() && (same_recipe || rehashed()) {
        let annotations: Labels = hash.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        return Some(Wanted::Annotations(PoolPatch { annotations }));
    }
    let mut patch = PoolStatusPatch::default();
    let resources = with_zeros(used);
    let nodes = resources.get(&ResourceName::nodes()) / 1000;
    if pool.status_resources != resources {
        let written = pool.status_resources.iter().map(|(name, _)| name);
        patch.without_resources = written.filter(|name| resources.mentioned(name).is_none()).cloned().collect();
        patch.resources = Some(resources);
    }
    if pool.status_nodes != Some(nodes) {
        patch.nodes = Some(nodes);
    }
    let mut conditions = Conditions::of(&pool.conditions, &DEPENDENTS, pool.generation, pool.created, now);
    judge(pool, backing, &mut conditions);
    let class = backing.map(|backing| backing.class);
    if let Some(class) = class {
        judge_health(pool, class, health, &mut conditions);
    }
    match alarm {
        Alarm::Unknown => {}
        Alarm::Closed => conditions.clear(BREAKER),
        Alarm::Open { cause, message } => conditions.set(BREAKER, Status::True, &cause.to_string(), message),
    }
    let conditions = conditions.finish();
    if conditions != pool.conditions {
        patch.conditions = Some(conditions);
    }
    if let Some(class) = class
        && pool.class_generation != Some(class.generation)
    {
        patch.class_generation = Some(class.generation);
    }
    if patch == PoolStatusPatch::default() {
        return None;
    }
    patch.version = Some(Arc::clone(&pool.version));
    Some(Wanted::Status(Box::new(patch)))
}

fn judge(pool: &Pool, backing: Option<Backing<'_>>, conditions: &mut Conditions<'_>) {
    if pool.errors.is_empty() {
        conditions.set_true("ValidationSucceeded");
    } else {
        conditions.set("ValidationSucceeded", Status::False, "NodePoolValidationFailed", &pool.errors.join("; "));
    }
    let reference = &pool.template.class;
    let (status, reason, message) = match backing {
        None => (Status::False, "NodeClassNotFound", format!("{reference} not found on cluster")),
        Some(Backing { class, .. }) if class.deleting.is_some() => {
            (Status::False, "NodeClassTerminating", format!("{reference} is terminating"))
        }
        Some(Backing { class, misfit }) => match find_condition(&class.conditions, "Ready") {
            Some(ready) if ready.status == Status::True => {
                match misfit {
                    Some(why) => conditions.set("NodeClassReady", Status::False, MISFIT, why),
                    None => conditions.set_true("NodeClassReady"),
                }
                return;
            }
            Some(ready) if ready.status == Status::False => {
                conditions.set("NodeClassReady", Status::False, &ready.reason, &ready.message);
                return;
            }
            _ => (Status::False, "NodeClassReadinessUnknown", "Node Class Readiness Unknown".to_owned()),
        },
    };
    conditions.set("NodeClassReady", status, reason, &message);
}

/// Unknown until a machine has shown how it goes, after every edit anew.
fn judge_health(pool: &Pool, class: &NodeClass, health: &Health, conditions: &mut Conditions<'_>) {
    if health::is_outdated(pool, class) {
        conditions.set(HEALTHY, Status::Unknown, "AwaitingReconciliation", "object is awaiting reconciliation");
    } else if let Some((status, reason, message)) = health.verdict(conditions.get(HEALTHY).map(|known| known.status)) {
        conditions.set(HEALTHY, status, reason, message);
    }
}

/// Karpenter always lists the well-known resources and the number of nodes.
fn with_zeros(used: &Resources) -> Resources {
    let mut all = used.clone();
    for name in ["cpu", "memory", "pods", "ephemeral-storage", "nodes"].map(ResourceName::from) {
        if all.mentioned(&name).is_none() {
            all.set(name, 0);
        }
    }
    all
}

/// Whether a NodePool is so new that nobody has said yet whether it can be used: what is refused for it may not be refused in a moment.
pub fn is_unjudged(pool: &Pool, now: Timestamp) -> bool {
    let judged = find_condition(&pool.conditions, "Ready").is_some_and(|ready| ready.generation == pool.generation);
    pool.deleting.is_none() && !judged && now.duration_since(pool.created) < JUDGED_WITHIN
}

/// The conditions of a NodePool, and those that nobody has written yet as what they are then: Unknown since its creation.
pub fn conditions_of(pool: &Pool) -> Vec<Condition> {
    Conditions::of(&pool.conditions, &DEPENDENTS, pool.generation, pool.created, pool.created).as_they_are()
}

/// The NodePool as it would be judged if only this kept it from being used.
pub fn refused(pool: &Pool, misfit: &str) -> Pool {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, pool.generation, pool.created, pool.created);
    conditions.set_true("ValidationSucceeded");
    conditions.set("NodeClassReady", Status::False, MISFIT, misfit);
    Pool { conditions: conditions.finish(), ..pool.clone() }
}

/// Why a NodePool is not used, in a sentence.
pub fn why_not_ready(pool: &Pool) -> String {
    if pool.deleting.is_some() {
        return "being deleted".to_owned();
    }
    if let Some(error) = pool.errors.first() {
        return error.to_string();
    }
    match find_condition(&pool.conditions, "Ready") {
        None => "not judged yet".to_owned(),
        Some(ready) if ready.generation != pool.generation => "not judged since it was edited".to_owned(),
        Some(ready) => {
            let details = DEPENDENTS.iter().filter_map(|kind| find_condition(&pool.conditions, kind));
            let bad = details.filter(|condition| condition.status != Status::True);
            let texts: Vec<String> =
                bad.map(|c| format!("{} is {}: {}", c.kind, c.status.as_str(), c.message)).collect();
            let said = [&ready.message, &ready.reason].into_iter().find(|text| !text.is_empty());
            match said {
                _ if !texts.is_empty() => texts.join("; "),
                Some(text) => text.to_string(),
                None => "its condition Ready gives no reason".to_owned(),
            }
        }
    }
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
