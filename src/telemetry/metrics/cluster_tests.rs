//! Samples of pods and nodes.

use std::sync::Arc;

use crate::core::facts::{PodShape, Status};
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
    let shape = PodShape { owner, ..PodShape::plain(Resources::new().with("cpu", 1300)) };
    Pod {
        key: crate::core::ids::ObjectKey::new("shop", name),
        uid: format!("uid-{name}").as_str().into(),
        created: ago(30),
        shape: Arc::new(shape),
        phase,
        node: node.map(NodeName::from),
        nominated: None,
        unschedulable: node.is_none(),
        deleting: None,
        started: None,
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
    assert_line(&text, &format!("karpenter_nodes_total_pod_requests{labels} 1.3"));
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
    let text = text(|samples| sample_pods(samples, &snapshot, ago(0)));
    assert_line(
        &text,
        r#"karpenter_pods_state{name="web",namespace="shop",owner="statefulset",node="n1",scheduled="true",nodepool="default",zone="a",arch="",capacity_type="",instance_type="c-4x",phase="Running",managed="true"} 1"#,
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
fn conditions_of_nodes_carry_pool_and_initialization() {
    let mut leaving = node("n1", Some("default"));
    leaving.deleting = Some(ago(12));
    let snapshot = snapshot(vec![leaving], Vec::new());
    let text = text(|samples| sample_conditions(samples, &snapshot, ago(0)));
    let more = r#"karpenter_sh_nodepool="default",karpenter_sh_initialized="""#;
    let labels = format!(r#"{{namespace="",name="n1",type="Ready",status="True",reason="KubeletReady",{more}}}"#);
    assert_line(&text, &format!("operator_node_status_condition_count{labels} 1"));
    assert_line(&text, &format!("operator_node_status_condition_current_status_seconds{labels} 60"));
    assert_line(
        &text,
        &format!(r#"operator_node_termination_current_time_seconds{{namespace="",name="n1",{more}}} 12"#),
    );
}
