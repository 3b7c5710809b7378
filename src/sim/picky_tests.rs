//! A NodePool that wants what does not exist, in the simulated world with joiner's own actors: the others serve, and it is told.

use std::time::Duration;

use tokio::time::sleep;

use super::World;
use super::staged::Staged;
use crate::clouds::simulated::Conduct;
use crate::core::writes::{Announcement, Regarding};

const SCRIPT: &str = r"
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
    let minutes = 10;
    let staged = Staged::set(SCRIPT, 1, Conduct::default());
    let (world, ()) = staged.until(async |_: &World| sleep(Duration::from_mins(minutes)).await).await;
    let is_meant = |event: &&Announcement| event.reason == "NoCompatibleInstanceTypes";
    let events = world.cluster.events();
    let said: Vec<&Announcement> = events.iter().map(|(_, event)| event).filter(is_meant).collect();
    assert!(!said.is_empty() && said.len() <= usize::try_from(minutes).unwrap(), "{said:#?}");
    let about =
        |event: &&Announcement| matches!(&event.regarding, Regarding::Pool(name, _) if name.as_str() == "picky");
    assert!(said.iter().all(|event| about(event) && event.warning), "{said:#?}");
    assert!(said[0].message.contains("without `kubernetes.io/arch In [s390x]`"), "{}", said[0].message);
}
