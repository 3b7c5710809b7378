//! Karpenter's suite of volumes, as far as `../volumes.rs` and `core/scheduling/volumes_tests.rs` do not have it.
//!
//! There: zones of bound volumes and of classes, attach limits, shared claims, default classes, what is wrong with a claim, alternatives
//! that are put together. Ephemeral volumes are claims by the time that they are here (`tests/plan.rs`), hostname terms of local
//! volumes count for nodes that are there only (`../volumes.rs`).

use super::super::build::*;
use super::super::volumes::mounting;
use super::words::*;
use crate::core::labels::ZONE;

#[test]
fn volumes_of_several_zones_and_zonal_anti_affinity_take_two_zones() {
    let lonely = web().far(those_of("web", ZONE));
    let scene = Scene::new().bound_in("a", &["zone-a", "zone-b"]).bound_in("b", &["zone-a", "zone-b"]);
    let scene = scene.round(vec![mounting("web-a", &lonely, &["a"]), mounting("web-b", &lonely, &["b"])]);
    assert_eq!(scene.skew(ZONE, "web"), [1, 1]);
}

#[test]
fn classes_of_several_zones_and_zonal_anti_affinity_take_two_zones() {
    let lonely = web().far(those_of("web", ZONE));
    let scene = Scene::new().with_storage_class("zonal", &["zone-a", "zone-b"], false);
    let scene = scene.with_volume_claim("a", Some("zonal"), None).with_volume_claim("b", Some("zonal"), None);
    let scene = scene.round(vec![mounting("web-a", &lonely, &["a"]), mounting("web-b", &lonely, &["b"])]);
    assert_eq!(scene.skew(ZONE, "web"), [1, 1]);
}

#[test]
fn two_volumes_of_one_pod_meet_in_the_zone_that_both_reach() {
    let scene = Scene::new().bound_in("a", &["zone-a", "zone-b"]).bound_in("b", &["zone-b", "zone-c"]);
    let plan = scene.with_pods(vec![mounting("db", &web(), &["a", "b"])]).solve().whole();
    assert_eq!(plan.only(ZONE), "zone-b");
}

#[test]
fn two_volumes_of_one_pod_that_never_meet_are_refused() {
    let scene = Scene::new().bound_in("a", &["zone-a"]).bound_in("b", &["zone-b"]);
    assert_eq!(scene.with_pods(vec![mounting("db", &web(), &["a", "b"])]).solve().left(), 1);
}

#[test]
fn a_volume_outlives_the_alternatives_of_the_pod() {
    // The first alternative cannot be met; the second can, and the volume's zone still counts.
    let scene = Scene::new().bound_in("data", &["zone-b"]);
    let torn = web().wanting(within(ZONE, &["nowhere"])).or_wanting(within(ZONE, &["zone-a", "zone-b"]));
    let plan = scene.with_pods(vec![mounting("db", &torn, &["data"])]).solve().whole();
    assert_eq!(plan.only(ZONE), "zone-b");
}

#[test]
fn volumes_fill_a_second_node_before_the_limit_is_exceeded() {
    let mut scene = Scene::new().with_node(node("old", 64, 256, &[(ZONE, "zone-a")])).with_limit("old", Some(10));
    for at in 0..12 {
        scene = scene.bound_in(&format!("data-{at}"), &["zone-a"]);
    }
    let six = (0..6).map(|at| {
        mounting(
            &format!("db-{at}"),
            &web().of(10, 10),
            &[&format!("data-{}", 2 * at), &format!("data-{}", 2 * at + 1)],
        )
    });
    let plan = scene.with_pods(six.collect()).solve().whole();
    assert_eq!((plan.existing[0].pods.len(), plan.claims.len()), (5, 1));
}

#[test]
fn a_claim_that_all_share_takes_one_slot() {
    let scene = Scene::new().with_node(node("old", 64, 256, &[(ZONE, "zone-a")])).with_limit("old", Some(1));
    let hundred = (0..100).map(|at| mounting(&format!("web-{at}"), &web().of(10, 10), &["shared"]));
    let plan = scene.bound_in("shared", &["zone-a"]).with_pods(hundred.collect()).solve().whole();
    assert_eq!((plan.existing[0].pods.len(), plan.claims.len()), (100, 0));
}

/// Two zones that hold one pod of `web` each, and whose nodes are full.
fn two_full_zones() -> Scene {
    let web = web();
    let full = |name: &str, zone: &str| node(name, 0, 0, &[(ZONE, zone)]);
    let scene = Scene::new().with_node(full("a", "zone-a")).with_node(full("c", "zone-c"));
    scene.running("web-0", "a", &web).running("web-1", "c", &web).bound_in("data", &["zone-a"])
}

#[test]
fn a_pod_with_its_volume_in_one_zone_does_not_wait_for_zones_that_nobody_opens() {
    let db = mounting("web-2", &web().spreading(even(ZONE, 1)), &["data"]);
    let plan = two_full_zones().with_pods(vec![db]).solve().whole();
    assert_eq!(plan.only(ZONE), "zone-a");
}

#[test]
fn zones_that_have_a_node_count_for_it_as_for_the_scheduler() {
    let db = mounting("web-2", &web().spreading(even(ZONE, 1)), &["data"]);
    let scene = two_full_zones().with_node(node("b", 0, 0, &[(ZONE, "zone-b")]));
    assert_eq!(scene.with_pods(vec![db]).solve().left(), 1);
}

#[test]
fn so_does_a_zone_that_others_open_in_the_same_plan() {
    let db = mounting("web-2", &web().spreading(even(ZONE, 1)), &["data"]);
    let other = pod("other", 9, &app("other").selecting(ZONE, "zone-b"));
    let plan = two_full_zones().with_pods(vec![db, other]).solve();
    assert_eq!((plan.left(), plan.only(ZONE)), (1, "zone-b".to_owned()));
}
