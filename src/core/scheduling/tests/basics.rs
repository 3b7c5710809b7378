//! Packing, pools, limits, daemons, existing nodes.

use super::super::Reason;
use super::build::*;
use crate::core::facts::{Effect, HostPort, Taint};
use crate::core::ids::NodeName;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

#[test]
fn a_pod_gets_the_cheapest_node_that_holds_it() {
    let plan = Scene::new().with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(plan.claims.len(), 1);
    let claim = &plan.claims[0];
    assert_eq!(claim.instance_types[0].as_str(), "m-1x");
    assert_eq!(claim.instance_types.len(), 7, "every type that holds the pod is listed");
    assert!((claim.price - 0.033).abs() < 1e-9, "{}", claim.price);
    assert!(claim.draft.name.as_str().starts_with("default-"));
    assert_eq!(claim.draft.labels.get(labels::NODEPOOL).map(|v| &**v), Some("default"));
    assert_eq!(claim.draft.labels.get("karpenter.kwok.sh/kwoknodeclass").map(|v| &**v), Some("default"));
    assert_eq!(claim.draft.annotations.get(labels::NODEPOOL_HASH).map(|v| &**v), Some("12345"));
    assert_eq!(claim.draft.requests, amounts(500, 512).with("pods", 1000));
    assert!(
        claim.draft.requirements.iter().all(|r| !r.key.starts_with("karpenter.sh/reg")),
        "{:?}",
        claim.draft.requirements
    );
}

#[test]
fn many_pods_fill_large_nodes() {
    let plan = Scene::new().with_pods(pods("web", 1000, &shape(500, 512))).solve();
    assert!(plan.refused.is_empty());
    assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 1000);
    // 500 cores at 0.033 a core, and a little for overhead and pods per node.
    assert!(plan.price < 500.0 * 0.033 * 1.03, "{} for {} nodes", plan.price, plan.claims.len());
}

#[test]
fn a_pod_too_large_is_refused_with_the_resource() {
    let plan = Scene::new().with_pods(pods("web", 1, &shape(100_000, 512))).solve();
    assert!(plan.claims.is_empty());
    assert!(matches!(&plan.refused[0].reasons[0], Reason::TooLarge { resource, .. } if resource.as_str() == "cpu"));
}

#[test]
fn heavier_pools_come_first_and_taints_must_be_tolerated() {
    let mut heavy = pool("heavy");
    heavy.weight = 10;
    let mut tainted = pool("tainted");
    tainted.weight = 20;
    tainted.template.taints.push(Taint::new("gpu", Effect::NoSchedule));
    let scene = Scene::new().with_pool(heavy, types()).with_pool(tainted, types());
    let plan = scene.with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(plan.claims[0].draft.pool.as_str(), "heavy");
}

#[test]
fn a_soft_taint_is_avoided_unless_there_is_no_other_way() {
    let mut soft = pool("soft");
    soft.weight = 10;
    soft.template.taints.push(Taint::new("slow", Effect::PreferNoSchedule));
    let both = Scene::new().with_pool(soft.clone(), types()).with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(both.claims[0].draft.pool.as_str(), "default");
    let only = Scene::default().with_pool(soft, types()).with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(only.claims[0].draft.pool.as_str(), "soft");
    assert_eq!(only.claims[0].draft.taints.len(), 1);
}

#[test]
fn limits_hold_within_a_pass() {
    let mut small = pool("default");
    small.limits = Resources::new().with("nodes", 2000);
    let mut web = shape(500, 512);
    web.host_ports.push(HostPort { ip: "".into(), port: 80, protocol: "TCP".into() });
    let plan = Scene::default().with_pool(small.clone(), types()).with_pods(pods("web", 3, &web)).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (2, 1));
    assert!(matches!(&plan.refused[0].reasons[0], Reason::Limit { resource, .. } if resource.as_str() == "nodes"));
    small.limits = Resources::new().with("cpu", 4000);
    let plan = Scene::default().with_pool(small, types()).with_pods(pods("web", 20, &shape(500, 512))).solve();
    let cores: i64 = plan
        .claims
        .iter()
        .map(|claim| claim.instance_types[0].as_str().trim_matches(['m', '-', 'x']).parse::<i64>().unwrap())
        .sum();
    assert!(cores <= 4 && !plan.refused.is_empty(), "{cores}");
}

#[test]
fn daemons_are_paid_for() {
    let plan = Scene::new().with_daemon("log", shape(600, 100)).with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(plan.claims[0].instance_types[0].as_str(), "m-2x");
    assert_eq!(plan.claims[0].draft.requests, amounts(1100, 612).with("pods", 2000));
}

#[test]
fn nodes_that_exist_are_filled_first() {
    let scene = Scene::new()
        .with_node(node("old", 2, 4, &[(labels::ZONE, "zone-a")]))
        .running("r", "old", &shape(1000, 1024))
        .with_pods(pods("web", 3, &shape(500, 512)));
    let plan = scene.solve();
    assert_eq!(plan.existing.len(), 1);
    assert_eq!(plan.existing[0].pods.len(), 2);
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn pods_return_to_the_claim_that_is_under_way() {
    let listed = within(labels::INSTANCE_TYPE, &["m-2x", "m-4x"]);
    let mut scene = Scene::new()
        .with_claim(claim("default-aaaaa", "default", vec![listed], amounts(1500, 1000).with("pods", 3000)))
        .with_pods(pods("web", 3, &shape(500, 512)))
        .with_pods(pods("big", 1, &shape(1500, 512)));
    for one in scene.pods.iter().filter(|pod| pod.key.name.starts_with("web")) {
        scene.snapshot.planned.insert(one.uid.clone(), "default-aaaaa".into());
    }
    let plan = scene.solve();
    assert_eq!(plan.existing.len(), 1);
    assert_eq!(plan.existing[0].pods.len(), 3, "the larger pod does not take their room");
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn nodes_that_are_leaving_are_not_used() {
    let mut leaving = node("old", 8, 8, &[]);
    leaving.deleting = Some(jiff::Timestamp::UNIX_EPOCH);
    let scene = Scene::new().with_node(leaving).with_node(node("cordoned", 8, 8, &[]));
    let mut scene = scene.with_node(node("excluded", 8, 8, &[])).with_pods(pods("web", 1, &shape(500, 512)));
    scene.excluded.nodes.insert("excluded".into());
    let mut cordoned = (*scene.snapshot.nodes[&NodeName::from("cordoned")]).clone();
    cordoned.cordoned = true;
    let plan = scene.with_node(cordoned).solve();
    assert!(plan.existing.is_empty());
}

#[test]
fn min_values_keep_enough_types() {
    let mut varied = pool("default");
    varied.template.requirements.push(Requirement {
        min_values: Some(2),
        ..Requirement::new(labels::INSTANCE_TYPE, Operator::Exists, [""; 0])
    });
    // 40 cores need the largest type alone; two pods of 20 fit the two largest, but not together.
    let plan =
        Scene::default().with_pool(varied.clone(), types()).with_pods(pods("web", 2, &shape(20_000, 512))).solve();
    assert_eq!(plan.claims.len(), 2);
    assert!(plan.claims.iter().all(|claim| claim.instance_types.len() == 2));
    let plan = Scene::default().with_pool(varied, types()).with_pods(pods("web", 1, &shape(40_000, 512))).solve();
    assert!(matches!(plan.refused[0].reasons[0], Reason::MinValues { wanted: 2, found: 1, .. }), "{:?}", plan.refused);
}

#[test]
fn requirements_of_the_claim_say_all() {
    let mut own = pool("default");
    own.template.requirements = vec![
        Requirement::new("example.com/rank", Operator::Gt, ["4"]),
        Requirement::new(labels::CAPACITY_TYPE, Operator::In, [labels::ON_DEMAND]),
    ];
    let plan = Scene::default().with_pool(own, types()).with_pods(pods("web", 1, &shape(500, 512))).solve();
    let claim = &plan.claims[0];
    let line = |key: &str| claim.draft.requirements.iter().find(|r| &*r.key == key).unwrap();
    assert_eq!(line("example.com/rank").operator, Operator::Gte);
    assert_eq!(&*line("example.com/rank").values[0], "5");
    assert_eq!(claim.draft.labels.get("example.com/rank").map(|v| &**v), Some("5"));
    assert_eq!(line(labels::CAPACITY_TYPE).values.len(), 1);
    assert_eq!(line(labels::INSTANCE_TYPE).values.len(), 7);
    assert!((claim.price - 0.05).abs() < 1e-9);
}

#[test]
fn pools_that_are_not_ready_are_named() {
    let mut sick = pool("default");
    sick.conditions.clear();
    let plan = Scene::default().with_pool(sick, types()).with_pods(pods("web", 1, &shape(500, 512))).solve();
    let reasons: Vec<String> = plan.refused[0].reasons.iter().map(ToString::to_string).collect();
    assert!(reasons.iter().any(|r| r.contains("NodePool default is not ready")), "{reasons:?}");
}

#[test]
fn pods_that_ask_for_devices_are_refused_with_the_reason() {
    let mut one = shape(100, 100);
    one.dynamic_resources = true;
    let scene = Scene::new().with_node(node("roomy", 8, 32, &[])).with_pods(pods("devices", 1, &one)).with_pods(pods(
        "plain",
        1,
        &shape(100, 100),
    ));
    let plan = scene.solve();
    assert_eq!(plan.existing[0].pods[0].key.name.as_ref(), "plain-00000");
    assert_eq!(plan.refused[0].reasons, [Reason::DynamicResources]);
    assert!(plan.claims.is_empty());
}
