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
            "waiting for a decision: 1a2b3c,4d5e6f",
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
