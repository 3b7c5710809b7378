//! What joiner sees of a broken promise before it acts.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::core::facts::samples::{claim, machine, pod, serving_node, start};
use crate::core::facts::{Count, Machine, OwnerClaim, Selector};
use crate::core::ids::ObjectKey;
use crate::core::labels;

fn minutes(minutes: i64) -> Timestamp {
    start() + SignedDuration::from_mins(minutes)
}

fn deleted() -> Claim {
    Claim { deleting: Some(start()), ..claim() }
}

fn budget() -> PodBudget {
    PodBudget {
        key: ObjectKey::new("default", "front"),
        selector: Some(Selector::default()),
        min_available: None,
        max_unavailable: Some(Count::Pods(1)),
        spares_unready: false,
    }
}

#[test]
fn only_phases_of_rest_owe_no_reason() {
    assert!(is_silent("Launching", None));
    assert!(!is_silent("Launching", Some("the launch to end")));
    assert!(!is_silent("Ready", None));
}

#[test]
fn a_machine_is_ordered_down_for_a_nodeclaim_that_was_deleted_and_is_its_own() {
    let id = machine().id;
    let seen = |token: &str| Sight::Present(Arc::new(Machine { token: Some(token.into()), ..machine() }));
    assert_eq!(judge_order(&deleted(), &id, &seen("uid-1")), None);
    assert_eq!(judge_order(&deleted(), &id, &Sight::Unasked), None, "the mark is not known, and the ID is its own");
    let broken = judge_order(&claim(), &id, &seen("uid-1")).expect("nobody has deleted it");
    assert_eq!(broken.promise, Invariant::NoClaimedMachineDeleted);
    assert_eq!(broken.what, "machine sim://a/1 is ordered down for NodeClaim web-1, which nobody has deleted");
    let broken = judge_order(&deleted(), &id, &seen("uid-2")).expect("it is another's");
    assert!(broken.what.ends_with("which carries the mark of a NodeClaim with UID uid-2"), "{}", broken.what);
}

#[test]
fn a_node_is_deleted_for_its_own_nodeclaim_that_was_deleted_and_stays_until_the_machine_is_gone() {
    let (node, shown) = (serving_node(), Sight::Present(Arc::new(machine())));
    assert_eq!(judge_node_deletion(&deleted(), &node, [&deleted()], &shown), None);
    let broken = judge_node_deletion(&claim(), &node, [&claim()], &shown).expect("nobody has deleted it");
    assert_eq!(broken.promise, Invariant::NoServingNodeDeleted);
    assert_eq!(broken.what, "Node node-1 is deleted for NodeClaim web-1, which nobody has deleted");
    let bare = Node { finalizers: vec![], ..node.clone() };
    assert!(judge_node_deletion(&deleted(), &bare, [&deleted()], &shown).is_some(), "it would vanish");
    assert_eq!(judge_node_deletion(&deleted(), &bare, [&deleted()], &Sight::Gone), None);
    let other = Claim { name: "web-2".into(), uid: "uid-2".into(), ..claim() };
    let theirs = Node { owner_claims: vec![OwnerClaim::of(&other)], ..node };
    let broken = judge_node_deletion(&deleted(), &theirs, [&other], &Sight::Unasked).expect("it is another's");
    assert!(broken.what.ends_with("and it is the Node of NodeClaim web-2"), "{}", broken.what);
    assert_eq!(judge_node_deletion(&deleted(), &theirs, [&other], &shown), None, "the mark says whose it is");
    let going = Claim { deleting: Some(start()), ..other };
    assert_eq!(judge_node_deletion(&deleted(), &theirs, [&going], &Sight::Unasked), None, "that one goes too");
}

#[test]
fn a_pod_is_deleted_past_its_budget_when_a_deadline_is_near() {
    let in_half_an_hour = minutes(30).to_string();
    let annotations = [(labels::TERMINATION_TIMESTAMP.into(), in_half_an_hour.into())].into();
    let hurried = Claim { annotations, ..deleted() };
    let pod = pod("a", Some("node-1"));
    let judge = |claim: &Claim, at| judge_deletion(&pod, [claim], [&budget()], at);
    let broken = judge(&hurried, minutes(20)).expect("there are ten minutes left");
    assert_eq!(broken.promise, Invariant::BudgetsHold);
    assert_eq!(broken.what, "pod default/a is deleted past its budget front, and no deadline allows it");
    assert_eq!(judge(&hurried, minutes(30)), None);
    assert!(judge(&deleted(), minutes(600)).is_some(), "without a deadline budgets hold for ever");
    let leaving = Pod { deleting: Some(minutes(60)), ..pod.clone() };
    assert_eq!(
        judge_deletion(&leaving, [&hurried], [&budget()], minutes(20)),
        None,
        "it would be late, and only hurries"
    );
    assert_eq!(judge_deletion(&pod, [&hurried], [], minutes(20)), None, "no budget protects it");
    assert_eq!(judge_deletion(&pod, [], [&budget()], minutes(20)), None, "an orphan's pods have another deadline");
}
