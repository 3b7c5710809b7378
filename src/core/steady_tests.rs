//! Which time is believed while a clock is set to and fro.

use super::*;

/// Looks at a clock that is ahead by so many seconds at each moment, in seconds, and says by how much what is believed is ahead of the truth.
fn believed(looks: &[(u64, i64)]) -> Vec<i64> {
    let mut steady = Steady::default();
    let look = |(moment, ahead): &(u64, i64)| {
        let truth = Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000 + moment);
        let told = steady.tell(Duration::from_secs(*moment), truth + SignedDuration::from_secs(*ahead));
        told.time.duration_since(truth).as_secs()
    };
    looks.iter().map(look).collect()
}

#[test]
fn a_clock_that_jumps_ahead_is_believed_after_an_hour_and_not_before() {
    assert_eq!(
        believed(&[(0, 0), (60, 0), (61, 3600), (3660, 3600), (3661, 3600), (4000, 3600)]),
        [0, 0, 0, 0, 3600, 3600]
    );
}

#[test]
fn one_that_is_set_right_meanwhile_has_ended_nothing() {
    assert_eq!(believed(&[(0, 0), (10, 21_600), (1_810, 21_600), (1_811, 0), (5_000, 0)]), [0; 5]);
}

#[test]
fn one_that_jumps_back_is_followed_and_believed_at_once_when_it_is_right_again() {
    assert_eq!(believed(&[(0, 0), (10, -3600), (20, -3600), (30, 0)]), [0, -3600, -3600, 0]);
}

#[test]
fn one_that_goes_on_jumping_is_not_believed() {
    let jumps: Vec<_> =
        (0..20).map(|jump| (1_800 * jump, if jump == 0 { 0 } else { 100 * i64::try_from(jump).unwrap() })).collect();
    assert_eq!(believed(&jumps), [0; 20]);
}

#[test]
fn one_that_is_slewed_is_followed() {
    assert_eq!(believed(&[(0, 0), (100, 2), (200, 4), (300, 6), (400, 8)]), [0, 2, 4, 6, 8]);
}

#[test]
fn a_jump_is_told_of_once() {
    let mut steady = Steady::default();
    let mut look = |moment, ahead| {
        let wall = Timestamp::UNIX_EPOCH + Duration::from_secs(moment) + SignedDuration::from_secs(ahead);
        steady.tell(Duration::from_secs(moment), wall).jumped.map(|by| by.as_secs())
    };
    assert_eq!([look(0, 0), look(1, 60), look(2, 60), look(3, 0), look(4, 60)], [None, Some(60), None, None, Some(60)]);
}

#[test]
fn a_leap_is_time_that_has_not_passed() {
    let (second, five_hours) = (Duration::from_secs(1), SignedDuration::from_hours(5));
    let start = Timestamp::UNIX_EPOCH;
    let mut leaps = Leaps::default();
    assert_eq!(leaps.look(second, start), Timestamp::MIN, "nothing to compare with");
    assert_eq!(leaps.look(61 * second, start + SignedDuration::from_secs(63)), Timestamp::MIN, "a clock is slewed");
    assert_eq!(leaps.look(62 * second, start - five_hours), Timestamp::MIN, "behind only delays");
    let right = start + SignedDuration::from_secs(63);
    assert_eq!(leaps.look(63 * second, right), right);
    assert_eq!(leaps.look(64 * second, right + SignedDuration::from_secs(1)), right, "that was the last one");
    assert_eq!(leaps.latest(), right);
}
