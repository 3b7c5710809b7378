//! Which zones pending pods are confined to.

use super::super::effective_zones;
use super::build::*;
use super::volumes::mounting;
use crate::core::facts::PodShape;
use crate::core::labels::ZONE;
use crate::core::requirements::{Operator, Requirement};

const APP: &[(&str, &str)] = &[("app", "web")];

/// What two pods of this shape count as, beside one `web` pod in zone-a and none in zone-b.
fn zones(shape: &PodShape) -> Vec<(String, usize)> {
    let mut web = super::build::shape(100, 100);
    web.labels = labels(APP);
    let scene = Scene::new()
        .with_node(node("a", 4, 4, &[(ZONE, "zone-a")]))
        .with_node(node("b", 4, 4, &[(ZONE, "zone-b")]))
        .running("standing", "a", &web)
        .with_pods(pods("new", 2, shape));
    effective_zones(&scene.problem()).into_iter().map(|(zone, pods)| (zone.to_string(), pods)).collect()
}

#[track_caller]
fn assert_zone(shape: &PodShape, zone: &str) {
    assert_eq!(zones(shape), [(zone.to_owned(), 2)]);
}

fn web() -> PodShape {
    PodShape { labels: labels(APP), ..shape(100, 100) }
}

#[test]
fn node_selector_and_affinity_name_the_zone() {
    let mut one = shape(100, 100);
    assert_zone(&one, "flexible");
    one.node_selector = labels(&[(ZONE, "zone-x")]);
    assert_zone(&one, "zone-x");
    one.node_affinity.required = vec![vec![within(ZONE, &["zone-a"])]];
    assert_zone(&one, "none");
    one.node_selector.clear();
    one.node_affinity.required.push(vec![within(ZONE, &["zone-b"])]);
    assert_zone(&one, "flexible");
    one.node_affinity.required = vec![vec![within(ZONE, &["zone-a"])], vec![within("size", &["large"])]];
    assert_zone(&one, "flexible");
}

#[test]
fn zonal_constraints_count_the_pods_that_stand() {
    let mut near = web();
    near.affinity.push(term(ZONE, APP));
    assert_zone(&near, "zone-a");
    near.affinity[0] = term(ZONE, &[("app", "nobody")]);
    assert_zone(&near, "none");
    let mut first = PodShape { labels: labels(&[("app", "db")]), ..shape(100, 100) };
    first.affinity.push(term(ZONE, &[("app", "db")]));
    assert_zone(&first, "flexible");

    let mut away = web();
    away.anti_affinity.push(term(ZONE, APP));
    assert_zone(&away, "flexible");
    away.node_affinity.required = vec![vec![Requirement::new(ZONE, Operator::NotIn, ["zone-b"])]];
    assert_zone(&away, "zone-c");
    away.node_selector = labels(&[(ZONE, "zone-a")]);
    assert_zone(&away, "none");
}

#[test]
fn a_spread_leaves_the_emptiest_zones_that_the_pod_may_use() {
    let mut even = web();
    even.spreads.push(spread(ZONE, 1, APP));
    assert_zone(&even, "flexible");
    even.node_affinity.required = vec![vec![within(ZONE, &["zone-a", "zone-b"])]];
    assert_zone(&even, "zone-b");
    even.spreads[0].required = false;
    assert_zone(&even, "flexible");
    even.spreads[0].required = true;
    // Two domains of at least three: the lowest counts as none, which zone-b is anyway.
    even.spreads[0].min_domains = Some(3);
    even.node_affinity.required = vec![vec![within(ZONE, &["zone-a"])]];
    assert_zone(&even, "none");
}

#[test]
fn volumes_confine_a_pod_beside_what_it_asks_for_itself() {
    let scene = || Scene::new().bound_in("here", &["zone-b"]).bound_in("either", &["zone-a", "zone-b"]);
    let zone = |shape: &PodShape, claim: &str| {
        let scene = scene().with_pods(vec![mounting("db", shape, &[claim])]);
        let zones = effective_zones(&scene.problem());
        assert_eq!(zones.len(), 1, "{zones:?}");
        zones.keys().next().unwrap().to_string()
    };
    let mut one = shape(100, 100);
    assert_eq!([zone(&one, "here"), zone(&one, "either"), zone(&one, "missing")], ["zone-b", "flexible", "none"]);
    one.node_affinity.required = vec![vec![within(ZONE, &["zone-a"])], vec![within(ZONE, &["zone-c"])]];
    assert_eq!([zone(&one, "here"), zone(&one, "either")], ["none", "zone-a"]);
}
