//! The summary as people and programs read it.

use serde_json::Value;

use super::*;
use crate::sim::outcome;
use crate::sim::outcome::tests::day;

fn small() -> Outcome {
    Outcome {
        title: "three pods".to_owned(),
        seed: 4,
        simulated_seconds: 3600.0,
        pods_total: 3,
        pods_bound: 2,
        unplaced: vec![outcome::Unplaced {
            pod: "default/a".to_owned(),
            reasons: vec!["no NodePool is ready".to_owned()],
        }],
        seconds_to_bound: vec![31.0, 30.5],
        nodes_peak: 2,
        price_total: 0.1 + 0.2,
        price_peak_per_hour: 0.5,
        wall_seconds: 0.25,
        peak_memory_bytes: 1 << 20,
        ..Outcome::default()
    }
}

#[test]
fn json_has_all_fields_in_a_fixed_order() {
    let expected = r#"{
  "title": "three pods",
  "pods": {
    "total": 3,
    "bound": 2,
    "unplaced": [
      {
        "pod": "default/a",
        "reasons": [
          "no NodePool is ready"
        ]
      }
    ]
  },
  "nodes": {
    "launched": 0,
    "peak": 2,
    "final": 0
  },
  "price": {
    "total": 0.3,
    "peakPerHour": 0.5
  },
  "timeToBoundSeconds": {
    "p50": 30.5,
    "p90": 31.0,
    "p99": 31.0
  },
  "simulatedSeconds": 3600.0,
  "seed": 4,
  "violations": [],
  "wallSeconds": 0.25,
  "peakMemoryBytes": 1048576
}"#;
    assert_eq!(json(&small()).expect("JSON"), expected);
}

#[test]
fn only_the_last_two_fields_depend_on_the_machine() {
    let (mut slow, fast) = (small(), small());
    (slow.wall_seconds, slow.peak_memory_bytes) = (99.0, 1 << 33);
    let head = |outcome: &Outcome| json(outcome).expect("JSON").split("\"wallSeconds\"").next().map(str::to_owned);
    assert_eq!(head(&slow), head(&fast));
}

#[test]
fn without_a_bound_pod_there_are_no_percentiles() {
    let none = Outcome { seconds_to_bound: Vec::new(), ..small() };
    let value: Value = serde_json::from_str(&json(&none).expect("JSON")).expect("valid JSON");
    assert_eq!(value["timeToBoundSeconds"]["p99"], Value::Null);
    assert!(table(&none).contains("p50 –, p90 –, p99 –"));
}

#[test]
fn the_table_says_what_came_of_it_and_why_not_more() {
    let mut outcome = day(60);
    outcome.violations.push("pod default/x was bound to a node that is gone".to_owned());
    let text = table(&outcome);
    for part in [
        "a day with a morning rush",
        "1d (seed 7)",
        "60 launched",
        "per hour",
        "14 ┆ NodePool gpu: its taint",
        "(such as ml/train-00)",
        "violation: pod default/x was bound",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn the_table_stays_short_when_every_pod_has_a_reason_of_its_own() {
    let mut outcome = small();
    let own = |at: u64| outcome::Unplaced { pod: format!("p{at}"), reasons: vec![format!("needs {at} cores more")] };
    outcome.unplaced = (0..100).map(own).collect();
    let text = table(&outcome);
    assert!(text.contains("88 ┆ … 88 other reasons"), "{text}");
    assert!(text.lines().count() < 60, "{text}");
}
