//! Which texts are durations.

use std::time::Duration;

use super::{parse, parse_nillable, parse_optional};

#[test]
fn groups_add_up() {
    for (text, seconds) in [
        ("0s", 0),
        ("30s", 30),
        ("5m", 300),
        ("720h", 2_592_000),
        ("1h30m5s", 5405),
        ("5s1h", 3605),
        ("1m1m", 120),
        ("2562047h", 9_223_369_200),
    ] {
        assert_eq!(parse("f", text), Ok(Duration::from_secs(seconds)), "{text}");
    }
}

#[test]
fn what_the_schemas_refuse_is_refused() {
    for text in [
        "",
        "0",
        "10",
        "-1s",
        "+1s",
        "1hr",
        "1.5h",
        "100ms",
        "1d",
        "h",
        "1h ",
        " 1h",
        "1h30",
        "never",
        "2562048h",
        "99999999999999999999h",
        "18446744073709551615h",
        "١h",
    ] {
        let error = parse("spec.expireAfter", text).unwrap_err();
        assert_eq!(error.field, "spec.expireAfter");
        assert!(error.to_string().contains("spec.expireAfter"), "{error}");
        assert!(!error.to_string().contains("Never"), "{error}");
    }
}

#[test]
fn only_a_nillable_duration_may_be_never() {
    assert_eq!(parse_nillable("f", "Never"), Ok(None));
    assert_eq!(parse_nillable("f", "1m"), Ok(Some(Duration::from_mins(1))));
    assert!(parse("f", "Never").is_err());
    assert!(parse_nillable("f", "NEVER").unwrap_err().to_string().ends_with("or Never"));
    assert_eq!(parse_optional("f", None), Ok(None));
    assert!(parse_optional("f", Some("Never")).is_err());
}
