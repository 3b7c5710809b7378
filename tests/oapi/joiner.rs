//! joiner itself, actors and all, over the fake: every request that it really sends is held to the specification.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use joiner::clouds::outscale::oapi::wire::State;
use joiner::clouds::{Cloud, Deletion};
use joiner::core::ids::ProviderId;

use super::gpus::learners;
use super::judge::Judge;
use super::spec::Spec;
use super::stage::scene;

/// A NodeClass with every field that reaches the API, and pods for three machines.
const SCRIPT: &str = r"
apiVersion: karpenter.outscale.com/v1alpha1
kind: OutscaleNodeClass
metadata: {name: workers}
spec:
  imageSelectorTerms: [{name: Talos-*}]
  subnetIds: [subnet-00000001, subnet-00000002]
  securityGroupSelectorTerms: [{name: nodes}]
  keypairName: rehearsal
  vmTypes: {names: [tinav6.c1r2p2]}
  blockDeviceMappings:
    - {deviceName: /dev/sda1, bsu: {volumeSize: 20, volumeType: io1, iops: 500}}
    - {deviceName: /dev/xvdb, bsu: {volumeSize: 10, snapshotId: snap-00000001, deleteOnVmDeletion: false}}
  placement: {tenancy: dedicated, repulseServer: web}
  tags: {team: web}
  talos: {secretRef: {name: talos}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
      nodeClassRef: {group: karpenter.outscale.com, kind: OutscaleNodeClass, name: workers}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, resources: {requests: {cpu: 600m, memory: 500Mi}}}]
---
until: 5m
";

/// The actions that the policy for users allows, and those that need no keys.
fn all_actions() -> BTreeSet<String> {
    let policy: serde_json::Value =
        serde_json::from_str(include_str!("../../examples/outscale/eim-policy.json")).unwrap();
    let allowed = policy["Statement"][0]["Action"].as_array().unwrap().clone();
    let allowed = allowed.iter().map(|action| action.as_str().unwrap().strip_prefix("api:").unwrap().to_owned());
    allowed.chain(["ReadVmTypes", "ReadPublicCatalog"].map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_joiner_sends_is_as_the_specification_says() {
    let Some(spec) = Spec::load() else { return };
    let scene = scene(1);
    let fake = &scene.fake;
    let judge = Judge::of(fake.clone(), spec);
    let cloud = scene.cloud(Arc::clone(&judge) as _, false);
    let joiner = scene.joiner_with(Arc::clone(&cloud), 0);
    scene.play_without_nodes(&format!("{}{SCRIPT}", learners(1))).await;
    let vms = fake.vms();
    assert_eq!((vms.len(), fake.gpus().len()), (4, 1), "{vms:?}");
    // Nobody plays the kubelets. What joiner does of itself to machines that misbehave is asked of its cloud here.
    let ids: Vec<&str> = vms.iter().map(|vm| vm.vm_id.as_str()).collect();
    let id = |at: usize| ProviderId::from(format!("aws:///eu-west-2a/{}", ids[at]));
    cloud.reboot(&id(0), "operation").await.unwrap();
    fake.tamper(ids[1], |vm| vm.deletion_protection = Some(true));
    assert_eq!(cloud.delete(&id(1)).await.unwrap(), Deletion::InProgress);
    fake.tamper(ids[2], |vm| vm.state = State::Stopping);
    assert_eq!(cloud.delete(&id(2)).await.unwrap(), Deletion::InProgress);
    // The NodeClaims of machines that never register are given up after 15 minutes.
    scene.play_without_nodes("until: 20m").await;
    assert!(fake.vms().iter().all(|vm| !ids.contains(&vm.vm_id.as_str()) || vm.state.is_leaving()));
    joiner.stop(Duration::from_secs(5)).await;
    // Whose keys may not read the account's own prices gets those that are for everybody.
    fake.account(|account| account.denied.extend(["ReadCatalog".to_owned()]));
    let source = scene.cloud(Arc::clone(&judge) as _, false).price_source().await;
    assert!(source.starts_with("public price list of "), "{source}");
    judge.acquit();
    let answered: BTreeSet<String> =
        judge.seen().iter().filter_map(|seen| seen.strip_suffix(" 200").map(str::to_owned)).collect();
    assert_eq!(answered, all_actions());
}
