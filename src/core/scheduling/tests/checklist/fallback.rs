//! Karpenter's suite of preference fallback: what may be dropped to place a pod, and what may not.

use super::super::build::*;
use super::words::*;
use crate::core::facts::{Effect, Taint};
use crate::core::labels::{HOSTNAME, INSTANCE_TYPE, ZONE};
use crate::core::requirements::Operator::{DoesNotExist, In};

#[test]
fn a_single_impossible_required_term_is_never_dropped() {
    assert_eq!(Scene::new().place(&web().wanting(within(ZONE, &["nowhere"]))).left(), 1);
}

#[test]
fn required_alternatives_are_tried_in_order_and_later_ones_are_not_reached() {
    let picky = web()
        .wanting(within(ZONE, &["nowhere"]))
        .or_wanting(within(INSTANCE_TYPE, &["unknown"]))
        .or_wanting(within(ZONE, &["zone-b"]))
        .or_wanting(within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&picky).only(ZONE), "zone-b");
}

#[test]
fn all_impossible_preferences_are_dropped() {
    let dreamer = web().preferring(1, within(ZONE, &["nowhere"])).preferring(2, within(INSTANCE_TYPE, &["unknown"]));
    Scene::new().place(&dreamer).whole();
}

#[test]
fn the_heaviest_possible_preference_is_honoured() {
    let picky = web()
        .preferring(100, within(ZONE, &["nowhere"]))
        .preferring(50, within(ZONE, &["zone-b"]))
        .preferring(1, within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&picky).only(ZONE), "zone-b");
}

#[test]
fn what_is_required_stays_when_a_preference_contradicts_it() {
    let torn = web().wanting(within(ZONE, &["zone-c"])).preferring(100, within(ZONE, &["zone-a"]));
    assert_eq!(Scene::new().place(&torn).only(ZONE), "zone-c");
}

#[test]
fn a_preference_that_contradicts_itself_blocks_nothing() {
    let mut torn = web();
    let both = vec![within(ZONE, &["zone-a"]), says(ZONE, DoesNotExist, &[])];
    torn.node_affinity.preferred.push(crate::core::facts::Weighted { weight: 1, term: both });
    Scene::new().place(&torn).whole();
}

#[test]
fn a_soft_taint_is_put_up_with_last_and_stays_on_the_node() {
    let soft = pool("default").tainted(Taint::new("slow", Effect::PreferNoSchedule));
    let plan = from(soft).place(&web().preferring(1, within(ZONE, &["nowhere"]))).whole();
    assert_eq!(plan.claims[0].draft.taints.len(), 1);
}

#[test]
fn a_preference_that_can_be_met_comes_before_a_soft_taint_is_put_up_with() {
    let soft = pool("soft").weighing(10).tainted(Taint::new("slow", Effect::PreferNoSchedule));
    let scene = Scene::new().with_pool(soft, types());
    let plan = scene.place(&web().preferring(1, within(ZONE, &["zone-b"])));
    assert_eq!((plan.claims[0].draft.pool.as_str(), plan.only(ZONE)), ("default", "zone-b".to_owned()));
}

#[test]
fn a_wish_that_nobody_can_meet_does_not_buy_a_node() {
    for key in [ZONE, HOSTNAME] {
        let scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, "zone-a")]));
        let plan = scene.place(&web().preferring(1, says(key, In, &["nowhere"])));
        assert_eq!((plan.existing.len(), plan.claims.len()), (1, 0), "{key}");
    }
}

#[test]
fn preferences_are_not_looked_at_when_the_policy_says_so() {
    let mut scene = Scene::new();
    scene.settings.respect_preferences = false;
    let wishful = web()
        .of(100, 100)
        .preferring(1, within(ZONE, &["zone-b"]))
        .rather_far(those_of("web", HOSTNAME))
        .rather_far(those_of("web", ZONE))
        .rather_near(those_of("db", ZONE))
        .spreading(rather_even(HOSTNAME, 1));
    let plan = scene.with_pods(pods("web", 4, &wishful)).solve().whole();
    assert_eq!((plan.claims.len(), pinned(&plan, 0, ZONE)), (1, None));
}

/// kube-scheduler lets any of the terms do, and so does the cheapest.
#[test]
fn of_several_terms_that_is_bought_for_which_is_the_best_value() {
    let either = web().of(500, 4096).wanting(within(INSTANCE_TYPE, &["m-64x"])).or_wanting(within(ZONE, &[ZONES[1]]));
    let plan = Scene::new().with_pods(pods("web", 10, &either)).solve().whole();
    assert_eq!(plan.per_node(), [10]);
    assert!(plan.price < 0.6, "{}", plan.price);
}

#[test]
fn room_that_is_there_under_any_term_comes_before_a_new_node() {
    let either = web().wanting(within(INSTANCE_TYPE, &["m-1x"])).or_wanting(within(ZONE, &[ZONES[1]]));
    let scene = Scene::new().with_node(node("old", 4, 4, &[(ZONE, ZONES[1])])).with_pods(pods("web", 2, &either));
    let plan = scene.solve();
    assert_eq!((plan.claims.len(), plan.placed()), (0, 2));
}
