//! A NodePool that wants what does not exist, in the simulated world with joiner's own actors: the others serve, and it is told.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::{World, WorldConfig};
use crate::actors::runtime::Clock;
use crate::actors::{Joiner, Parts, Settings};
use crate::clouds::catalog::generated;
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::core::writes::{Announcement, Regarding};
use crate::sim::cluster::Latency;
use crate::sim::kubelet::Pace;
use crate::sim::scenario::{End, read_scenario};
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
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: picky}
spec:
  template:
    spec:
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [s390x]}]
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
---
apiVersion: v1
kind: Pod
metadata: {name: fine}
spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec: {containers: [{name: c, resources: {requests: {cpu: '4000'}}}]}
";

#[tokio::test(start_paused = true)]
async fn a_nodepool_without_instance_types_is_told_and_not_all_the_time() {
    let open = |_: &Path| Ok(SCRIPT.to_owned());
    let scenario = read_scenario(Path::new("script.yaml"), &ShapeStore::new(), &open).unwrap();
    let clock = Clock::simulated(Timestamp::from_second(1_800_000_000).unwrap());
    let wall = clock;
    let world = World::new(WorldConfig {
        seed: Seed(1),
        clock: Arc::new(move || wall.now()),
        latency: Latency::default(),
        pace: Pace::default(),
        rhythm: Rhythm::default(),
        conduct: Conduct::default(),
        catalogue: generated(),
    });
    let joiner = Joiner::start(Parts {
        cluster: Arc::new(world.cluster.clone()),
        cloud: Arc::new(world.cloud.clone()),
        settings: Settings::default(),
        clock,
    });
    let minutes = 10;
    tokio::select! {
        biased;
        () = world.run(&scenario.steps, End::At(Duration::from_hours(3))) => panic!("the story did not end"),
        () = sleep(Duration::from_mins(minutes)) => {},
    }
    joiner.stop(Duration::from_secs(5)).await;
    let is_meant = |event: &&Announcement| event.reason == "NoCompatibleInstanceTypes";
    let events = world.cluster.events();
    let said: Vec<&Announcement> = events.iter().map(|(_, event)| event).filter(is_meant).collect();
    assert!(!said.is_empty() && said.len() <= usize::try_from(minutes).unwrap(), "{said:#?}");
    let about =
        |event: &&Announcement| matches!(&event.regarding, Regarding::Pool(name, _) if name.as_str() == "picky");
    assert!(said.iter().all(|event| about(event) && event.warning), "{said:#?}");
    assert!(said[0].message.contains("without `kubernetes.io/arch In [s390x]`"), "{}", said[0].message);
}
