//! A drain is said on the Node, kept to, and taken back.

use super::*;
use crate::core::facts::samples;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

fn written(node: &Node, patch: &NodePatch) -> Node {
    let mut node = node.clone();
    node.annotations.extend(patch.annotations.clone());
    patch.without_annotations.iter().for_each(|key| drop(node.annotations.remove(key)));
    node.labels.extend(patch.labels.clone());
    patch.without_labels.iter().for_each(|key| drop(node.labels.remove(key)));
    node.taints = patch.taints.clone().unwrap_or(node.taints);
    node
}

#[test]
fn a_drain_is_written_once_and_taken_back_whole() {
    let before = samples::node();
    let closed = written(&before, &begin_drain(&before, at(15)).unwrap());
    assert_eq!((close(&closed), begin_drain(&closed, at(15))), (None, None));
    assert_eq!(drained_since(&closed, at(14)), Some(at(5)));
    assert_eq!(written(&closed, &end_drain(&closed).unwrap()), before);
    assert_eq!(end_drain(&before), None, "what others have closed stays closed");
}

#[test]
fn a_node_that_is_closed_already_is_told_its_deadline() {
    let node = samples::node();
    let closed = written(&node, &close(&node).unwrap());
    let patch = begin_drain(&closed, at(15)).unwrap();
    assert_eq!(patch.taints, None);
    assert_eq!(drained_since(&written(&closed, &patch), at(6)), Some(at(5)));
}

#[test]
fn a_deadline_that_is_past_or_ahead_or_nonsense_takes_no_time_from_anybody() {
    let node = samples::node();
    let closed = written(&node, &begin_drain(&node, at(15)).unwrap());
    assert_eq!(drained_since(&closed, at(15)), None, "they have not been asked since");
    assert_eq!(drained_since(&closed, at(2)), Some(at(2)), "a clock was ahead");
    let mut nonsense = closed.clone();
    nonsense.annotations.insert(labels::ORPHAN_TERMINATION_TIMESTAMP.into(), "tomorrow at noon".into());
    assert_eq!(drained_since(&nonsense, at(6)), None);
    assert_eq!(written(&nonsense, &begin_drain(&nonsense, at(15)).unwrap()), closed, "it is written anew");
}

#[test]
fn nobodys_time_runs_before_a_node_says_until_when() {
    let node = samples::node();
    let closed = written(&node, &begin_drain(&node, at(15)).unwrap());
    assert_eq!(runs_since(&[&node], at(5), at(9)), at(9), "it could not be written for four minutes");
    assert_eq!(runs_since(&[&node, &closed], at(5), at(9)), at(5));
    assert_eq!(runs_since(&[&closed], at(5), at(16)), at(5), "their time is over");
    assert_eq!(runs_since(&[&closed], at(6), at(9)), at(5), "what was tried again is not seen yet");
    assert_eq!(runs_since(&[&closed], at(6), at(16)), at(16), "nobody was asked in time");
}
