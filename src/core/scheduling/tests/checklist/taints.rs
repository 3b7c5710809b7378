//! Karpenter's suites of taints: those of pools, startup taints, and the shapes that tolerations have.

use super::super::build::*;
use super::words::*;
use crate::core::facts::{Effect, Pool, Taint, Toleration, TolerationOperator};
use crate::core::labels::{ARCH, ZONE};

fn toleration(key: &str, operator: TolerationOperator, value: &str, effect: Option<Effect>) -> Toleration {
    Toleration { key: key.into(), operator, value: value.into(), effect, seconds: None }
}

fn red() -> Taint {
    Taint { value: "red".into(), ..taint("team") }
}

#[test]
fn taints_of_the_pool_are_on_its_nodes() {
    let plan = from(pool("default").tainted(red())).place(&web().tolerating("team")).whole();
    assert_eq!(plan.claims[0].draft.taints, [red()]);
}

#[test]
fn tolerations_that_answer_the_taint_are_placed() {
    use TolerationOperator::{Equal, Exists};
    for answer in [
        toleration("team", Exists, "", None),
        toleration("team", Exists, "", Some(Effect::NoSchedule)),
        toleration("team", Equal, "red", None),
        toleration("team", Equal, "red", Some(Effect::NoSchedule)),
        toleration("", Exists, "", None),
    ] {
        let mut one = web();
        one.tolerations.push(answer.clone());
        assert_eq!(from(pool("default").tainted(red())).place(&one).left(), 0, "{answer:?}");
    }
}

#[test]
fn tolerations_that_do_not_are_refused_with_the_taint() {
    use TolerationOperator::{Equal, Exists};
    assert!(from(pool("default").tainted(red())).place(&web()).why().contains("team=red:NoSchedule"));
    for answer in [
        toleration("other", Exists, "", None),
        toleration("team", Equal, "blue", None),
        toleration("team", Equal, "red", Some(Effect::NoExecute)),
        toleration("", Equal, "red", None),
    ] {
        let mut one = web();
        one.tolerations.push(answer.clone());
        assert_eq!(from(pool("default").tainted(red())).place(&one).left(), 1, "{answer:?}");
    }
}

#[test]
fn a_startup_taint_needs_no_toleration() {
    let plan = from(pool("default").starting_with(red())).place(&web()).whole();
    assert_eq!((plan.claims[0].draft.taints.len(), &plan.claims[0].draft.startup_taints[..]), (0, &[red()][..]));
}

#[test]
fn a_toleration_makes_no_taint() {
    let plan = from(pool("default")).place(&web().tolerating("team")).whole();
    assert!(plan.claims[0].draft.taints.is_empty() && plan.claims[0].draft.startup_taints.is_empty());
}

#[test]
fn every_taint_must_be_tolerated() {
    let both = || from(pool("default").tainted(red()).tainted(taint("gpu")));
    assert_eq!(both().place(&web().tolerating("team")).left(), 1);
    assert_eq!(both().place(&web().tolerating("team").tolerating("gpu")).left(), 0);
}

#[test]
fn only_taints_that_are_known_to_go_by_themselves_are_ephemeral() {
    for (key, effect, gone_soon) in [
        ("node.kubernetes.io/not-ready", Effect::NoSchedule, true),
        ("node.kubernetes.io/not-ready", Effect::NoExecute, true),
        ("node.kubernetes.io/unreachable", Effect::NoSchedule, true),
        ("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule, true),
        ("karpenter.sh/unregistered", Effect::NoExecute, true),
        ("karpenter.sh/unregistered", Effect::NoSchedule, false),
        ("readiness.k8s.io/x", Effect::NoSchedule, true),
        ("readiness.k8s.io/x", Effect::NoExecute, true),
        ("readiness.k8s.io/x", Effect::PreferNoSchedule, true),
        ("example.com/readiness.k8s.io/x", Effect::NoSchedule, false),
        ("node.kubernetes.io/disk-pressure", Effect::NoSchedule, false),
    ] {
        assert_eq!(Taint::new(key, effect).is_ephemeral(), gone_soon, "{key} {effect:?}");
    }
}

fn slow() -> Taint {
    Taint::new("slow", Effect::PreferNoSchedule)
}

/// Differs: Karpenter's pods give up all that they wish for before they put up with such a taint.
#[test]
fn a_soft_taint_of_every_pool_costs_no_wish() {
    let wishes = web().spreading(rather_even(ZONE, 1)).preferring(1, within(ARCH, &["amd64"]));
    let zones = |pool: Pool| {
        let scene = Scene::default().with_pool(pool, types()).round(pods("web", 6, &wishes));
        scene.skew(ZONE, "web")
    };
    assert_eq!(zones(pool("default")), [2, 2, 2]);
    assert_eq!(zones(pool("default").tainted(slow())), [2, 2, 2]);
}

#[test]
fn a_soft_taint_of_every_pool_makes_no_plan_dearer() {
    let price = |pool: Pool| {
        let scene = Scene::default().with_pool(pool, types());
        let scene = scene.with_pods(pods("web", 40, &web())).with_pods(pods("db", 7, &app("db").of(3000, 2048)));
        scene.plan().whole().price
    };
    assert!((price(pool("default").tainted(slow())) - price(pool("default"))).abs() < 1e-9);
}

/// A pool without the taint is used for the sake of it, as before.
#[test]
fn where_a_pool_has_no_soft_taint_it_is_kept_to_until_the_end() {
    let soft = pool("soft").tainted(slow()).weighing(9);
    let scene = Scene::default().with_pool(soft, types()).with_pool(pool("plain"), types());
    assert_eq!(scene.place(&web()).claims[0].draft.pool.as_str(), "plain");
}

#[test]
fn a_nodes_no_execute_taint_keeps_new_pods_away_too() {
    let hot = node("old", 4, 4, &[]).tainted(Taint::new("hot", Effect::NoExecute));
    assert!(Scene::new().with_node(hot).place(&web()).existing.is_empty());
}
