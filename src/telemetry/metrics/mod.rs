//! Metrics: every family on one page ([`FAMILIES`]), typed functions to record them, and the text that Prometheus reads.
//!
//! Two kinds of figure. What *happens* (counters, durations) is recorded when it happens. What *is* (gauges over pods, nodes, actors, the
//! process) is sampled when `/metrics` is read. In between stand a few gauges that an actor sets and forgets.

mod claims;
mod cluster;
mod conditions;
mod costs;
mod families;
mod labels;
mod pods;
mod process;
mod registry;
mod runtime;
mod samples;
mod scheduling;

#[cfg(test)]
mod tests;

pub use claims::{
    claim_created, claim_disrupted, claim_terminated, claim_unhealthy, instance_terminated, node_created, node_drained,
    node_terminated, reboot_ended, reboot_recovered,
};
pub use cluster::{sample_budgets, sample_nodes, sample_pods, sample_pools};
pub use conditions::{
    claim_condition_changed, node_condition_changed, pool_condition_changed, pool_terminated, sample_conditions,
};
pub use costs::{sample_catalog, sample_costs};
pub use families::{Described, FAMILIES, Shape};
pub use labels::{
    CloudCall, CloudFailure, CreatedFor, DisruptedFor, NominationResult, OrphanKind, RebootResult, TerminationMode,
    policy_word,
};
pub use pods::{eviction_requested, evictions_blocked, pod_decided, pod_drained, pod_reached};
pub use process::sample_process;
pub use registry::{Error, Exporter};
pub use runtime::{
    ActorFigures, audit_breaker, cloud_called, cloud_outcome_unknown, cluster_synced, leading, orphan_found,
};
pub use samples::Samples;
pub use scheduling::{
    nominated, nothing_to_schedule, plan_bounded, plan_made, pods_by_zone, pods_landed, scheduled, scheduling,
    scheduling_left,
};
