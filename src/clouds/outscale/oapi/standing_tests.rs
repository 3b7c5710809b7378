//! What answers teach of our clock.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

#[test]
fn an_answer_that_was_long_on_its_way_says_nothing_of_our_clock() {
    let standing = Standing::default();
    // The API answered at once, or late; the answer came after twenty seconds.
    for date in [0, 10, 20] {
        assert!(!standing.learn(at(date), (at(0), at(20))), "{date}");
    }
    // `Date` is cut to the second.
    assert!(!standing.learn(at(-1), (at(0), at(1))));
    assert_eq!((standing.skew(), standing.clock_trouble()), (SignedDuration::ZERO, None));
}

#[test]
fn a_wrong_clock_is_told_with_its_way_and_its_remedy_until_it_is_right() {
    let standing = Standing::default();
    for (date, told) in [
        (-5, "is 5 s ahead of the API's"),
        (90, "is 89 s behind the API's"),
        (-7_200, "is 120 min ahead of the API's"),
        (7_200, "is 120 min behind the API's"),
    ] {
        assert!(standing.learn(at(date), (at(0), at(1))), "{date}");
        let trouble = standing.clock_trouble().unwrap();
        assert!(trouble.contains(told) && trouble.contains("NTP"), "{date}: {trouble}");
    }
    assert!(standing.learn(at(0), (at(0), at(1))));
    assert_eq!(standing.clock_trouble(), None);
}
