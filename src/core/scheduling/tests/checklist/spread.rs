//! Karpenter's suite of spread constraints: zones, hosts, capacity types, and what domains there are.
//!
//! Even zones, skew per host, minDomains, unknown keys, pods without the constraint: `topology.rs`.

use super::super::super::Plan;
use super::super::build::*;
use super::words::*;
use crate::core::facts::{PodPhase, Selector};
use crate::core::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE};
use crate::core::requirements::Operator::In;

/// Nodes of one core, one in each zone, full but for the given number of pods of `web`.
fn full(counts: [usize; 3]) -> Scene {
    let mut scene = Scene::new();
    for (zone, count) in ZONES.into_iter().zip(counts) {
        scene = scene.with_node(node(zone, 1, 1, &[(ZONE, zone)]).with_room(i64::try_from(count).unwrap()));
        for at in 0..count {
            scene = scene.running(&format!("{zone}-{at}"), zone, &web().of(10, 10));
        }
    }
    scene
}

#[test]
fn a_constraint_without_a_selector_counts_nobody() {
    let mut open = web();
    open.spreads.push(crate::core::facts::TopologySpread { selector: None, ..even(ZONE, 1) });
    let plan = Scene::new().with_pods(pods("web", 2, &open)).solve().whole();
    assert_eq!(plan.per_node(), [2]);
}

#[test]
fn labels_and_expressions_select_alike() {
    let mut picky = web();
    let selector = Selector { labels: labels(&[]), expressions: vec![says("app", In, &["web", "other"])] };
    picky.spreads.push(crate::core::facts::TopologySpread { selector: Some(selector), ..even(ZONE, 1) });
    assert_eq!(Scene::new().round(pods("web", 4, &picky)).skew(ZONE, "web"), [1, 1, 2]);
}

#[test]
fn a_pool_that_lists_all_zones_has_all_zones() {
    let scene = from(pool("default").requiring(within(ZONE, &ZONES)));
    assert_eq!(scene.round(pods("web", 4, &web().spreading(even(ZONE, 1)))).skew(ZONE, "web"), [1, 1, 2]);
}

#[test]
fn zones_that_no_pool_offers_are_no_domains() {
    let spread = web().spreading(even(ZONE, 1));
    let two = from(pool("default").requiring(within(ZONE, &["zone-a", "zone-b"])));
    assert_eq!(two.round(pods("web", 4, &spread)).skew(ZONE, "web"), [2, 2]);
    let one = from(pool("default").labelled(ZONE, "zone-a"));
    assert_eq!(one.round(pods("web", 4, &spread)).skew(ZONE, "web"), [4]);
    let both = from(pool("default").labelled(ZONE, "zone-a").requiring(within(ZONE, &["zone-a", "zone-b"])));
    assert_eq!(both.round(pods("web", 4, &spread)).skew(ZONE, "web"), [4]);
}

#[test]
fn zones_of_several_pools_add_up() {
    let scene = from(pool("a").labelled(ZONE, "zone-a")).with_pool(pool("b").labelled(ZONE, "zone-b"), fake());
    assert_eq!(scene.round(pods("web", 4, &web().spreading(even(ZONE, 1)))).skew(ZONE, "web"), [2, 2]);
}

#[test]
fn a_zone_that_only_a_node_has_is_a_domain() {
    // zone-c holds one pod and takes no more; the pool reaches the two others: 2, 2 and 1.
    let mut scene = from(pool("default").requiring(within(ZONE, &["zone-a", "zone-b"])));
    scene = scene.with_node(node("c", 1, 1, &[(ZONE, "zone-c")]).with_room(1)).running("c-0", "c", &web().of(10, 10));
    let scene = scene.asking_for(pods("web", 6, &web().spreading(even(ZONE, 1))));
    let plan = scene.solve();
    assert_eq!(plan.left(), 2);
    assert!(plan.why().contains("zone-c=1"), "{}", plan.why());
    assert_eq!(scene.after(&plan).skew(ZONE, "web"), [1, 2, 2]);
}

#[test]
fn a_large_skew_allows_a_lopsided_cluster() {
    let mut scene = full([1, 1, 0]);
    scene.snapshot.pools.clear();
    let scene = scene.with_pool(pool("default").requiring(within(ZONE, &["zone-c"])), types());
    let scene = scene.asking_for(pods("web", 10, &web().spreading(even(ZONE, 5))));
    let plan = scene.solve();
    assert_eq!((plan.left(), scene.after(&plan).skew(ZONE, "web")), (4, vec![1, 1, 6]));
}

#[test]
fn the_emptiest_domains_are_filled_first() {
    let scene = full([3, 0, 0]).round(pods("web", 3, &web().spreading(even(ZONE, 1))));
    assert_eq!(scene.skew(ZONE, "web"), [1, 2, 3]);
}

#[test]
fn only_pods_that_run_in_the_namespace_and_match_are_counted() {
    let mut scene = full([1, 1, 0]);
    let here = node("more", 1, 1, &[(ZONE, "zone-c")]).with_room(2);
    scene = scene.with_node(here).with_node(node("nowhere", 1, 1, &[]).with_room(1));
    scene = scene.running("other-app", "more", &app("db").of(10, 10));
    scene = scene.running("other-space", "more", &web().of(10, 10).in_namespace("elsewhere"));
    scene = scene.running("ended", "more", &web().of(10, 10));
    scene = scene.running("no-domain", "nowhere", &web().of(10, 10));
    let ended = scene.snapshot.pods.values().find(|pod| &*pod.key.name == "ended").map(|pod| (**pod).clone()).unwrap();
    let ended = crate::core::facts::Pod { phase: PodPhase::Failed, ..ended };
    scene.snapshot.pods.insert(ended.uid.clone(), ended.into());
    let plan = scene.asking_for(pods("web", 2, &web().spreading(even(ZONE, 1)))).solve().whole();
    let zones: Vec<_> = (0..plan.claims.len()).filter_map(|at| pinned(&plan, at, ZONE)).collect();
    assert!(zones.contains(&"zone-c"), "nothing of what stands in zone-c counts: {zones:?}");
}

#[test]
fn a_constraint_that_does_not_mean_the_pod_itself_lets_pods_share_a_node() {
    let other = app("other").of(100, 100).spreading(even(HOSTNAME, 1));
    assert_eq!(Scene::new().with_pods(pods("other", 5, &other)).solve().per_node(), [5]);
}

#[test]
fn enough_domains_make_min_domains_no_constraint() {
    let mut spread = even(ZONE, 1);
    spread.min_domains = Some(3);
    assert_eq!(Scene::new().round(pods("web", 11, &web().spreading(spread.clone()))).skew(ZONE, "web"), [3, 4, 4]);
    spread.min_domains = Some(2);
    assert_eq!(Scene::new().round(pods("web", 11, &web().spreading(spread))).skew(ZONE, "web"), [3, 4, 4]);
}

#[test]
fn deployments_that_spread_over_hosts_share_them() {
    let of = |name: &str| app(name).of(100, 100).spreading(spread(HOSTNAME, 1, &[("app", name)]));
    let scene = Scene::new().with_pods(pods("a", 2, &of("a"))).with_pods(pods("b", 2, &of("b")));
    assert_eq!(scene.solve().whole().per_node(), [2, 2]);
    let scene = from(pool("default")).with_pods(pods("a", 2, &of("a").selecting(ARCH, "amd64"))).with_pods(pods(
        "b",
        2,
        &of("b").selecting(ARCH, "arm64"),
    ));
    assert_eq!(scene.solve().whole().per_node(), [1, 1, 1, 1]);
}

#[test]
fn capacity_types_are_domains() {
    let spread = web().spreading(even(CAPACITY_TYPE, 1));
    assert_eq!(Scene::new().round(pods("web", 4, &spread)).skew(CAPACITY_TYPE, "web"), [2, 2]);
    let both = from(pool("default").requiring(within(CAPACITY_TYPE, &[SPOT, ON_DEMAND])));
    assert_eq!(both.round(pods("web", 4, &spread)).skew(CAPACITY_TYPE, "web"), [2, 2]);
}

/// One pod on a full spot node, and a pool that makes on-demand nodes only.
fn spot_is_full() -> Scene {
    let scene = from(pool("default").requiring(within(CAPACITY_TYPE, &[ON_DEMAND])));
    let scene = scene.with_node(node("spot", 1, 1, &[(CAPACITY_TYPE, SPOT)]).with_room(1));
    scene.running("first", "spot", &web().of(10, 10))
}

#[test]
fn a_hard_constraint_on_capacity_types_keeps_pods_waiting() {
    let scene = spot_is_full().asking_for(pods("web", 5, &web().spreading(even(CAPACITY_TYPE, 1))));
    let plan = scene.solve();
    assert_eq!((plan.left(), scene.after(&plan).skew(CAPACITY_TYPE, "web")), (3, vec![1, 2]));
}

#[test]
fn a_soft_constraint_on_capacity_types_does_not() {
    let scene = spot_is_full().round(pods("web", 5, &web().spreading(rather_even(CAPACITY_TYPE, 1))));
    assert_eq!(scene.skew(CAPACITY_TYPE, "web"), [1, 5]);
}

#[test]
fn a_soft_constraint_is_met_where_it_can_be() {
    assert_eq!(Scene::new().round(pods("web", 6, &web().spreading(rather_even(ZONE, 1)))).skew(ZONE, "web"), [2, 2, 2]);
}

#[test]
fn preferred_node_affinity_does_not_limit_a_spread() {
    let wishful = web().spreading(even(ZONE, 1)).preferring(1, within(ZONE, &["zone-a", "zone-b"]));
    assert_eq!(Scene::new().round(pods("web", 6, &wishful)).skew(ZONE, "web"), [2, 2, 2]);
}

#[test]
fn the_skew_counts_domains_that_the_pool_cannot_fill_any_more() {
    // The pool of the third zone may make no node; its zone is a domain all the same, and stays empty.
    let scene = from(pool("two").requiring(within(ZONE, &["zone-a", "zone-b"])))
        .with_pool(pool("third").requiring(within(ZONE, &["zone-c"])).limited("cpu", 0), fake());
    let spread = web().spreading(even(ZONE, 1)).spreading(rather_even(HOSTNAME, 1));
    let scene = scene.asking_for(pods("web", 10, &spread));
    let plan = scene.solve();
    assert_eq!((plan.placed(), scene.after(&plan).skew(ZONE, "web")), (2, vec![1, 1]));
}

/// Nodes in two zones, and nobody who can open another.
fn two_zones() -> Scene {
    let there = |zone: &str| node(zone, 4, 16, &[(ZONE, zone)]);
    from(pool("two").requiring(within(ZONE, &["zone-a", "zone-b"])).limited("nodes", 0))
        .with_pool(pool("third").requiring(within(ZONE, &["zone-c"])).limited("nodes", 0), fake())
        .with_node(there("zone-a"))
        .with_node(there("zone-b"))
        .with_pods(pods("web", 7, &web().of(100, 100).spreading(even(ZONE, 1))))
}

#[test]
fn on_nodes_that_are_there_a_zone_counts_only_if_it_has_one() {
    // kube-scheduler does not know the third zone.
    let (scene, plan) = solved(two_zones());
    assert_eq!((plan.placed(), scene.after(&plan).skew(ZONE, "web")), (7, vec![3, 4]));
    // With a node there it is one, be it on its way out.
    let third = || node("third", 0, 0, &[(ZONE, "zone-c")]);
    let leaving = crate::core::facts::Node { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..third() };
    for third in [third(), leaving] {
        let (scene, plan) = solved(two_zones().with_node(third));
        assert_eq!((plan.placed(), scene.after(&plan).skew(ZONE, "web")), (2, vec![1, 1]));
    }
}

#[test]
fn on_nodes_that_are_there_the_emptiest_is_the_measure_of_a_constraint_per_node() {
    let there = |name: &str| node(name, 4, 16, &[(ZONE, "zone-a")]);
    let scene = || {
        let scene = from(pool("full").limited("nodes", 0)).with_node(there("n-1")).with_node(there("n-2"));
        scene.with_pods(pods("web", 5, &web().of(100, 100).spreading(even(HOSTNAME, 1))))
    };
    let plan = scene().solve().whole();
    assert_eq!(plan.existing.iter().map(|one| one.pods.len()).collect::<Vec<_>>(), [3, 2]);
    // One that takes nobody stays empty.
    let plan = scene().with_node(there("n-3").tainted(taint("team"))).solve();
    assert_eq!((plan.left(), plan.placed()), (3, 2));
}

/// A scene, and what is planned in it.
fn solved(scene: Scene) -> (Scene, Plan) {
    let plan = scene.solve();
    (scene, plan)
}

#[test]
fn a_pool_that_refuses_the_pods_is_named_before_their_spread_constraint() {
    let scene = Scene::default().with_pool(pool("default").tainted(taint("team")), types());
    let why = scene.with_pods(pods("web", 2, &web().spreading(even(ZONE, 1)))).solve().why();
    assert!(why.contains("taint team"), "{why}");
}
