//! Karpenter's suite of pod anti-affinity: pods that want to be away from others, and the others, who did not ask.
//!
//! Hosts, zones in one pass, both ways: `topology.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::labels::{ARCH, HOSTNAME, ZONE};
use crate::core::scheduling::{PlacedOn, Plan, Violation, check};

#[test]
fn hosts_are_kept_apart_whatever_the_order() {
    let shy = app("shy").of(100, 100).far(those_of("web", HOSTNAME));
    for turn in 0..10 {
        let scene = Scene::new()
            .with_pods(vec![pod("a", turn % 2, &shy), pod("b", (turn + 1) % 2, &web().of(100 + turn * 30 % 70, 100))]);
        assert_eq!(scene.solve().whole().per_node(), [1, 1]);
    }
}

#[test]
fn a_pod_that_no_zone_is_left_for_is_refused() {
    let mut scene = Scene::new();
    for zone in ZONES {
        scene = scene.with_pods(pods(zone, 1, &web().selecting(ZONE, zone)));
    }
    let plan = scene.with_pods(pods("shy", 1, &app("shy").of(10, 10).far(those_of("web", ZONE)))).solve();
    assert_eq!((plan.placed(), plan.left()), (3, 1));
    assert!(plan.why().contains(ZONE), "{}", plan.why());
}

#[test]
fn the_zone_of_an_unconstrained_pod_is_settled_so_that_others_can_avoid_it() {
    // Karpenter leaves the zone of the first node open, and the other pod waits for the next round.
    let shy = app("shy").of(10, 10).far(those_of("web", ZONE));
    let scene = Scene::new().with_pods(pods("web", 1, &web())).with_pods(pods("shy", 1, &shy));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan);
    assert_ne!(scene.whereabouts("web-00000", ZONE), scene.whereabouts("shy-00000", ZONE));
}

#[test]
fn another_architecture_is_as_far_as_another_zone() {
    let shy = app("shy").of(10, 10).far(those_of("web", ARCH));
    let scene = from(pool("default"))
        .with_pods(pods("web", 1, &web().selecting(ARCH, "arm64")))
        .with_pods(pods("shy", 1, &shy));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan);
    assert_eq!(scene.whereabouts("shy-00000", ARCH), Some("amd64"));
}

#[test]
fn a_pod_is_kept_out_of_zones_whose_pods_avoid_it() {
    let mut scene = Scene::new();
    for zone in ZONES {
        let shy = app("shy").of(600, 100).far(those_of("web", ZONE));
        scene = scene.with_pods(pods(zone, 1, &shy.selecting(ZONE, zone)));
    }
    let plan = scene.with_pods(pods("web", 1, &web())).solve();
    assert_eq!((plan.placed(), plan.left()), (3, 1));
}

#[test]
fn a_pod_is_kept_out_of_zones_where_pods_run_that_avoid_it() {
    let mut scene = Scene::new();
    for zone in ["zone-a", "zone-b"] {
        let shy = app("shy").far(those_of("web", ZONE));
        scene = scene.with_node(node(zone, 4, 4, &[(ZONE, zone)])).running(&format!("shy-{zone}"), zone, &shy);
    }
    assert_eq!(scene.place(&web()).only(ZONE), "zone-c");
}

#[test]
fn the_zone_of_a_pod_that_avoids_others_is_settled_so_that_they_can_go_elsewhere() {
    let shy = app("shy").of(2000, 100).far(those_of("web", ZONE));
    let scene = Scene::new().with_pods(pods("shy", 1, &shy)).with_pods(pods("web", 1, &web()));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan);
    assert_ne!(scene.whereabouts("web-00000", ZONE), scene.whereabouts("shy-00000", ZONE));
}

#[test]
fn what_others_merely_prefer_keeps_nobody_out() {
    let shy = app("shy").of(600, 100).rather_far(those_of("web", ZONE));
    let mut scene = Scene::new();
    for zone in ZONES {
        scene = scene.with_node(node(zone, 1, 1, &[(ZONE, zone)])).running(zone, zone, &shy);
        scene = scene.with_pods(pods(&format!("more-{zone}"), 1, &shy.clone().selecting(ZONE, zone)));
    }
    scene.with_pods(pods("web", 1, &web())).solve().whole();
}

#[test]
fn each_zone_takes_one_pod_and_then_there_are_no_more() {
    let lonely = web().far(those_of("web", ZONE));
    let scene = Scene::new().asking_for(pods("web", 2, &lonely));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan).asking_for(pods("more", 3, &lonely));
    let plan = scene.solve();
    assert_eq!((plan.left(), scene.after(&plan).skew(ZONE, "web")), (2, vec![1, 1, 1]));
}

#[test]
fn anti_affinity_is_scoped_to_namespaces() {
    let shy = app("shy").of(10, 10).far(those_of("web", HOSTNAME));
    let there = web().of(10, 10).in_namespace("other");
    let scene = Scene::new().with_node(node("old", 4, 4, &[])).running("there", "old", &there);
    assert_eq!(scene.place(&shy).existing.len(), 1);
}

/// A node on which the only pod, of this shape, is being deleted.
fn with_one_that_ends(shape: &crate::core::facts::PodShape) -> Scene {
    let mut scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, "zone-a")])).running("ends", "old", shape);
    let ending = scene
        .snapshot
        .pods
        .values()
        .next()
        .map(|pod| crate::core::facts::Pod { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..(**pod).clone() });
    scene.snapshot.pods.extend(ending.map(|pod| (pod.uid.clone(), std::sync::Arc::new(pod))));
    scene
}

#[test]
fn pods_that_end_are_kept_away_from_until_they_are_gone() {
    // kube-scheduler asks of both, whoever bears the term, whether they are still there.
    let (shy, calm) = (app("shy").of(100, 100).far(those_of("web", HOSTNAME)), web().of(100, 100));
    for (ends, comes) in [(&calm, &shy), (&shy, &calm)] {
        let scene = with_one_that_ends(ends).with_pods(pods("comes", 1, comes));
        let plan = scene.solve().whole();
        assert_eq!((plan.existing.len(), plan.claims.len()), (0, 1));
        // The checker agrees: on the node of the other the pod would wait.
        let pods = plan.claims.into_iter().flat_map(|claim| claim.pods).collect();
        let there = PlacedOn { node: Some("old".into()), claim: None, pods };
        let plan = Plan { existing: vec![there], ..Plan::default() };
        let apart = |found: &Violation| matches!(found, Violation::NotApart { .. });
        assert!(check(&scene.problem(), &plan).iter().any(apart));
    }
}
