//! joiner's own actors in the simulated world: pods get nodes, and nothing that must not happen does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{World, WorldConfig};
use crate::actors::runtime::Clock;
use crate::actors::{Joiner, Parts, Settings};
use crate::clouds::catalog::generated;
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::sim::cluster::Latency;
use crate::sim::kubelet::Pace;
use crate::sim::outcome::Outcome;
use crate::sim::scenario::read_scenario;
use crate::sim::scheduler::Rhythm;
use crate::sim::seed::Seed;

const SCRIPT: &str = r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
---
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
    let open = |_: &Path| Ok(SCRIPT.to_owned());
    let scenario = read_scenario(Path::new("script.yaml"), &ShapeStore::new(), &open).unwrap();
    let clock = Clock::simulated(Timestamp::from_second(1_800_000_000).unwrap());
    let world = World::new(WorldConfig {
        seed: Seed(seed),
        clock: Arc::new(move || clock.now()),
        latency: Latency::default(),
        pace: Pace::default(),
        rhythm: Rhythm::default(),
        conduct,
        catalogue: generated(),
    });
    let joiner = Joiner::start(Parts {
        cluster: Arc::new(world.cluster.clone()),
        cloud: Arc::new(world.cloud.clone()),
        settings: Settings::default(),
        clock,
    });
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
