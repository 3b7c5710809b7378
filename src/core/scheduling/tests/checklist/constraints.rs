//! Karpenter's suite of constraints: what pods and pools say of labels that everybody knows.
//!
//! A pool that is not ready: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::labels::{
    ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, OS, REGION, SPOT, WINDOWS_BUILD, ZONE,
};
use crate::core::requirements::Operator::{Exists, Gt, Gte, In, Lt, Lte, NotIn};
use crate::core::requirements::Requirement;

#[test]
fn an_unconstrained_pod_gets_a_node_with_the_pools_label() {
    let plan = from(pool("default").labelled("example.com/team", "red")).place(&web());
    assert_eq!(plan.only("example.com/team"), "red");
}

#[test]
fn a_selector_that_contradicts_the_pools_label_is_refused() {
    let scene = from(pool("default").labelled("example.com/team", "red"));
    assert!(scene.place(&web().selecting("example.com/team", "blue")).why().contains("example.com/team"));
}

#[test]
fn a_selector_on_a_key_that_nobody_defines_is_refused() {
    assert!(Scene::new().place(&web().selecting("example.com/team", "red")).why().contains("example.com/team"));
}

#[test]
fn required_affinity_that_the_pool_meets_is_placed_and_the_other_is_not() {
    let scene = || from(pool("default").labelled("example.com/team", "red"));
    let plan = scene().place(&web().wanting(within("example.com/team", &["red", "blue"]))).whole();
    assert_eq!(plan.only("example.com/team"), "red");
    assert_eq!(scene().place(&web().wanting(within("example.com/team", &["blue"]))).left(), 1);
}

#[test]
fn a_pool_that_names_a_zone_makes_nodes_there() {
    let plan = from(pool("default").requiring(within(ZONE, &["zone-b"]))).place(&web());
    assert_eq!(plan.only(ZONE), "zone-b");
}

#[test]
fn a_pod_that_selects_a_zone_gets_its_node_there() {
    assert_eq!(Scene::new().place(&web().selecting(ZONE, "zone-c")).only(ZONE), "zone-c");
}

#[test]
fn a_selector_outside_of_the_pools_range_is_refused() {
    let scene = from(pool("default").requiring(within(ZONE, &["zone-a", "zone-b"])));
    assert!(scene.place(&web().selecting(ZONE, "zone-c")).why().contains(ZONE));
}

#[test]
fn no_node_is_bought_for_a_pod_that_names_a_host() {
    // Karpenter does not look at such a pod at all; here a node of that name that is there may take it.
    let bound = web().selecting(HOSTNAME, "old");
    assert!(Scene::new().place(&bound).why().contains(HOSTNAME));
    assert_eq!(Scene::new().with_node(node("old", 4, 4, &[])).place(&bound).existing.len(), 1);
}

#[test]
fn an_instance_type_that_is_not_sold_is_refused() {
    assert_eq!(Scene::new().place(&web().selecting(INSTANCE_TYPE, "unknown")).left(), 1);
}

#[test]
fn operators_pick_the_types_whose_numbers_they_mean() {
    let types = |operator, values: &[&str]| {
        let plan = buying(ladder(5)).place(&web().wanting(says("integer", operator, values)));
        plan.types().join(" ")
    };
    assert_eq!(types(In, &["2", "4"]), "fake-2 fake-4");
    assert_eq!(types(NotIn, &["1", "2", "5"]), "fake-3 fake-4");
    assert_eq!(types(Gt, &["3"]), "fake-4 fake-5");
    assert_eq!(types(Lt, &["3"]), "fake-1 fake-2");
    assert_eq!(types(Gte, &["4"]), "fake-4 fake-5");
    assert_eq!(types(Lte, &["2"]), "fake-1 fake-2");
}

#[test]
fn bounds_that_no_type_meets_are_refused() {
    assert_eq!(buying(ladder(5)).place(&web().wanting(says("integer", Gt, &["5"]))).left(), 1);
}

#[test]
fn an_impossible_requirement_is_not_saved_by_a_possible_preference() {
    let lost = web().wanting(within(ZONE, &["nowhere"])).preferring(1, within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&lost).left(), 1);
    let excluded = web().wanting(says(ZONE, NotIn, &ZONES)).preferring(1, within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&excluded).left(), 1);
}

#[test]
fn a_preference_within_the_requirement_narrows_the_node() {
    let picky = web().wanting(within(ZONE, &["zone-a", "zone-b"])).preferring(1, within(ZONE, &["zone-b", "zone-c"]));
    assert_eq!(Scene::new().place(&picky).only(ZONE), "zone-b");
    let shy = web().wanting(says(ZONE, NotIn, &["zone-a"])).preferring(1, says(ZONE, NotIn, &["zone-b"]));
    assert_eq!(Scene::new().round(pods("web", 1, &shy)).whereabouts("web-00000", ZONE), Some("zone-c"));
}

#[test]
fn a_preference_against_the_requirement_is_dropped() {
    let torn = web().wanting(within(ZONE, &["zone-a"])).preferring(1, within(ZONE, &["zone-b"]));
    assert_eq!(Scene::new().place(&torn).only(ZONE), "zone-a");
    let shy = web().wanting(within(ZONE, &["zone-a"])).preferring(1, says(ZONE, NotIn, &["zone-a"]));
    assert_eq!(Scene::new().place(&shy).only(ZONE), "zone-a");
}

#[test]
fn selectors_preferences_and_requirements_add_up() {
    let all = web()
        .selecting(ARCH, "amd64")
        .wanting(within(ZONE, &["zone-a", "zone-b"]))
        .wanting(within("integer", &["2", "3", "4"]))
        .preferring(1, within(CAPACITY_TYPE, &[ON_DEMAND]))
        .preferring(1, within(ZONE, &["zone-b"]));
    let plan = buying(ladder(5)).place(&all);
    assert_eq!(plan.types(), ["fake-2", "fake-3", "fake-4"]);
    // One preference at a time is tried, in order of weight and then as written.
    assert_eq!((plan.only(CAPACITY_TYPE), plan.only(ARCH)), (ON_DEMAND.to_owned(), "amd64".to_owned()));
}

#[test]
fn labels_in_karpenters_own_domain_cannot_be_asked_for() {
    for key in ["karpenter.sh/custom", "sub.karpenter.sh/custom"] {
        let plan = Scene::new().place(&web().wanting(within(key, &["x"])));
        assert!(plan.why().contains(key), "{}", plan.why());
    }
}

#[test]
fn labels_in_kubernetes_domains_reach_the_node_from_the_pool() {
    for key in ["kubernetes.io/team", "k8s.io/team", "sub.kubernetes.io/team", "node-restriction.kubernetes.io/team"] {
        let plan = from(pool("default").labelled(key, "red")).place(&web().selecting(key, "red")).whole();
        assert_eq!(plan.only(key), "red");
    }
}

#[test]
fn each_label_that_everybody_knows_can_be_asked_for() {
    for (key, value) in [
        (NODEPOOL, "default"),
        (ZONE, "zone-b"),
        (INSTANCE_TYPE, "default"),
        (ARCH, "arm64"),
        (OS, "linux"),
        (CAPACITY_TYPE, SPOT),
    ] {
        let plan = from(pool("default")).place(&web().wanting(within(key, &[value]))).whole();
        assert_eq!(plan.only(key), value);
        assert_eq!(from(pool("default")).place(&web().wanting(within(key, &["unknown"]))).left(), 1, "{key}");
    }
}

/// The types of the scene, one of which says that it is `fast`, and is dearer than the others.
fn one_is_fast() -> Scene {
    let mut types = types();
    let mut fast = instance_type("fast", 8, 32, 9.0);
    fast.requirements.push(within("example.com/fast", &["yes"]));
    types.push(fast);
    Scene::default().with_pool(pool("default"), types)
}

#[test]
fn a_label_that_no_instance_type_says_is_on_no_node() {
    for key in [REGION, WINDOWS_BUILD] {
        let asks = || web().wanting(within(key, &["some"]));
        assert!(
            Scene::new().place(&asks()).why().contains(key),
            "the cloud may not set it, and the node would be in vain"
        );
        assert_eq!(Scene::new().place(&web().wanting(Requirement::new::<&str>(key, Exists, []))).left(), 1, "{key}");
        Scene::new().place(&web().wanting(Requirement::new(key, NotIn, ["some"]))).whole();
        // What the NodePool requires of it does not bring it about, and keeps out nobody else; a label of the NodePool does.
        assert_eq!(from(pool("default").requiring(within(key, &["some"]))).place(&asks()).left(), 1, "{key}");
        let plan = from(pool("default").requiring(within(key, &["some"]))).place(&web()).whole();
        assert_eq!(plan.only(key), "some", "the cloud is told all the same");
        from(pool("default").labelled(key, "some")).place(&asks()).whole();
        assert_eq!(from(pool("default").labelled(key, "other")).place(&asks()).left(), 1, "{key}");
    }
}

#[test]
fn a_label_that_some_instance_types_say_is_on_no_others() {
    let asks = |values: &[&str]| web().wanting(within("example.com/fast", values));
    assert_eq!(one_is_fast().place(&asks(&["yes"])).whole().types(), ["fast"]);
    assert_eq!(one_is_fast().place(&asks(&["no"])).left(), 1, "nobody says so");
    let plan = one_is_fast().place(&web().wanting(Requirement::new("example.com/fast", NotIn, ["yes"]))).whole();
    assert!(!plan.types().contains(&"fast"));
}

#[test]
fn deprecated_keys_mean_their_stable_forms() {
    let plan = from(pool("default")).place(&web().selecting("failure-domain.beta.kubernetes.io/zone", "zone-b"));
    assert_eq!(plan.only(ZONE), "zone-b");
    let plan = from(pool("default")).place(&web().selecting("beta.kubernetes.io/instance-type", "gpu-a"));
    assert_eq!(plan.types(), ["gpu-a"]);
}

#[test]
fn a_key_that_nobody_defines_is_answered_with_the_one_that_may_be_meant() {
    assert!(
        Scene::new().place(&web().selecting("zone", "zone-a")).why().contains("is topology.kubernetes.io/zone meant?")
    );
    assert!(!Scene::new().place(&web().selecting("example.com/team", "red")).why().contains("meant"));
}
