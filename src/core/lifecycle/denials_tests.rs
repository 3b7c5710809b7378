//! What a cloud must have said before it is believed.

use super::*;
use crate::core::facts::samples::start;
use crate::core::lifecycle::step::after;

const MINUTE: Duration = Duration::from_mins(1);

/// Denials at these seconds, by a cloud that may be wrong for a minute.
fn denied(at: impl IntoIterator<Item = i64>) -> Denials {
    let mut denials = Denials::default();
    for seconds in at {
        denials.add(after(start(), seconds), MINUTE);
    }
    denials
}

#[test]
fn five_rounds_over_a_minute_suffice() {
    assert!(!denied([0, 15, 30, 45]).suffice(MINUTE));
    assert!(denied([0, 15, 30, 45, 60]).suffice(MINUTE));
}

#[test]
fn a_cloud_that_shows_at_once_what_is_is_believed_at_once() {
    assert!(denied([0]).suffice(Duration::ZERO));
    assert_eq!(denied([0]).again_at(start(), Duration::ZERO), None);
}

/// The cloud was out of reach between two rounds, and wrong before and after.
#[test]
fn rounds_between_which_the_cloud_was_long_not_asked_count_apart() {
    assert!(!denied([0, 15, 93, 108, 123]).suffice(MINUTE));
    assert!(denied([0, 15, 93, 108, 123, 138, 153]).suffice(MINUTE), "five rounds over a minute");
}

#[test]
fn a_cloud_that_always_answers_late_is_believed_in_the_end() {
    assert!(!denied((0..12).map(|round| round * 100)).suffice(MINUTE));
    assert!(denied((0..13).map(|round| round * 100)).suffice(MINUTE));
}

#[test]
fn there_is_a_pause_after_each_denial_and_none_before_the_first() {
    assert_eq!(Denials::default().again_at(start(), MINUTE), None);
    let denials = denied([0]);
    assert_eq!(denials.again_at(after(start(), 14), MINUTE), Some(after(start(), 15)));
    assert_eq!(denials.again_at(after(start(), 15), MINUTE), None);
}

#[test]
fn a_denial_of_a_clock_that_was_ahead_holds_nothing_up_and_counts_for_itself() {
    let mut denials = denied([7200, 7215, 7230, 7245]);
    assert_eq!(denials.again_at(start(), MINUTE), None);
    denials.add(start(), MINUTE);
    assert!(!denials.suffice(MINUTE));
}
