//! Which Nodes joiner may delete.

use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::core::facts::OwnerClaim;
use crate::core::ids::ProviderId;
use crate::sim::invariants::stage::Stage;
use crate::sim::props::draft;

/// How often the promise is broken once joiner has deleted the Node.
fn deleted(stage: &Stage, node: &NodeName) -> usize {
    let uid = stage.node(node).uid.clone();
    stage.invariants.node_to_be_deleted(node, &uid);
    stage.broken(Invariant::NoServingNodeDeleted)
}

#[tokio::test(start_paused = true)]
async fn the_node_of_a_nodeclaim_goes_when_that_was_deleted() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    stage.invariants.node_to_be_deleted(&node, &NodeUid::from("another"));
    assert_eq!(stage.broken(Invariant::NoServingNodeDeleted), 0, "the API server refuses that");
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    assert_eq!(deleted(&stage, &node), 0);
    let (_, other) = stage.serving(&draft("two")).await;
    assert_eq!(deleted(&stage, &other), 1, "nobody has deleted it");
}

#[tokio::test(start_paused = true)]
async fn whose_node_it_is_is_known_by_the_machine_whatever_somebody_has_written() {
    let stage = Stage::new();
    let (id, node) = stage.serving(&draft("one")).await;
    stage.serving(&draft("two")).await;
    {
        let mut store = stage.cluster.store();
        store.update_claim(&"two".into(), |claim| claim.provider_id = Some(id));
        let two = OwnerClaim::of(&store.claims[&"two".into()]);
        store.delete_claim(&"two".into()).unwrap();
        store.update_node(&node, |node| {
            node.owner_claims = vec![two];
            node.provider_id = Some(ProviderId::from("sim://nowhere/m-0"));
        });
    }
    assert_eq!(deleted(&stage, &node), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_its_finalizer_goes_only_when_somebody_has_just_taken_it_off() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    {
        let mut store = stage.cluster.store();
        store.delete_claim(&"one".into()).unwrap();
        store.update_node(&node, |node| node.finalizers.clear());
    }
    assert_eq!(deleted(&stage, &node), 0, "joiner may not know yet");
    sleep(UNKNOWN_FOR + Duration::from_mins(1)).await;
    assert_eq!(deleted(&stage, &node), 1);
}

#[tokio::test(start_paused = true)]
async fn the_node_of_a_nodeclaim_that_was_let_go_is_nobodys_to_delete_once_joiner_knows() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    {
        let mut store = stage.cluster.store();
        store.update_claim(&"one".into(), |claim| claim.finalizers.clear());
        store.delete_claim(&"one".into()).unwrap();
    }
    stage.settle().await;
    assert_eq!(deleted(&stage, &node), 0);
    sleep(UNKNOWN_FOR + Duration::from_mins(1)).await;
    assert_eq!(deleted(&stage, &node), 1);
}

/// How often it is said that a Node is let go too early once joiner has let it go.
fn let_go(stage: &Stage, node: &NodeName) -> usize {
    let patch = NodePatch { finalizers: Some(vec![]), ..NodePatch::of(&stage.node(node)) };
    stage.invariants.node_to_be_changed(node, &patch);
    stage.broken(Invariant::NodeFinalizerLast)
}

#[tokio::test(start_paused = true)]
async fn a_node_is_let_go_when_its_machine_is_gone_whatever_somebody_has_written_on_it() {
    let stage = Stage::new();
    let (id, node) = stage.serving(&draft("one")).await;
    stage.cluster.store().update_node(&node, |node| {
        node.owner_claims.clear();
        node.provider_id = Some(ProviderId::from("sim://nowhere/m-0"));
    });
    assert_eq!(let_go(&stage, &node), 1);
    let stage = Stage::new();
    let (gone, other) = stage.serving(&draft("one")).await;
    assert_eq!(gone, id, "it is the same world");
    stage.cloud.vanish(&gone);
    stage.settle().await;
    assert_eq!(let_go(&stage, &other), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_node_is_a_machines_when_its_own_nodeclaim_has_taken_it_and_not_one_of_that_name() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    for (uid, broken) in [("another".into(), 0), (stage.claim("one").uid.clone(), 1)] {
        let name = NodeName::from(format!("second-{broken}"));
        let owner_claims = vec![OwnerClaim { name: "one".into(), uid }];
        let second = Node { name: name.clone(), owner_claims, ..Node::clone(&stage.node(&node)) };
        stage.cluster.store().create_node(second).unwrap();
        assert_eq!(let_go(&stage, &name), broken);
    }
}

#[tokio::test(start_paused = true)]
async fn joiner_throws_no_pod_out_by_a_taint() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let taint = |key: &str, effect| {
        let seen = stage.node(&node);
        let taints = seen.taints.iter().cloned().chain([Taint::new(key, effect)]).collect();
        stage.invariants.node_to_be_changed(&node, &NodePatch { taints: Some(taints), ..NodePatch::of(&seen) });
        stage.broken(Invariant::BudgetsHold)
    };
    assert_eq!(taint("karpenter.sh/disrupted", Effect::NoSchedule), 0);
    stage
        .cluster
        .store()
        .update_claim(&"one".into(), |claim| claim.taints = vec![Taint::new("team", Effect::NoExecute)]);
    assert_eq!(taint("team", Effect::NoExecute), 0, "its NodePool asks for it");
    stage.cluster.store().update_node(&node, |node| node.taints = vec![Taint::new("mine", Effect::NoExecute)]);
    assert_eq!(taint("karpenter.sh/disrupted", Effect::NoSchedule), 0, "it was there");
    assert_eq!(taint("karpenter.sh/disrupted", Effect::NoExecute), 1);
}
