//! What events say.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::Status;
use crate::core::ids::ObjectKey;
use crate::telemetry::dedupe::Dedupe;

use super::*;

fn pod() -> About {
    About::Pod(ObjectKey::new("shop", "web-1"), "u1".into())
}

fn claim() -> About {
    About::Claim("default-x".into(), "u2".into())
}

#[test]
fn nominations_name_claim_and_node() {
    let event = nominated(pod(), Some(&"default-x".into()), Some(&"node-7".into()));
    assert_eq!(event.message, "Pod should schedule on: nodeclaim/default-x, node/node-7");
    assert_eq!((event.reason, event.warning, event.limited), ("Nominated", false, true));
}

#[test]
fn a_nodeclaim_that_cannot_be_understood_is_a_warning_once_per_problem() {
    let event = not_understood(claim(), "spec.expireAfter: \"1d\" is no duration; write 24h");
    assert_eq!((event.reason, event.warning), ("FailedValidation", true));
    assert!(event.message.ends_with("spec.expireAfter: \"1d\" is no duration; write 24h"));
    assert_ne!(event.sameness, not_understood(claim(), "spec.taints: other").sameness);
}

#[test]
fn a_pool_without_types_is_a_warning_once_a_minute() {
    let pool = About::Pool("web".into(), "u4".into());
    let event = no_compatible_types(pool, "NodePool web: its requirements leave no instance type that can be had");
    assert_eq!((event.reason, event.warning), ("NoCompatibleInstanceTypes", true));
    assert!(event.message.starts_with("NodePool requirements filtered out all compatible available instance types: "));
    assert_eq!((event.sameness.as_deref(), event.window), (Some(""), Duration::from_mins(1)));
}

#[test]
fn conditions_speak_when_they_change_but_not_when_they_appear() {
    let mut transition = Transition {
        kind: "Launched".into(),
        from: Some((Status::Unknown, Duration::from_secs(1))),
        to: Status::True,
        reason: "Launched".into(),
        message: "".into(),
    };
    let event = condition_changed(claim(), &transition).unwrap();
    assert_eq!(event.reason, "Launched");
    assert_eq!(
        event.message,
        "Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched"
    );
    assert_eq!(event.sameness, None);
    transition.message = "quota".into();
    assert!(condition_changed(claim(), &transition).unwrap().message.ends_with(", Message: quota"));
    transition.from = None;
    assert_eq!(condition_changed(claim(), &transition), None);
}

#[test]
fn long_messages_are_cut_at_characters() {
    let long = "é".repeat(5000);
    for event in [failed_scheduling(pod(), &long), insufficient_capacity(claim(), &"default-x".into(), &long)] {
        assert!((1023..=1024).contains(&event.message.len()), "{}", event.message.len());
        assert!(event.message.ends_with("é..."));
    }
    let just = "x".repeat(1024 - "Failed to schedule pod, ".len());
    assert!(failed_scheduling(pod(), &just).message.ends_with('x'));
}

#[test]
fn what_is_said_of_a_drain_has_karpenters_reasons() {
    let node = About::Node("node-7".into(), "u3".into());
    let said = [
        failed_draining(node.clone(), "2 pods are waiting to be evicted"),
        evicted(pod(), "Forceful Termination"),
        deleted_for_deadline(pod(), 30),
        grace_period_expiring(node, "2026-01-02T03:04:05Z"),
        unregistered_taint_missing(claim(), &"node-7".into()),
    ];
    let reasons = said.each_ref().map(|event| (event.reason, event.warning));
    let expected = [
        ("FailedDraining", true),
        ("Evicted", false),
        ("Disrupted", false),
        ("TerminationGracePeriodExpiring", true),
        ("UnregisteredTaintMissing", true),
    ];
    assert_eq!(reasons, expected);
    assert_eq!(said[0].message, "Failed to drain node, 2 pods are waiting to be evicted");
    assert!(said[2].message.starts_with("Deleting the pod with 30 s of grace"), "{}", said[2].message);
    assert_eq!(said[3].message, "All pods will be deleted by 2026-01-02T03:04:05Z");
}

#[test]
fn each_pod_that_a_budget_keeps_is_told_of_in_time() {
    let node = || About::Node("node-7".into(), "u3".into());
    let kept =
        |pod: &str| eviction_blocked(node(), &ObjectKey::new("shop", pod), "web forbids it", "2026-01-02T03:04:05Z");
    let event = kept("a");
    assert_eq!(event.message, "Failed to drain node, web forbids it (Pod=shop/a, since 2026-01-02T03:04:05Z)");
    assert_eq!((event.reason, event.warning), ("FailedDraining", true));
    let mut said = Dedupe::new();
    let mut at =
        |seconds: i64, event: &Event| said.admit(event, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds));
    assert!(at(0, &kept("a")) && at(0, &kept("b")) && at(0, &failed_draining(node(), "2 pods are waiting")));
    assert!(!at(119, &kept("a")) && at(120, &kept("a")));
    // Thousands do not drown the API server.
    assert!((0..1000).filter(|number| at(200, &kept(&format!("pod-{number}")))).count() <= 10);
}
