//! Volumes in the simulated world, with joiner's own actors: pods follow their volumes, and nodes wait for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::World;
use super::staged::Staged;
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::core::facts::Pod;
use crate::core::ids::{ClaimName, ObjectKey};
use crate::core::labels;
use crate::manifests::{Admission, read_object};
use crate::sim::scenario::Act;

const ZONE: &str = "test-zone-b";

const SCRIPT: &str = r"
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: disk.csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [test-zone-b]}]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: anywhere, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}
provisioner: disk.csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 4
  podManagementPolicy: Parallel
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, resources: {requests: {cpu: '1', memory: 2Gi}}}]
      volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: zonal}}]
";

/// A world with the script, a joiner in it, and a story that is told while it plays.
async fn play<T>(story: impl AsyncFnOnce(&World) -> T) -> T {
    let (world, told) = Staged::set(SCRIPT, 1, Conduct::default()).until(story).await;
    assert_eq!(world.ledger.close(1, &|_| Vec::new()).violations, Vec::<String>::new());
    told
}

/// Waits for something that is to come.
async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3600 {
        if let Some(found) = look() {
            return found;
        }
        sleep(Duration::from_millis(500)).await;
    }
    panic!("{what} never came");
}

/// The pods, when so many of them run.
fn running(world: &World, count: usize) -> Option<Vec<Arc<Pod>>> {
    let store = world.cluster.store();
    let pods = store.pods.values().map(|record| Arc::clone(&record.pod));
    let pods: Vec<_> = pods.filter(|pod| pod.started.is_some() && pod.deleting.is_none()).collect();
    (pods.len() == count).then_some(pods)
}

fn zone_of(world: &World, pod: &Pod) -> String {
    let store = world.cluster.store();
    store.nodes[pod.node.as_ref().unwrap()].labels[labels::ZONE].to_string()
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_gets_nodes_where_its_volumes_may_be_and_returns_to_them() {
    play(async |world: &World| {
        let pods = until("the pods", || running(world, 4)).await;
        assert!(pods.iter().all(|pod| zone_of(world, pod) == ZONE && pod.volume_claims.len() == 2));
        let volumes = |world: &World| {
            let claims = world.cluster.store().volumes.claims.clone();
            claims.into_iter().map(|(key, claim)| (key.name, claim.volume.clone().unwrap())).collect::<Vec<_>>()
        };
        let before = volumes(world);
        assert_eq!(before.len(), 8, "a claim of each template and one of each ephemeral volume");
        until("the attachments", || (world.cluster.store().volumes.attachments.len() == 8).then_some(())).await;

        let old: Vec<ClaimName> = world.cluster.store().claims.keys().cloned().collect();
        for name in &old {
            let key = ObjectKey::new("", name.as_str());
            world.perform(&Act::Delete { kind: "NodeClaim".to_owned(), key }).unwrap();
        }
        // A node that goes has no volume left when its machine is told to go.
        until("the wait for the volumes", || {
            let store = world.cluster.store();
            let waits = store.claims.values().any(|claim| {
                claim
                    .conditions
                    .iter()
                    .any(|c| &*c.kind == "VolumesDetached" && &*c.reason == "AwaitingVolumeDetachment")
            });
            let going = |name: &&ClaimName| store.claims.get(*name).is_some_and(|c| c.is("InstanceTerminating"));
            for claim in old.iter().filter(going).map(|name| &store.claims[name]) {
                let node = claim.node.as_ref().unwrap();
                assert!(
                    store.volumes.attachments.values().all(|one| one.node != *node),
                    "{} left too early",
                    claim.name
                );
            }
            waits.then_some(())
        })
        .await;
        until("the end of the old NodeClaims", || {
            let store = world.cluster.store();
            old.iter().all(|name| !store.claims.contains_key(name)).then_some(())
        })
        .await;
        let pods = until("the pods again", || running(world, 4)).await;
        assert!(pods.iter().all(|pod| zone_of(world, pod) == ZONE));
        let data = |all: Vec<(Arc<str>, Arc<str>)>| {
            all.into_iter().filter(|(name, _)| name.starts_with("data-")).collect::<Vec<_>>()
        };
        assert_eq!(data(volumes(world)), data(before), "the same volumes");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_claim_comes_late_is_refused_with_the_reason_and_then_placed() {
    play(async |world: &World| {
        until("the pods", || running(world, 4)).await;
        let read = |yaml: &str| {
            let value = serde_saphyr::from_str(yaml).unwrap();
            read_object(&value, &ShapeStore::new(), &Admission::default()).unwrap()
        };
        let pod = "{kind: Pod, metadata: {name: late}, spec: {containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]}}";
        for object in read(pod) {
            world.apply(object);
        }
        until("the refusal", || {
            let said = world.cluster.events();
            let told = |message: &str| message.contains("PersistentVolumeClaim default/mine does not exist");
            said.iter().any(|(_, event)| event.reason == "FailedScheduling" && told(&event.message)).then_some(())
        })
        .await;
        let claim = "{kind: PersistentVolumeClaim, metadata: {name: mine}, spec: {storageClassName: zonal}}";
        for object in read(claim) {
            world.apply(object);
        }
        let pods = until("the late pod", || running(world, 5)).await;
        let late = pods.iter().find(|pod| &*pod.key.name == "late").unwrap();
        assert_eq!(zone_of(world, late), ZONE);
    })
    .await;
}
