//! Durations are read and written as Go does, and moments do not overflow.

use super::*;

#[test]
fn no_moment_is_later_than_the_end_of_time() {
    let moment = Timestamp::UNIX_EPOCH;
    assert_eq!(later(moment, Duration::from_mins(1)), Timestamp::from_second(60).unwrap());
    assert_eq!(later(moment, Duration::ZERO), moment);
    assert_eq!(later(moment, Duration::MAX), Timestamp::MAX);
}

#[test]
fn go_durations() {
    for (text, nanos) in [
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("300ms", 300_000_000),
        (".5s", 500_000_000),
        ("+2us", 2_000),
        ("0", 0),
        ("1h1ns", 3_600_000_000_001),
    ] {
        assert_eq!(go_duration(text), Some(Duration::from_nanos(nanos)), "{text}");
    }
    for text in ["", "1", "h", "-1s", "1d", "1.2.3s", ".s", "9999999999h", "1 h", "+"] {
        assert_eq!(go_duration(text), None, "{text}");
    }
    for (seconds, text) in [(0, "0s"), (90, "1m30s"), (2_592_000, "720h"), (3605, "1h5s")] {
        assert_eq!(manifest_duration(Duration::from_secs(seconds)), text);
    }
}
