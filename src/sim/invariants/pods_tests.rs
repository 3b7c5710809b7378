//! How pods may be taken.

use tokio::time::sleep;

use super::*;
use crate::core::facts::{OwnerClaim, PodShape};
use crate::core::ids::NodeName;
use crate::core::time::rfc3339;
use crate::sim::invariants::stage::Stage;
use crate::sim::props::{add_pod, draft, shape};

/// A pod with a minute to end, on a node.
fn pod_on(stage: &Stage, node: &NodeName, do_not_disrupt: DoNotDisrupt) -> PodUid {
    let shape = Arc::new(PodShape { grace_seconds: 60, do_not_disrupt, ..shape("app", 100, 128) });
    let uid = add_pod(&stage.cluster, "pod", &shape);
    stage.cluster.store().bind(&uid, node);
    stage.cluster.store().start_pod(&uid);
    uid
}

/// A NodeClaim that has ten minutes to go, and was deleted so many seconds ago; a pod on its node.
async fn hurried(seconds: u64) -> (Stage, PodUid) {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    stage.cluster.store().update_claim(&"one".into(), |claim| claim.termination_grace = Some(Duration::from_mins(10)));
    let uid = pod_on(&stage, &node, DoNotDisrupt::Unsaid);
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    sleep(Duration::from_secs(seconds)).await;
    (stage, uid)
}

async fn taken(seconds: u64, grace: i64) -> usize {
    let (stage, uid) = hurried(seconds).await;
    stage.invariants.pod_to_be_deleted(&uid, grace);
    stage.broken(Invariant::BudgetsHold)
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_at_its_deadline_with_the_time_that_it_has_though_no_budget_protects_it() {
    assert_eq!(taken(500, 60).await, 1, "there are forty seconds more");
    assert_eq!(taken(540, 60).await, 0);
    assert_eq!(taken(540, 30).await, 1, "it has a minute");
    assert_eq!(taken(580, 20).await, 0, "there is no more");
    assert_eq!(taken(580, 1).await, 1);
    assert_eq!(taken(700, 1).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_joiner_wrote_as_the_deadline_lets_no_pod_be_deleted() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let uid = pod_on(&stage, &node, DoNotDisrupt::Unsaid);
    stage.cluster.store().update_claim(&"one".into(), |claim| {
        claim.annotations.insert(labels::TERMINATION_TIMESTAMP.into(), rfc3339(claim.created).into());
    });
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    stage.invariants.pod_to_be_deleted(&uid, 1);
    assert_eq!(stage.broken(Invariant::BudgetsHold), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_leaves_is_hurried_by_a_deadline_only() {
    for (grace, broken) in [(40, 0), (20, 1), (300, 0)] {
        let (stage, uid) = hurried(560).await;
        let key = stage.cluster.store().pods[&uid].pod.key.clone();
        // Somebody has given it five minutes.
        stage.cluster.store().delete_pod(&key, &uid, Some(Duration::from_mins(5))).unwrap();
        stage.invariants.pod_to_be_deleted(&uid, grace);
        assert_eq!(stage.broken(Invariant::BudgetsHold), broken, "{grace} s");
    }
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let uid = pod_on(&stage, &node, DoNotDisrupt::Unsaid);
    let key = stage.cluster.store().pods[&uid].pod.key.clone();
    stage.cluster.store().delete_pod(&key, &uid, None).unwrap();
    stage.invariants.pod_to_be_deleted(&uid, 60);
    assert_eq!(stage.broken(Invariant::BudgetsHold), 0, "it loses nothing");
    stage.invariants.pod_to_be_deleted(&uid, 1);
    assert_eq!(stage.broken(Invariant::BudgetsHold), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_that_of_the_machines_own_nodeclaim_whatever_somebody_has_written() {
    for (name, broken) in [("one", 0), ("two", 1)] {
        let stage = Stage::new();
        let (id, node) = stage.serving(&draft("one")).await;
        let (_, other) = stage.serving(&draft("two")).await;
        let uid = pod_on(&stage, &node, DoNotDisrupt::Unsaid);
        let mut store = stage.cluster.store();
        // NodeClaim `two` says that the machine is its own, and has taken the Node.
        let two = OwnerClaim::of(&store.claims[&"two".into()]);
        store.update_claim(&"two".into(), |claim| claim.provider_id = Some(id));
        store.update_node(&node, |node| node.owner_claims = vec![two]);
        store.update_claim(&name.into(), |claim| claim.termination_grace = Some(Duration::ZERO));
        store.delete_claim(&name.into()).unwrap();
        drop(store);
        stage.invariants.pod_to_be_deleted(&uid, 1);
        assert_eq!(stage.broken(Invariant::BudgetsHold), broken, "the deadline of {name}");
        let uid = add_pod(&stage.cluster, "other", &shape("app", 100, 128).into());
        stage.cluster.store().bind(&uid, &other);
        stage.invariants.pod_to_be_deleted(&uid, 1);
        assert_eq!(stage.broken(Invariant::BudgetsHold), 1, "of the machine of NodeClaim two");
    }
}

/// The Node of a machine that nobody knows is that of the NodeClaim which has taken it.
#[tokio::test(start_paused = true)]
async fn a_node_of_no_machine_has_the_deadline_of_its_owner() {
    for (taken, broken) in [(true, 0), (false, 1)] {
        let stage = Stage::new();
        let (_, node) = stage.serving(&draft("one")).await;
        let owner_claims = stage.node(&node).owner_claims.iter().filter(|_| taken).cloned().collect();
        let nowhere = Some("sim://nowhere/m-0".into());
        let second =
            Node { name: "second".into(), provider_id: nowhere, owner_claims, ..Node::clone(&stage.node(&node)) };
        stage.cluster.store().create_node(second).unwrap();
        let uid = pod_on(&stage, &"second".into(), DoNotDisrupt::Unsaid);
        stage.cluster.store().update_claim(&"one".into(), |claim| claim.termination_grace = Some(Duration::ZERO));
        stage.cluster.store().delete_claim(&"one".into()).unwrap();
        stage.invariants.pod_to_be_deleted(&uid, 1);
        assert_eq!(stage.broken(Invariant::BudgetsHold), broken, "{taken}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_an_orphan_are_deleted_when_they_had_ten_minutes_after_the_auditors_evidence() {
    // Evidence, how long ago the auditor began when it could write that down, and how long pods have had since then, in minutes.
    for (evidence, begun, drained, broken) in
        [(6, 0, 10, 0), (6, 0, 5, 1), (1, 0, 10, 1), (6, 1, 9, 0), (6, 1, 8, 1), (6, 5, 5, 1)]
    {
        let stage = Stage::new();
        let (_, node) = stage.serving(&draft("one")).await;
        let uid = pod_on(&stage, &node, DoNotDisrupt::Unsaid);
        stage.cluster.store().update_claim(&"one".into(), |claim| claim.finalizers.clear());
        stage.cluster.store().delete_claim(&"one".into()).unwrap();
        sleep(Duration::from_mins(evidence)).await;
        let end = stage.cluster.store().now() + EVACUATION - SignedDuration::from_mins(begun);
        let annotations = [(labels::ORPHAN_TERMINATION_TIMESTAMP.into(), rfc3339(end).into())].into();
        stage.invariants.node_to_be_changed(&node, &NodePatch { annotations, ..NodePatch::default() });
        sleep(Duration::from_mins(drained)).await;
        stage.invariants.pod_to_be_deleted(&uid, 1);
        assert_eq!(stage.broken(Invariant::BudgetsHold), broken, "{evidence} min, {begun} min, {drained} min");
    }
}

#[tokio::test(start_paused = true)]
async fn who_must_not_be_disrupted_is_not_asked_to_leave() {
    let half_an_hour = DoNotDisrupt::For(Duration::from_mins(30));
    for (said, broken) in [(DoNotDisrupt::Unsaid, 0), (DoNotDisrupt::Always, 1), (half_an_hour, 1)] {
        let stage = Stage::new();
        let (_, node) = stage.serving(&draft("one")).await;
        let uid = pod_on(&stage, &node, said);
        stage.invariants.pod_to_be_evicted(&uid);
        assert_eq!(stage.broken(Invariant::BudgetsHold), broken);
    }
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let uid = pod_on(&stage, &node, DoNotDisrupt::For(Duration::from_mins(30)));
    sleep(Duration::from_mins(31)).await;
    stage.invariants.pod_to_be_evicted(&uid);
    assert_eq!(stage.broken(Invariant::BudgetsHold), 0, "its time is over");
}
