//! Spread, affinity, anti-affinity, host ports.

use std::collections::BTreeMap;

use super::super::{Plan, Reason, crowded};
use super::build::*;
use crate::core::facts::{HostPort, Weighted};
use crate::core::labels::{HOSTNAME, ZONE};
use crate::core::requirements::{Operator, Requirement};

const APP: &[(&str, &str)] = &[("app", "web")];

fn app() -> crate::core::facts::PodShape {
    let mut one = shape(500, 512);
    one.labels = labels(APP);
    one
}

/// Pods per zone of the plan's NodeClaims.
fn by_zone(plan: &Plan) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for at in 0..plan.claims.len() {
        let zone = pinned(plan, at, ZONE).unwrap_or("open").to_owned();
        *all.entry(zone).or_default() += plan.claims[at].pods.len();
    }
    all
}

fn counts(plan: &Plan) -> Vec<usize> {
    let mut all: Vec<usize> = by_zone(plan).into_values().collect();
    all.sort_unstable();
    all
}

#[test]
fn zone_spread_is_even() {
    let mut web = app();
    web.spreads.push(spread(ZONE, 1, APP));
    let plan = Scene::new().with_pods(pods("web", 4, &web)).solve();
    assert_eq!(counts(&plan), [1, 1, 2]);
    let plan = Scene::new().with_pods(pods("web", 100, &web)).solve();
    assert_eq!(counts(&plan), [33, 33, 34]);
    assert!(plan.refused.is_empty());
}

#[test]
fn host_spread_caps_each_node() {
    let mut web = app();
    web.spreads.push(spread(HOSTNAME, 1, APP));
    assert_eq!(Scene::new().with_pods(pods("web", 4, &web)).solve().claims.len(), 4);
    web.spreads[0].max_skew = 4;
    web.requests.set("cpu".into(), 450);
    assert_eq!(Scene::new().with_pods(pods("web", 4, &web)).solve().claims.len(), 1);
}

#[test]
fn a_zone_that_cannot_be_reached_does_not_count_for_pods_bound_to_others() {
    let mut web = app();
    web.spreads.push(spread(ZONE, 1, APP));
    web.node_affinity.required = vec![vec![within(ZONE, &["zone-a", "zone-b"])]];
    let plan = Scene::new().with_pods(pods("web", 6, &web)).solve();
    assert_eq!(counts(&plan), [3, 3]);
}

#[test]
fn min_domains_counts_missing_domains_as_empty() {
    let mut web = app();
    web.spreads.push(spread(ZONE, 1, APP));
    web.spreads[0].min_domains = Some(3);
    web.node_affinity.required = vec![vec![within(ZONE, &["zone-a", "zone-b"])]];
    let plan = Scene::new().with_pods(pods("web", 3, &web)).solve();
    assert_eq!(counts(&plan), [1, 1]);
    assert!(matches!(plan.refused[0].reasons[0], Reason::Spread { .. }), "{:?}", plan.refused);
}

#[test]
fn pods_without_the_constraint_are_counted_and_pin_the_zone() {
    let mut web = app();
    web.priority = 1;
    let mut bound = app();
    bound.spreads.push(spread(ZONE, 1, APP));
    // Two unconstrained pods come first and share a node; its zone is pinned, so the constrained ones go to the others.
    let plan = Scene::new().with_pods(pods("free", 2, &web)).with_pods(pods("bound", 4, &bound)).solve();
    assert_eq!(counts(&plan), [2, 2, 2]);
}

#[test]
fn an_unknown_topology_key_refuses_that_pod_only() {
    let mut web = app();
    web.spreads.push(spread("example.com/rack", 1, APP));
    let plan = Scene::new().with_pods(pods("web", 1, &web)).with_pods(pods("ok", 1, &shape(100, 100))).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (1, 1));
}

#[test]
fn running_pods_count() {
    let mut web = app();
    web.spreads.push(spread(ZONE, 1, APP));
    let scene = Scene::new()
        .with_node(node("old", 1, 1, &[(ZONE, "zone-a")]))
        .running("r1", "old", &app())
        .with_pods(pods("web", 2, &web));
    let zones = by_zone(&scene.solve());
    assert_eq!(zones.into_keys().collect::<Vec<_>>(), ["zone-b", "zone-c"]);
}

#[test]
fn self_affinity_stays_together() {
    let mut web = app();
    web.affinity.push(term(ZONE, APP));
    let plan = Scene::new().with_pods(pods("web", 300, &web)).solve();
    assert_eq!(by_zone(&plan).len(), 1);
    assert!(plan.refused.is_empty());
    web.affinity[0].key = HOSTNAME.into();
    let plan = Scene::new().with_pods(pods("web", 20, &web)).solve();
    assert_eq!(plan.claims.len(), 1);
    assert!(plan.refused.is_empty());
}

#[test]
fn affinity_to_a_target_is_met_in_one_pass_whatever_the_order() {
    let mut cache = shape(1000, 100);
    cache.labels = labels(&[("app", "cache")]);
    cache.affinity.push(term(ZONE, APP));
    let plan = Scene::new().with_pods(pods("cache", 10, &cache)).with_pods(pods("web", 1, &app())).solve();
    assert!(plan.refused.is_empty());
    assert_eq!(by_zone(&plan).len(), 1);
}

#[test]
fn several_affinity_terms_must_be_met_by_one_pod() {
    let mut lonely = shape(100, 100);
    lonely.affinity = vec![term(ZONE, APP), term(ZONE, &[("tier", "front")])];
    let mut front = shape(100, 100);
    front.labels = labels(&[("tier", "front")]);
    let plan = Scene::new()
        .with_pods(pods("a", 1, &app()))
        .with_pods(pods("b", 1, &front))
        .with_pods(pods("c", 1, &lonely))
        .solve();
    assert_eq!(plan.refused.len(), 1, "two pods that each meet one term are not one pod that meets both");
    let mut both = app();
    both.labels.insert("tier".into(), "front".into());
    let plan = Scene::new().with_pods(pods("a", 1, &both)).with_pods(pods("c", 1, &lonely)).solve();
    assert!(plan.refused.is_empty());
}

#[test]
fn host_anti_affinity_separates_and_works_both_ways() {
    let mut web = app();
    web.anti_affinity.push(term(HOSTNAME, APP));
    assert_eq!(Scene::new().with_pods(pods("web", 5, &web)).solve().claims.len(), 5);
    // The second pod bears no term, but the first one's keeps it away.
    let mut hater = shape(100, 100);
    hater.anti_affinity.push(term(HOSTNAME, APP));
    assert_eq!(Scene::new().with_pods(pods("h", 1, &hater)).with_pods(pods("w", 1, &app())).solve().claims.len(), 2);
    let scene = Scene::new()
        .with_node(node("old", 8, 8, &[(ZONE, "zone-a")]))
        .running("h", "old", &hater)
        .with_pods(pods("w", 1, &app()));
    assert_eq!(scene.solve().claims.len(), 1);
}

#[test]
fn zone_anti_affinity_takes_every_zone_in_one_pass() {
    let mut web = app();
    web.anti_affinity.push(term(ZONE, APP));
    let plan = Scene::new().with_pods(pods("web", 4, &web)).solve();
    assert_eq!(counts(&plan), [1, 1, 1]);
    assert!(matches!(plan.refused[0].reasons[0], Reason::AntiAffinity { .. }));
}

#[test]
fn preferences_are_tried_and_given_up() {
    let mut web = app();
    web.preferred_anti_affinity.push(Weighted { weight: 1, term: term(ZONE, APP) });
    let plan = Scene::new().with_pods(pods("web", 5, &web)).solve();
    assert!(plan.refused.is_empty());
    assert_eq!(by_zone(&plan).len(), 3);
    let mut soft = app();
    soft.node_affinity.preferred.push(Weighted { weight: 1, term: vec![within(ZONE, &["nowhere"])] });
    soft.node_affinity.preferred.push(Weighted { weight: 50, term: vec![within(ZONE, &["zone-b"])] });
    let plan = Scene::new().with_pods(pods("web", 1, &soft)).solve();
    assert_eq!(by_zone(&plan).into_keys().collect::<Vec<_>>(), ["zone-b"]);
}

#[test]
fn required_alternatives_are_tried_in_order() {
    let mut web = app();
    web.node_affinity.required =
        vec![vec![within(ZONE, &["nowhere"])], vec![within(ZONE, &["zone-c"])], vec![within(ZONE, &["zone-a"])]];
    let plan = Scene::new().with_pods(pods("web", 1, &web)).solve();
    assert_eq!(by_zone(&plan).into_keys().collect::<Vec<_>>(), ["zone-c"]);
}

#[test]
fn a_custom_label_that_is_absent_stays_absent() {
    let mut shy = shape(100, 100);
    shy.node_affinity.required = vec![vec![Requirement::new("example.com/team", Operator::NotIn, ["red"])]];
    let mut keen = shape(100, 100);
    keen.node_affinity.required = vec![vec![Requirement::new("example.com/team", Operator::Exists, [""; 0])]];
    let plan = Scene::new().with_pods(pods("shy", 1, &shy)).with_pods(pods("keen", 1, &keen)).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (1, 1));
    assert!(matches!(&plan.refused[0].reasons[0], Reason::Requirement { key, .. } if &**key == "example.com/team"));
    assert!(!plan.claims[0].draft.labels.contains_key("example.com/team"));
}

#[test]
fn host_ports_of_daemons_to_come_are_kept_free() {
    let port = |number| HostPort { ip: "0.0.0.0".into(), port: number, protocol: "TCP".into() };
    let mut daemon = shape(100, 100);
    daemon.host_ports.push(port(9100));
    let mut web = app();
    web.host_ports.push(port(9100));
    let scene = Scene::new()
        .with_daemon("exporter", daemon)
        .with_node(node("old", 8, 8, &[(ZONE, "zone-a")]))
        .with_pods(pods("web", 1, &web));
    let plan = scene.solve();
    assert!(plan.existing.is_empty());
    assert!(matches!(plan.refused[0].reasons[0], Reason::HostPort { port: 9100, .. }), "{:?}", plan.refused);
    let mut two = app();
    two.host_ports.push(port(80));
    assert_eq!(Scene::new().with_pods(pods("web", 2, &two)).solve().claims.len(), 2);
}

#[test]
fn a_node_takes_no_more_pods_that_those_on_it_would_have_to_flee() {
    let mut lone = app();
    lone.spreads.push(spread(HOSTNAME, 1, APP));
    // The constraint counts these and does not bind them: kube-scheduler would put them anywhere.
    let mut counted = app();
    counted.requests = amounts(100, 100);
    let mut all = pods("lone", 3, &lone);
    all.extend(pods("counted", 6, &counted));
    let scene = Scene::new().with_pods(all);
    let plan = scene.solve();
    assert_eq!(crowded(&scene.problem(), &plan), 0);
    assert!(plan.refused.is_empty());
    // They are no reason to wait: where no further node can be bought, they share one.
    let mut few = pool("default");
    few.limits = few.limits.with("nodes", 1000);
    let scene = Scene::default().with_pool(few, types());
    let both = [pods("lone", 1, &lone), pods("counted", 2, &counted)].concat();
    let plan = scene.with_pods(both).solve();
    assert!(plan.refused.is_empty() && plan.claims.len() == 1, "{:?}", plan.refused);
}

#[test]
fn a_pod_that_a_spread_of_one_zone_counts_may_go_to_another() {
    let mut bound = app();
    bound.node_selector = labels(&[(ZONE, "zone-b")]);
    bound.spreads.push(spread(ZONE, 1, APP));
    let mut target = shape(500, 512);
    target.labels = labels(&[("app", "db")]);
    target.node_selector = labels(&[(ZONE, "zone-a")]);
    let mut near = app();
    near.affinity.push(term(ZONE, &[("app", "db")]));
    let all = [pod("bound", 0, &bound), pod("target", 1, &target), pod("near", 2, &near)];
    let plan = Scene::new().with_pods(all.to_vec()).solve();
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
}

#[test]
fn who_may_be_anywhere_comes_to_where_a_pod_that_may_not_needs_it() {
    let mut target = shape(500, 512);
    target.labels = labels(&[("app", "db")]);
    let mut near = app();
    near.node_selector = labels(&[(ZONE, "zone-c")]);
    near.affinity.push(term(ZONE, &[("app", "db")]));
    let scene = Scene::new().with_pods(pods("db", 3, &target)).with_pods(pods("near", 2, &near));
    let plan = scene.solve();
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
}
