//! joiner's own actors in the simulated world: pods get nodes, and nothing that must not happen does.

use std::time::Duration;

use super::staged::Staged;
use crate::clouds::simulated::Conduct;
use crate::sim::outcome::Outcome;
use crate::telemetry::metrics::{Exporter, Samples};

const SCRIPT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 60
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, resources: {requests: {cpu: '1', memory: 2Gi}}}]
      topologySpreadConstraints:
        - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
---
timeline:
  - {at: 10m, scale: {deployment: default/web, replicas: 90}}
until: 20m
";

async fn rehearse(seed: u64, conduct: Conduct) -> Outcome {
    play(SCRIPT, seed, conduct).await
}

async fn play(script: &str, seed: u64, conduct: Conduct) -> Outcome {
    let Staged { world, joiner, scenario } = Staged::set(script, seed, conduct);
    world.run(&scenario.steps, scenario.end).await;
    let outcome = world.ledger.close(seed, &|_| Vec::new());
    joiner.stop(Duration::from_secs(5)).await;
    outcome
}

#[tokio::test(start_paused = true)]
async fn pods_get_nodes() {
    let outcome = rehearse(1, Conduct::default()).await;
    println!(
        "{} nodes, {:.2} $/h peak, waits {:?}",
        outcome.nodes.len(),
        outcome.price_peak_per_hour,
        outcome.percentiles()
    );
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert_eq!(outcome.unplaced, []);
    assert_eq!(outcome.pods_bound, 90);
}

#[tokio::test(start_paused = true)]
async fn lost_answers_cost_time_and_no_pod() {
    let conduct = Conduct { lost_answers: 0.3, ..Conduct::default() };
    let outcome = rehearse(2, conduct).await;
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert_eq!(outcome.unplaced, []);
}

/// What a scraper would see of pods, NodePools and Nodes after a rehearsal.
#[test]
fn waits_and_conditions_are_measured() {
    let (recorder, exporter) = Exporter::aside().unwrap();
    let story = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(rehearse(1, Conduct::default()))
    };
    let outcome = metrics::with_local_recorder(&recorder, story);
    let text = exporter.render(Samples::new());
    let value = |series: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}"))
    };
    let count = |series: &str| value(series).parse::<u64>().unwrap();
    let devices = r#"{dynamic_resources="false"}"#;
    assert_eq!(count(&format!("karpenter_pods_bound_duration_seconds_count{devices}")), 90);
    assert_eq!(count("karpenter_pods_startup_duration_seconds_count"), 90);
    let waited: f64 = value(&format!("karpenter_pods_bound_duration_seconds_sum{devices}")).parse().unwrap();
    let percentiles = outcome.percentiles();
    assert!(waited / 90.0 > 1.0, "{waited} s, {percentiles:?}");
    // Those that kube-scheduler placed by itself were never decided about.
    let decided = count("karpenter_pods_scheduling_decision_duration_seconds_count");
    assert!((60..=90).contains(&decided), "{decided} decided");
    assert_eq!(count(&format!("karpenter_pods_provisioning_bound_duration_seconds_count{devices}")), decided);
    assert_eq!(count("karpenter_pods_provisioning_startup_duration_seconds_count"), decided);
    let ready = r#"{type="Ready",status="True",reason="Ready"}"#;
    assert_eq!(count(&format!("operator_nodepool_status_condition_transitions_total{ready}")), 1);
    let ready = text.lines().filter(|line| {
        line.starts_with("operator_node_status_condition_transitions_total{type=\"Ready\",status=\"True\"")
    });
    let counts = ready.map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap());
    assert_eq!(counts.sum::<usize>(), outcome.nodes.len());
}

/// What a scraper would see of fifteen pods of which ten are too large for every machine, and of one more that is too.
#[test]
fn solves_and_what_they_refuse_are_measured() {
    let workload = |name: &str, replicas: u32, cores: u32| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: {replicas}, template: {{spec: \
             {{containers: [{{name: c, resources: {{requests: {{cpu: '{cores}'}}}}}}]}}}}}}}}\n---\n"
        )
    };
    let (web, large) = (workload("web", 5, 1), workload("large", 10, 1000));
    let timeline = "timeline: [{at: 5m, scale: {deployment: default/large, replicas: 11}}]\nuntil: 10m\n";
    let script = format!("{web}{large}{timeline}");
    let (recorder, exporter) = Exporter::aside().unwrap();
    let story = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(play(&script, 1, Conduct::default()))
    };
    let outcome = metrics::with_local_recorder(&recorder, story);
    assert_eq!((outcome.pods_bound, outcome.unplaced.len()), (5, 11));
    let text = exporter.render(Samples::new());
    let value = |series: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.rsplit_once(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).1.parse::<u64>().unwrap()
    };
    let controller = r#"controller="provisioner""#;
    assert!(value(&format!("karpenter_scheduler_scheduling_duration_seconds_count{{{controller}}}")) >= 2);
    assert_eq!(value("karpenter_pods_scheduling_decision_duration_seconds_count"), 16, "once for each pod");
}
