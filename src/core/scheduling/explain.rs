//! Why a pod was refused: asked once per class, after the last round, so that it costs nothing while pods are placed.

use std::sync::Arc;

use crate::core::facts::PodShape;
use crate::core::ids::PoolName;
use crate::core::labels;
use crate::core::requirements::Requirements;

use super::algebra::ProfileId;
use super::between::ties;
use super::classes::{Class, Variant};
use super::reason::Reason;
use super::solve::Run;

/// What stands between a pod and a pool.
struct Verdict {
    obstacles: Vec<Reason>,
    /// The labels of the pool's nodes, had the pod given up what the pool lacks of them.
    profile: ProfileId,
}

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
            return vec![Reason::Contradiction { key: self.key_name(key) }];
        }
        if let Some(fault) = class.needs.as_ref().and_then(|needs| needs.fault.as_ref()) {
            return vec![Reason::Volume(fault.clone())];
        }
        if let Some(key) = class.elsewhere {
            return vec![Reason::VolumesElsewhere { key: self.key_name(key) }];
        }
        let mut reasons = self.world.unusable.clone();
        reasons.extend(self.closed_pools());
        // Where there are pools, each of them says for itself why it cannot be used.
        if self.world.pools.is_empty() && reasons.is_empty() {
            reasons.push(Reason::NoPools);
        }
        // The last variant has no wishes left; earlier ones differ by alternatives of the required node affinity.
        let Some(bare) = class.variants.last() else { return reasons };
        for variant in class.variants.iter().filter(|v| same_wishes(v, bare)) {
            self.explain_pools(class, variant, &mut reasons);
        }
        // Whoever names NodePools is not to hear of others.
        let named = |reason: &Reason| reason.pool().is_none_or(|pool| names_pool(&class.shape, pool));
        if reasons.iter().any(|reason| reason.pool().is_some() && named(reason)) {
            reasons.retain(named);
        }
        super::facts::smallest(reasons)
    }

    /// Pools that get no nodes for any pod.
    fn closed_pools(&self) -> Vec<Reason> {
        let closed = |pool: &Arc<crate::core::facts::Pool>| {
            let name = pool.name.clone();
            match (pool.deleting, pool.replicas) {
                (Some(_), _) => Some(Reason::PoolDeleting { pool: name }),
                (None, Some(_)) => Some(Reason::PoolStatic { pool: name }),
                (None, None) => None,
            }
        };
        self.world.problem.snapshot.pools.values().filter_map(closed).collect()
    }

    fn explain_pools(&mut self, class: &Class, variant: &Variant, reasons: &mut Vec<Reason>) {
        let mut verdicts: Vec<Verdict> = Vec::new();
        for pool in 0..self.world.pools.len() {
            let (obstacles, profile) = self.obstacles(class, variant, pool);
            verdicts.push(Verdict { obstacles, profile });
        }
        self.behind_reserved(&mut verdicts);
        let open: Vec<usize> = (0..verdicts.len()).filter(|at| verdicts[*at].obstacles.is_empty()).collect();
        let nowhere = self.wants(class, variant).is_none();
        // Where no pool is open, the constraints between pods alone matter on nodes that are there only.
        let mut between = Vec::new();
        if !open.is_empty() || verdicts.is_empty() && nowhere {
            between = self.explain_between(class, variant, &open);
        } else if nowhere || verdicts.is_empty() {
            between = self.explain_between_on_nodes(class, variant);
        }
        let ties = self.ties_that_stay(variant, &ties(class, variant));
        for (pool, Verdict { mut obstacles, profile }) in verdicts.into_iter().enumerate() {
            let name = self.world.pools[pool].fact.name.clone();
            if obstacles.is_empty() {
                reasons.push(Reason::Topology { pool: name });
                continue;
            }
            let in_the_way = self.in_the_way(class, variant, &ties, profile);
            if !in_the_way.is_empty() && !matches!(obstacles[..], [Reason::AfterReserved { .. }]) {
                if between.is_empty() {
                    obstacles.extend(in_the_way.into_iter().map(|tie| self.between(class, variant, tie)));
                } else {
                    obstacles.push(Reason::Topology { pool: name.clone() });
                }
            }
            reasons.push(together(name, obstacles));
        }
        reasons.extend(between);
    }

    /// While a pod waits for reserved capacity of a pool, those that come after it are not asked.
    fn behind_reserved(&self, verdicts: &mut [Verdict]) {
        let waits = |verdict: &Verdict| matches!(verdict.obstacles[..], [Reason::ReservedInUse { .. }]);
        let first = verdicts.iter().position(waits).filter(|_| self.world.problem.settings.wait_for_reserved);
        let Some(first) = first else { return };
        let name = |at: usize| self.world.pools[at].fact.name.clone();
        for (at, verdict) in verdicts.iter_mut().enumerate().skip(first + 1) {
            if verdict.obstacles.is_empty() {
                verdict.obstacles.push(Reason::AfterReserved { pool: name(at), first: name(first) });
            }
        }
    }
}

/// One reason for a pool; the parts of one that has several leave its name to it.
fn together(pool: PoolName, mut all: Vec<Reason>) -> Reason {
    if all.len() == 1 {
        return all.remove(0);
    }
    for reason in &mut all {
        if let Some(pool) = reason.pool_mut() {
            *pool = "".into();
        }
    }
    Reason::Several { pool, all }
}

/// Whether node selector and required node affinity of a pod leave it a NodePool.
fn names_pool(shape: &PodShape, pool: &PoolName) -> bool {
    let selector = Requirements::from_labels(&shape.node_selector);
    let has = |own: &Requirements| own.get(labels::NODEPOOL).is_none_or(|set| set.has(pool.as_str()));
    let required = &shape.node_affinity.required;
    has(&selector) && (required.is_empty() || required.iter().any(|term| has(&Requirements::from_written(term))))
}

/// Whether two variants differ by their term only.
fn same_wishes(a: &Variant, b: &Variant) -> bool {
    a.spreads.len() == b.spreads.len()
        && a.affinities.len() == b.affinities.len()
        && a.apart.len() == b.apart.len()
        && a.ignore_soft_taints == b.ignore_soft_taints
}
