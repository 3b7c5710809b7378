//! What events say.

use crate::core::facts::Status;
use crate::core::ids::ObjectKey;

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
    assert_eq!(failed_scheduling(pod(), &long).message.chars().count(), 1024);
    let event = insufficient_capacity(claim(), &"default-x".into(), &long);
    assert_eq!(event.message.chars().count(), 1024);
    assert!(event.message.starts_with("NodeClaim default-x event: é") && event.message.ends_with('…'));
}
