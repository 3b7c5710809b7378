//! What a NodePool's limits take from the instance types of a planned NodeClaim.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::answer::types_of;
use super::explain::Case;
use crate::core::facts::InstanceType;
use crate::core::ids::NodeName;
use crate::core::pools;
use crate::core::resources::Resources;
use crate::core::scheduling::{PlannedClaim, amount_text};

/// What is left of the limits for one NodeClaim.
pub(super) struct Limits {
    /// Of each resource that is limited, besides what is there and what other NodeClaims of the plan may take.
    left: Resources,
    /// What the cheapest type of the NodeClaim has of them.
    cheapest: Resources,
}

impl Limits {
    /// Those of the NodePool of a NodeClaim, if it has any.
    pub(super) fn of(case: &Case<'_>, claim: &PlannedClaim) -> Option<Self> {
        let pool = case.snapshot.pools.get(&claim.draft.pool).filter(|pool| !pool.limits.is_empty())?;
        let one = Resources::new().with("nodes", 1000);
        let mut used = pools::usage(case.snapshot).remove(&pool.name).unwrap_or_default();
        let snapshot = case.snapshot;
        let owned: BTreeSet<&NodeName> =
            snapshot.claims.values().filter_map(|claim| snapshot.node_of(claim)).map(|node| &node.name).collect();
        let alone = snapshot.nodes.values().filter(|node| node.deleting.is_none() && !owned.contains(&node.name));
        for node in alone.filter(|node| node.pool().as_ref() == Some(&pool.name)) {
            used.add(&node.capacity);
            used.add(&one);
        }
        let others = case.plan.claims.iter().filter(|other| other.draft.pool == pool.name);
        for other in others.filter(|other| other.draft.name != claim.draft.name) {
            // The cloud may choose any of its types.
            let mut most = one.clone();
            types_of(case.catalog, other).for_each(|kind| most.raise(&kind.capacity));
            used.add(&most);
        }
        let left = pool.limits.iter().map(|(name, limit)| (name.clone(), limit.saturating_sub(used.get(name)).max(0)));
        let cheapest = types_of(case.catalog, claim).next().map(|kind| kind.capacity.clone()).unwrap_or_default();
        Some(Self { left: left.collect(), cheapest })
    }

    /// Why an instance type is none of the NodeClaim's, if limits are why.
    pub(super) fn exclude(&self, kind: &InstanceType) -> Option<String> {
        let (name, left) = self.left.iter().find(|(name, left)| kind.capacity.get(name) > *left)?;
        let has = amount_text(name, kind.capacity.get(name));
        Some(format!("too large for spec.limits of the NodePool: it has {has}, {} are left", amount_text(name, left)))
    }

    /// What is left, and what that takes from `others`: types that would hold the pods, and are none of the NodeClaim's.
    pub(super) fn sentence<'a>(&self, others: impl Iterator<Item = &'a Arc<InstanceType>>) -> String {
        let (mut beyond, mut larger) = (BTreeSet::new(), BTreeSet::new());
        for kind in others {
            let takes_more = |(name, _): (_, i64)| kind.capacity.get(name) > self.cheapest.get(name);
            if self.exclude(kind).is_some() {
                beyond.insert(&kind.name);
            } else if self.left.iter().any(takes_more) {
                larger.insert(&kind.name);
            }
        }
        let left: Vec<String> = self.left.iter().map(|(name, milli)| amount_text(name, milli)).collect();
        let mut parts = vec![format!("spec.limits of the NodePool leave {} for it", left.join(", "))];
        if !beyond.is_empty() {
            parts.push(format!("{} types that would hold the pods have more", beyond.len()));
        }
        if !larger.is_empty() {
            parts.push(format!(
                "{} types that would hold the pods are not listed, as they take more of the limits than the cheapest: of a NodeClaim its largest type counts",
                larger.len()
            ));
        }
        parts.join("; ")
    }
}
