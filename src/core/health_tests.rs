//! Two failures among the last four launches make a NodePool unhealthy.

use super::*;
use crate::core::facts::samples::{class, condition, pool};

fn failed() -> Result<(), Failure> {
    Err(Failure { reason: "RegistrationFailed".into(), message: "Failed to register node".into() })
}

fn with(status: Option<Status>) -> Pool {
    Pool { conditions: status.map(|status| condition(HEALTHY, status)).into_iter().collect(), ..pool() }
}

#[test]
fn two_failures_are_too_many_and_one_success_does_not_outweigh_them() {
    let mut health = Health::of(&with(Some(Status::Unknown)));
    assert_eq!(health.describe(), "no launch to judge by");
    health.heard(failed());
    assert_eq!(health.verdict(Some(Status::Unknown)), None, "one may fail");
    health.heard(failed());
    let bad = (Status::False, "RegistrationFailed", "Failed to register node");
    assert_eq!(health.verdict(Some(Status::Unknown)), Some(bad));
    assert_eq!(health.verdict(Some(Status::False)), None, "it says so already");
    health.heard(Ok(()));
    assert_eq!(health.verdict(Some(Status::False)), None);
    assert_eq!(health.describe(), "1 of the last 3 launches became Nodes");
    health.heard(Ok(()));
    health.heard(Ok(()));
    assert_eq!(
        health.verdict(Some(Status::False)),
        Some((Status::True, HEALTHY, "")),
        "the first failure is forgotten"
    );
}

#[test]
fn one_success_is_healthy() {
    let mut health = Health::default();
    health.heard(Ok(()));
    assert_eq!(health.verdict(None), Some((Status::True, HEALTHY, "")));
}

#[test]
fn a_restart_goes_on_from_the_condition() {
    let mut bad = Health::of(&with(Some(Status::False)));
    bad.heard(Ok(()));
    assert_eq!(bad.verdict(Some(Status::False)), None);
    let mut good = Health::of(&with(Some(Status::True)));
    good.heard(failed());
    assert_eq!(good.verdict(Some(Status::True)), None);
    assert_eq!(Health::of(&with(None)), Health::default());
}

#[test]
fn an_edit_of_nodepool_or_nodeclass_makes_it_unknown() {
    let pool = Pool { class_generation: Some(1), ..with(Some(Status::True)) };
    assert!(!is_outdated(&pool, &class()));
    assert!(is_outdated(&Pool { generation: 2, ..pool.clone() }, &class()));
    assert!(is_outdated(&pool, &NodeClass { generation: 2, ..class() }));
    assert!(is_outdated(&Pool { conditions: vec![], ..pool }, &class()));
}
