//! What is written down is read again, and there is an end to it.

use super::*;

#[test]
fn what_is_written_is_read_again() {
    let mut record = Record::default();
    record.held.extend(["1a2b3c".to_owned(), "4d5e6f".to_owned()]);
    record.note(Timestamp::from_second(60).unwrap(), "took machine a down", "3 looks:\nit belongs to no NodeClaim");
    record.note(Timestamp::from_second(90).unwrap(), "let Node b go", "nothing else is left");
    record.note(Timestamp::from_second(120).unwrap(), "let Node b go", "nothing else is left, still");
    let text = record.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "asked about: 1a2b3c,4d5e6f",
            "1970-01-01T00:02:00Z let Node b go: nothing else is left, still",
            "1970-01-01T00:01:00Z took machine a down: 3 looks: it belongs to no NodeClaim",
        ]
    );
    assert_eq!(Record::read(&text), record);
    assert_eq!(Record::read(&format!("hello\n\n{text}who was here?")), record);
}

#[test]
fn the_oldest_deeds_make_room() {
    let mut record = Record::default();
    for n in 0..200 {
        record.note(Timestamp::from_second(n).unwrap(), &format!("took machine {n} down"), &"why ".repeat(30));
        assert!(record.to_string().len() <= MOST);
    }
    assert!(record.deeds.len() > 40 && record.deeds[0].1.starts_with("took machine 199 down"));
    record.note(Timestamp::UNIX_EPOCH, "a person said approve", &"x".repeat(2 * MOST));
    assert!(record.deeds.len() > 40, "no word takes the room of all others");
}

#[test]
fn a_word_is_written_down_when_it_is_said_again_and_not_when_it_is_heard_anew() {
    let (one, both) = ("approve 1", "approve 1 dismiss 2");
    let mut record = Record::default();
    for (second, words, kept) in [
        (0, None, 0),
        (1, Some(one), 1),
        // Whoever was just started hears it anew.
        (2, Some(one), 1),
        (3, Some(both), 2),
        (4, Some(both), 2),
        (5, Some(one), 2),
        (6, None, 3),
        (7, None, 3),
        (8, Some(one), 3),
    ] {
        let at = Timestamp::from_second(second).unwrap();
        let mut next = Record::read(&record.to_string());
        next.heard(at, words, "a finding");
        assert_eq!(next.deeds.len(), kept, "at second {second}: {next}");
        let is_news = ![0, 2, 4, 7].contains(&second);
        assert_eq!(next.deeds.front().is_some_and(|(last, _)| *last == at), is_news, "at second {second}: {next}");
        record = next;
    }
    assert_eq!(
        record.to_string(),
        "1970-01-01T00:00:08Z a person said \"approve 1\": a finding\n\
         1970-01-01T00:00:06Z a person took back what was said: a finding\n\
         1970-01-01T00:00:03Z a person said \"approve 1 dismiss 2\": a finding\n"
    );
}

#[test]
fn what_fails_is_known_by_its_reason() {
    let mut record = Record::default();
    record.note(Timestamp::UNIX_EPOCH, "machine a was not taken down", "no\nrights");
    let record = Record::read(&record.to_string());
    let reasons = ["no\nrights", "no rights at all", ""];
    assert_eq!(reasons.map(|why| record.has("machine a was not taken down", why)), [true, false, false]);
    assert!(!record.has("machine b was not taken down", "no\nrights"));
}

#[test]
fn a_finding_keeps_its_date_until_it_is_no_more() {
    let found = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "seen\nso")).collect();
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut record = Record::default();
    record.note(at(0), "took machine x down", "it was nobody's");
    record.saw(at(60), found(&["machine a is nobody's", "machine b is nobody's"]));
    let mut record = Record::read(&record.to_string());
    record.saw(at(120), found(&["machine a is nobody's"]));
    let text = record.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "1970-01-01T00:00:00Z took machine x down: it was nobody's",
            "1970-01-01T00:01:00Z found: machine b is nobody's: seen so; no more since 1970-01-01T00:02:00Z",
            "1970-01-01T00:01:00Z found: machine a is nobody's: seen so",
        ]
    );
    assert_eq!(Record::read(&text), record);
    record.saw(at(180), found(&["machine a is nobody's", "machine b is nobody's"]));
    assert!(record.findings[0].1.starts_with("machine b") && record.findings[0].0 == at(180), "it is found anew");
}

#[test]
fn a_flood_of_findings_is_written_down_in_part_and_stays_as_it_is() {
    let names: Vec<String> = (0..500).map(|n| format!("machine {n:03} is nobody's")).collect();
    let found = || names.iter().map(|name| (name.clone(), "seen")).collect::<BTreeMap<_, _>>();
    let mut record = Record::default();
    record.saw(Timestamp::UNIX_EPOCH, BTreeMap::from([("machine y is nobody's".to_owned(), "seen")]));
    record.saw(Timestamp::UNIX_EPOCH, found());
    assert_eq!(record.findings.len(), FINDINGS);
    let before = record.clone();
    record.saw(Timestamp::from_second(60).unwrap(), found());
    assert_eq!(record, before, "nothing is news");
}
