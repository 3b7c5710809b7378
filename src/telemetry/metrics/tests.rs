//! What a scraper sees.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::facts::{ConsolidationPolicy, Pool, Snapshot, Status, Template};
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
        node_terminated(&PoolName::from("p"), "z", Duration::from_secs(3), Duration::from_secs(3601));
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
    let text = recorded(|| condition_changed(&transition));
    assert_line(
        &text,
        r#"operator_nodeclaim_status_condition_transitions_total{type="Launched",status="True",reason="Launched"} 1"#,
    );
    let seconds = "operator_nodeclaim_status_condition_transition_seconds_bucket";
    assert_line(&text, &format!(r#"{seconds}{{type="Launched",status="Unknown",to_status="True",le="2"}} 0"#));
    assert_line(&text, &format!(r#"{seconds}{{type="Launched",status="Unknown",to_status="True",le="4"}} 1"#));
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
    let text_of = |snapshot: &Snapshot| {
        let mut samples = Samples::new();
        sample_pools(&mut samples, snapshot);
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
    snapshot.pools.clear();
    assert!(!text_of(&snapshot).contains("sampled"));
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
