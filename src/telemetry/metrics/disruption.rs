//! What voluntary disruption looks at and decides.

use std::time::Duration;

use crate::core::ids::PoolName;

use super::families as f;
use super::labels::{ConsolidationType, Decision, DisruptedFor};
use super::registry::{count, forget_all, observe, set, took};

/// A disruption method has looked at the cluster.
pub fn disruption_evaluated(reason: DisruptedFor, search: ConsolidationType, duration: Duration) {
    took(&f::DISRUPTION_EVALUATION, &[reason.as_str(), search.as_str()], duration);
}

/// A command was started that touches nodes of `pools`, each named once.
pub fn disruption_decided(decision: Decision, reason: DisruptedFor, search: ConsolidationType, pools: &[PoolName]) {
    count(&f::DISRUPTION_DECISIONS, &[decision.as_str(), reason.as_str(), search.as_str()], 1);
    for pool in pools {
        let labels = [pool.as_str(), decision.as_str(), reason.as_str(), search.as_str()];
        count(&f::DISRUPTION_DECISIONS_BY_POOL, &labels, 1);
    }
}

/// A command deletes before it replaces, because (`no-reserved-capacity`, `static-at-limit`).
pub fn terminated_first(pool: &PoolName, reason: DisruptedFor, because: &'static str) {
    count(&f::DISRUPTION_TERMINATE_FIRST, &[pool.as_str(), reason.as_str(), because], 1);
}

/// So many nodes may be considered by a method.
pub fn eligible_nodes(reason: DisruptedFor, nodes: usize) {
    set(&f::DISRUPTION_ELIGIBLE, &[reason.as_str()], nodes as f64);
}

/// A search for consolidation ran out of time.
pub fn consolidation_timed_out(search: ConsolidationType) {
    count(&f::CONSOLIDATION_TIMEOUTS, &[search.as_str()], 1);
}

/// A command was dropped, because the cluster had changed while it waited.
pub fn disruption_validation_failed(search: ConsolidationType) {
    count(&f::DISRUPTION_FAILED_VALIDATIONS, &[search.as_str()], 1);
}

/// So many replacements of a command did not come up.
pub fn disruption_queue_failed(decision: Decision, reason: DisruptedFor, search: ConsolidationType, replacements: u64) {
    let labels = [decision.as_str(), reason.as_str(), search.as_str()];
    count(&f::DISRUPTION_QUEUE_FAILURES, &labels, replacements);
}

/// A move was judged under balanced consolidation.
pub fn consolidation_moved(approved: bool, pool: &PoolName, score: f64) {
    let labels = [if approved { "approved" } else { "rejected" }, pool.as_str(), "Balanced"];
    count(&f::CONSOLIDATION_MOVES, &labels, 1);
    observe(&f::CONSOLIDATION_SCORE, &labels, score);
}

/// What a NodePool's budgets allow for a reason, and how many nodes count against them.
pub fn allowed_disruptions(pool: &PoolName, reason: DisruptedFor, allowed: u64, consuming: u64) {
    set(&f::NODEPOOLS_ALLOWED, &[pool.as_str(), reason.as_str()], allowed as f64);
    set(&f::NODEPOOLS_CONSUMING, &[pool.as_str(), reason.as_str()], consuming as f64);
}

/// A NodePool is no more.
pub fn forget_pool_budgets(pool: &PoolName) {
    forget_all(&f::NODEPOOLS_ALLOWED, pool.as_str());
    forget_all(&f::NODEPOOLS_CONSUMING, pool.as_str());
}
