//! What a scraper sees.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::facts::{
    Claim, ConsolidationPolicy, Node, NodeClass, Pod, PodPhase, PodShape, Pool, Snapshot, Status, Template, samples,
};
use crate::core::ids::{ClassRef, PoolName};
use crate::core::resources::Resources;
use crate::telemetry::conditions::Transition;

use super::*;

fn recorded(act: impl FnOnce()) -> String {
    let (recorder, exporter) = Exporter::aside().unwrap();
    metrics::with_local_recorder(&recorder, act);
    exporter.render(Samples::new())
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|other| other == line), "no line {line} in\n{text}");
}

#[test]
fn counters_carry_karpenters_labels() {
    let text = recorded(|| {
        claim_created(CreatedFor::Provisioned, &PoolName::from("default"), false);
        claim_created(CreatedFor::Provisioned, &PoolName::from("default"), false);
        claim_disrupted(
            DisruptedFor::Empty,
            &PoolName::from("default"),
            "spot",
            Some(ConsolidationPolicy::WhenEmptyOrUnderutilized),
            TerminationMode::of(Some(Duration::from_secs(5))),
            3,
        );
        claim_disrupted(DisruptedFor::LaunchTimeout, &PoolName::from("late"), "", None, TerminationMode::of(None), 7);
        eviction_requested(201);
    });
    assert_line(&text, "# TYPE karpenter_nodeclaims_created_total counter");
    assert_line(
        &text,
        r#"karpenter_nodeclaims_created_total{reason="provisioned",nodepool="default",min_values_relaxed="false"} 2"#,
    );
    let labels = r#"{reason="empty",nodepool="default",capacity_type="spot",consolidation_policy="when_empty_or_underutilized",termination_mode="eventual"}"#;
    assert_line(&text, &format!("karpenter_nodeclaims_disrupted_total{labels} 1"));
    assert_line(&text, &format!("karpenter_pods_disruption_initiated_total{labels} 3"));
    // A NodeClaim that never had a node had no pods to move.
    assert!(!text.lines().any(|line| line.starts_with("karpenter_pods_disruption") && line.contains("late")));
    assert_eq!(TerminationMode::of(Some(Duration::ZERO)), TerminationMode::Forceful);
    assert_line(&text, r#"karpenter_pods_eviction_requests_total{code="200"} 1"#);
}

#[test]
fn durations_are_histograms_except_where_upstream_has_summaries() {
    let text = recorded(|| {
        scheduled("provisioner", Duration::from_millis(1300));
        node_terminated(&claim(), &node(), Duration::from_secs(3), Duration::from_secs(3601));
    });
    assert_line(&text, "# TYPE karpenter_scheduler_scheduling_duration_seconds histogram");
    assert_line(
        &text,
        r#"karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="1.25"} 0"#,
    );
    assert_line(
        &text,
        r#"karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="1.5"} 1"#,
    );
    assert_line(
        &text,
        r#"karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="+Inf"} 1"#,
    );
    assert_line(&text, r#"karpenter_nodes_lifetime_duration_seconds_bucket{nodepool="p",le="3600"} 0"#);
    assert_line(&text, r#"karpenter_nodes_lifetime_duration_seconds_bucket{nodepool="p",le="7200"} 1"#);
    assert_line(&text, "# TYPE karpenter_nodes_termination_duration_seconds summary");
    assert!(text.contains(r#"karpenter_nodes_termination_duration_seconds{nodepool="p",quantile="0.99"}"#));
    assert_line(&text, r#"karpenter_nodes_termination_duration_seconds_sum{nodepool="p"} 3"#);
}

#[test]
fn label_values_hold_no_comma_and_are_quoted() {
    let text = recorded(|| node_drained(&PoolName::from("a,b")));
    assert_line(&text, r#"karpenter_nodes_drained_total{nodepool="a;b"} 1"#);
    let (_, exporter) = Exporter::aside().unwrap();
    let mut samples = Samples::new();
    samples.actors("a,\"b\\\n", &ActorFigures { busy: Duration::from_millis(1500), ..ActorFigures::default() });
    let text = exporter.render(samples);
    assert_line(&text, r#"joiner_actor_busy_seconds_total{actor="a;\"b\\\n"} 1.5"#);
    assert_line(&text, "# TYPE joiner_actor_busy_seconds_total counter");
}

#[test]
fn the_process_shows_what_the_performance_suite_polls() {
    let (_, exporter) = Exporter::aside().unwrap();
    let mut samples = Samples::new();
    sample_process(&mut samples, 4096);
    let text = exporter.render(samples);
    assert_line(&text, "# TYPE process_cpu_seconds_total counter");
    assert_line(&text, "# TYPE process_resident_memory_bytes gauge");
    assert_line(&text, "# TYPE go_gc_heap_live_bytes gauge");
    assert_line(&text, "go_gc_heap_live_bytes 4096");
    let resident = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes ")).unwrap();
    assert!(resident.parse::<f64>().unwrap() > 1_000_000.0, "{resident}");
}

#[test]
fn transitions_of_conditions_are_counted_and_timed() {
    let transition = Transition {
        kind: "Launched".into(),
        from: Some((Status::Unknown, Duration::from_secs(3))),
        to: Status::True,
        reason: "Launched".into(),
        message: "".into(),
    };
    let mut snapshot = Snapshot::default();
    let class = claim().class;
    let body = NodeClass { reference: class.clone(), ..samples::class() };
    snapshot.classes.insert(class, std::sync::Arc::new(body));
    let text = recorded(|| {
        claim_condition_changed(&claim(), &transition);
        pool_condition_changed(&transition);
        node_condition_changed(&snapshot, &node(), &transition);
        claim_terminated(&claim(), Duration::from_secs(3));
        node_terminated(&claim(), &node(), Duration::from_secs(3), Duration::from_mins(1));
        pool_terminated(Duration::from_secs(3));
    });
    let class = r#"karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_nodepool="p""#;
    let changed = r#"type="Launched",status="True",reason="Launched""#;
    let left = r#"type="Launched",status="Unknown",to_status="True""#;
    for (kind, more) in [
        ("nodeclaim", class.to_owned()),
        ("nodepool", String::new()),
        ("node", format!(r#"{class},karpenter_sh_initialized="true""#)),
    ] {
        let comma = if more.is_empty() { "" } else { "," };
        assert_line(&text, &format!("operator_{kind}_status_condition_transitions_total{{{changed}{comma}{more}}} 1"));
        let seconds = format!("operator_{kind}_status_condition_transition_seconds_bucket");
        assert_line(&text, &format!(r#"{seconds}{{{left}{comma}{more},le="2"}} 0"#));
        assert_line(&text, &format!(r#"{seconds}{{{left}{comma}{more},le="4"}} 1"#));
        let labels = if more.is_empty() { String::new() } else { format!("{{{more}}}") };
        assert_line(&text, &format!("operator_{kind}_termination_duration_seconds_sum{labels} 3"));
    }
    for kind in ["NodeClaim", "NodePool"] {
        let whose = format!(r#"group="karpenter.sh",kind="{kind}""#);
        assert_line(&text, &format!("operator_status_condition_transitions_total{{{changed},{whose}}} 1"));
        let seconds = "operator_status_condition_transition_seconds_bucket";
        assert_line(&text, &format!(r#"{seconds}{{{left},{whose},le="2.5"}} 0"#));
        assert_line(&text, &format!(r#"{seconds}{{{left},{whose},le="5"}} 1"#));
        assert_line(&text, &format!("operator_termination_duration_seconds_sum{{{whose}}} 3"));
    }
    assert!(!text.contains(r#"kind="Node""#), "Nodes are not among the deprecated families");
}

#[test]
fn pods_are_timed_when_they_are_bound_and_ready() {
    use crate::core::facts::{Reached, Took};
    let took = |created, planned: Option<u64>| Took {
        since_created: Duration::from_secs(created),
        since_planned: planned.map(Duration::from_secs),
    };
    let text = recorded(|| {
        pod_reached(&pod(), &Reached { bound: Some(took(30, Some(20))), started: None });
        pod_reached(&pod(), &Reached { bound: Some(took(8, None)), started: None });
        pod_reached(&pod(), &Reached { bound: None, started: Some(took(40, Some(25))) });
        pod_decided(Duration::from_millis(300));
    });
    assert_line(&text, r#"karpenter_pods_bound_duration_seconds_bucket{dynamic_resources="false",le="8"} 1"#);
    assert_line(&text, r#"karpenter_pods_bound_duration_seconds_sum{dynamic_resources="false"} 38"#);
    assert_line(&text, r#"karpenter_pods_provisioning_bound_duration_seconds_sum{dynamic_resources="false"} 20"#);
    assert_line(&text, "# TYPE karpenter_pods_startup_duration_seconds summary");
    assert_line(&text, "karpenter_pods_startup_duration_seconds_sum 40");
    assert_line(&text, "# TYPE karpenter_pods_provisioning_startup_duration_seconds histogram");
    assert_line(&text, "karpenter_pods_provisioning_startup_duration_seconds_sum 25");
    assert_line(&text, r#"karpenter_pods_scheduling_decision_duration_seconds_bucket{le="0.3"} 1"#);
}

/// Gauges that were set are shared by the whole process: this test has a controller of its own.
#[test]
fn a_solve_shows_while_it_works_and_what_it_left() {
    let of = |text: &str| {
        let mut lines: Vec<String> = text.lines().filter(|l| l.contains("of-this-test")).map(str::to_owned).collect();
        for line in &mut lines {
            *line = line.replace("karpenter_scheduler_", "");
        }
        lines.retain(|line| !line.starts_with("scheduling_duration"));
        lines
    };
    let controller = "of-this-test";
    let text = recorded(|| {
        scheduling(controller, "1", 5);
        scheduled(controller, Duration::from_secs(1));
        scheduling_left(controller, "1", 2, 1);
        pods_by_zone(controller, &[("zone-a".into(), 3), ("flexible".into(), 2)].into());
        scheduling(controller, "2", 7);
        pods_by_zone(controller, &[("flexible".into(), 7)].into());
    });
    let lines = of(&text);
    let unfinished = lines.iter().find(|line| line.starts_with("unfinished_work_seconds{")).unwrap();
    assert!(unfinished.starts_with(r#"unfinished_work_seconds{controller="of-this-test",scheduling_id="2"} "#));
    assert!(lines.contains(&r#"queue_depth{controller="of-this-test",scheduling_id="2"} 7"#.to_owned()), "{lines:?}");
    assert!(lines.contains(&r#"unschedulable_pods_count{controller="of-this-test"} 2"#.to_owned()));
    let zone = r#"pending_pods_by_effective_zone_count{controller="of-this-test",zone="flexible"} 7"#;
    assert!(lines.contains(&zone.to_owned()));
    assert_eq!(lines.len(), 4, "{lines:?}");
    let text = recorded(|| {
        scheduled(controller, Duration::from_secs(1));
        nothing_to_schedule(controller);
    });
    assert_eq!(of(&text), [r#"unschedulable_pods_count{controller="of-this-test"} 0"#]);
}

fn claim() -> Claim {
    let labels = [("karpenter.sh/nodepool", "p"), ("topology.kubernetes.io/zone", "z")];
    Claim {
        name: "c".into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        class: pool("p").template.class,
        ..samples::claim()
    }
}

fn node() -> Node {
    let labels = [
        ("karpenter.sh/nodepool", "p"),
        ("karpenter.sh/initialized", "true"),
        ("karpenter.kwok.sh/kwoknodeclass", "default"),
    ];
    Node {
        name: "n".into(),
        uid: "u".into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        deleting: None,
        version: "1".into(),
        labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        annotations: BTreeMap::new(),
        finalizers: Vec::new(),
        owner_claims: Vec::new(),
        provider_id: None,
        taints: Vec::new(),
        cordoned: false,
        boot_id: None,
        capacity: Resources::new(),
        allocatable: Resources::new(),
        conditions: pool("p").conditions,
    }
}

fn pod() -> Pod {
    Pod {
        key: crate::core::ids::ObjectKey::new("shop", "web"),
        uid: "u".into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        shape: std::sync::Arc::new(PodShape::plain(Resources::new())),
        phase: PodPhase::Running,
        node: None,
        nominated: None,
        unschedulable: false,
        unjudged: false,
        deleting: None,
        started: None,
        scheduled: None,
        ready: None,
        owned_by: None,
        volume_claims: vec![],
    }
}

fn pool(name: &str) -> Pool {
    let class = ClassRef { group: "karpenter.kwok.sh".into(), kind: "KWOKNodeClass".into(), name: "default".into() };
    Pool {
        name: name.into(),
        uid: "u".into(),
        generation: 1,
        version: "1".into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        deleting: None,
        annotations: BTreeMap::new(),
        weight: 0,
        limits: Resources::new().with("cpu", 10_500),
        replicas: None,
        template: Template {
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            class,
            termination_grace: None,
            expire_after: None,
        },
        disruption: crate::core::facts::Disruption {
            consolidate_after: None,
            policy: ConsolidationPolicy::WhenEmpty,
            budgets: Vec::new(),
        },
        hash: "0".into(),
        errors: Vec::new(),
        status_nodes: Some(2),
        status_resources: Resources::new().with("memory", 2_000_000).with("ephemeral-storage", 5000),
        class_generation: None,
        conditions: vec![crate::core::facts::Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "Ready".into(),
            message: "".into(),
            since: jiff::Timestamp::UNIX_EPOCH,
            generation: 1,
        }],
    }
}

#[test]
fn what_a_snapshot_no_longer_holds_is_not_sampled() {
    let (_, exporter) = Exporter::aside().unwrap();
    let now = jiff::Timestamp::from_second(60).unwrap();
    let kinds = [("karpenter.kwok.sh", "KWOKNodeClass")];
    let text_of = |snapshot: &Snapshot| {
        let mut samples = Samples::new();
        sample_pools(&mut samples, snapshot, &kinds);
        sample_budgets(&mut samples, snapshot, &kinds, now);
        sample_conditions(&mut samples, snapshot, now);
        exporter.render(samples)
    };
    let mut snapshot = Snapshot::default();
    snapshot.pools.insert("sampled".into(), std::sync::Arc::new(pool("sampled")));
    let text = text_of(&snapshot);
    assert_line(&text, r#"karpenter_nodepools_limit{resource_type="cpu",nodepool="sampled"} 10.5"#);
    assert_line(&text, r#"karpenter_nodepools_usage{resource_type="ephemeral_storage",nodepool="sampled"} 5"#);
    assert_line(
        &text,
        r#"operator_nodepool_status_condition_current_status_seconds{namespace="",name="sampled",type="Ready",status="True",reason="Ready"} 60"#,
    );
    assert_line(&text, r#"karpenter_nodepools_allowed_disruptions{nodepool="sampled",reason="drifted"} 2147483647"#);
    assert_line(&text, r#"karpenter_nodepools_nodes_consuming_budgets{nodepool="sampled",reason="unhealthy"} 0"#);
    let old = r#"{namespace="",name="sampled",type="Ready",status="True",reason="Ready",group="karpenter.sh",kind="NodePool"}"#;
    assert_line(&text, &format!("operator_status_condition_count{old} 1"));
    assert_line(&text, &format!("operator_status_condition_current_status_seconds{old} 60"));
    let mut foreign = pool("foreign");
    foreign.template.class.kind = "EC2NodeClass".into();
    snapshot.pools = std::iter::once((foreign.name.clone(), std::sync::Arc::new(foreign))).collect();
    let text = text_of(&snapshot);
    assert!(!text.contains("sampled"));
    assert!(!text.contains("karpenter_nodepools_"), "what another autoscaler looks after it shows itself: {text}");
}

#[test]
fn families_are_named_once_and_well() {
    let mut names = std::collections::BTreeSet::new();
    for family in FAMILIES {
        assert!(names.insert(family.name), "{} twice", family.name);
        assert!(!family.help.is_empty() && family.help.ends_with('.'), "{}: {}", family.name, family.help);
        let karpenter_cost = family.name == "karpenter_nodepools_cost_total";
        assert_eq!(
            family.name.ends_with("_total"),
            family.shape == Shape::Counter || karpenter_cost,
            "{}",
            family.name
        );
        if let Shape::Histogram(bounds) = family.shape {
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{}", family.name);
        }
    }
}

#[test]
fn conditions_of_nodes_carry_pool_class_and_initialization() {
    let now = jiff::Timestamp::from_second(60).unwrap();
    let mut snapshot = Snapshot::default();
    let leaving = Node { deleting: Some(jiff::Timestamp::from_second(48).unwrap()), ..node() };
    snapshot.nodes.insert(leaving.name.clone(), std::sync::Arc::new(leaving));
    let leaving = Claim { deleting: Some(jiff::Timestamp::from_second(50).unwrap()), ..claim() };
    snapshot.claims.insert(leaving.name.clone(), std::sync::Arc::new(leaving));
    let (_, exporter) = Exporter::aside().unwrap();
    let mut samples = Samples::new();
    sample_conditions(&mut samples, &snapshot, now);
    let text = exporter.render(samples);
    let more = r#"karpenter_sh_nodepool="p",karpenter_sh_initialized="true""#;
    let labels = format!(r#"{{namespace="",name="n",type="Ready",status="True",reason="Ready",{more}}}"#);
    assert_line(&text, &format!("operator_node_status_condition_count{labels} 1"));
    assert_line(&text, &format!("operator_node_status_condition_current_status_seconds{labels} 60"));
    assert_line(
        &text,
        &format!(r#"operator_node_termination_current_time_seconds{{namespace="",name="n",{more}}} 12"#),
    );
    let old = r#"{namespace="",name="c",group="karpenter.sh",kind="NodeClaim"}"#;
    assert_line(&text, &format!("operator_termination_current_time_seconds{old} 10"));
}

#[test]
fn evictions_that_budgets_block_are_told_anew_each_time() {
    let (_, exporter) = Exporter::aside().unwrap();
    let shown = || {
        let text = exporter.render(Samples::new());
        let ours = text.lines().filter(|line| line.contains("shop-of-this-test"));
        ours.map(str::to_owned).collect::<Vec<_>>()
    };
    evictions_blocked([("shop-of-this-test", "web", 3, Duration::from_secs(90))]);
    let lines = shown();
    assert_eq!(lines[0], r#"joiner_evictions_blocked{namespace="shop-of-this-test",budget="web"} 3"#);
    let age = lines[1].strip_prefix(r#"joiner_evictions_blocked_seconds{namespace="shop-of-this-test",budget="web"} "#);
    assert!(age.unwrap().parse::<f64>().unwrap() >= 90.0, "{lines:?}");
    evictions_blocked([]);
    assert!(shown().is_empty());
}
