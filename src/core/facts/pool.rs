//! NodePools as they were last seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::ids::{ClassRef, PoolName, PoolUid};
use crate::core::labels::Labels;
use crate::core::requirements::Requirement;
use crate::core::resources::Resources;

use super::{Condition, Status, Taint, condition};

/// A NodePool object.
#[derive(Clone, PartialEq, Debug)]
pub struct Pool {
    /// `metadata.name`.
    pub name: PoolName,
    /// `metadata.uid`.
    pub uid: PoolUid,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`.
    pub version: Arc<str>,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Timestamp>,
    /// `metadata.annotations` in Karpenter's domains.
    pub annotations: Labels,
    /// `spec.weight`; 0 when absent. Heavier pools are tried first; among equals the price decides.
    pub weight: i32,
    /// `spec.limits`; a resource that is not mentioned is not limited.
    pub limits: Resources,
    /// `spec.replicas`: a static pool, which takes no part in dynamic scheduling.
    pub replicas: Option<i64>,
    /// `spec.template`.
    pub template: Template,
    /// `spec.disruption`.
    pub disruption: Disruption,
    /// Hash of the template by Karpenter's recipe `v3`.
    pub hash: Arc<str>,
    /// What runtime validation found, one sentence each, field and remedy named; a pool with any is not used.
    pub errors: Vec<Arc<str>>,
    /// `status.nodes`.
    pub status_nodes: Option<i64>,
    /// `status.resources`.
    pub status_resources: Resources,
    /// `status.nodeClassObservedGeneration`.
    pub class_generation: Option<i64>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

impl Pool {
    /// Whether new nodes may be made from it, by its Ready condition.
    pub fn is_ready(&self) -> bool {
        self.deleting.is_none()
            && self.errors.is_empty()
            && condition::find(&self.conditions, "Ready")
                .is_some_and(|ready| ready.status == Status::True && ready.generation == self.generation)
    }

    /// Whether its NodeClass is of one of these kinds (group and kind), which a joiner looks after. Another is somebody else's.
    pub fn is_managed(&self, kinds: &[(&str, &str)]) -> bool {
        kinds.iter().any(|kind| self.template.class.is_of(*kind))
    }
}

/// `spec.template` of a NodePool: what its NodeClaims look like.
#[derive(Clone, PartialEq, Debug)]
pub struct Template {
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// `spec.requirements`.
    pub requirements: Vec<Requirement>,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.startupTaints`: pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// `spec.nodeClassRef`.
    pub class: ClassRef,
    /// `spec.terminationGracePeriod`.
    pub termination_grace: Option<Duration>,
    /// `spec.expireAfter`; nothing means never.
    pub expire_after: Option<Duration>,
}

/// `spec.disruption` of a NodePool.
#[derive(Clone, PartialEq, Debug)]
pub struct Disruption {
    /// How long a node stays after its last pod event; nothing means that it is never consolidated.
    pub consolidate_after: Option<Duration>,
    /// Which nodes may be consolidated.
    pub policy: ConsolidationPolicy,
    /// How many nodes may go at once.
    pub budgets: Vec<Budget>,
}

/// `spec.disruption.consolidationPolicy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConsolidationPolicy {
    /// Empty nodes only.
    WhenEmpty,
    /// Empty nodes, and nodes whose pods fit elsewhere at less cost.
    WhenEmptyOrUnderutilized,
    /// As before, weighing savings against disruption.
    Balanced,
}

/// One of `spec.disruption.budgets`, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// A count or a percentage.
    pub nodes: Arc<str>,
    /// Which reasons it bounds; nothing means all.
    pub reasons: Option<Vec<Arc<str>>>,
    /// Cron schedule (UTC) at which it becomes active; nothing means always.
    pub schedule: Option<Arc<str>>,
    /// How long it stays active.
    pub duration: Option<Duration>,
}
