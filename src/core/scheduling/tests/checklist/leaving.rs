//! Karpenter's suite of nodes that are going: where their pods could go.
//!
//! Whose pods are asked about: `core/leaving_tests.rs`; that a leaving node takes nobody: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::facts::Owner;
use crate::core::labels::{HOSTNAME, ZONE};

/// A node on its way out with two pods, which are asked about.
fn leaving(shape: &crate::core::facts::PodShape) -> Scene {
    let (node, mut claim) = owned("old", 4, 4, &[(ZONE, "zone-a")]);
    claim.deleting = Some(jiff::Timestamp::UNIX_EPOCH);
    let mut scene =
        from(pool("default")).with_both((node, claim)).running("a", "old", shape).running("b", "old", shape);
    scene.pods = scene.snapshot.pods.values().cloned().collect();
    scene
}

#[test]
fn pods_of_a_leaving_node_get_a_node_of_the_same_size() {
    let plan = leaving(&web()).solve().whole();
    assert_eq!((plan.per_node(), plan.cheapest()), (vec![2], vec!["small"]));
}

#[test]
fn pods_of_a_leaving_node_and_new_ones_share_a_node() {
    let mut scene = leaving(&web().of(100, 100));
    scene.pods.extend(pods("new", 2, &web().of(100, 100)));
    let plan = scene.solve().whole();
    assert_eq!((plan.per_node(), plan.existing.len()), (vec![4], 0));
}

#[test]
fn pods_that_leave_do_not_count_where_they_were() {
    // Had they stayed, zone-a would be two ahead, and the anti-affinity would keep them from each other.
    let plan = leaving(&web().spreading(even(ZONE, 1))).solve().whole();
    assert_eq!(plan.claims.len(), 2);
    let plan = leaving(&web().far(those_of("web", HOSTNAME))).solve().whole();
    assert_eq!(plan.per_node(), [1, 1]);
}

#[test]
fn pods_that_wait_are_placed_as_if_nobody_had_left_yet() {
    // One in zone-a that leaves, one in zone-b: as long as it has not left, and a budget may hold it until the one that waits is ready, only
    // zone-c may take another. Then zone-a has room for one that takes its place.
    let even = web().spreading(even(ZONE, 1));
    let (old, mut claim) = owned("old", 1, 1, &[(ZONE, "zone-a")]);
    claim.deleting = Some(jiff::Timestamp::UNIX_EPOCH);
    let scene = from(pool("default")).with_both((old, claim)).running("leaver", "old", &even);
    let scene = scene.with_node(node("spare", 1, 1, &[(ZONE, "zone-a")]));
    let mut scene = scene.with_node(node("full", 0, 0, &[(ZONE, "zone-b")])).running("b", "full", &even);
    scene.pods = scene.snapshot.pods.values().filter(|pod| &*pod.key.name == "leaver").cloned().collect();
    scene.pods.push(pod("waits", 9, &even));
    let plan = scene.solve().whole();
    assert_eq!(plan.only(ZONE), "zone-c");
    assert_eq!(&*plan.claims[0].pods[0].key.name, "waits");
    assert_eq!((&*plan.existing[0].pods[0].key.name, plan.existing.len()), ("leaver", 1));
}

#[test]
fn pods_that_end_are_not_counted_by_spread_constraints_but_keep_others_away() {
    let even = web().of(100, 100).spreading(even(ZONE, 1));
    let mut scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, "zone-a")])).running("a", "old", &even);
    let (uid, pod) = scene.snapshot.pods.iter().next().map(|(uid, pod)| (uid.clone(), (**pod).clone())).unwrap();
    let ending = crate::core::facts::Pod { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..pod };
    scene.snapshot.pods.insert(uid, ending.into());
    // It counts for nothing, so its zone is as good as the others, and its node is free.
    assert_eq!(scene.place(&even).existing.len(), 1);
}

#[test]
fn room_of_daemons_that_leave_is_kept_for_those_that_come() {
    let mut daemon = shape(1000, 512);
    daemon.owner = Owner::DaemonSet;
    let mut scene = Scene::new()
        .with_node(node("old", 2, 4, &[]))
        .with_daemon("log", shape(1000, 512))
        .running("log-1", "old", &daemon);
    scene.pods = pods("web", 1, &web().of(1001, 512));
    assert!(scene.solve().existing.is_empty());
}
