//! Vectors computed with the Go library itself, over structs with Karpenter's names.

use serde_json::{Value, json};

use crate::api::nodepool::NodePool;

fn hash(template: &Value) -> u64 {
    pool(template).hash().unwrap()
}

fn pool(template: &Value) -> NodePool {
    let mut template = template.clone();
    template["spec"]["requirements"] = json!([]);
    template["spec"]["nodeClassRef"] =
        json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": { "template": template } })).unwrap()
}

#[test]
fn vectors() {
    assert_eq!(hash(&json!({ "spec": { "expireAfter": "Never" } })), 7_428_780_003_907_761_376);
    assert_eq!(hash(&json!({ "spec": { "expireAfter": "720h" } })), 12_745_407_319_442_031_341);
    assert_eq!(hash(&json!({ "spec": { "expireAfter": "0s" } })), 13_546_070_544_088_512_816);
    let twice = json!({ "key": "k", "effect": "NoSchedule" });
    assert_eq!(
        hash(&json!({ "spec": { "expireAfter": "Never", "taints": [twice, twice] } })),
        2_957_312_098_354_489_946
    );
    let full = json!({
        "metadata": { "labels": { "keyLabel": "valueLabel" }, "annotations": { "b": "2", "a": "1" } },
        "spec": {
            "taints": [{ "key": "key", "effect": "NoExecute" }, { "key": "k2", "value": "v", "effect": "NoSchedule" }],
            "startupTaints": [{ "key": "key", "effect": "NoExecute" }],
            "terminationGracePeriod": "5m",
            "expireAfter": "5m",
        },
    });
    assert_eq!(hash(&full), 10_219_944_325_494_688_258);
}

/// More of the same making, for what the reference leaves to reasoning; computed with the process in UTC.
#[test]
fn vectors_of_the_corners() {
    let never = |metadata: Value, spec: Value| {
        let mut spec = spec;
        spec["expireAfter"] = json!("Never");
        hash(&json!({ "metadata": metadata, "spec": spec }))
    };
    let dated = json!([{ "key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z" }]);
    assert_eq!(never(json!({}), json!({ "taints": dated })), 1_748_304_532_372_434_010);
    assert_eq!(never(json!({ "labels": {} }), json!({})), 1_051_302_497_054_047_366);
    assert_eq!(never(json!({}), json!({ "taints": [] })), 2_957_312_098_354_489_946);
    assert_eq!(never(json!({}), json!({ "terminationGracePeriod": "0s" })), 14_245_545_481_296_229_771);
    assert_eq!(never(json!({ "labels": { "a": "" } }), json!({})), 15_211_277_932_489_848_501);
}

#[test]
fn the_default_expiry_counts_as_written_out() {
    assert_eq!(hash(&json!({ "spec": {} })), hash(&json!({ "spec": { "expireAfter": "720h" } })));
    assert_eq!(hash(&json!({ "spec": { "expireAfter": "60m" } })), hash(&json!({ "spec": { "expireAfter": "1h" } })));
}

#[test]
fn requirements_do_not_count() {
    let mut narrowed = pool(&json!({ "spec": {} }));
    narrowed.spec.template.spec.requirements =
        serde_json::from_value(json!([{ "key": "a", "operator": "Exists" }])).unwrap();
    assert_eq!(narrowed.hash(), pool(&json!({ "spec": {} })).hash());
}

#[test]
fn an_empty_map_or_list_is_not_an_absent_one() {
    let nothing = hash(&json!({ "spec": {} }));
    assert_eq!(hash(&json!({ "metadata": {}, "spec": {} })), nothing);
    assert_ne!(hash(&json!({ "metadata": { "labels": {} }, "spec": {} })), nothing);
    assert_ne!(hash(&json!({ "spec": { "taints": [] } })), nothing);
    // Karpenter's library sees two equal taints as none, and none as an empty list.
    let taint = json!({ "key": "k", "effect": "NoSchedule" });
    assert_eq!(hash(&json!({ "spec": { "taints": [taint, taint] } })), hash(&json!({ "spec": { "taints": [] } })));
}

#[test]
fn the_order_of_taints_does_not_count_but_the_list_they_are_in_does() {
    let a = json!({ "key": "a", "effect": "NoSchedule" });
    let b = json!({ "key": "b", "effect": "NoSchedule" });
    assert_eq!(hash(&json!({ "spec": { "taints": [a, b] } })), hash(&json!({ "spec": { "taints": [b, a] } })));
    assert_ne!(hash(&json!({ "spec": { "taints": [a] } })), hash(&json!({ "spec": { "startupTaints": [a] } })));
}

#[test]
fn a_duration_that_cannot_be_read_is_named() {
    let error = pool(&json!({ "spec": { "expireAfter": "soon" } })).hash().unwrap_err();
    assert_eq!(error.field, "spec.template.spec.expireAfter");
}
