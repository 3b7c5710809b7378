//! Karpenter's suite of constraints, second part: labels that only the pool defines, or nobody. All of it once with the key among the
//! pool's requirements and once among its labels.

use super::super::super::Plan;
use super::super::build::*;
use super::words::*;
use crate::core::facts::Pool;
use crate::core::labels::{INITIALIZED, REGISTERED};
use crate::core::requirements::Operator::{self, DoesNotExist, Exists, In, NotIn};

const KEY: &str = "example.com/team";

fn as_requirement() -> Pool {
    pool("default").requiring(within(KEY, &["red"]))
}

fn as_label() -> Pool {
    pool("default").labelled(KEY, "red")
}

fn asked(pool: Pool, operator: Operator, values: &[&str]) -> Plan {
    from(pool).place(&web().wanting(says(KEY, operator, values)))
}

#[test]
fn a_key_that_nobody_defines_suits_only_pods_that_can_do_without_it() {
    for (operator, values, fine) in
        [(In, &["red"][..], false), (NotIn, &["red"], true), (Exists, &[], false), (DoesNotExist, &[], true)]
    {
        let plan = asked(pool("default"), operator, values);
        assert_eq!(plan.left() == 0, fine, "{operator:?}");
        assert!(plan.claims.iter().all(|claim| !claim.draft.labels.contains_key(KEY)), "{operator:?}");
    }
}

#[test]
fn a_key_that_the_pool_defines_suits_pods_that_want_its_value() {
    for pool in [as_requirement, as_label] {
        for (operator, values, fine) in [
            (In, &["red"][..], true),
            (NotIn, &["red"], false),
            (Exists, &[], true),
            (DoesNotExist, &[], false),
            (In, &["blue"], false),
            (NotIn, &["blue"], true),
        ] {
            let plan = asked(pool(), operator, values);
            assert_eq!(plan.left() == 0, fine, "{operator:?} {values:?}");
            let labels = plan.claims.iter().filter_map(|claim| claim.draft.labels.get(KEY));
            assert!(labels.into_iter().all(|value| &**value == "red"));
        }
    }
}

#[test]
fn an_unconstrained_pod_gets_the_label_too() {
    for pool in [as_requirement, as_label] {
        let plan = from(pool()).place(&web());
        assert_eq!(plan.claims[0].draft.labels.get(KEY).map(|value| &**value), Some("red"));
    }
}

#[test]
fn pods_that_agree_on_a_value_share_a_node() {
    let open = pool("default").requiring(says(KEY, Exists, &[]));
    let pair = [web().wanting(says(KEY, NotIn, &["red"])), web().wanting(within(KEY, &["red", "blue"]))];
    let scene = from(open).with_pods(pods("a", 1, &pair[0])).with_pods(pods("b", 1, &pair[1]));
    let plan = scene.solve().whole();
    assert_eq!(plan.claims[0].draft.labels.get(KEY).map(|value| &**value), Some("blue"));
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn pods_that_do_not_agree_get_nodes_of_their_own() {
    let open = pool("default").requiring(within(KEY, &["red", "blue"]));
    let scene = from(open).with_pods(pods("a", 1, &web().wanting(within(KEY, &["red"])))).with_pods(pods(
        "b",
        1,
        &web().wanting(within(KEY, &["blue"])),
    ));
    assert_eq!(scene.solve().whole().claims.len(), 2);
}

#[test]
fn exists_does_not_make_an_impossible_value_possible() {
    let lost = web().wanting(within(KEY, &["blue"])).wanting(says(KEY, Exists, &[]));
    for pool in [pool("default"), as_requirement(), as_label()] {
        assert_eq!(from(pool).place(&lost).left(), 1);
    }
}

#[test]
fn a_value_that_other_pods_bring_is_a_domain_too() {
    // The pool leaves the key open. One pod makes the node `b`, and kube-scheduler then knows of that domain.
    let open = pool("default").requiring(says(KEY, Exists, &[]));
    let scene = from(open).with_pods(pods("b", 1, &app("b").selecting(KEY, "b")));
    let scene = scene.with_pods(pods("web", 4, &web().spreading(even(KEY, 1))));
    let plan = scene.solve().whole();
    assert_eq!(crate::core::scheduling::check(&scene.problem(), &plan), []);
}

#[test]
fn labels_that_every_node_comes_to_have_can_be_asked_for() {
    let asks = web().selecting(REGISTERED, "true").selecting(INITIALIZED, "true");
    let scene = from(pool("default")).with_pods(pods("web", 1, &asks));
    let plan = scene.solve().whole();
    assert_eq!(crate::core::scheduling::check(&scene.problem(), &plan), []);
    assert!(!plan.speaks_of(REGISTERED) && !plan.speaks_of(INITIALIZED));
    assert_eq!(from(pool("default")).place(&web().selecting(REGISTERED, "false")).left(), 1);
}
