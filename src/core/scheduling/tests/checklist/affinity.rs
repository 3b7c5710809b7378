//! Karpenter's suite of pod affinity: pods that want to be near others.
//!
//! Self affinity, targets in the same pass whatever the order, several terms: `topology.rs`.

use std::sync::Arc;

use super::super::build::*;
use super::words::*;
use crate::core::facts::{AffinityTerm, Pod, PodShape, Selector};
use crate::core::labels::{ARCH, HOSTNAME, ZONE};
use crate::core::scheduling::Reason;

#[test]
fn empty_affinity_is_no_affinity() {
    let plan = Scene::new().with_pods(pods("web", 2, &web())).solve().whole();
    assert_eq!(plan.per_node(), [2]);
}

#[test]
fn affinity_to_a_host_finds_its_target_among_many_nodes() {
    let lone = app("lone").of(100, 100);
    let near = app("near").of(100, 100).near(those_of("lone", HOSTNAME));
    let scene = Scene::new()
        .with_pods(pods("web", 10, &web().of(100, 100).spreading(even(HOSTNAME, 1))))
        .with_pods(pods("lone", 1, &lone))
        .with_pods(pods("near", 1, &near));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan);
    assert_eq!(scene.whereabouts("near-00000", HOSTNAME), scene.whereabouts("lone-00000", HOSTNAME));
}

#[test]
fn affinity_to_an_architecture_may_be_met_on_another_host() {
    let shape = web().of(100, 100).near(those_of("web", ARCH)).spreading(even(HOSTNAME, 1));
    let scene = from(pool("default")).round(pods("web", 2, &shape));
    assert_eq!((scene.skew(HOSTNAME, "web"), scene.skew(ARCH, "web")), (vec![1, 1], vec![2]));
}

#[test]
fn pods_that_want_one_host_get_one_and_no_more_than_it_holds() {
    let together = web().of(100, 100).near(those_of("web", HOSTNAME));
    assert_eq!(Scene::new().with_pods(pods("web", 3, &together)).solve().per_node(), [3]);
    // Every type takes five pods.
    let scene = from(pool("default")).asking_for(pods("web", 10, &together));
    let plan = scene.solve();
    assert_eq!((plan.per_node(), plan.left()), (vec![5], 5));
    let later = scene.after(&plan).asking_for(pods("more", 5, &together)).solve();
    assert_eq!((later.placed(), later.left()), (0, 5));
}

#[test]
fn pods_that_want_the_host_of_one_that_runs_get_no_other() {
    let together = web().of(100, 100).near(those_of("web", HOSTNAME));
    let scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, "zone-a")])).running("first", "old", &together);
    let plan = scene.asking_for(pods("web", 3, &together.selecting(ZONE, "zone-b"))).solve();
    assert_eq!((plan.placed(), plan.left()), (0, 3));
}

#[test]
fn pods_that_want_one_zone_get_the_one_that_is_required() {
    let together = web().of(100, 100).near(those_of("web", ZONE));
    let plan = Scene::new().with_pods(pods("web", 3, &together)).solve().whole();
    assert_eq!(plan.per_node(), [3]);
    let plan = Scene::new().with_pods(pods("web", 3, &together.wanting(within(ZONE, &["zone-c"])))).solve().whole();
    assert_eq!(plan.only(ZONE), "zone-c");
}

#[test]
fn pods_that_want_one_zone_and_name_different_ones_are_not_all_placed() {
    // Karpenter makes two nodes within one batch; kube-scheduler would then bind only one of the pods.
    let together = |zone| web().of(100, 100).near(those_of("web", ZONE)).selecting(ZONE, zone);
    let scene = Scene::new().with_pods(pods("a", 1, &together("zone-a"))).with_pods(pods("b", 1, &together("zone-b")));
    let plan = scene.solve();
    assert_eq!((plan.placed(), plan.left()), (1, 1));
}

#[test]
fn preferred_affinity_may_be_missed() {
    Scene::new().place(&web().rather_near(those_of("nobody", ZONE)).rather_far(those_of("web", ZONE))).whole();
    let away = node("old", 1, 1, &[(ZONE, "zone-a")]).with_room(1);
    let scene = Scene::new().with_node(away).running("db", "old", &app("db").of(10, 10));
    let plan = scene.place(&web().rather_near(those_of("db", HOSTNAME))).whole();
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn preferred_affinity_gives_way_to_a_hard_spread() {
    let torn = web().of(100, 100).rather_near(those_of("web", HOSTNAME)).spreading(even(HOSTNAME, 1));
    assert_eq!(Scene::new().with_pods(pods("web", 3, &torn)).solve().whole().per_node(), [1, 1, 1]);
}

#[test]
fn affinity_to_pods_that_are_not_there_is_refused() {
    let plan = Scene::new().with_pods(pods("web", 10, &web().near(those_of("nobody", ZONE)))).solve();
    assert_eq!(plan.left(), 10);
    assert!(plan.why().contains(ZONE), "{}", plan.why());
}

#[test]
fn affinity_to_an_unconstrained_target_is_met_in_the_same_round() {
    // Karpenter needs a second round, because the target's zone is open; here its zone is settled when others depend on it.
    let near = app("near").of(100, 100).near(those_of("web", ZONE));
    let scene = Scene::new().with_pods(pods("web", 1, &web())).with_pods(pods("near", 10, &near));
    let plan = scene.solve().whole();
    let scene = scene.after(&plan);
    assert_eq!(
        (scene.skew(ZONE, "near").len(), scene.whereabouts("web-00000", ZONE)),
        (1, scene.whereabouts("near-00003", ZONE))
    );
}

#[test]
fn a_chain_of_affinities_is_met_in_one_round_whatever_the_order() {
    let link = |name: &str, to: Option<&str>| {
        let one = app(name).of(100, 100);
        match to {
            Some(to) => one.near(those_of(to, HOSTNAME)),
            None => one,
        }
    };
    let chain = [link("db", None), link("web", Some("db")), link("cache", Some("web")), link("ui", Some("cache"))];
    for turn in 0..24_usize {
        let mut left: Vec<usize> = (0..4).collect();
        let mut order = Vec::new();
        let mut rest = turn;
        while !left.is_empty() {
            order.push(left.remove(rest % left.len()));
            rest /= left.len().max(1) + 1;
        }
        let mut scene = Scene::new();
        for (second, at) in order.iter().enumerate() {
            scene = scene.with_pods(vec![pod(&format!("p{at}"), i64::try_from(second).unwrap(), &chain[*at])]);
        }
        assert_eq!(scene.solve().whole().per_node(), [4], "{order:?}");
    }
}

#[test]
fn a_circle_of_affinities_is_refused_and_holds_up_nobody() {
    let scene = Scene::new()
        .with_pods(pods("a", 1, &app("a").near(those_of("b", ZONE))))
        .with_pods(pods("b", 1, &app("b").near(those_of("a", ZONE))))
        .with_pods(pods("web", 3, &web()));
    let plan = scene.solve();
    assert_eq!((plan.placed(), plan.left()), (3, 2));
}

#[test]
fn terms_look_into_the_namespaces_that_they_name() {
    let there = app("db").in_namespace("other");
    let with = |term: AffinityTerm| {
        let mut scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, "zone-b")])).running("db", "old", &there);
        scene.snapshot.namespaces.insert("other".into(), std::sync::Arc::new(labels(&[("team", "red")])));
        scene.place(&web().near(term)).left() == 0
    };
    let own = those_of("db", ZONE);
    assert!(!with(own.clone()), "the pod's own namespace is meant when none is named");
    assert!(with(AffinityTerm { namespaces: vec!["default".into(), "other".into()], ..own.clone() }));
    let chosen = |pairs: &[(&str, &str)]| Some(Selector { labels: labels(pairs), expressions: vec![] });
    assert!(with(AffinityTerm { namespaces: vec![], namespace_selector: chosen(&[]), ..own.clone() }), "all");
    assert!(with(AffinityTerm { namespaces: vec![], namespace_selector: chosen(&[("team", "red")]), ..own.clone() }));
    assert!(!with(AffinityTerm { namespaces: vec![], namespace_selector: chosen(&[("team", "blue")]), ..own }));
}

/// One that has to be near others of its kind runs in zone-b, on a node with no room for more, and is on its way out.
fn leaving() -> Scene {
    let mut scene = Scene::new().with_node(node("old", 1, 1, &[(ZONE, "zone-b")]).with_room(1)).running(
        "old",
        "old",
        &web().near(those_of("web", ZONE)),
    );
    let old = scene.snapshot.pods.values().next().unwrap().clone();
    let gone = Pod { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..(*old).clone() };
    scene.snapshot.pods.insert(old.uid.clone(), Arc::new(gone));
    scene
}

#[test]
fn a_new_one_of_its_kind_comes_to_the_zone_of_an_old_one_that_is_leaving() {
    // kube-scheduler lets nobody be the first of its kind before the old one is gone.
    assert_eq!(leaving().place(&web().near(those_of("web", ZONE))).only(ZONE), "zone-b");
}

#[test]
fn a_new_one_of_its_kind_does_without_an_old_one_that_is_leaving_where_it_cannot_join_it() {
    let elsewhere = web().near(those_of("web", ZONE)).selecting(ZONE, "zone-c");
    assert_eq!(leaving().place(&elsewhere).only(ZONE), "zone-c");
}

fn senior() -> PodShape {
    PodShape { priority: 1000, ..web().of(100, 100) }
}

/// One that may be the first of its kind.
fn junior() -> PodShape {
    web().of(3000, 100).near(those_of("web", HOSTNAME)).selecting(ARCH, "amd64")
}

/// How many are placed and how many left of a senior and a junior.
fn both(senior: &PodShape, junior: &PodShape) -> (usize, usize) {
    let scene = from(pool("default")).with_pods(pods("senior", 1, senior)).with_pods(pods("junior", 1, junior));
    let plan = scene.plan();
    (plan.placed(), plan.left())
}

/// kube-scheduler takes the senior first, and then lets nobody else be the first of its kind.
#[test]
fn nobody_is_the_first_of_its_kind_where_one_of_a_higher_priority_has_to_be_elsewhere() {
    assert_eq!(both(&senior().selecting(ARCH, "arm64"), &junior()), (1, 1));
}

#[test]
fn whoever_has_no_place_keeps_nobody_from_being_the_first_of_its_kind() {
    assert_eq!(both(&senior().selecting(ARCH, "s390x"), &junior()), (1, 1));
}

#[test]
fn one_of_a_higher_priority_comes_to_where_the_others_of_its_kind_have_to_be() {
    let in_one_zone = web().of(3000, 100).near(those_of("web", ZONE)).selecting(ZONE, ZONES[2]);
    assert_eq!(both(&senior(), &in_one_zone), (2, 0));
}

/// It may be bound by the time that the other has a node.
#[test]
fn the_first_of_its_kind_keeps_its_planned_node_when_one_of_a_higher_priority_comes() {
    let scene = from(pool("default")).asking_for(pods("junior", 1, &junior()));
    let plan = scene.plan().whole();
    let mut scene = scene.written(&plan).with_pods(pods("senior", 1, &senior().selecting(ARCH, "arm64")));
    for pod in &plan.claims[0].pods {
        scene.snapshot.planned.insert(pod.uid.clone(), plan.claims[0].draft.name.clone());
    }
    let plan = scene.plan();
    assert_eq!((plan.placed(), plan.left()), (2, 0));
}

/// A pod of `web` for one zone that wants to be where others of it are, and a plain one for which there is a node elsewhere.
fn one_bound_and_one_free(there: &str) -> Scene {
    let bound = web().of(2000, 100).selecting(ZONE, "zone-c").near(those_of("web", ZONE));
    let scene = Scene::new().with_node(node("old", 1, 4, &[(ZONE, there)]));
    scene.with_pods(vec![pod("bound", 0, &bound), pod("free", 1, &web().of(100, 100))])
}

#[test]
fn whoever_may_be_the_first_does_not_count_on_being_so() {
    // kube-scheduler binds the free one at once on a node that is there, and the other could then be nowhere else: it comes along.
    let plan = one_bound_and_one_free("zone-b").solve().whole();
    assert_eq!((plan.per_node(), plan.only(ZONE)), (vec![2], "zone-c".to_owned()));
}

#[test]
fn whoever_may_be_the_first_and_surely_comes_too_late_is_refused() {
    let mut scene = one_bound_and_one_free("zone-b");
    let stuck = web().of(100, 100).selecting(ZONE, "zone-b");
    scene.pods[1] = pod("free", 1, &stuck);
    let plan = scene.solve();
    assert_eq!((plan.left(), plan.claims.len(), plan.existing.len()), (1, 0, 1));
    assert!(plan.why().contains("app=web"), "{}", plan.why());
}

#[test]
fn on_a_node_that_is_there_whoever_has_the_first_turn_is_the_first() {
    let mut scene = one_bound_and_one_free("zone-b").with_node(node("here", 4, 16, &[(ZONE, "zone-c")]));
    scene.pods[1] = pod("free", 1, &web().of(100, 100).selecting(ZONE, "zone-b"));
    let plan = scene.solve().whole();
    assert_eq!((plan.claims.len(), plan.existing.len()), (0, 2));
}

#[test]
fn whoever_was_promised_the_first_place_keeps_it() {
    let mut scene = one_bound_and_one_free("zone-b");
    scene.pods[1] = pod("free", 1, &web().of(100, 100).selecting(ZONE, "zone-b"));
    let claim = claim("coming", "default", vec![within(ZONE, &["zone-c"])], amounts(4000, 8192));
    scene.snapshot.planned.insert(scene.pods[0].uid.clone(), claim.name.clone());
    let plan = scene.with_claim(claim).solve().whole();
    assert_eq!((plan.claims.len(), plan.existing.len()), (0, 2));
}

#[test]
fn whoever_waits_for_one_who_is_bound_anyway_may_come_before_too() {
    let mut scene = one_bound_and_one_free("zone-b");
    scene.pods[1] = pod("free", 1, &web().of(2000, 100).near(those_of("db", ZONE)));
    scene.pods.push(pod("db", 2, &app("db").of(100, 100).selecting(ZONE, "zone-b")));
    let plan = scene.solve();
    assert_eq!((plan.left(), plan.only(ZONE)), (1, "zone-b".to_owned()));
}

#[test]
fn whoever_waits_for_the_first_does_not_come_before_it() {
    // The database has to be on a node with a web pod, and the second web pod near the database: that one is not bound before the first.
    let first = web().of(2000, 100).near(those_of("web", HOSTNAME));
    let db = app("db").of(500, 100).near(those_of("web", HOSTNAME));
    let second = web().of(2000, 100).far(those_of("web", HOSTNAME)).near(those_of("db", ZONE));
    let pods = vec![pod("first", 0, &first), pod("db", 1, &db), pod("second", 2, &second)];
    let mut per_node = Scene::new().with_pods(pods).solve().whole().per_node();
    per_node.sort_unstable();
    assert_eq!(per_node, [1, 2]);
}

#[test]
fn of_many_who_could_be_the_first_and_come_too_late_none_is() {
    let bound = web().of(6_000, 100).near(those_of("web", HOSTNAME));
    let others = vec![pod("other", 0, &web().of(4_000, 100))];
    let plan = buying(ladder(8)).with_pods(others.into_iter().chain(pods("first", 5, &bound)).collect()).plan();
    assert_eq!((plan.placed(), plan.left()), (1, 5));
    let refused = plan.refused.iter().flat_map(|refusal| &refusal.reasons);
    assert!(
        refused.clone().all(|reason| !matches!(reason, Reason::Distrusted(_))),
        "{:?}",
        refused.collect::<Vec<_>>()
    );
}

#[test]
fn one_of_its_kind_on_a_node_in_no_domain_lets_nobody_count_on_not_being_the_first() {
    let bound = web().of(2000, 100).selecting(ZONE, "zone-c").near(those_of("web", ZONE));
    let pods = vec![pod("free", 0, &web().of(100, 100).selecting(ZONE, "zone-b")), pod("bound", 1, &bound)];
    let scene = |pairs: &[(&str, &str)]| {
        Scene::new().with_node(node("full", 1, 1, pairs).with_room(1)).running("there", "full", &web().of(100, 100))
    };
    let plan = |pairs: &[(&str, &str)]| scene(pairs).with_pods(pods.clone()).plan();
    assert_eq!(plan(&[]).left(), 1, "the free one may be bound before");
    assert_eq!(plan(&[(ZONE, "zone-c")]).left(), 0);
}
