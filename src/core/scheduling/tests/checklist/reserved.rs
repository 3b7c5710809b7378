//! Karpenter's suite of reserved capacity: what a NodeClaim holds of it, and who waits for it.
//!
//! Here is what `reserved.rs` leaves open. Where Karpenter lets a NodeClaim hold all reservations that it could use and makes the next pod wait
//! for the next pass, joiner gives each NodeClaim one: several passes become one.

use super::super::build::*;
use super::super::reserved::{ID, alone, held, reserved, small_and_medium, waiting};
use super::words::*;
use crate::core::facts::InstanceType;
use crate::core::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT};
use crate::core::scheduling::Reason;

/// One type with a reservation of that size.
fn one_type(id: &str, size: u32) -> Vec<InstanceType> {
    vec![reserved(instance_type("a", 2, 8, 0.1), &[(id, size)])]
}

#[test]
fn pools_with_reservations_of_their_own_use_both_at_once() {
    let scene = Scene::default()
        .with_pool(pool("one").labelled("example.com/team", "red"), one_type("r-1", 1))
        .with_pool(pool("two").labelled("example.com/team", "blue"), one_type("r-2", 1))
        .with_pods(pods("red", 1, &alone(500).selecting("example.com/team", "red")))
        .with_pods(pods("blue", 1, &alone(500).selecting("example.com/team", "blue")));
    assert_eq!(held(&waiting(scene).solve().whole()), [Some("r-1"), Some("r-2")]);
}

#[test]
fn a_full_reservation_beside_other_capacity_is_held_by_nobody() {
    let scene = buying(one_type("r", 0)).with_pods(pods("web", 1, &web()));
    let plan = waiting(scene).solve().whole();
    assert_eq!(held(&plan), [None]);
    assert_eq!(plan.only(CAPACITY_TYPE), format!("{ON_DEMAND}|{SPOT}"));
}

#[test]
fn who_asks_for_a_full_reservation_waits_and_gets_no_other_machine() {
    let scene = buying(one_type("r", 0)).with_pods(pods("web", 1, &web().selecting(CAPACITY_TYPE, RESERVED)));
    let plan = waiting(scene).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (0, 1));
    assert_eq!(plan.refused[0].reasons, [Reason::ReservedInUse { pool: "default".into() }]);
}

#[test]
fn a_disruption_does_not_wait_for_a_full_reservation() {
    let heavy = pool("heavy").weighing(10).requiring(within(CAPACITY_TYPE, &[RESERVED]));
    let scene = || {
        let scene = Scene::default().with_pool(heavy.clone(), one_type("r", 0));
        scene.with_pool(pool("light"), vec![instance_type("b", 2, 8, 0.1)]).with_pods(pods("web", 1, &web()))
    };
    assert_eq!(scene().solve().whole().cheapest(), ["b"]);
    assert_eq!(waiting(scene()).solve().left(), 1, "provisioning does");
}

#[test]
fn a_pod_that_would_cost_a_node_its_reservation_goes_elsewhere() {
    // Together the two need the large type, of which nothing is reserved.
    let scene = buying(small_and_medium()).with_pods(pods("web", 2, &shape(2500, 500)));
    let plan = waiting(scene).solve().whole();
    assert_eq!((plan.per_node(), held(&plan)), (vec![1, 1], vec![None, Some("r-medium")]));
}

#[test]
fn a_node_that_is_reserved_says_so_and_nothing_else() {
    let plan = buying(small_and_medium()).place(&web()).whole();
    assert_eq!((plan.only(CAPACITY_TYPE), plan.only(ID)), (RESERVED.to_owned(), "r-small".to_owned()));
    assert_eq!(plan.only(INSTANCE_TYPE), "a-small");
}

#[test]
fn a_wish_does_not_keep_a_pod_from_a_reservation_that_is_free() {
    // Karpenter keeps the wish and lets the pod wait: joiner's wishes keep nobody from running.
    let wishing = alone(500).selecting(CAPACITY_TYPE, RESERVED).preferring(10, within(INSTANCE_TYPE, &["a-small"]));
    let scene = buying(small_and_medium()).with_pods(pods("web", 3, &wishing));
    let plan = waiting(scene).solve();
    assert_eq!((held(&plan), plan.left()), (vec![Some("r-medium"), Some("r-small")], 1));
}

#[test]
fn the_next_pass_finds_what_the_last_one_took() {
    let asking = alone(500).selecting(CAPACITY_TYPE, RESERVED);
    let scene = waiting(buying(one_type("r", 1)).with_pods(pods("a", 1, &asking)));
    let plan = scene.solve();
    assert_eq!(held(&plan), [Some("r")]);
    let next = scene.written(&plan).asking_for([pods("a", 1, &asking), pods("b", 1, &asking)].concat());
    let plan = next.solve();
    assert_eq!((plan.existing.len(), plan.claims.len()), (1, 0));
    assert_eq!(plan.refused[0].reasons, [Reason::ReservedInUse { pool: "default".into() }]);
}
