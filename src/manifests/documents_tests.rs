//! Documents are found, counted, and kept apart.

use serde_json::json;

use super::documents;

#[test]
fn a_yaml_stream_is_cut_at_its_markers() {
    let all = documents("# a comment\n---\na: 1\n---\n# nothing\n--- # third\nb: |\n  text\n  ---\n...\n---\nc: 3\n");
    let numbers: Vec<_> = all.iter().map(|document| document.number).collect();
    assert_eq!(numbers, [1, 3, 4]);
    assert_eq!(all[0].content, Ok(json!({"a": 1})));
    assert_eq!(all[1].content, Ok(json!({"b": "text\n---\n"})));
}

#[test]
fn a_broken_document_does_not_spoil_its_neighbours() {
    let all = documents("a: 1\n---\na: [1\n---\na: 3\n");
    assert!(all[0].content.is_ok() && all[1].content.is_err() && all[2].content.is_ok(), "{all:?}");
}

#[test]
fn json_values_follow_one_another() {
    let all = documents("{\"a\": 1}\n{\"a\": 2}");
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].content, Ok(json!({"a": 2})));
    // Flow style is YAML, not JSON.
    assert_eq!(documents("{a: 1}")[0].content, Ok(json!({"a": 1})));
}

#[test]
fn a_broken_end_does_not_spoil_the_json_before_it() {
    let all = documents("{\"a\": 1}\n{\"a\": 2}\n{\"a\":");
    let good: Vec<bool> = all.iter().map(|document| document.content.is_ok()).collect();
    assert_eq!(good, [true, true, false], "{all:?}");
    assert_eq!(all[1].content, Ok(json!({"a": 2})));
    // JSON in a stream of YAML is YAML.
    assert_eq!(documents("{\"a\": 1}\n---\nb: 2\n")[1].content, Ok(json!({"b": 2})));
}
