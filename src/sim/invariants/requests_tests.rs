//! What must have left a machine before it is ordered down, and which NodeClaims may be deleted.

use tokio::time::sleep;

use super::*;
use crate::clouds::Cloud;
use crate::core::facts::samples::volume_claim;
use crate::core::facts::{Effect, Pod, Status, Taint, Volume};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::time::rfc3339;
use crate::core::writes::NodePatch;
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

#[tokio::test(start_paused = true)]
async fn pods_are_waited_for_on_a_node_that_is_not_ready_but_not_once_the_order_was_given() {
    let (stage, id, node) = drained().await;
    stage.cluster.store().update_node(&node, |node| {
        node.conditions.iter_mut().for_each(|condition| condition.status = Status::False);
    });
    stage.invariants.order_arrived(&id);
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::PodsFirst), 0);
    let (stage, id, node) = drained().await;
    stage.cluster.store().update_node(&node, |node| {
        node.conditions.iter_mut().for_each(|condition| condition.status = Status::False);
    });
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::PodsFirst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_leaves_is_waited_for_until_it_is_stuck() {
    for (past, broken) in [(-300, 1), (59, 1), (61, 0)] {
        let (stage, id, node) = drained().await;
        {
            let mut store = stage.cluster.store();
            let pod = Arc::clone(store.pods_on(&node).next().unwrap());
            let deleting = Some(store.now() - SignedDuration::from_secs(past));
            store.pods.get_mut(&pod.uid).unwrap().pod = Arc::new(Pod { deleting, ..Pod::clone(&pod) });
        }
        stage.invariants.machine_to_be_deleted(&id);
        assert_eq!(stage.broken(Invariant::PodsFirst), broken, "{past} s past its end");
    }
}

/// A machine whose NodeClaim is gone, with a pod on its closed node: the auditor began to empty it six minutes later, if at all, and so many minutes
/// have passed since.
async fn orphaned(begun: bool, minutes: u64) -> (Stage, ProviderId) {
    let (stage, id, node) = drained().await;
    stage.cluster.store().update_claim(&"one".into(), |claim| claim.finalizers.clear());
    stage.settle().await;
    sleep(Duration::from_mins(6)).await;
    let end = stage.cluster.store().now() + SignedDuration::from_mins(10);
    if begun {
        let annotations = [(labels::ORPHAN_TERMINATION_TIMESTAMP.into(), rfc3339(end).into())].into();
        stage.invariants.node_to_be_changed(&node, &NodePatch { annotations, ..NodePatch::default() });
    }
    sleep(Duration::from_mins(minutes)).await;
    (stage, id)
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_an_orphan_have_their_ten_minutes_but_the_order_is_given_once() {
    for (begun, minutes, given, broken) in
        [(false, 10, false, 1), (true, 9, false, 1), (true, 9, true, 0), (true, 10, false, 0)]
    {
        let (stage, id) = orphaned(begun, minutes).await;
        if given {
            stage.invariants.order_arrived(&id);
        }
        stage.invariants.machine_to_be_deleted(&id);
        assert_eq!(stage.broken(Invariant::PodsFirst), broken, "{begun}, {minutes} min, {given}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namesake_that_was_made_anew_excuses_nothing_of_its_predecessors_and_claims_nothing() {
    let (stage, id) = orphaned(false, 1).await;
    let ended = |stage: &Stage| {
        let mut store = stage.cluster.store();
        store.create_claim(&draft("one")).unwrap();
        store.update_claim(&"one".into(), |claim| {
            claim.finalizers = vec!["example.com/hold".into()];
            claim.termination_grace = Some(Duration::ZERO);
        });
        store.delete_claim(&"one".into()).unwrap();
    };
    ended(&stage);
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::PodsFirst), 1, "its deadline is not that of another's machine");
    let finalizers = stage.broken(Invariant::FinalizerLast);
    stage.cluster.store().update_claim(&"one".into(), |claim| claim.finalizers.clear());
    stage.settle().await;
    assert_eq!(stage.broken(Invariant::FinalizerLast), finalizers, "the machine that still runs is not its own");
    stage.cluster.store().create_claim(&draft("one")).unwrap();
    sleep(Duration::from_hours(3)).await;
    assert_eq!(stage.broken(Invariant::NoOrphan), 1, "and a machine without a NodeClaim stays one");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_whose_node_is_open_keeps_its_pods_unless_a_policy_takes_the_taint_back() {
    for (begun, stripped, broken) in [(true, false, 1), (true, true, 0), (false, true, 1)] {
        let (stage, id) = orphaned(begun, 10).await;
        {
            let mut store = stage.cluster.store();
            store.strip(if stripped { &[labels::DISRUPTED_TAINT] } else { &[] });
            let name = nodes_of(&store, &id).next().unwrap().name.clone();
            store.update_node(&name, |node| node.taints.clear());
        }
        stage.invariants.machine_to_be_deleted(&id);
        assert_eq!(stage.broken(Invariant::PodsFirst), broken, "{begun}, {stripped}");
    }
}

/// A NodeClaim that somebody has deleted, and whose only pod goes, with a volume that stays attached, so many seconds after its grace period.
async fn deserted(late: i64) -> (Stage, ProviderId) {
    let (stage, id, node) = drained().await;
    let volume = Arc::<str>::from("disk");
    {
        let mut store = stage.cluster.store();
        store.apply_volume(Volume {
            name: Arc::clone(&volume),
            deleting: false,
            driver: Some("csi".into()),
            on_one_node: true,
            topologies: None,
        });
        store.apply_volume_claim(volume_claim("default", "data", Some(&volume)));
        store.attach(&volume, &node);
    }
    sleep(JUST_NOW + Duration::from_secs(1)).await;
    {
        let mut store = stage.cluster.store();
        let pod = Arc::clone(store.pods_on(&node).next().unwrap());
        let deleting = Some(store.now() - SignedDuration::from_secs(late));
        let leaving = Pod { volume_claims: vec!["data".into()], deleting, ..Pod::clone(&pod) };
        store.pods.get_mut(&pod.uid).unwrap().pod = Arc::new(leaving);
        store.remove_pod(&pod.uid);
    }
    (stage, id)
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_waited_for_but_not_at_once_when_a_pod_that_nobody_waited_for_lets_it_go() {
    let (stage, id) = deserted(59).await;
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::VolumesFirst), 1, "the pod was waited for, and its volume is too");
    let (stage, id) = deserted(61).await;
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::VolumesFirst), 0, "it was stuck until now");
    sleep(JUST_NOW + Duration::from_secs(1)).await;
    stage.invariants.machine_to_be_deleted(&id);
    assert_eq!(stage.broken(Invariant::VolumesFirst), 1, "that its pod is gone is known by now");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_second_node_is_no_reason_to_delete_a_nodeclaim() {
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    let twin =
        Node { name: "twin".into(), finalizers: vec!["example.com/hold".into()], ..Node::clone(&stage.node(&node)) };
    stage.cluster.store().create_node(twin).unwrap();
    stage.cluster.store().delete_node(&"twin".into(), None).unwrap();
    stage.invariants.nodeclaim_to_be_deleted(&"one".into(), &"uid-of-a-namesake".into());
    assert_eq!(stage.broken(Invariant::NoServingClaimDeleted), 0, "the API server refuses that");
    stage.invariants.nodeclaim_to_be_deleted(&"one".into(), &stage.claim("one").uid);
    assert_eq!(stage.broken(Invariant::NoServingClaimDeleted), 1);
    let stage = Stage::new();
    let (_, node) = stage.serving(&draft("one")).await;
    stage.cluster.store().delete_node(&node, None).unwrap();
    stage.invariants.nodeclaim_to_be_deleted(&"one".into(), &stage.claim("one").uid);
    assert_eq!(stage.broken(Invariant::NoServingClaimDeleted), 0, "somebody has deleted its Node");
}
