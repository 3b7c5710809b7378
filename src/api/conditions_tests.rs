//! How conditions follow each other.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Conditioned, INITIALIZED, LAUNCHED, READY, REGISTERED, VALIDATION_SUCCEEDED};
use crate::api::common::ConditionStatus::{False, True, Unknown};
use crate::api::nodeclaim::NodeClaim;
use crate::api::nodeoverlay::NodeOverlay;

fn at(second: u8) -> Time {
    Time(format!("2026-01-01T00:00:{second:02}Z").parse().unwrap())
}

/// A NodeClaim created at second 0.
fn claim() -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": { "name": "c", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "K", "name": "n" } },
    }))
    .unwrap()
}

fn order(claim: &NodeClaim) -> Vec<&str> {
    claim.conditions().iter().map(|condition| condition.type_.as_str()).collect()
}

#[test]
fn opening_creates_what_is_missing_dated_from_the_creation() {
    let mut claim = claim();
    let set = claim.condition_set();
    for type_ in [LAUNCHED, REGISTERED, INITIALIZED] {
        let condition = set.get(type_).unwrap();
        assert_eq!(condition.status, Unknown);
        assert_eq!(condition.reason, "AwaitingReconciliation");
        assert_eq!(condition.last_transition_time, at(0));
        assert_eq!(condition.observed_generation, Some(1));
    }
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, root.reason.as_str()), (Unknown, "ReconcilingDependents"));
    assert_eq!(root.message, "Launched=Unknown, Registered=Unknown, Initialized=Unknown");
    assert_eq!(order(&claim), [LAUNCHED, REGISTERED, INITIALIZED, READY]);
    let once = claim.clone();
    claim.condition_set();
    assert_eq!(claim, once);
}

#[test]
fn the_root_follows_from_its_dependents() {
    let mut claim = claim();
    let mut set = claim.condition_set();
    assert!(set.set_true(LAUNCHED, &at(1)));
    assert!(!set.set_true(LAUNCHED, &at(2)), "nothing changed");
    assert!(set.set_true(REGISTERED, &at(3)));
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, root.message.as_str()), (Unknown, "Initialized=Unknown"));
    assert!(set.set_true(INITIALIZED, &at(5)));
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, root.reason.as_str(), root.message.as_str()), (True, READY, ""));
    assert_eq!(root.last_transition_time, at(5));
    assert!(set.set_false(REGISTERED, "MultipleNodesFound", "two nodes", &at(7)));
    assert!(set.set_unknown_because(INITIALIZED, "NodeNotReady", "", &at(8)));
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, root.reason.as_str()), (False, "UnhealthyDependents"));
    assert_eq!(root.message, "Initialized=Unknown, Registered=False", "newest first");
    assert_eq!(root.last_transition_time, at(7), "the status has not changed since");
    assert_eq!(order(&claim), [LAUNCHED, REGISTERED, INITIALIZED, READY]);
}

#[test]
fn a_new_reason_keeps_the_time_of_the_transition() {
    let mut claim = claim();
    let mut set = claim.condition_set();
    assert!(set.set_unknown_because(REGISTERED, "NodeNotFound", "no node yet", &at(9)));
    let condition = set.get(REGISTERED).unwrap();
    assert_eq!((condition.reason.as_str(), &condition.last_transition_time), ("NodeNotFound", &at(0)));
}

#[test]
fn a_new_generation_makes_old_verdicts_stale() {
    let mut claim = claim();
    let mut set = claim.condition_set();
    for type_ in [LAUNCHED, REGISTERED, INITIALIZED] {
        set.set_true(type_, &at(1));
    }
    claim.metadata.generation = Some(2);
    let mut set = claim.condition_set();
    assert_eq!(set.get(READY).unwrap().status, True, "opening alone judges nothing");
    assert!(set.set_true(LAUNCHED, &at(4)));
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, root.message.as_str()), (Unknown, "Registered=True, Initialized=True"));
    set.set_true(REGISTERED, &at(5));
    set.set_true(INITIALIZED, &at(6));
    let root = set.get(READY).unwrap();
    assert_eq!((root.status, &root.last_transition_time), (True, &at(6)));
    assert_eq!(set.get(LAUNCHED).unwrap().last_transition_time, at(1));
}

#[test]
fn a_false_verdict_on_an_old_generation_leaves_the_root_unknown() {
    let mut claim = claim();
    claim.condition_set().set_false(REGISTERED, "MultipleNodesFound", "", &at(1));
    claim.metadata.generation = Some(2);
    let mut set = claim.condition_set();
    set.set_true(LAUNCHED, &at(2));
    assert_eq!(set.get(READY).unwrap().status, Unknown);
}

#[test]
fn deletion_brings_all_conditions_to_the_current_generation() {
    let mut claim = claim();
    let mut set = claim.condition_set();
    for type_ in [LAUNCHED, REGISTERED, INITIALIZED] {
        set.set_true(type_, &at(1));
    }
    claim.metadata.generation = Some(2);
    claim.metadata.deletion_timestamp = Some(at(2));
    let mut set = claim.condition_set();
    set.set_unknown_because("Drained", "Draining", "", &at(3));
    assert!(set.list().iter().all(|condition| condition.observed_generation == Some(2)));
    assert_eq!(set.get(READY).unwrap().status, True);
}

#[test]
fn other_conditions_can_be_cleared_and_dependents_cannot() {
    let mut claim = claim();
    let mut set = claim.condition_set();
    set.set_true_because("Drifted", "NodePoolDrifted", "NodePoolDrifted", &at(4));
    assert_eq!(set.get("Drifted").unwrap().last_transition_time, at(4));
    assert_eq!(set.get(READY).unwrap().status, Unknown);
    assert_eq!(set.clear("Drifted"), Ok(true));
    assert_eq!(set.clear("Drifted"), Ok(false));
    assert!(set.clear(LAUNCHED).unwrap_err().to_string().contains(LAUNCHED));
    assert!(set.clear(READY).is_err());
    assert_eq!(order(&claim), [INITIALIZED, LAUNCHED, READY, REGISTERED], "alphabetical");
}

#[test]
fn times_are_kept_to_the_second() {
    let mut overlay: NodeOverlay =
        serde_json::from_value(json!({ "metadata": { "name": "o" }, "spec": { "requirements": [] } })).unwrap();
    let now = Time("2026-01-01T00:00:07.9Z".parse().unwrap());
    let mut set = overlay.condition_set();
    set.set_true(VALIDATION_SUCCEEDED, &now);
    assert_eq!(set.get(READY).unwrap().last_transition_time, at(7));
    assert!(set.is_true(READY));
    let text = serde_json::to_string(&overlay).unwrap();
    assert_eq!(serde_json::from_str::<NodeOverlay>(&text).unwrap(), overlay);
}
