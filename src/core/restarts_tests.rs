//! Whose node is waited for, and until when.

use jiff::SignedDuration;

use super::*;
use crate::core::facts::samples::{condition, pod, serving, start};
use crate::core::facts::{Condition, Fact, Fold, Status};
use crate::core::labels;

fn rebooting(reason: &str) -> Claim {
    let mut claim = serving();
    claim.conditions.push(Condition { reason: reason.into(), ..condition("Rebooting", Status::True) });
    claim
}

fn is_held_after(claim: Claim, minutes: i64) -> bool {
    let name = claim.name.clone();
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    let snapshot = Arc::new(fold.snapshot().clone());
    let seen = without_held(&snapshot, start() + SignedDuration::from_mins(minutes));
    let is_held = !seen.claims[&name].is_rebooting();
    assert_eq!(Arc::ptr_eq(&snapshot, &seen), !is_held, "what has not changed is not copied");
    is_held
}

#[test]
fn a_node_whose_pods_do_not_leave_is_waited_for_five_minutes() {
    let asked = || rebooting("RebootRequested");
    assert!(!is_held_after(asked(), 4));
    assert!(is_held_after(asked(), 5));
    let mut graceful = asked();
    graceful.annotations.insert(labels::REBOOT_GRACE.into(), "10m".into());
    assert!(is_held_after(graceful.clone(), 9));
    assert!(!is_held_after(graceful, 10), "now it restarts with whoever is there");
}

#[test]
fn a_machine_that_restarts_is_waited_for() {
    assert!(!is_held_after(rebooting("RebootIssued"), 15));
    let mut noted = rebooting("RebootRequested");
    noted.annotations.insert(labels::PRE_BOOT_ID.into(), "first".into());
    assert!(!is_held_after(noted, 15));
}

#[test]
fn who_waits_for_a_held_restart_is_known() {
    let mut fold = Fold::default();
    let claim = rebooting("RebootRequested");
    let name = claim.name.clone();
    fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    let waits = pod("web", None);
    let uid = waits.uid.clone();
    fold.fold(Fact::PodSeen(Arc::new(waits)));
    let late = start() + SignedDuration::from_mins(5);
    let nobody = |_: &PodUid| false;
    assert!(!is_anybody_held(fold.snapshot(), late, nobody), "it has no place in a plan");
    fold.planned(&name, [uid.clone()].into());
    assert!(!is_anybody_held(fold.snapshot(), start(), nobody));
    assert!(is_anybody_held(fold.snapshot(), late, nobody));
    assert!(!is_anybody_held(fold.snapshot(), late, |refused| *refused == uid), "there is no other place");
}
