//! Samples of pods and nodes.

use std::sync::Arc;

use crate::core::facts::{Condition, PodShape, Status};
use crate::core::ids::NodeName;

use super::*;

const NOW: i64 = 1_000_000;

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW - seconds).unwrap()
}

fn node(name: &str, pool: Option<&str>) -> Node {
    let mut labels: Labels = [(labels::ZONE, "a"), (labels::INSTANCE_TYPE, "c-4x")]
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    if let Some(pool) = pool {
        labels.insert(labels::NODEPOOL.into(), pool.into());
    }
    Node {
        name: name.into(),
        uid: format!("uid-{name}").as_str().into(),
        created: ago(90),
        deleting: None,
        version: "1".into(),
        labels,
        annotations: Labels::new(),
        finalizers: Vec::new(),
        owner_claims: Vec::new(),
        provider_id: None,
        taints: Vec::new(),
        cordoned: false,
        boot_id: None,
        capacity: Resources::new().with("cpu", 4000),
        allocatable: Resources::new().with("cpu", 3900),
        conditions: vec![Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "KubeletReady".into(),
            message: "".into(),
            since: ago(60),
            generation: 0,
        }],
    }
}

fn pod(name: &str, node: Option<&str>, owner: Owner, phase: PodPhase) -> Pod {
    let limits = Resources::new().with("cpu", 2000);
    let shape = PodShape { limits, owner, ..PodShape::plain(Resources::new().with("cpu", 1300)) };
    Pod {
        key: crate::core::ids::ObjectKey::new("shop", name),
        uid: format!("uid-{name}").as_str().into(),
        created: ago(30),
        shape: Arc::new(shape),
        phase,
        node: node.map(NodeName::from),
        nominated: None,
        unschedulable: node.is_none(),
        unjudged: false,
        deleting: None,
        started: None,
        scheduled: None,
        ready: None,
        owned_by: Some("/apis/apps/v1/namespaces/shop/replicasets/web-1".into()),
        volume_claims: vec![],
    }
}

fn snapshot(nodes: Vec<Node>, pods: Vec<Pod>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in nodes {
        snapshot.nodes.insert(node.name.clone(), Arc::new(node));
    }
    for pod in pods {
        if let Some(node) = &pod.node {
            snapshot.bound.entry(node.clone()).or_default().insert(pod.uid.clone());
        }
        snapshot.pods.insert(pod.uid.clone(), Arc::new(pod));
    }
    snapshot
}

fn text(sample: impl FnOnce(&mut Samples)) -> String {
    let mut samples = Samples::new();
    sample(&mut samples);
    let mut text = String::new();
    samples.write(&mut text);
    text
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|other| other == line), "no line {line} in\n{text}");
}

#[test]
fn nodes_show_what_they_offer_and_what_is_asked_of_them() {
    let pods = vec![
        pod("web", Some("n1"), Owner::Controller, PodPhase::Running),
        pod("done", Some("n1"), Owner::Controller, PodPhase::Succeeded),
        pod("agent", Some("n1"), Owner::DaemonSet, PodPhase::Running),
    ];
    let snapshot = snapshot(vec![node("n1", Some("default")), node("n2", None)], pods);
    let text = text(|samples| sample_nodes(samples, &snapshot, ago(0)));
    let labels = r#"{resource_type="cpu",node_name="n1",phase="",managed="true",nodepool="default",zone="a",region="",instance_type="c-4x",arch="",os="",capacity_type="",windows_build=""}"#;
    assert_line(&text, &format!("karpenter_nodes_allocatable{labels} 3.9"));
    assert_line(&text, &format!("karpenter_nodes_total_pod_requests{labels} 2.6"));
    assert_line(&text, &format!("karpenter_nodes_total_pod_limits{labels} 4"));
    assert_line(&text, &format!("karpenter_nodes_total_daemon_limits{labels} 2"));
    assert_line(&text, &format!("karpenter_nodes_total_daemon_requests{labels} 1.3"));
    assert_line(&text, &format!("karpenter_nodes_system_overhead{labels} 0.1"));
    assert_line(&text, "karpenter_cluster_state_node_count 2");
    assert!(text.contains(r#"karpenter_nodes_current_lifetime_seconds{node_name="n2",phase="",managed="false","#));
    let utilization =
        text.lines().find_map(|l| l.strip_prefix(r#"karpenter_cluster_utilization_percent{resource_type="cpu"} "#));
    assert!((utilization.unwrap().parse::<f64>().unwrap() - 100.0 * 2.6 / 7.8).abs() < 1e-9);
}

#[test]
fn pods_show_where_they_are_and_how_long_they_wait() {
    let pods = vec![
        pod("web", Some("n1"), Owner::StatefulSet, PodPhase::Running),
        pod("late", None, Owner::Controller, PodPhase::Pending),
        pod("pulling", Some("n1"), Owner::Controller, PodPhase::Pending),
    ];
    let snapshot = snapshot(vec![node("n1", Some("default"))], pods);
    let text = text(|samples| sample_pods(samples, &snapshot, &Waits::default(), ago(0)));
    assert_line(
        &text,
        r#"karpenter_pods_state{name="web",namespace="shop",owner="/apis/apps/v1/namespaces/shop/replicasets/web-1",node="n1",scheduled="true",nodepool="default",zone="a",arch="",capacity_type="",instance_type="c-4x",phase="Running",ready="false",managed="true"} 1"#,
    );
    assert_line(
        &text,
        r#"karpenter_pods_unbound_time_seconds{name="late",namespace="shop",dynamic_resources="false"} 30"#,
    );
    assert_line(&text, r#"karpenter_pods_unstarted_time_seconds{name="pulling",namespace="shop"} 30"#);
    assert_eq!(text.matches("karpenter_pods_unbound_time_seconds{").count(), 1);
    assert_eq!(text.matches("karpenter_pods_unstarted_time_seconds{").count(), 2);
}

#[test]
fn pods_show_how_long_they_wait_by_joiners_clock() {
    let mut waits = Waits::default();
    let late = pod("late", None, Owner::Controller, PodPhase::Pending);
    let new = pod("new", None, Owner::Controller, PodPhase::Pending);
    let starting = pod("starting", Some("n1"), Owner::Controller, PodPhase::Running);
    let before = Pod { node: None, phase: PodPhase::Pending, ..starting.clone() };
    for pod in [&late, &new, &before] {
        waits.see(pod, ago(25));
    }
    waits.decided(&[late.uid.clone(), before.uid.clone()], &[], ago(20));
    let there = pod("there", Some("n1"), Owner::Controller, PodPhase::Running);
    let snapshot = snapshot(vec![node("n1", Some("default"))], vec![late, new, starting, there]);
    let text = text(|samples| sample_pods(samples, &snapshot, &waits, ago(0)));
    let of = |name: &str| {
        let mut lines: Vec<&str> = text.lines().filter(|line| line.contains(&format!("{{name=\"{name}\""))).collect();
        lines.retain(|line| !line.starts_with("karpenter_pods_state"));
        lines.iter().map(|line| line.trim_start_matches("karpenter_pods_").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        of("late"),
        [
            r#"unbound_time_seconds{name="late",namespace="shop",dynamic_resources="false"} 30"#,
            r#"unstarted_time_seconds{name="late",namespace="shop"} 30"#,
            r#"provisioning_unbound_time_seconds{name="late",namespace="shop",dynamic_resources="false"} 20"#,
            r#"provisioning_unstarted_time_seconds{name="late",namespace="shop"} 20"#,
        ]
    );
    assert_eq!(
        of("new").last().unwrap(),
        r#"provisioning_scheduling_undecided_time_seconds{name="new",namespace="shop"} 25"#
    );
    assert_eq!(
        of("starting"),
        [
            r#"unstarted_time_seconds{name="starting",namespace="shop"} 30"#,
            r#"provisioning_unstarted_time_seconds{name="starting",namespace="shop"} 20"#,
        ]
    );
    assert_eq!(of("there"), Vec::<String>::new());
}
