//! What is said twice, and what is not.

use crate::core::ids::ObjectKey;
use crate::telemetry::events;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn pod(namespace: &str, uid: &str) -> About {
    About::Pod(ObjectKey::new(namespace, "web"), uid.into())
}

#[test]
fn the_same_is_said_again_after_its_window() {
    let mut dedupe = Dedupe::new();
    let event = events::failed_scheduling(pod("a", "1"), "no room");
    assert!(dedupe.admit(&event, at(0)));
    assert!(!dedupe.admit(&event, at(299)));
    assert!(dedupe.admit(&event, at(300)));
}

#[test]
fn what_could_not_be_written_may_be_said_again() {
    let mut dedupe = Dedupe::new();
    let (lost, written) =
        (events::failed_scheduling(pod("a", "1"), "no room"), events::failed_scheduling(pod("a", "2"), "no room"));
    assert!(dedupe.admit(&lost, at(0)) && dedupe.admit(&written, at(0)));
    dedupe.on_failure(&lost)();
    assert!(dedupe.admit(&lost, at(1)));
    assert!(!dedupe.admit(&lost, at(2)) && !dedupe.admit(&written, at(2)));
    assert!(!dedupe.admit(&lost, at(300)), "it counts from when it was said again");
    assert!(dedupe.admit(&lost, at(301)));
}

#[test]
fn namesakes_do_not_silence_each_other() {
    let mut dedupe = Dedupe::new();
    assert!(dedupe.admit(&events::failed_scheduling(pod("a", "1"), "no room"), at(0)));
    assert!(dedupe.admit(&events::failed_scheduling(pod("b", "2"), "no room"), at(0)));
    assert!(!dedupe.admit(&events::failed_scheduling(pod("a", "1"), "no room"), at(1)));
}

#[test]
fn a_new_reason_is_news() {
    let mut dedupe = Dedupe::new();
    let event = events::failed_scheduling(pod("a", "1"), "no room");
    let saying = |words: &str| Event { sameness: Some(words.to_owned()), ..event.clone() };
    assert!(dedupe.admit(&saying("too new"), at(0)));
    assert!(dedupe.admit(&saying("no cheaper machine"), at(1)));
    assert!(!dedupe.admit(&saying("too new"), at(2)));
}

#[test]
fn nominations_are_limited_and_what_was_held_back_is_not_lost() {
    let mut dedupe = Dedupe::new();
    let nominations: Vec<Event> =
        (0..12).map(|i| events::nominated(pod("a", &i.to_string()), None, Some(&"n".into()))).collect();
    let admitted = nominations.iter().filter(|event| dedupe.admit(event, at(0))).count();
    assert_eq!(admitted, 10);
    // One second buys five more; those that were said stay silent, those that were held back are said.
    let later: Vec<bool> = nominations.iter().map(|event| dedupe.admit(event, at(1))).collect();
    assert_eq!(later.iter().filter(|admitted| **admitted).count(), 2);
    assert!(later[10] && later[11]);
}

#[test]
fn memory_is_bounded() {
    let mut dedupe = Dedupe { capacity: 3, ..Dedupe::new() };
    for i in 0..10 {
        assert!(dedupe.admit(&events::failed_scheduling(pod("a", &i.to_string()), "no room"), at(i)));
        assert!(dedupe.len() <= 3);
    }
    // The latest are the ones remembered.
    assert!(!dedupe.admit(&events::failed_scheduling(pod("a", "9"), "no room"), at(10)));
    assert!(dedupe.admit(&events::failed_scheduling(pod("a", "0"), "no room"), at(10)));
    dedupe.forget_until(at(1000));
    assert!(dedupe.is_empty() && dedupe.by_end.is_empty());
}
