//! Karpenter's provisioner suite: what is written in a NodeClaim.
//!
//! Name, hash, requests and the list of types: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::labels::{ARCH, HOSTNAME, INSTANCE_TYPE, NODEPOOL, OS, ZONE};
use crate::core::requirements::Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};

const KEY: &str = "example.com/team";

/// The label that a requirement of the pool puts on its nodes.
fn label(operator: crate::core::requirements::Operator, values: &[&str]) -> Option<String> {
    let plan = from(pool("default").requiring(says(KEY, operator, values))).place(&web()).whole();
    plan.claims[0].draft.labels.get(KEY).map(ToString::to_string)
}

#[test]
fn a_requirement_of_the_pool_becomes_one_of_its_values() {
    assert_eq!(label(In, &["red", "blue"]).map(|value| ["red", "blue"].contains(&&*value)), Some(true));
    assert_eq!(label(NotIn, &["red"]).map(|value| value != "red"), Some(true));
    assert_eq!(label(Gt, &["4"]).and_then(|value| value.parse::<i64>().ok()).map(|n| n > 4), Some(true));
    assert_eq!(label(Lt, &["4"]).and_then(|value| value.parse::<i64>().ok()).map(|n| n < 4), Some(true));
    assert!(label(Exists, &[]).is_some());
    assert_eq!(label(DoesNotExist, &[]), None);
}

#[test]
fn well_known_requirements_are_not_copied_to_labels() {
    let plan =
        from(pool("default").requiring(within(ZONE, &["zone-a"])).requiring(within(ARCH, &["amd64"]))).place(&web());
    for key in [ZONE, ARCH, OS, INSTANCE_TYPE, HOSTNAME] {
        assert!(!plan.claims[0].draft.labels.contains_key(key), "{key}: the cloud says it when the machine is there");
    }
}

#[test]
fn annotations_of_the_template_are_on_the_nodeclaim() {
    let mut noted = pool("default");
    noted.template.annotations.insert("example.com/note".into(), "hello".into());
    let plan = from(noted).place(&web());
    assert_eq!(plan.claims[0].draft.annotations.get("example.com/note").map(|v| &**v), Some("hello"));
}

#[test]
fn what_the_template_says_of_a_nodes_life_is_on_the_nodeclaim() {
    let mut fleeting = pool("default");
    fleeting.template.termination_grace = Some(std::time::Duration::from_mins(5));
    fleeting.template.expire_after = Some(std::time::Duration::from_hours(1));
    let plan = from(fleeting.clone()).place(&web());
    let draft = &plan.claims[0].draft;
    assert_eq!(
        (draft.termination_grace, draft.expire_after),
        (fleeting.template.termination_grace, fleeting.template.expire_after)
    );
    assert_eq!((&draft.pool_uid, &draft.class), (&fleeting.uid, &fleeting.template.class));
}

#[test]
fn requirements_of_the_nodeclaim_are_those_of_pool_and_pods() {
    let plan = from(pool("default").requiring(within(KEY, &["red", "blue"])))
        .place(&web().wanting(within(ZONE, &["zone-a", "zone-b"])));
    assert_eq!((plan.only(KEY), plan.only(NODEPOOL)), ("blue|red".to_owned(), "default".to_owned()));
    assert_eq!(plan.only(ZONE), "zone-a|zone-b");
    assert!(!plan.speaks_of(HOSTNAME));
}

#[test]
fn the_types_of_the_nodeclaim_are_those_that_the_pod_can_use() {
    assert_eq!(from(pool("default")).place(&web().selecting(ARCH, "arm64")).only(INSTANCE_TYPE), "arm");
    assert_eq!(from(pool("default")).place(&web().asking("example.com/gpu-b", 1)).only(INSTANCE_TYPE), "gpu-b");
    let windows = fake()
        .into_iter()
        .enumerate()
        .map(|(at, kind)| kind.labelled(OS, if at == 1 { &["windows"] } else { &["linux"] }));
    assert_eq!(buying(windows.collect()).place(&web().selecting(OS, "windows")).only(INSTANCE_TYPE), "default");
}

#[test]
fn the_requests_of_the_nodeclaim_are_those_of_its_pods() {
    let scene =
        Scene::new().with_pods(pods("a", 1, &web().of(1000, 1024))).with_pods(pods("b", 1, &web().of(500, 512)));
    let plan = scene.solve().whole();
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(plan.claims[0].draft.requests, amounts(1500, 1536).with("pods", 2000));
}
