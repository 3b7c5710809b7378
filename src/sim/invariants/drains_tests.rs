//! Which nodes may be emptied.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::core::facts::samples::condition;
use crate::core::facts::{Effect, Status};
use crate::core::ids::{NodeName, PodUid};
use crate::sim::invariants::stage::Stage;
use crate::sim::props::{add_pod, draft, shape};

/// A NodeClaim whose node serves a pod.
async fn serving() -> (Stage, NodeName, PodUid) {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let uid = add_pod(&stage.cluster, "pod", &Arc::new(shape("app", 100, 128)));
    stage.cluster.store().bind(&uid, &node);
    stage.cluster.store().start_pod(&uid);
    (stage, node, uid)
}

/// How often the promise is broken when joiner does both: closes the node, and asks its pod to leave.
fn emptied(stage: &Stage, node: &NodeName, pod: &PodUid, taint: &str) -> usize {
    let there = stage.node(node);
    let taints = there.taints.iter().cloned().chain([Taint::new(taint, Effect::NoSchedule)]).collect();
    stage.invariants.node_to_be_changed(node, &NodePatch { taints: Some(taints), ..NodePatch::of(&there) });
    stage.invariants.pod_to_be_evicted(pod);
    stage.broken(Invariant::NoServingNodeDrained)
}

fn reboot(stage: &Stage, wanted: Status) {
    stage.cluster.store().update_claim(&"one".into(), |claim| claim.conditions = vec![condition("Rebooting", wanted)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_serves_is_neither_closed_nor_drained() {
    for taint in [DISRUPTED_TAINT, REBOOTING_TAINT] {
        let (stage, node, pod) = serving().await;
        assert_eq!(emptied(&stage, &node, &pod, taint), 2, "{taint}");
    }
    let (stage, node, pod) = serving().await;
    stage
        .cluster
        .store()
        .update_node(&node, |node| node.taints = vec![Taint::new(DISRUPTED_TAINT, Effect::NoSchedule)]);
    assert_eq!(emptied(&stage, &node, &pod, DISRUPTED_TAINT), 1, "somebody else has closed it");
    let (stage, node, pod) = serving().await;
    assert_eq!(emptied(&stage, &node, &pod, "example.com/full"), 1, "which closes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_end_somebody_wants_is_emptied() {
    let (stage, node, pod) = serving().await;
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    assert_eq!(emptied(&stage, &node, &pod, DISRUPTED_TAINT), 0);
    let (stage, node, pod) = serving().await;
    stage.cluster.store().delete_node(&node, None).unwrap();
    assert_eq!(emptied(&stage, &node, &pod, DISRUPTED_TAINT), 0);
    let (stage, node, pod) = serving().await;
    stage.cluster.store().update_claim(&"one".into(), |claim| claim.finalizers.clear());
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    assert_eq!(emptied(&stage, &node, &pod, DISRUPTED_TAINT), 0, "its machine has no NodeClaim");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_emptied_for_a_reboot_until_joiner_must_know_that_nobody_wants_it_any_more() {
    let (stage, node, pod) = serving().await;
    reboot(&stage, Status::True);
    stage.settle().await;
    assert_eq!(emptied(&stage, &node, &pod, REBOOTING_TAINT), 0);
    sleep(Duration::from_hours(1)).await;
    reboot(&stage, Status::Unknown);
    stage.settle().await;
    assert_eq!(emptied(&stage, &node, &pod, REBOOTING_TAINT), 0, "that may be unknown");
    sleep(UNKNOWN_FOR + Duration::from_secs(1)).await;
    assert_eq!(emptied(&stage, &node, &pod, REBOOTING_TAINT), 2);
}
