//! Dashboards made for Karpenter 1.15 find what they look for.

use std::collections::BTreeSet;

use super::*;

/// Karpenter 1.15's families of everything that joiner does so far: name, type and labels, in upstream's grouping. Those of voluntary
/// disruption, repair, CapacityBuffers and pod deletion costs come with what they are about.
const KARPENTERS: &str = "
  # NodeClaims and Nodes
  karpenter_nodeclaims_created_total counter: reason nodepool min_values_relaxed
  karpenter_nodeclaims_terminated_total counter: nodepool capacity_type zone
  karpenter_nodeclaims_disrupted_total counter: reason nodepool capacity_type consolidation_policy termination_mode
  karpenter_nodeclaims_unhealthy_disrupted_total counter: condition nodepool capacity_type image_id termination_mode
  karpenter_pods_disruption_initiated_total counter: reason nodepool capacity_type consolidation_policy termination_mode
  karpenter_nodes_created_total counter: nodepool zone
  karpenter_nodes_terminated_total counter: nodepool zone
  karpenter_nodeclaims_instance_termination_duration_seconds histogram: nodepool
  karpenter_nodeclaims_termination_duration_seconds histogram: nodepool
  karpenter_nodes_termination_duration_seconds summary: nodepool
  karpenter_nodes_drained_total counter: nodepool
  karpenter_nodes_lifetime_duration_seconds histogram: nodepool
  karpenter_nodes_reboots_total counter: result
  karpenter_nodes_reboot_duration_seconds histogram: result
  karpenter_nodes_reboot_recovery_duration_seconds histogram:
  karpenter_nodes_allocatable gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_total_pod_requests gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_total_pod_limits gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_total_daemon_requests gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_total_daemon_limits gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_system_overhead gauge: resource_type node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_nodes_current_lifetime_seconds gauge: node_name phase managed nodepool zone region instance_type arch os capacity_type windows_build
  karpenter_cluster_utilization_percent gauge: resource_type
  # Pods
  karpenter_pods_state gauge: name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed
  karpenter_pods_startup_duration_seconds summary:
  karpenter_pods_unstarted_time_seconds gauge: name namespace
  karpenter_pods_bound_duration_seconds histogram: dynamic_resources
  karpenter_pods_unbound_time_seconds gauge: name namespace dynamic_resources
  karpenter_pods_provisioning_bound_duration_seconds histogram: dynamic_resources
  karpenter_pods_provisioning_unbound_time_seconds gauge: name namespace dynamic_resources
  karpenter_pods_provisioning_startup_duration_seconds histogram:
  karpenter_pods_provisioning_unstarted_time_seconds gauge: name namespace
  karpenter_pods_provisioning_scheduling_undecided_time_seconds gauge: name namespace
  karpenter_pods_scheduling_decision_duration_seconds histogram:
  karpenter_pods_eviction_requests_total counter: code
  karpenter_pods_drained_total counter: reason
  # Scheduling
  karpenter_scheduler_scheduling_duration_seconds histogram: controller
  karpenter_scheduler_queue_depth gauge: controller scheduling_id
  karpenter_scheduler_unfinished_work_seconds gauge: controller scheduling_id
  karpenter_scheduler_ignored_pods_count gauge:
  karpenter_scheduler_unschedulable_pods_count gauge: controller
  karpenter_scheduler_pending_pods_by_effective_zone_count gauge: controller zone
  karpenter_cluster_state_node_count gauge:
  karpenter_cluster_state_synced gauge:
  karpenter_cluster_state_unsynced_time_seconds gauge:
  # NodePools, clouds, the process
  karpenter_nodepools_limit gauge: resource_type nodepool
  karpenter_nodepools_usage gauge: resource_type nodepool
  karpenter_nodepools_cost_total gauge: nodepool
  karpenter_nodepools_allowed_disruptions gauge: nodepool reason
  karpenter_nodepools_nodes_consuming_budgets gauge: nodepool reason
  karpenter_cloudprovider_duration_seconds histogram: controller method provider
  karpenter_cloudprovider_errors_total counter: controller method provider error nodepool
  karpenter_build_info gauge: version goversion goarch commit
  # Conditions; series of NodeClaims carry their NodeClass and NodePool besides, those of Nodes `initialized` too
  operator_nodeclaim_status_condition_transition_seconds histogram: type status to_status
  operator_nodeclaim_status_condition_transitions_total counter: type status reason
  operator_nodeclaim_status_condition_count gauge: namespace name type status reason
  operator_nodeclaim_status_condition_current_status_seconds gauge: namespace name type status reason
  operator_nodeclaim_termination_current_time_seconds gauge: namespace name
  operator_nodeclaim_termination_duration_seconds histogram:
  operator_nodepool_status_condition_transition_seconds histogram: type status to_status
  operator_nodepool_status_condition_transitions_total counter: type status reason
  operator_nodepool_status_condition_count gauge: namespace name type status reason
  operator_nodepool_status_condition_current_status_seconds gauge: namespace name type status reason
  operator_nodepool_termination_current_time_seconds gauge: namespace name
  operator_nodepool_termination_duration_seconds histogram:
  operator_node_status_condition_transition_seconds histogram: type status to_status
  operator_node_status_condition_transitions_total counter: type status reason
  operator_node_status_condition_count gauge: namespace name type status reason
  operator_node_status_condition_current_status_seconds gauge: namespace name type status reason
  operator_node_termination_current_time_seconds gauge: namespace name
  operator_node_termination_duration_seconds histogram:
  # Deprecated
  operator_status_condition_transition_seconds histogram: type status to_status group kind
  operator_status_condition_transitions_total counter: type status reason group kind
  operator_status_condition_count gauge: namespace name type status reason group kind
  operator_status_condition_current_status_seconds gauge: namespace name type status reason group kind
  operator_termination_current_time_seconds gauge: namespace name group kind
  operator_termination_duration_seconds histogram: group kind
";

#[test]
fn names_types_and_labels_are_karpenters() {
    let mut checked = 0;
    for line in KARPENTERS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (head, labels) = line.split_once(':').unwrap();
        let (name, kind) = head.split_once(' ').unwrap();
        let family = FAMILIES.iter().find(|family| family.name == name);
        let family = family.unwrap_or_else(|| panic!("there is no {name}"));
        let own = match family.shape {
            Shape::Counter => "counter",
            Shape::Gauge => "gauge",
            Shape::Histogram(_) => "histogram",
            Shape::Summary => "summary",
        };
        assert_eq!(own, kind, "type of {name}");
        let labels: BTreeSet<&str> = labels.split_whitespace().collect();
        assert_eq!(family.labels.iter().copied().collect::<BTreeSet<_>>(), labels, "labels of {name}");
        checked += 1;
    }
    assert_eq!(checked, 77);
}

#[test]
fn there_is_no_family_of_karpenters_that_the_list_does_not_know() {
    // Names that its providers use, and not the core; the list is of the core.
    let of_providers = "karpenter_cloudprovider_instance_type_";
    let all: BTreeSet<&str> =
        KARPENTERS.lines().filter_map(|line| line.trim().split_once(' ')).map(|(n, _)| n).collect();
    for family in FAMILIES {
        let theirs = family.name.starts_with("karpenter_") || family.name.starts_with("operator_");
        if theirs && !family.name.starts_with(of_providers) {
            assert!(all.contains(family.name), "{} is not on the list", family.name);
        }
    }
}
