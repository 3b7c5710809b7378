//! The behaviours that Karpenter's own suites hold its solver to, one test each: given, when, then.
//!
//! A file per theme; its first lines say which of those suites it answers, and where a behaviour is tested that is not in it. Where joiner
//! differs on purpose the test shows joiner's behaviour and says so; the README's table of differences has the reason.
//!
//! | Karpenter's suite | here | elsewhere |
//! |---|---|---|
//! | requirements | | `core/requirements/tests.rs`, `core/requirements/table_tests.rs`, `core/labels_tests.rs` |
//! | taints, ports, pods, resources | [`taints`], [`packing`] | `cluster/convert/tests.rs`, `core/facts/catalog_tests.rs`, `core/resources_tests.rs` |
//! | constraints | [`constraints`], [`custom`] | |
//! | preference fallback | [`fallback`] | |
//! | instance type compatibility | [`kinds`] | |
//! | bin packing | [`packing`] | `price.rs` |
//! | in-flight nodes | [`underway`] | `kept.rs` |
//! | existing nodes | [`existing`] | |
//! | volumes | [`volumes`] | `volumes.rs`, `core/scheduling/volumes_tests.rs` |
//! | deleting nodes | [`leaving`] | `core/leaving_tests.rs`, `tests/features/leaving.rs` |
//! | metrics of solves | | `zones.rs`, `telemetry/metrics/tests.rs`, `sim/rehearsal_tests.rs` |
//! | reserved capacity | [`reserved`] | `reserved.rs` |
//! | offering overrides, devices | [`devices`] | `tests/features/overlays.rs` |
//! | default constraints | | `defaults.rs`, `cluster/convert/group_tests.rs`, `config/tests.rs` |
//! | instance selection, `minValues` | [`selection`] | `min_values.rs` |
//! | buffers | | `core/buffers_tests.rs`, `tests/features/buffers.rs` |
//! | static NodePools | | `core/statics_tests.rs`, `tests/features/statics.rs` |
//! | topology: spread | [`spread`], [`spread_policies`], [`spread_many`], [`nameless`] | `topology.rs` |
//! | topology: affinity | [`affinity`], [`anti_affinity`] | `topology.rs` |
//! | provisioner | [`pools`], [`daemons`], [`daemons_elsewhere`], [`claims`] | `basics.rs` |
//! | cluster state | | `core/facts/order_tests.rs`, `core/facts/fold_tests.rs`; costs: `telemetry/metrics/costs_tests.rs`; predictions of VerticalPodAutoscalers: none, Karpenter 1.15 makes none either |
//!
//! Where most is tested elsewhere, behaviour by behaviour:
//!
//! | behaviour | test |
//! |---|---|
//! | **deleting nodes**: pods get capacity of the same size | `pods_of_a_leaving_node_get_a_node_of_the_same_size`, `their_nodes_are_bought_while_they_still_run_and_once` |
//! | not for pods that end, nor DaemonSet pods; for ending StatefulSet pods | `the_successor_of_a_pod_that_ends_waits_by_itself_but_for_a_stateful_set`, `pods_that_go_with_the_node_need_no_other_place` |
//! | not when a budget lets nobody go, or two match | `a_budget_that_lets_nobody_go_keeps_its_pods`, `two_budgets_over_one_pod_keep_it`, `nothing_is_bought_for_pods_that_*` |
//! | **metrics**: queue depth during a solve; unschedulable count | `a_solve_shows_while_it_works_and_what_it_left` |
//! | durations of solves; decision latency once per pod; 10 of 15 | `solves_and_what_they_refuse_are_measured` |
//! | effective zones | `zones.rs` |
//! | **reserved capacity**: 3 pods, 2 reservations (in one pass) | `each_reservation_is_used_once_and_then_capacity_is_bought` |
//! | shared by two pools; ids of their own | `pools_share_a_reservation_and_the_smaller_size_counts`, `pools_with_reservations_of_their_own_use_both_at_once` |
//! | two reservations of one type, 4 pods | `two_reservations_of_one_type_hold_what_they_hold` |
//! | no lighter pool while the heavier one's are in use | `when_all_is_in_use_pods_wait_or_go_to_a_lighter_pool` |
//! | preferences while reservations are in use (differs) | `a_wish_does_not_keep_a_pod_from_a_reservation_that_is_free`, `who_asks_for_reserved_capacity_waits_and_who_prefers_it_does_not` |
//! | two affine pods on one reserved node | `pods_that_belong_together_share_a_reserved_node` |
//! | full reservations, strict and fallback | `a_full_reservation_beside_other_capacity_is_held_by_nobody`, `who_asks_for_a_full_reservation_waits_and_gets_no_other_machine`, `a_disruption_does_not_wait_for_a_full_reservation` |
//! | a pod that would drop the reservation | `a_pod_that_would_cost_a_node_its_reservation_goes_elsewhere` |
//! | the manager's counts (there is none: a NodeClaim holds one or none) | `no_plan_takes_more_than_there_is_or_promises_what_it_does_not_keep`, `nodeclaims_that_are_there_use_what_they_name` |
//! | **default constraints**: zones, hosts; no configuration | `pods_of_a_controller_are_spread_over_zones_and_hosts` |
//! | own constraint; neither owner nor Service | `own_constraints_and_loneliness_keep_defaults_away` |
//! | minDomains; DoNotSchedule blocks, ScheduleAnyway relaxes | `what_cannot_be_met_stays_out_or_is_given_up` |
//! | pods that are there count | `pods_that_run_already_are_counted` |
//! | workloads and revisions apart; Jobs with a Service | `workloads_are_spread_by_themselves`, `revisions_are_spread_by_themselves`, `pods_of_a_job_are_spread_when_a_service_selects_them` |
//! | selectors of owners and Services, and their conflicts | `services_and_owners_together_make_the_selector`, `other_namespaces_have_other_services` |
//! | remembered shapes; fields as configured | `equal_questions_get_equal_shapes`, `what_is_configured_is_carried` |
//! | **instance selection**: cheapest valid type, all valid | `of_many_types_the_cheapest_is_chosen`, `whatever_pod_and_pool_ask_for_the_cheapest_type_that_has_it_is_chosen` |
//! | no type | `nothing_is_bought_where_no_type_has_what_is_asked_for` |
//! | grid of sizes | `every_listed_type_holds_all_pods_of_its_node` |
//! | offerings that do not count | `offerings_that_the_pool_excludes_do_not_make_a_type_cheap` |
//! | `minValues`: splits; Gt, Lt; the larger on one key; several keys; too many; after truncation | `pods_part_when_one_node_could_be_too_few_types`, `bounds_and_lists_on_one_key_ask_for_the_larger_number`, `of_two_lines_about_one_key_the_larger_number_counts`, `every_key_has_its_own_number`, `more_kinds_than_there_are_cannot_be_had`, `a_list_that_is_cut_short_keeps_its_variety` |
//! | **buffers**: placeholders found among real pods (by UID: they are in plans only), by buffer and namespace | `placeholders_leave_the_plan_and_what_they_stood_on_is_known`, `buffers_of_one_name_in_two_namespaces_are_two`, `a_plan_without_placeholders_stays_as_it_is` |
//! | conditions | `provisioning_says_how_the_placeholders_fared`, `a_buffer_that_is_not_ready_is_not_provisioned`, `what_was_said_is_not_said_again_and_transitions_keep_their_time` |
//! | counts per node | `placeholders_leave_the_plan_and_what_they_stood_on_is_known` |
//! | templates and workloads; numbers; followed when they change | `every_kind_of_workload_can_be_followed`, `a_workload_that_names_no_number_of_pods_has_one`, `fixed_replicas_are_taken`, `a_share_is_rounded_up_and_at_least_one`, `the_larger_of_replicas_and_share_counts`, `limits_cap_and_do_not_raise`, `limits_alone_are_filled`, `a_changed_template_is_followed` |
//! | placeholders: names, none, no volumes, what they ask for | `placeholders_have_the_same_names_and_uids_every_time`, `buffers_that_are_empty_or_not_ready_have_no_placeholders`, `placeholders_come_after_every_real_pod_and_hold_no_volumes`, `a_placeholder_keeps_what_its_pod_asks_of_nodes` |
//! | **static NodePools**, up: who gets none; missing ones; limits; orders under way; template | `statics_tests.rs` to `a_replacement_beside_the_node_that_it_replaces_is_no_excess`, `a_node_claim_is_what_the_template_says_and_no_more` |
//! | down: excess, zero, order, errors | `statics_tests.rs` from `only_what_stays_can_be_taken_away`; `a_static_pool_grows_and_shrinks_with_its_replicas`, `statics_may_die_at_any_message` |
//! | **devices**: the gate (nothing else is built: README, what is missing) | [`devices`] |

mod words;

mod constraints;
mod custom;
mod fallback;
mod kinds;
mod packing;

mod existing;
mod leaving;
mod nameless;
mod underway;

mod affinity;
mod anti_affinity;
mod spread;
mod spread_many;
mod spread_policies;

mod claims;
mod daemons;
mod daemons_elsewhere;
mod devices;
mod pools;
mod reasons;
mod refusals;
mod reserved;
mod selection;
mod taints;
mod volumes;
