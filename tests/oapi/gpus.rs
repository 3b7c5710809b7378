//! Machines with flexible GPUs come and go while the API forgets answers, lists late and throttles: no GPU stays allocated.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use joiner::clouds::outscale::oapi::wire::State;
use joiner::sim::oapi::Fault;

use super::judge::Judge;
use super::spec::Spec;
use super::stage::scene;
use super::world::{had_a_bad_day, has_a_bad_day};

/// Pods each of which needs a machine with a GPU, so many of them, and what such machines are made from.
pub(crate) fn learners(pods: usize) -> String {
    format!(
        r"
apiVersion: karpenter.outscale.com/v1alpha1
kind: OutscaleNodeClass
metadata: {{name: learners}}
spec:
  imageId: ami-00000001
  subnetIds: [subnet-00000001, subnet-00000002]
  securityGroupIds: [sg-00000001]
  vmTypes: {{names: [p6.large]}}
  talos: {{secretRef: {{name: talos}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: learners}}
spec:
  template:
    spec:
      taints: [{{key: nvidia.com/gpu, effect: NoSchedule}}]
      requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}]
      nodeClassRef: {{group: karpenter.outscale.com, kind: OutscaleNodeClass, name: learners}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: learner}}
spec:
  replicas: {pods}
  template:
    metadata: {{labels: {{app: learner}}}}
    spec:
      tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
      containers: [{{name: c, resources: {{requests: {{cpu: 600m}}, limits: {{nvidia.com/gpu: 1}}}}}}]
---"
    )
}

#[tokio::test(start_paused = true)]
async fn no_gpu_outlives_its_machine_on_a_bad_day() {
    let Some(spec) = Spec::load() else { return };
    let scene = scene(1);
    let fake = &scene.fake;
    has_a_bad_day(fake);
    let meant = ["ReadFlexibleGpus", "UpdateFlexibleGpu"];
    // Chance alone may spare what is called less often than the rest.
    fake.conduct(|conduct| conduct.fails_first = meant.map(str::to_owned).into());
    let judge = Judge::of(fake.clone(), spec);
    let joiner = scene.joiner_over(Arc::clone(&judge) as _, 0);
    // None of the machines ever becomes a Node, so each is given up.
    scene.play_without_nodes(&format!("{}\nuntil: 35m", learners(10))).await;
    joiner.stop(Duration::from_secs(5)).await;
    let vms = fake.vms();
    let gone = vms.iter().filter(|vm| vm.state == State::Terminated).count();
    assert!(gone >= 10, "{gone} of {} machines are gone", vms.len());
    let there: BTreeSet<&str> =
        vms.iter().filter(|vm| vm.state != State::Terminated).map(|vm| vm.vm_id.as_str()).collect();
    let left: Vec<_> =
        fake.gpus().into_iter().filter(|gpu| !gpu.vm_id.as_ref().is_some_and(|id| there.contains(&**id))).collect();
    assert!(left.is_empty(), "{left:?}");
    judge.acquit();
    had_a_bad_day(fake);
    let (seen, load) = (judge.seen(), fake.load());
    for action in meant {
        assert!(seen.contains(&format!("{action} 200")) && load[action].struck(Fault::Failed) > 0, "{seen:?} {load:?}");
    }
}
