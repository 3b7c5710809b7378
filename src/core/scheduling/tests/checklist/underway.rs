//! Karpenter's suite of in-flight nodes: machines that are bought and not yet full, at every step of their start.
//!
//! That a kept solver answers as a new one does: `kept.rs`. Pods that go back to the NodeClaim that was planned for them: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::facts::samples::condition;
use crate::core::facts::{Claim, Effect, Node, Owner, PodShape, Status, Taint};
use crate::core::labels::{ARCH, HOSTNAME, INITIALIZED, REGISTERED, ZONE};

/// Four cores of which one pod has taken half.
fn half_taken() -> Scene {
    Scene::new().with_both(starting("new", 4, 4, &[(ZONE, "zone-a"), (ARCH, "amd64")])).running(
        "first",
        "new",
        &web().of(2000, 512),
    )
}

#[track_caller]
fn assert_reused(scene: Scene, pod: &PodShape) {
    let plan = scene.place(pod);
    assert_eq!((plan.existing.len(), plan.claims.len()), (1, 0), "{:?}", plan.refused);
}

#[track_caller]
fn assert_new(scene: Scene, pod: &PodShape) {
    let plan = scene.place(pod);
    assert_eq!((plan.existing.len(), plan.claims.len()), (0, 1), "{:?}", plan.refused);
}

#[test]
fn a_second_pod_takes_the_node_that_is_on_its_way() {
    assert_reused(half_taken(), &web());
    let scene = Scene::new().with_pods(pods("a", 1, &web().of(100, 100)));
    let plan = scene.solve();
    let plan = scene.written(&plan).asking_for(pods("b", 1, &web().of(100, 100))).solve();
    assert_eq!((plan.existing.len(), plan.claims.len()), (1, 0));
}

#[test]
fn a_selector_that_meets_its_zone_takes_it_and_another_does_not() {
    assert_reused(half_taken(), &web().wanting(within(ZONE, &["zone-a", "zone-b"])));
    assert_new(half_taken(), &web().wanting(within(ZONE, &["zone-b"])));
}

#[test]
fn a_pod_that_does_not_fit_gets_another_node() {
    assert_reused(half_taken(), &web().of(2000, 512));
    assert_new(half_taken(), &web().of(2001, 512));
}

#[test]
fn another_architecture_gets_another_node() {
    let scene = half_taken().with_pool(pool("arm"), fake());
    assert_new(scene, &web().selecting(ARCH, "arm64"));
}

#[test]
fn a_nodeclaim_that_is_being_deleted_takes_nobody() {
    let (node, mut claim) = starting("new", 4, 4, &[]);
    claim.deleting = Some(jiff::Timestamp::UNIX_EPOCH);
    assert_new(Scene::new().with_both((node, claim)), &web());
}

#[test]
fn zonal_spread_over_two_rounds_reuses_nodes() {
    let spread = web().of(100, 100).spreading(even(ZONE, 1));
    let first = Scene::new().round(pods("a", 4, &spread));
    assert_eq!(first.skew(ZONE, "web"), [1, 1, 2]);
    let nodes = first.size();
    let second = first.round(pods("b", 5, &spread));
    assert_eq!((second.skew(ZONE, "web"), second.size()), (vec![3, 3, 3], nodes));
}

#[test]
fn host_spread_over_two_rounds_opens_new_nodes() {
    let spread = web().of(100, 100).spreading(even(HOSTNAME, 1));
    let scene = Scene::new().round(pods("a", 4, &spread)).round(pods("b", 5, &spread));
    assert_eq!(scene.skew(HOSTNAME, "web"), [1; 9]);
}

#[test]
fn taints_of_a_starting_node_do_not_count_and_those_of_a_started_one_do() {
    let not_ready = Taint::new("node.kubernetes.io/not-ready", Effect::NoExecute);
    let (node, claim) = starting("new", 4, 4, &[]);
    assert_reused(Scene::new().with_both((node.tainted(not_ready.clone()), claim)), &web());
    let (node, claim) = owned("old", 4, 4, &[]);
    assert_new(Scene::new().with_both((node.tainted(not_ready), claim)), &web());
}

#[test]
fn all_taints_that_go_by_themselves_are_looked_through_while_a_node_starts() {
    for gone_soon in [
        Taint::new("node.kubernetes.io/not-ready", Effect::NoSchedule),
        Taint::new("node.kubernetes.io/unreachable", Effect::NoSchedule),
        Taint::new("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule),
        Taint::new("karpenter.sh/unregistered", Effect::NoExecute),
        Taint::new("readiness.k8s.io/network", Effect::NoSchedule),
    ] {
        let (node, claim) = starting("new", 4, 4, &[]);
        assert_reused(Scene::new().with_both((node.tainted(gone_soon), claim)), &web());
    }
    let (node, claim) = starting("new", 4, 4, &[]);
    assert_new(Scene::new().with_both((node.tainted(taint("example.com/other")), claim)), &web());
}

#[test]
fn a_startup_taint_is_looked_through_until_the_node_is_initialized() {
    let with = |(node, mut claim): (Node, Claim)| {
        claim.startup_taints.push(taint("example.com/agent"));
        Scene::new().with_both((node.tainted(taint("example.com/agent")), claim))
    };
    assert_reused(with(starting("new", 4, 4, &[])), &web());
    assert_new(with(owned("old", 4, 4, &[])), &web());
}

#[test]
fn a_node_whose_machine_is_being_restarted_takes_the_pods_that_had_to_leave_it() {
    for while_it_restarts in [
        Taint::new("karpenter.sh/rebooting", Effect::NoSchedule),
        Taint::new("node.kubernetes.io/not-ready", Effect::NoExecute),
        Taint::new("node.kubernetes.io/unreachable", Effect::NoExecute),
    ] {
        let (node, mut claim) = owned("old", 4, 4, &[]);
        claim.conditions.push(condition("Rebooting", Status::True));
        assert_reused(Scene::new().with_both((node.tainted(while_it_restarts.clone()), claim)), &web());
        let (node, mut claim) = owned("old", 4, 4, &[]);
        claim.conditions.push(condition("Rebooting", Status::False));
        assert_new(Scene::new().with_both((node.tainted(while_it_restarts), claim)), &web());
    }
}

#[test]
fn a_custom_taint_of_an_initialized_node_keeps_pods_away() {
    let (node, claim) = owned("old", 4, 4, &[]);
    assert_new(Scene::new().with_both((node.tainted(taint("team")), claim)), &web());
    let (node, claim) = owned("old", 4, 4, &[]);
    assert_reused(Scene::new().with_both((node.tainted(taint("team")), claim)), &web().tolerating("team"));
}

#[test]
fn a_node_that_has_no_taints_yet_has_those_of_its_nodeclaim() {
    let unregistered = || {
        let (mut node, mut claim) = starting("new", 4, 4, &[]);
        node.labels.remove(REGISTERED);
        claim.taints.push(taint("team"));
        Scene::new().with_both((node, claim))
    };
    assert_new(unregistered(), &web());
    assert_reused(unregistered(), &web().tolerating("team"));
}

#[test]
fn whatever_comes_in_batches_leaves_room_on_one_node_at_most() {
    // Four cores, of which a node keeps some: three pods each.
    let mut scene = buying(vec![ladder(4).remove(3)]);
    for (batch, count) in [7, 3, 9, 1, 4, 8, 2, 6, 5, 9].into_iter().enumerate() {
        scene = scene.round(pods(&format!("batch-{batch}"), count, &web().of(1000, 100)));
        let counts = scene.skew(HOSTNAME, "web");
        let most = *counts.last().unwrap();
        assert!(most >= 3 && counts.iter().filter(|count| **count < most).count() <= 1, "after {batch}: {counts:?}");
    }
}

#[test]
fn an_initialized_node_comes_before_those_that_start() {
    let mut scene = Scene::new();
    for at in 0..100 {
        scene = scene.with_both(starting(&format!("a{at}"), 4, 4, &[]));
    }
    let scene = scene.with_both(owned("zz", 4, 4, &[]));
    assert_eq!(scene.place(&web()).existing[0].node, Some("zz".into()));
}

#[test]
fn room_for_daemons_is_kept_until_they_run_and_not_twice() {
    let daemon = shape(1000, 512);
    let scene = || Scene::new().with_both(owned("old", 4, 4, &[])).with_daemon("log", daemon.clone());
    assert_reused(scene(), &web().of(3000, 512));
    assert_new(scene(), &web().of(3001, 512));
    let mut runs = daemon.clone();
    runs.owner = Owner::DaemonSet;
    assert_reused(scene().running("log-1", "old", &runs), &web().of(3000, 512));
    assert_new(scene().running("log-1", "old", &runs), &web().of(3001, 512));
}

#[test]
fn a_daemon_that_was_not_expected_takes_no_room_from_the_others() {
    // It runs, though its DaemonSet does not belong here: its core is gone, and what `log` still needs is not less than nothing.
    let odd = PodShape { owner: Owner::DaemonSet, ..shape(1000, 512) };
    let scene = || {
        let scene = Scene::new().with_both(owned("old", 4, 4, &[])).with_daemon("log", shape(500, 512));
        scene.with_daemon("odd", odd.clone().selecting("absent", "x")).running("odd-1", "old", &odd)
    };
    assert_reused(scene(), &web().of(3000, 512));
    assert_new(scene(), &web().of(3001, 512));
}

#[test]
fn daemons_that_wait_for_karpenters_labels_are_counted_and_the_labels_are_not_written() {
    let mut waits = shape(1000, 512);
    waits.node_selector = labels(&[(INITIALIZED, "true"), (REGISTERED, "true")]);
    let plan = buying(ladder(4)).with_daemon("late", waits).place(&web().of(1000, 512));
    assert_eq!(plan.cheapest(), ["fake-3"]);
    assert!(!plan.speaks_of(INITIALIZED) && !plan.speaks_of(REGISTERED));
}

#[test]
fn asking_again_for_the_same_pod_makes_no_second_node() {
    let scene = Scene::new().with_pods(pods("web", 1, &web()));
    let plan = scene.solve();
    let again = scene.written(&plan).asking_for(pods("web", 1, &web()));
    assert!(again.solve().claims.is_empty());
}

#[test]
fn pods_with_one_host_port_do_not_share_a_node_that_starts() {
    let scene = Scene::new().with_both(starting("new", 4, 4, &[])).running("first", "new", &web().on_port(80));
    assert_new(scene, &web().on_port(80));
}
