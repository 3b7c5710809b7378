//! Metrics: every family on one page ([`FAMILIES`]), typed functions to record them, and the text that Prometheus reads.
//!
//! Two kinds of figure. What *happens* (counters, durations) is recorded when it happens. What *is* (gauges over pods, nodes, actors, the
//! process) is sampled when `/metrics` is read. In between stand a few gauges that an actor sets and forgets.

mod claims;
mod cluster;
mod costs;
mod disruption;
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
    claim_created, claim_disrupted, claim_terminated, instance_terminated, node_created, node_drained, node_rebooted,
    node_terminated, unhealthy_disrupted,
};
pub use cluster::{sample_conditions, sample_nodes, sample_pods, sample_pools};
pub use costs::{sample_catalog, sample_costs};
pub use disruption::{
    allowed_disruptions, consolidation_moved, consolidation_timed_out, disruption_decided, disruption_evaluated,
    disruption_queue_failed, disruption_validation_failed, eligible_nodes, forget_pool_budgets, terminated_first,
};
pub use families::{Described, FAMILIES, Shape};
pub use labels::{
    ApiVerb, CloudCall, CloudFailure, ConsolidationType, CreatedFor, Decision, DisruptedFor, NominationResult,
    ObjectKind, OrphanKind, RebootResult, TerminationMode, policy_word,
};
pub use pods::{eviction_requested, pod_bound, pod_drained, pod_started};
pub use process::sample_process;
pub use registry::{Error, Exporter};
pub use runtime::{
    ActorFigures, BuildInfo, api_request, cloud_called, cloud_outcome_unknown, cluster_synced, condition_changed,
    leading, orphan_found, pool_terminated,
};
pub use samples::Samples;
pub use scheduling::{
    UnderWay, nominated, plan_made, pods_by_zone, pods_ignored, pods_unschedulable, scheduled, scheduling_decided,
};
