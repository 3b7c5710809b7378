//! What Talos would read is what it reads after we have written it again.

use super::*;

/// Plain scalars that readers of YAML disagree about, or that are not written as they were read.
const SCALARS: [&str; 44] = [
    "0644",
    "0o644",
    "0O644",
    "010",
    "08",
    "007",
    "00",
    "0_7",
    "1_000",
    "1__0",
    "1_000.5",
    "0x1F",
    "0X1f",
    "0b11",
    "+1",
    "-0",
    "1.10",
    "1.0",
    "1e3",
    "1E3",
    "1e-3",
    ".5",
    "5.",
    "+.5",
    ".inf",
    "-.Inf",
    ".nan",
    "0x_1",
    "12:30:45",
    "190:20:30",
    "2001-01-01",
    "2001-12-14 21:59:43.10",
    "123456789012345678901234567890",
    "1.7976931348623157e309",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "True",
    "FALSE",
    "true",
    "123456.0123456789012345",
];

#[test]
fn a_plain_scalar_is_written_as_it_was_read() {
    for scalar in SCALARS {
        for document in [format!("k: {scalar}"), format!("k:\n- {scalar}"), format!("k:\n- a: {scalar}\n  b: x")] {
            assert_eq!(write(&read(&document).unwrap()), document);
        }
        let flow = read(&format!("{{ k: {scalar}, l: [ {scalar} ] }} # a comment\n")).unwrap();
        assert_eq!(write(&flow), format!("k: {scalar}\nl:\n- {scalar}"));
        // What stands in quotes is a text, and stays one.
        for quoted in [format!("k: \"{scalar}\""), format!("k: '{scalar}'"), format!("k: |-\n  {scalar}\n")] {
            let read = read(&quoted).unwrap();
            assert_eq!(read["k"], scalar, "{quoted}");
            assert_eq!(write(&read), format!("k: \"{scalar}\""));
        }
    }
}

#[test]
fn what_an_alias_or_a_merge_brings_in_is_as_it_was_written_too() {
    let read = read("a: &a 0644\nb: *a\nc: &c { d: 1.10 }\ne: { <<: *c, f: yes }\nü: é\ng: 0o17 # ü\n").unwrap();
    assert_eq!(write(&read), "a: 0644\nb: 0644\nc:\n  d: 1.10\ne:\n  d: 1.10\n  f: yes\ng: 0o17\nü: é");
}

#[test]
fn what_is_the_same_to_everybody_is_read_as_what_it_is() {
    let read = read("a: 1\nb: -7\nc: true\nd: text\ne: ~\nf: Null\ng:\nh: 1.5\n").unwrap();
    let same =
        serde_json::json!({ "a": 1, "b": -7, "c": true, "d": "text", "e": null, "f": null, "g": null, "h": 1.5 });
    assert_eq!(read, same);
}

#[test]
fn a_boolean_has_many_words() {
    for word in TRUE {
        assert!(is_true(&read(&format!("k: {word}")).unwrap()["k"]), "{word}");
    }
    for word in FALSE.into_iter().chain(["1", "tru"]) {
        assert!(!is_true(&read(&format!("k: {word}")).unwrap()["k"]), "{word}");
    }
}

#[test]
fn what_is_kept_for_oneself_is_refused() {
    let error = read("k: \u{E000}0644\n").unwrap_err();
    assert_eq!(error, "has the character U+E000, which joiner keeps for itself");
}
