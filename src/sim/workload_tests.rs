//! The workload controllers keep what is wanted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Workload, WorkloadKind, Workloads};
use crate::core::facts::PodShape;
use crate::core::ids::{NodeName, ObjectKey};
use crate::sim::cluster::SimCluster;
use crate::sim::containers::Containers;
use crate::sim::kubelet::Pace;
use crate::sim::props;
use crate::sim::scheduler::{Rhythm, Scheduler};
use crate::sim::seed::Seed;

/// A cluster with one big node, whose pods are scheduled, run and replaced.
fn world() -> (SimCluster, Workloads) {
    let cluster = props::cluster(1);
    let mut node = props::node("n", "a", 64_000, 65_536);
    node.conditions.push(props::ready());
    cluster.store().create_node(node).unwrap();
    let workloads = Workloads::new(cluster.clone());
    tokio::spawn(workloads.clone().run());
    tokio::spawn(Scheduler::new(cluster.clone(), Rhythm::default(), Seed(1)).run());
    tokio::spawn(Containers::new(cluster.clone(), Pace::default(), Seed(1)).run());
    (cluster, workloads)
}

fn key() -> ObjectKey {
    ObjectKey::new("default", "web")
}

fn workload(kind: WorkloadKind, replicas: u64, cpu: i64) -> Workload {
    Workload {
        kind,
        key: key(),
        replicas,
        shape: Arc::new(props::shape("web", cpu, 64)),
        runs_for: None,
        volumes: Vec::new(),
    }
}

fn names(cluster: &SimCluster) -> BTreeSet<String> {
    cluster.store().pods.values().map(|record| record.pod.key.name.to_string()).collect()
}

async fn settle() {
    sleep(Duration::from_mins(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_replaces_evicted_pods_under_new_names() {
    let (cluster, workloads) = world();
    workloads.apply(workload(WorkloadKind::Deployment, 3, 100));
    settle().await;
    let before = names(&cluster);
    assert_eq!(before.len(), 3);
    let evicted = cluster.store().pods.values().next().unwrap().pod.clone();
    cluster.store().evict(&evicted.key, &evicted.uid).unwrap();
    settle().await;
    let after = names(&cluster);
    assert_eq!(after.len(), 3);
    assert!(!after.contains(&*evicted.key.name));
    assert_eq!(after.intersection(&before).count(), 2);
    let stems: BTreeSet<_> = after.iter().map(|name| name.rsplit_once('-').unwrap().0).collect();
    assert_eq!(stems.len(), 1, "one template, one stem: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn scaling_down_drops_pods_that_wait_first() {
    let (cluster, workloads) = world();
    workloads.apply(workload(WorkloadKind::ReplicaSet, 5, 20_000));
    settle().await;
    assert!(workloads.scale("ReplicaSet", &key(), 3));
    settle().await;
    let store = cluster.store();
    assert_eq!(store.pods.len(), 3);
    assert!(store.pods.values().all(|record| record.pod.node.is_some()));
    assert!(!workloads.scale("Deployment", &key(), 3), "there is none of that kind");
}

#[tokio::test(start_paused = true)]
async fn a_changed_template_is_rolled_out_without_falling_below_three_quarters() {
    let (cluster, workloads) = world();
    workloads.apply(workload(WorkloadKind::Deployment, 8, 100));
    settle().await;
    workloads.apply(workload(WorkloadKind::Deployment, 8, 200));
    for _ in 0..100 {
        sleep(Duration::from_millis(500)).await;
        let store = cluster.store();
        let running = store.pods.values().filter(|r| r.pod.started.is_some() && r.pod.deleting.is_none()).count();
        assert!(running >= 6, "{running}");
    }
    settle().await;
    let store = cluster.store();
    let new = |shape: &PodShape| shape.requests.get(&"cpu".into()) == 200;
    assert_eq!(store.pods.len(), 8);
    assert!(store.pods.values().all(|record| new(&record.pod.shape)));
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_numbers_its_pods_and_waits_for_the_namesake() {
    let (cluster, workloads) = world();
    workloads.apply(workload(WorkloadKind::StatefulSet { ordered: true }, 3, 100));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(names(&cluster), ["web-0".to_owned()].into(), "one after the other");
    settle().await;
    assert_eq!(names(&cluster).len(), 3);
    let key = ObjectKey::new("default", "web-1");
    let old = cluster.store().pod_names[&key].clone();
    cluster.store().evict(&key, &old).unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(cluster.store().pod_names[&key], old, "still going");
    settle().await;
    assert_ne!(cluster.store().pod_names[&key], old);
    workloads.scale("StatefulSet", &key, 1);
    workloads.scale("StatefulSet", &ObjectKey::new("default", "web"), 1);
    settle().await;
    assert_eq!(names(&cluster), ["web-0".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_that_shrinks_while_its_first_pod_leaves_gets_it_back() {
    let (cluster, workloads) = world();
    workloads.apply(workload(WorkloadKind::StatefulSet { ordered: false }, 3, 100));
    settle().await;
    // Both before its controller looks: as many pods stay as are wanted, but not those.
    let first = ObjectKey::new("default", "web-0");
    let uid = cluster.store().pod_names[&first].clone();
    cluster.store().evict(&first, &uid).unwrap();
    workloads.scale("StatefulSet", &key(), 2);
    settle().await;
    assert_eq!(names(&cluster), ["web-0".to_owned(), "web-1".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_after_its_completions() {
    let (cluster, workloads) = world();
    let job = workload(WorkloadKind::Job { completions: 5, succeeded: 0 }, 2, 100);
    workloads.apply(Workload { runs_for: Some(Duration::from_secs(10)), ..job });
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.store().pods.len(), 2);
    settle().await;
    settle().await;
    let store = cluster.store();
    assert_eq!(store.pods.len(), 5);
    assert!(store.pods.values().all(|record| record.pod.is_terminal()));
}

#[tokio::test(start_paused = true)]
async fn a_bare_pod_is_not_replaced_and_a_deleted_workload_takes_its_pods() {
    let (cluster, workloads) = world();
    workloads.apply(Workload { shape: Arc::new(props::shape("one", 1, 1)), ..workload(WorkloadKind::Pod, 1, 1) });
    settle().await;
    let uid = cluster.store().pod_names[&key()].clone();
    cluster.store().evict(&key(), &uid).unwrap();
    settle().await;
    assert!(names(&cluster).is_empty());
    workloads.apply(workload(WorkloadKind::Deployment, 4, 100));
    settle().await;
    assert!(workloads.delete("Deployment", &key()));
    settle().await;
    assert!(names(&cluster).is_empty());
    assert!(!cluster.store().bound.contains_key(&NodeName::from("n")));
}
