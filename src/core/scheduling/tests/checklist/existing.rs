//! Karpenter's suite of existing nodes, also those that joiner does not own, and of pods that nobody has bound yet.
//!
//! Nodes that are cordoned, deleted or left out: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::facts::{Node, PodShape};
use crate::core::labels::{ARCH, ZONE};

fn large(name: &str, pairs: &[(&str, &str)]) -> Node {
    node(name, 64, 256, pairs)
}

#[test]
fn a_node_of_somebody_else_takes_what_it_can_hold() {
    for count in [1, 100] {
        let plan = Scene::new().with_node(large("old", &[])).with_pods(pods("web", count, &web())).solve().whole();
        assert_eq!((plan.existing[0].pods.len(), plan.claims.len()), (count, 0));
    }
}

#[test]
fn nodes_are_used_when_there_is_no_pool_at_all() {
    let scene = || Scene::default().with_node(large("old", &[]));
    assert_eq!(scene().place(&web()).existing.len(), 1);
    assert!(scene().place(&web().of(65_000, 512)).why().contains("NodePool"));
}

#[test]
fn a_pod_that_a_node_does_not_suit_goes_to_a_new_one() {
    let arm = web().selecting(ARCH, "arm64");
    let old = || large("old", &[(ARCH, "amd64")]);
    assert_eq!(Scene::default().with_node(old()).place(&arm).left(), 1);
    assert_eq!(from(pool("default")).with_node(old()).place(&arm).cheapest(), ["arm"]);
}

#[test]
fn a_label_that_a_node_does_not_have_is_absent() {
    // A NodeClaim may still come to have any zone; a node that is there has none.
    let plan = Scene::new().with_node(large("old", &[])).place(&web().selecting(ZONE, "zone-a"));
    assert_eq!((plan.existing.len(), plan.claims.len()), (0, 1));
}

/// Differs: Karpenter looks at no pod that asks for a label of its own domain beside those of its API.
#[test]
fn a_pod_may_ask_for_a_restricted_label_that_a_node_has() {
    let asks = web().selecting("karpenter.sh/team", "red");
    let scene = || Scene::new().with_node(large("old", &[("karpenter.sh/team", "red")]));
    assert_eq!(scene().place(&asks).existing.len(), 1);
    assert_eq!(Scene::new().with_node(large("old", &[])).place(&asks).left(), 1, "no new node can have it");
    let or_a_zone = web().wanting(within("karpenter.sh/team", &["red"])).or_wanting(within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&or_a_zone).whole().claims.len(), 1);
}

#[test]
fn a_daemon_that_does_not_belong_on_a_node_takes_nothing_there_and_is_paid_for_elsewhere() {
    let gpu_only = PodShape { node_selector: labels(&[("example.com/gpu", "true")]), ..shape(1500, 512) };
    let labelled = pool("default").labelled("example.com/gpu", "true");
    let scene = || {
        Scene::default()
            .with_pool(labelled.clone(), ladder(8))
            .with_node(node("old", 2, 4, &[]))
            .with_daemon("gpu", gpu_only.clone())
    };
    assert_eq!(scene().place(&web().of(2000, 512)).existing.len(), 1);
    assert_eq!(scene().place(&web().of(2500, 512)).cheapest(), ["fake-5"]);
}

#[test]
fn extended_resources_that_the_kubelet_has_not_reported_are_those_of_the_nodeclaim() {
    let (mut node, mut claim) = starting("new", 4, 4, &[]);
    claim.capacity.set("example.com/gpu-a".into(), 2000);
    claim.allocatable.set("example.com/gpu-a".into(), 2000);
    node.allocatable.set("example.com/gpu-a".into(), 0);
    let plan = from(pool("default")).with_both((node, claim)).place(&web().asking("example.com/gpu-a", 1));
    assert_eq!((plan.existing.len(), plan.claims.len()), (1, 0));
}

#[test]
fn pods_that_nobody_has_bound_yet_keep_their_room() {
    let scene = Scene::new().with_pods(pods("first", 2, &web()));
    let plan = scene.solve();
    let nodes = plan.claims.len();
    let mut all = scene.pods.clone();
    all.extend(pods("second", 1, &web().of(50, 50)));
    let again = scene.written(&plan).asking_for(all).solve().whole();
    assert_eq!((again.existing.len(), again.claims.len()), (nodes, 0));
}

#[test]
fn pods_that_want_to_be_together_and_are_not_bound_go_to_the_same_node_again() {
    let together = web().of(100, 100).near(those_of("web", ZONE));
    let scene = Scene::new().with_pods(pods("first", 1, &together));
    let plan = scene.solve();
    let mut all = scene.pods.clone();
    all.extend(pods("second", 1, &together));
    let again = scene.written(&plan).asking_for(all).solve().whole();
    assert_eq!((again.existing.len(), again.claims.len()), (1, 0));
}

#[test]
fn pods_that_have_ended_take_no_room() {
    let mut scene = Scene::new().with_node(node("old", 1, 1, &[])).running("job", "old", &web().of(1000, 512));
    let (uid, job) = scene.snapshot.pods.iter().next().map(|(uid, pod)| (uid.clone(), (**pod).clone())).unwrap();
    let ended = crate::core::facts::Pod { phase: crate::core::facts::PodPhase::Succeeded, ..job };
    scene.snapshot.pods.insert(uid, ended.into());
    assert_eq!(scene.place(&web()).existing.len(), 1);
}

#[test]
fn who_schedules_a_pod_that_runs_does_not_matter_to_the_room_that_it_takes() {
    let mut foreign = shape(60_000, 1024);
    foreign.scheduler = Some("other".into());
    let scene = || Scene::new().with_node(large("old", &[]));
    assert_eq!(scene().place(&web().of(8000, 512)).existing.len(), 1);
    let plan = scene().running("theirs", "old", &foreign).place(&web().of(8000, 512));
    assert_eq!((plan.existing.len(), plan.claims.len()), (0, 1));
}
