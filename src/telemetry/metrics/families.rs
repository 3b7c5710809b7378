//! Every metric family that joiner can show, on one page: name, kind, labels, help.
//!
//! Names, labels and buckets of the `karpenter_` and `operator_` families are Karpenter 1.15's, so that dashboards work; `joiner_` families
//! are our own. A gauge is sampled or set, see the functions that name it.

/// What kind of family it is, and how its values are grouped.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// Only rises.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values up to each of these bounds.
    Histogram(&'static [f64]),
    /// Quantiles over the last ten minutes, as upstream has them.
    Summary,
}

/// A family with `N` labels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Family<const N: usize> {
    pub(super) name: &'static str,
    pub(super) labels: [&'static str; N],
}

/// A family as documentation and the exporter need it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Described {
    /// Full name.
    pub name: &'static str,
    /// Kind, with buckets.
    pub shape: Shape,
    /// Labels that every series carries. Families about nodes and NodeClaims carry the cloud's own node labels in addition.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

macro_rules! families {
    ($($id:ident: $shape:expr, $name:expr, [$($label:literal),*], $help:expr;)*) => {
        $(pub(super) const $id: Family<{ <[&str]>::len(&[$($label),*]) }> = Family { name: $name, labels: [$($label),*] };)*

        /// Every family there is.
        pub const FAMILIES: &[Described] =
            &[$(Described { name: $name, shape: $shape, labels: &[$($label),*], help: $help }),*];
    };
}

/// Prometheus' own default buckets, in seconds; upstream's for calls to the cloud.
const DEFAULTS: Shape = Shape::Histogram(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
/// Karpenter's buckets for most durations, in seconds.
const DURATIONS: Shape = Shape::Histogram(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
]);
/// 1 to 1,024 seconds, doubling.
const TO_1024: Shape = Shape::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]);
/// Of reboots.
const TO_1280: Shape = Shape::Histogram(&[10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0]);
/// 1 to 2,048 seconds, doubling.
const TO_2048: Shape = Shape::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0]);
/// Half a second to 8,192 seconds, doubling: how long conditions last.
const CONDITIONS: Shape =
    Shape::Histogram(&[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0]);
/// 15 minutes to 30 days: how long nodes live, in seconds.
const LIFETIMES: Shape = Shape::Histogram(&[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14_400.0,
    21_600.0,
    28_800.0,
    36_000.0,
    43_200.0,
    57_600.0,
    72_000.0,
    86_400.0,
    172_800.0,
    259_200.0,
    432_000.0,
    864_000.0,
    1_296_000.0,
    1_728_000.0,
    2_160_000.0,
    2_592_000.0,
]);

use Shape::{Counter, Gauge, Summary};

families! {
    // NodeClaims
    NODECLAIMS_CREATED: Counter, "karpenter_nodeclaims_created_total", ["reason", "nodepool", "min_values_relaxed"],
        "NodeClaims created, by the reason for which they were wanted.";
    NODECLAIMS_TERMINATED: Counter, "karpenter_nodeclaims_terminated_total", ["nodepool", "capacity_type", "zone"],
        "NodeClaims whose finalizer was taken off.";
    NODECLAIMS_DISRUPTED: Counter, "karpenter_nodeclaims_disrupted_total",
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"],
        "NodeClaims whose removal joiner decided.";
    NODECLAIMS_UNHEALTHY: Counter, "karpenter_nodeclaims_unhealthy_disrupted_total",
        ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"],
        "NodeClaims removed because their node was broken, by the condition that said so.";
    PODS_DISRUPTION_INITIATED: Counter, "karpenter_pods_disruption_initiated_total",
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"],
        "Pods that have to move because joiner decided to remove their node.";
    NODECLAIMS_INSTANCE_TERMINATION: TO_1024, "karpenter_nodeclaims_instance_termination_duration_seconds", ["nodepool"],
        "Time from the order to end a machine until the cloud no longer knows it.";
    NODECLAIMS_TERMINATION: TO_2048, "karpenter_nodeclaims_termination_duration_seconds", ["nodepool"],
        "Time from the deletion of a NodeClaim until its finalizer was taken off.";

    // Nodes
    NODES_CREATED: Counter, "karpenter_nodes_created_total", ["nodepool", "zone"], "Nodes registered.";
    NODES_TERMINATED: Counter, "karpenter_nodes_terminated_total", ["nodepool", "zone"],
        "Nodes whose finalizer was taken off.";
    NODES_DRAINED: Counter, "karpenter_nodes_drained_total", ["nodepool"], "Nodes drained to the last pod.";
    NODES_TERMINATION: Summary, "karpenter_nodes_termination_duration_seconds", ["nodepool"],
        "Time from the deletion of a node until its finalizer was taken off.";
    NODES_LIFETIME: LIFETIMES, "karpenter_nodes_lifetime_duration_seconds", ["nodepool"],
        "Time from the creation of a node until its end.";
    NODES_REBOOTS: Counter, "karpenter_nodes_reboots_total", ["result"], "Reboots that have ended.";
    NODES_REBOOT_DURATION: TO_1280, "karpenter_nodes_reboot_duration_seconds", ["result"],
        "Time from the request of a reboot until its end.";
    NODES_REBOOT_RECOVERY: TO_1280, "karpenter_nodes_reboot_recovery_duration_seconds", [],
        "Time from the order to restart a machine until its node was back.";
    NODES_ALLOCATABLE: Gauge, "karpenter_nodes_allocatable",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What pods may use of a node.";
    NODES_POD_REQUESTS: Gauge, "karpenter_nodes_total_pod_requests",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What the pods on a node ask for, those of DaemonSets included.";
    NODES_POD_LIMITS: Gauge, "karpenter_nodes_total_pod_limits",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What the pods on a node may use at most, those of DaemonSets included.";
    NODES_DAEMON_REQUESTS: Gauge, "karpenter_nodes_total_daemon_requests",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What the pods of DaemonSets on a node ask for.";
    NODES_DAEMON_LIMITS: Gauge, "karpenter_nodes_total_daemon_limits",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What the pods of DaemonSets on a node may use at most.";
    NODES_OVERHEAD: Gauge, "karpenter_nodes_system_overhead",
        ["resource_type", "node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os",
         "capacity_type", "windows_build"],
        "What the system keeps of a node: capacity less allocatable.";
    NODES_CURRENT_LIFETIME: Gauge, "karpenter_nodes_current_lifetime_seconds",
        ["node_name", "phase", "managed", "nodepool", "zone", "region", "instance_type", "arch", "os", "capacity_type",
         "windows_build"],
        "Age of a node.";
    CLUSTER_UTILIZATION: Gauge, "karpenter_cluster_utilization_percent", ["resource_type"],
        "What all pods ask for, as a percentage of what all nodes offer.";

    // Pods
    PODS_STATE: Gauge, "karpenter_pods_state",
        ["name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type",
         "phase", "ready", "managed"],
        "One series per pod, always 1; `owner` is the path of its first owner.";
    PODS_UNBOUND: Gauge, "karpenter_pods_unbound_time_seconds", ["name", "namespace", "dynamic_resources"],
        "How long a pod has waited for a node.";
    PODS_UNSTARTED: Gauge, "karpenter_pods_unstarted_time_seconds", ["name", "namespace"],
        "How long a pod has waited to be ready.";
    PODS_STARTUP: Summary, "karpenter_pods_startup_duration_seconds", [],
        "Time from the creation of a pod until it was ready.";
    PODS_BOUND: DURATIONS, "karpenter_pods_bound_duration_seconds", ["dynamic_resources"],
        "Time from the creation of a pod until it was bound.";
    PODS_PROVISIONING_UNBOUND: Gauge, "karpenter_pods_provisioning_unbound_time_seconds",
        ["name", "namespace", "dynamic_resources"],
        "How long a pod has waited for a node since a plan has a place for it.";
    PODS_PROVISIONING_BOUND: DURATIONS, "karpenter_pods_provisioning_bound_duration_seconds", ["dynamic_resources"],
        "Time from the plan that had a place for a pod until it was bound.";
    PODS_PROVISIONING_UNSTARTED: Gauge, "karpenter_pods_provisioning_unstarted_time_seconds", ["name", "namespace"],
        "How long a pod has waited to be ready since a plan has a place for it.";
    PODS_PROVISIONING_STARTUP: DURATIONS, "karpenter_pods_provisioning_startup_duration_seconds", [],
        "Time from the plan that had a place for a pod until it was ready.";
    PODS_UNDECIDED: Gauge, "karpenter_pods_provisioning_scheduling_undecided_time_seconds", ["name", "namespace"],
        "How long a pod has waited for a plan to decide about it.";
    PODS_DECISION: DURATIONS, "karpenter_pods_scheduling_decision_duration_seconds", [],
        "Time from the first sight of a pod that needs a node until a plan decided about it.";
    PODS_EVICTIONS: Counter, "karpenter_pods_eviction_requests_total", ["code"],
        "Requests to evict a pod, by HTTP status code.";
    PODS_DRAINED: Counter, "karpenter_pods_drained_total", ["reason"], "Pods removed from nodes that were drained.";

    // Scheduling
    SCHEDULING_DURATION: DURATIONS, "karpenter_scheduler_scheduling_duration_seconds", ["controller"],
        "Duration of a solve.";
    SCHEDULER_QUEUE: Gauge, "karpenter_scheduler_queue_depth", ["controller", "scheduling_id"],
        "Pods that the solve under way has to place, and those that the last one could not.";
    SCHEDULER_UNFINISHED: Gauge, "karpenter_scheduler_unfinished_work_seconds", ["controller", "scheduling_id"],
        "For how long the solve under way has been working.";
    SCHEDULER_IGNORED: Gauge, "karpenter_scheduler_ignored_pods_count", [],
        "Pods that the last solve left out because they cannot be understood.";
    SCHEDULER_ZONES: Gauge, "karpenter_scheduler_pending_pods_by_effective_zone_count", ["controller", "zone"],
        "Pods of the last solve by the zone that they are confined to: its name, `flexible` for several, or `none`.";
    SCHEDULER_UNSCHEDULABLE: Gauge, "karpenter_scheduler_unschedulable_pods_count", ["controller"],
        "Pods for which the last solve found no place.";

    // NodePools
    NODEPOOLS_LIMIT: Gauge, "karpenter_nodepools_limit", ["resource_type", "nodepool"], "Limits of a NodePool.";
    NODEPOOLS_USAGE: Gauge, "karpenter_nodepools_usage", ["resource_type", "nodepool"],
        "Resources that a NodePool has provisioned.";
    NODEPOOLS_COST: Gauge, "karpenter_nodepools_cost_total", ["nodepool"],
        "Price of a NodePool's machines, in USD per hour.";
    NODEPOOLS_ALLOWED: Gauge, "karpenter_nodepools_allowed_disruptions", ["nodepool", "reason"],
        "Nodes of a NodePool that its budgets let be missing for a reason now, those that are missing already included; 2147483647 when none bounds them.";
    NODEPOOLS_CONSUMING: Gauge, "karpenter_nodepools_nodes_consuming_budgets", ["nodepool", "reason"],
        "Nodes of a NodePool that leave, restart or are not ready, and are charged to its budgets for a reason.";

    // Cluster state
    STATE_NODES: Gauge, "karpenter_cluster_state_node_count", [], "Nodes known.";
    STATE_SYNCED: Gauge, "karpenter_cluster_state_synced", [], "1 when every kind of object has been listed.";
    STATE_UNSYNCED: Gauge, "karpenter_cluster_state_unsynced_time_seconds", [],
        "For how long not every kind of object has been listed.";

    // Clouds
    CLOUD_DURATION: DEFAULTS, "karpenter_cloudprovider_duration_seconds", ["controller", "method", "provider"],
        "Duration of calls to the cloud.";
    CLOUD_ERRORS: Counter, "karpenter_cloudprovider_errors_total",
        ["controller", "method", "provider", "error", "nodepool"], "Calls to the cloud that failed.";
    CLOUD_CPU: Gauge, "karpenter_cloudprovider_instance_type_cpu_cores", ["instance_type"],
        "CPU cores of an instance type.";
    CLOUD_MEMORY: Gauge, "karpenter_cloudprovider_instance_type_memory_bytes", ["instance_type"],
        "Memory of an instance type.";
    CLOUD_AVAILABLE: Gauge, "karpenter_cloudprovider_instance_type_offering_available",
        ["instance_type", "capacity_type", "zone"], "1 when an offering can be had, as far as is known.";
    CLOUD_PRICE: Gauge, "karpenter_cloudprovider_instance_type_offering_price_estimate",
        ["instance_type", "capacity_type", "zone"], "Price of an offering, in USD per hour.";

    // Conditions, as operatorpkg counts them
    NODECLAIM_TRANSITION_SECONDS: CONDITIONS, "operator_nodeclaim_status_condition_transition_seconds",
        ["type", "status", "to_status"], "How long a NodeClaim's condition had the status that it left.";
    NODECLAIM_TRANSITIONS: Counter, "operator_nodeclaim_status_condition_transitions_total",
        ["type", "status", "reason"], "Conditions of NodeClaims that entered a status.";
    NODEPOOL_TRANSITION_SECONDS: CONDITIONS, "operator_nodepool_status_condition_transition_seconds",
        ["type", "status", "to_status"], "How long a NodePool's condition had the status that it left.";
    NODEPOOL_TRANSITIONS: Counter, "operator_nodepool_status_condition_transitions_total",
        ["type", "status", "reason"], "Conditions of NodePools that entered a status.";
    NODE_TRANSITION_SECONDS: CONDITIONS, "operator_node_status_condition_transition_seconds",
        ["type", "status", "to_status"], "How long a Node's condition had the status that it left.";
    NODE_TRANSITIONS: Counter, "operator_node_status_condition_transitions_total",
        ["type", "status", "reason"], "Conditions of Nodes that entered a status.";
    NODECLAIM_CONDITIONS: Gauge, "operator_nodeclaim_status_condition_count",
        ["namespace", "name", "type", "status", "reason"], "One series per condition of a NodeClaim, always 1.";
    NODEPOOL_CONDITIONS: Gauge, "operator_nodepool_status_condition_count",
        ["namespace", "name", "type", "status", "reason"], "One series per condition of a NodePool, always 1.";
    NODE_CONDITIONS: Gauge, "operator_node_status_condition_count",
        ["namespace", "name", "type", "status", "reason"], "One series per condition of a Node, always 1.";
    NODECLAIM_CONDITION_SECONDS: Gauge, "operator_nodeclaim_status_condition_current_status_seconds",
        ["namespace", "name", "type", "status", "reason"], "For how long a NodeClaim's condition has had its status.";
    NODEPOOL_CONDITION_SECONDS: Gauge, "operator_nodepool_status_condition_current_status_seconds",
        ["namespace", "name", "type", "status", "reason"], "For how long a NodePool's condition has had its status.";
    NODE_CONDITION_SECONDS: Gauge, "operator_node_status_condition_current_status_seconds",
        ["namespace", "name", "type", "status", "reason"], "For how long a Node's condition has had its status.";
    NODECLAIM_TERMINATING: Gauge, "operator_nodeclaim_termination_current_time_seconds", ["namespace", "name"],
        "For how long a NodeClaim has been terminating.";
    NODEPOOL_TERMINATING: Gauge, "operator_nodepool_termination_current_time_seconds", ["namespace", "name"],
        "For how long a NodePool has been terminating.";
    NODE_TERMINATING: Gauge, "operator_node_termination_current_time_seconds", ["namespace", "name"],
        "For how long a Node has been terminating.";
    NODECLAIM_TERMINATED: CONDITIONS, "operator_nodeclaim_termination_duration_seconds", [],
        "How long the termination of a NodeClaim took.";
    NODEPOOL_TERMINATED: CONDITIONS, "operator_nodepool_termination_duration_seconds", [],
        "How long the termination of a NodePool took.";
    NODE_TERMINATED: CONDITIONS, "operator_node_termination_duration_seconds", [],
        "How long the termination of a Node took.";

    // The same of NodeClaims and NodePools under the names of old, which dashboards in the field still use
    OLD_TRANSITION_SECONDS: DEFAULTS, "operator_status_condition_transition_seconds",
        ["type", "status", "to_status", "group", "kind"],
        "Deprecated: how long a condition had the status that it left.";
    OLD_TRANSITIONS: Counter, "operator_status_condition_transitions_total",
        ["type", "status", "reason", "group", "kind"], "Deprecated: conditions that entered a status.";
    OLD_CONDITIONS: Gauge, "operator_status_condition_count",
        ["namespace", "name", "type", "status", "reason", "group", "kind"],
        "Deprecated: one series per condition, always 1.";
    OLD_CONDITION_SECONDS: Gauge, "operator_status_condition_current_status_seconds",
        ["namespace", "name", "type", "status", "reason", "group", "kind"],
        "Deprecated: for how long a condition has had its status.";
    OLD_TERMINATING: Gauge, "operator_termination_current_time_seconds", ["namespace", "name", "group", "kind"],
        "Deprecated: for how long an object has been terminating.";
    OLD_TERMINATED: DEFAULTS, "operator_termination_duration_seconds", ["group", "kind"],
        "Deprecated: how long the termination of an object took.";

    // Leadership
    LEADER: Gauge, "leader_election_master_status", ["name"], "1 when this process holds the lease.";

    BUILD: Gauge, "karpenter_build_info", ["version", "goversion", "goarch", "commit"],
        "Always 1; `version` is joiner's, `goversion` names the language.";

    // Our own
    API_REQUESTS: Counter, "joiner_api_requests_total", ["verb", "resource"], "Requests to the API server.";
    ACTORS: Gauge, "joiner_actors", ["actor"], "Live actors, by kind.";
    ACTOR_MESSAGES: Counter, "joiner_actor_messages_total", ["actor"], "Messages handled by live actors, by kind.";
    ACTOR_DROPPED: Counter, "joiner_actor_messages_dropped_total", ["actor"],
        "Messages that had nobody to go to, by kind.";
    ACTOR_FOLDED: Counter, "joiner_actor_messages_folded_total", ["actor"],
        "Nudges that said what another said that waited already, by kind.";
    ACTOR_BUSY: Counter, "joiner_actor_busy_seconds_total", ["actor"], "Time spent in handlers, by kind.";
    ACTOR_MAILBOX: Gauge, "joiner_actor_mailbox_depth", ["actor"], "Messages waiting in mailboxes, by kind.";
    ACTOR_MAILBOX_MAX: Gauge, "joiner_actor_mailbox_depth_max", ["actor"],
        "Messages waiting in the fullest mailbox of a kind.";
    ACTOR_RESTARTS: Counter, "joiner_actor_restarts_total", ["actor"], "Actors that failed and were started again.";
    OPERATIONS: Gauge, "joiner_operations_under_way", [], "Calls to the API server and the cloud that have not ended.";
    OUTCOMES_UNKNOWN: Counter, "joiner_cloud_outcomes_unknown_total", ["method"],
        "Calls to the cloud of which nobody knows whether they took effect.";
    PLANS: Counter, "joiner_plans_total", [], "Plans made by the provisioner.";
    PLAN_PRICE: Gauge, "joiner_plan_price_dollars", [], "Price of the last plan's machines, in USD per hour.";
    PLAN_BOUND: Gauge, "joiner_plan_lower_bound_dollars", [], "What no plan that places the same pods as the last one that bought nodes is cheaper than, in USD per hour.";
    PLAN_CLAIMS: Gauge, "joiner_plan_claims", [], "NodeClaims in the last plan.";
    PLAN_PODS: Gauge, "joiner_plan_pods", ["outcome"], "Pods in the last plan, by what was decided.";
    PODS_LANDED: Counter, "joiner_pods_bound_total", ["place"],
        "Planned pods that were bound: where they were planned, or elsewhere. Pods of one shape are interchangeable.";
    EVICTIONS_BLOCKED: Gauge, "joiner_evictions_blocked", ["namespace", "budget"],
        "Pods that a PodDisruptionBudget keeps on nodes that are to go. `budget` names several when they protect the same pods, and is empty when nobody knows.";
    EVICTIONS_BLOCKED_SECONDS: Gauge, "joiner_evictions_blocked_seconds", ["namespace", "budget"],
        "For how long the first of these pods has been kept.";
    NOMINATIONS: Counter, "joiner_nominations_total", ["result"], "Nominations of pods to nodes.";
    ORPHANS: Counter, "joiner_orphans_found_total", ["kind"], "Machines, NodeClaims and Nodes that lacked their counterpart.";

    AUDIT_BREAKER: Gauge, "joiner_audit_breaker_open", [],
        "1 when so much looks orphaned at once that nothing is removed before a person has decided.";

    PROMISES_BROKEN: Counter, "joiner_promises_broken_total", ["promise"],
        "How often joiner has seen by itself that it did not keep a promise; 0 for each that it can watch.";

    // The process, under the names that Go programs use
    PROCESS_CPU: Counter, "process_cpu_seconds_total", [], "Total user and system CPU time spent in seconds.";
    PROCESS_RESIDENT: Gauge, "process_resident_memory_bytes", [], "Resident memory size in bytes.";
    PROCESS_VIRTUAL: Gauge, "process_virtual_memory_bytes", [], "Virtual memory size in bytes.";
    PROCESS_START: Gauge, "process_start_time_seconds", [], "Start time of the process since unix epoch in seconds.";
    PROCESS_FDS: Gauge, "process_open_fds", [], "Number of open file descriptors.";
    PROCESS_MAX_FDS: Gauge, "process_max_fds", [], "Maximum number of open file descriptors.";
    PROCESS_THREADS: Gauge, "process_threads", [], "Number of threads.";
    HEAP_LIVE: Gauge, "go_gc_heap_live_bytes", [],
        "Live bytes of the allocator, under the name by which Karpenter's performance suite asks for them.";
}

#[cfg(test)]
#[path = "families_tests.rs"]
mod tests;
