//! What counts as a change.

use jiff::Timestamp;

use super::*;

fn condition(kind: &str, status: Status, since: i64) -> Condition {
    Condition {
        kind: kind.into(),
        status,
        reason: "Because".into(),
        message: "".into(),
        since: Timestamp::from_second(since).unwrap(),
        generation: 1,
    }
}

#[test]
fn new_and_changed_conditions_are_transitions_others_are_not() {
    let old = [condition("Launched", Status::Unknown, 10), condition("Ready", Status::False, 10)];
    let new = [
        condition("Launched", Status::True, 25),
        condition("Ready", Status::False, 30),
        condition("Drifted", Status::True, 31),
    ];
    let changes = transitions(&old, &new);
    let kinds: Vec<&str> = changes.iter().map(|change| &*change.kind).collect();
    assert_eq!(kinds, ["Launched", "Drifted"]);
    assert_eq!(changes[0].from, Some((Status::Unknown, Duration::from_secs(15))));
    assert_eq!((changes[0].to, changes[1].from), (Status::True, None));
}

#[test]
fn clocks_that_disagree_make_no_negative_durations() {
    let changes = transitions(&[condition("Ready", Status::False, 50)], &[condition("Ready", Status::True, 40)]);
    assert_eq!(changes[0].from, Some((Status::False, Duration::ZERO)));
}
