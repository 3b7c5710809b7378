//! What must have left a machine before it is ordered down.

use tokio::time::sleep;

use super::*;
use crate::clouds::Cloud;
use crate::core::facts::{Effect, Taint};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::sim::faults::{Fault, HostileCloud, Mishap, Mishaps, Plan};
use crate::sim::invariants::Journal;
use crate::sim::invariants::stage::Stage;
use crate::sim::props::{add_pod, draft, shape};

/// A NodeClaim that somebody has deleted, with a pod on its closed node that has been there for a while.
async fn drained() -> (Stage, ProviderId, NodeName) {
    let stage = Stage::new();
    let (id, node) = stage.serving(&draft("one")).await;
    let uid: PodUid = add_pod(&stage.cluster, "pod", &Arc::new(shape("app", 100, 128)));
    {
        let mut store = stage.cluster.store();
        store.bind(&uid, &node);
        store.start_pod(&uid);
        store.update_node(&node, |node| node.taints = vec![Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule)]);
        store.delete_claim(&"one".into()).unwrap();
    }
    sleep(JUST_NOW + Duration::from_secs(1)).await;
    (stage, id, node)
}

#[tokio::test(start_paused = true)]
async fn pods_are_waited_for_until_the_cloud_has_got_the_order() {
    let refused = [Fault::CloudError, Fault::CloudLost, Fault::DeleteDenied].map(|fault| (fault, false));
    let given = [Fault::DeleteForgotten, Fault::DeleteSlow, Fault::OrderLostAfter].map(|fault| (fault, true));
    for (fault, arrives) in refused.into_iter().chain(given) {
        let (stage, id, _) = drained().await;
        let mishap = Mishap { at: Duration::ZERO, fault, lasting: Duration::from_secs(1), pass_over: 0, pick: 0 };
        let (mishaps, _orders) = Mishaps::new(&Plan(vec![mishap]), Duration::from_hours(1), Journal::default());
        let cloud = HostileCloud::new(stage.cloud.clone(), &[], mishaps, stage.invariants.clone());
        drop(cloud.delete(&id).await);
        assert_eq!(stage.broken(Invariant::PodsFirst), 1, "the pod has not left");
        assert_eq!(stage.invariants.was_ordered_down(&id), arrives, "{fault:?}");
    }
}
