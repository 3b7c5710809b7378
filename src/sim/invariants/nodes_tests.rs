//! Which Nodes joiner may delete.

use std::time::Duration;

use tokio::time::sleep;

use super::*;
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
        store.delete_claim(&"two".into()).unwrap();
        store.update_node(&node, |node| {
            node.owner_claims = vec!["two".into()];
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
