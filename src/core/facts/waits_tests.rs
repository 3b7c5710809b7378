//! A pod's way from pending to ready, by the clock.

use super::*;
use crate::core::facts::samples::pod;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Created at second 100, found unschedulable.
fn pending() -> Pod {
    Pod { created: at(100), phase: PodPhase::Pending, started: None, ..pod("web", None) }
}

fn bound() -> Pod {
    Pod { node: Some("n".into()), unschedulable: false, scheduled: Some(at(130)), ..pending() }
}

fn ready() -> Pod {
    Pod { phase: PodPhase::Running, ready: Some(at(140)), ..bound() }
}

#[test]
fn a_pod_is_followed_from_pending_to_ready() {
    let (mut waits, uid) = (Waits::default(), PodUid::from("web"));
    assert_eq!(waits.see(&Pod { unschedulable: false, ..pending() }, at(101)), Reached::default());
    assert_eq!(waits.get(&uid).unwrap().acked, None, "kube-scheduler has not said that it needs a node");
    waits.see(&pending(), at(102));
    waits.see(&pending(), at(103));
    assert_eq!(waits.get(&uid).unwrap().acked, Some(at(102)));

    assert_eq!(waits.decided(std::slice::from_ref(&uid), &[], at(105)), [secs(3)]);
    assert_eq!(
        waits.decided(std::slice::from_ref(&uid), &[], at(115)),
        Vec::<Duration>::new(),
        "only the first decision counts"
    );
    assert_eq!(waits.get(&uid).unwrap().planned, Some(at(105)));

    let reached = waits.see(&bound(), at(131));
    assert_eq!(reached.bound, Some(Took { since_created: secs(30), since_planned: Some(secs(25)) }));
    assert_eq!(reached.started, None);
    assert_eq!(waits.see(&bound(), at(132)), Reached::default(), "bound once");

    let reached = waits.see(&ready(), at(141));
    assert_eq!(
        reached,
        Reached { bound: None, started: Some(Took { since_created: secs(40), since_planned: Some(secs(35)) }) }
    );
    assert!(waits.is_empty());
    assert_eq!(waits.see(&ready(), at(150)), Reached::default());
}

#[test]
fn a_refused_pod_has_no_place_to_wait_for() {
    let (mut waits, uid) = (Waits::default(), PodUid::from("web"));
    waits.see(&pending(), at(102));
    assert_eq!(waits.decided(&[], std::slice::from_ref(&uid), at(104)), [secs(2)]);
    let wait = *waits.get(&uid).unwrap();
    assert_eq!((wait.decided, wait.planned), (Some(at(104)), None));
    assert_eq!(waits.decided(std::slice::from_ref(&uid), &[], at(110)), Vec::<Duration>::new());
    waits.decided(&[], std::slice::from_ref(&uid), at(112));
    assert_eq!(waits.get(&uid).unwrap().planned, None, "the last plan had no place");
    // kube-scheduler found one by itself.
    let reached = waits.see(&bound(), at(131));
    assert_eq!(reached.bound, Some(Took { since_created: secs(30), since_planned: None }));
    // Once bound, plans that think of its going elsewhere do not count.
    waits.decided(std::slice::from_ref(&uid), &[], at(133));
    assert_eq!(waits.get(&uid).unwrap().planned, None);
}

#[test]
fn pods_that_were_never_seen_pending_or_never_ran_are_not_timed() {
    let mut waits = Waits::default();
    assert_eq!(waits.see(&ready(), at(200)), Reached::default());
    waits.see(&pending(), at(102));
    let failed = Pod { phase: PodPhase::Failed, ready: None, ..ready() };
    assert_eq!(waits.see(&failed, at(141)).started, None);
    assert!(waits.is_empty());
    waits.see(&pending(), at(102));
    waits.gone(&"web".into());
    assert!(waits.is_empty());
    waits.see(&pending(), at(102));
    waits.retain(|uid| *uid != "web".into());
    assert_eq!(waits.len(), 0);
    assert_eq!(waits.decided(&["web".into()], &[], at(103)), Vec::<Duration>::new(), "nobody remembers it");
}

#[test]
fn clocks_that_disagree_give_no_negative_times() {
    let mut waits = Waits::default();
    waits.see(&pending(), at(102));
    waits.decided(&["web".into()], &[], at(131));
    let reached = waits.see(&bound(), at(132));
    assert_eq!(reached.bound.unwrap().since_planned, Some(Duration::ZERO));
}
