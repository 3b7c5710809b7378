//! When joiner may let a NodeClaim go.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::clouds::{Cloud, LaunchSpec};
use crate::core::labels;
use crate::sim::invariants::stage::Stage;
use crate::sim::props::{draft, launch};

/// How often the promise is broken once joiner has let the NodeClaim go.
fn let_go(stage: &Stage) -> usize {
    let name = ClaimName::from("one");
    let version = Some(Arc::clone(&stage.claim("one").version));
    let patch = ClaimPatch { version, finalizers: Some(vec!["example.com/hold".into()]), ..ClaimPatch::default() };
    stage.invariants.nodeclaim_to_be_changed(&name, &patch);
    stage.broken(Invariant::FinalizerLast)
}

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_is_let_go_when_its_machine_is_gone_and_not_when_it_is_going() {
    let stage = Stage::new();
    let (id, _) = stage.serving(&draft("one")).await;
    {
        let mut store = stage.cluster.store();
        store.update_claim(&"one".into(), |claim| claim.finalizers.push("example.com/hold".into()));
        store.delete_claim(&"one".into()).unwrap();
    }
    let outdated = ClaimPatch { version: Some("0".into()), finalizers: Some(vec![]), ..ClaimPatch::default() };
    stage.invariants.nodeclaim_to_be_changed(&"one".into(), &outdated);
    let others = ClaimPatch { finalizers: Some(vec![labels::TERMINATION_FINALIZER.into()]), ..ClaimPatch::default() };
    stage.invariants.nodeclaim_to_be_changed(&"one".into(), &others);
    assert_eq!(stage.broken(Invariant::FinalizerLast), 0);
    stage.cloud.delete(&id).await.unwrap();
    stage.settle().await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(let_go(&stage), 0, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_that_others_keep_is_not_let_go_before_its_machine_is_gone() {
    let stage = Stage::new();
    let (id, _) = stage.serving(&draft("one")).await;
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    stage.cloud.delete(&id).await.unwrap();
    stage.settle().await;
    assert_eq!(let_go(&stage), 1, "it goes, and is there");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_going_is_not_forgotten_for_another() {
    let stage = Stage::new();
    let (id, _) = stage.serving(&draft("one")).await;
    stage.cloud.delete(&id).await.unwrap();
    // The launch of another, which was on its way.
    let spec = LaunchSpec { token: "of another launch".into(), ..launch(&stage.claim("one"), 4) };
    stage.cloud.create(&spec).await.unwrap();
    stage.settle().await;
    assert_eq!(stage.broken(Invariant::OneMachine), 0, "the first one goes");
    assert_eq!(let_go(&stage), 2, "neither is gone");
}

#[tokio::test(start_paused = true)]
async fn a_second_machine_is_noted_whatever_token_asked_for_it() {
    let stage = Stage::new();
    stage.serving(&draft("one")).await;
    let spec = LaunchSpec { token: "of another launch".into(), ..launch(&stage.claim("one"), 4) };
    stage.cloud.create(&spec).await.unwrap();
    stage.settle().await;
    assert_eq!(stage.broken(Invariant::OneMachine), 1);
}
