//! What is found wrong beyond the schemas.

use serde_json::{Value, json};

use super::{CloudLabels, nodeclaim, nodeoverlay, nodepool};
use crate::api::nodeclaim::NodeClaim;
use crate::api::nodeoverlay::NodeOverlay;
use crate::api::nodepool::NodePool;

const KWOK: CloudLabels<'static> =
    CloudLabels { restricted_domains: &["karpenter.kwok.sh"], well_known: &["karpenter.kwok.sh/instance-cpu"] };

fn pool(metadata: &Value, spec: &Value) -> NodePool {
    let mut spec = spec.clone();
    if spec["requirements"].is_null() {
        spec["requirements"] = json!([]);
    }
    spec["nodeClassRef"] = json!({ "group": "g", "kind": "K", "name": "n" });
    let template = json!({ "metadata": metadata, "spec": spec });
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": { "template": template } })).unwrap()
}

/// The fields of a NodePool that are at fault.
fn fields(metadata: &Value, spec: &Value) -> Vec<String> {
    let faults = nodepool(&pool(metadata, spec), &KWOK);
    faults.into_iter().inspect(|fault| assert!(!fault.remedy.is_empty())).map(|fault| fault.field).collect()
}

/// How many faults one requirement has.
fn faults(requirement: &Value) -> usize {
    fields(&json!({}), &json!({ "requirements": [requirement] })).len()
}

fn exists(key: &str) -> usize {
    faults(&json!({ "key": key, "operator": "Exists" }))
}

#[test]
fn a_sound_pool_has_no_faults() {
    let spec = json!({
        "requirements": [
            { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"], "minValues": 2 },
            { "key": "beta.kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
            { "key": "karpenter.kwok.sh/instance-cpu", "operator": "Gte", "values": ["0"] },
        ],
        "taints": [{ "key": "a.example/t", "effect": "NoSchedule" }, { "key": "a.example/t", "effect": "NoExecute" }],
        "startupTaints": [{ "key": "b", "value": "v", "effect": "NoSchedule" }],
        "terminationGracePeriod": "1h",
        "expireAfter": "Never",
    });
    assert_eq!(fields(&json!({ "labels": { "team": "", "example.com/x": "y" } }), &spec), Vec::<String>::new());
}

#[test]
fn labels() {
    let field = |key: &str, value: &str| fields(&json!({ "labels": { key: value } }), &json!({}));
    assert_eq!(field("karpenter.sh/nodepool", "p"), ["spec.template.metadata.labels[karpenter.sh/nodepool]"]);
    for key in [
        "",
        "/x",
        "a b",
        "-a",
        "Example.com/x",
        "a/b/c",
        "karpenter.sh/x",
        "x.karpenter.sh/x",
        "karpenter.kwok.sh/x",
        "kubernetes.io/hostname",
    ] {
        assert_eq!(field(key, "v").len(), 1, "{key}");
    }
    for key in ["karpenter.sh/capacity-type", "mykarpenter.sh/x", "karpenter.sh", "kubernetes.io/x", "kops.k8s.io/x"] {
        assert_eq!(field(key, "v").len(), 0, "{key}");
    }
    for (value, faults) in [("", 0), ("a-b_c.d", 0), ("bad value!", 1), ("-a", 1), ("a/b", 1)] {
        assert_eq!(field("k", value).len(), faults, "{value}");
    }
    assert_eq!(field("k", &"v".repeat(63)).len(), 0);
    assert_eq!(field("k", &"v".repeat(64)).len(), 1);
}

#[test]
fn requirement_keys() {
    assert_eq!(exists(&format!("example.com/{}", "k".repeat(63))), 0);
    assert_eq!(exists(&format!("example.com/{}", "k".repeat(64))), 1);
    assert_eq!(exists(&format!("{}/k", ["a"; 127].join("."))), 0);
    assert_eq!(exists(&format!("{}b/k", ["a"; 127].join("."))), 1);
    assert_eq!(exists("karpenter.sh/nodepool"), 1);
    assert_eq!(exists("kubernetes.io/hostname"), 1);
    assert_eq!(exists("karpenter.kwok.sh/instance-cpu"), 0);
    assert_eq!(exists("karpenter.kwok.sh/kwoknodeclass"), 1);
    assert_eq!(exists("node-restriction.kubernetes.io/x"), 0);
}

#[test]
fn requirement_values() {
    for (operator, values, found) in [
        ("In", vec![], 1),
        ("In", vec!["a"], 0),
        ("In", vec!["bad value!"], 1),
        ("NotIn", vec![], 0),
        ("Gt", vec![], 1),
        ("Gt", vec!["1"], 0),
        ("Gt", vec!["1", "2"], 1),
        ("Lt", vec!["x"], 1),
        ("Gte", vec!["0"], 0),
        ("Lte", vec!["-1"], 2),
        ("Resembles", vec!["a"], 1),
    ] {
        let requirement = json!({ "key": "k", "operator": operator, "values": values });
        assert_eq!(faults(&requirement), found, "{requirement}");
    }
}

#[test]
fn min_values_and_capacity_types() {
    let found = |key: &str, values: &[&str], min_values: i32| {
        faults(&json!({ "key": key, "operator": "In", "values": values, "minValues": min_values }))
    };
    assert_eq!(found("k", &["a"], 2), 1);
    assert_eq!(found("k", &["a", "b"], 2), 0);
    assert_eq!(found("karpenter.sh/capacity-type", &["spot", "cheap"], 1), 0, "partly wrong still selects");
    assert_eq!(found("karpenter.sh/capacity-type", &["spot", "cheap"], 2), 1);
    assert_eq!(found("karpenter.sh/capacity-type", &["cheap"], 1), 1);
    assert_eq!(faults(&json!({ "key": "k", "operator": "Exists", "minValues": 2 })), 0);
}

#[test]
fn taints() {
    let spec = json!({
        "taints": [
            { "key": "a", "effect": "NoSchedule" },
            { "key": "", "effect": "NoSchedule" },
            { "key": "b", "value": "bad value!", "effect": "NoSchedule" },
            { "key": "c", "effect": "Sometimes" },
            { "key": "d", "effect": "" },
        ],
        "startupTaints": [{ "key": "a", "value": "other", "effect": "NoSchedule" }],
    });
    assert_eq!(
        fields(&json!({}), &spec),
        [
            "spec.template.spec.taints[1].key",
            "spec.template.spec.taints[2].value",
            "spec.template.spec.taints[3].effect",
            "spec.template.spec.startupTaints[0]",
        ]
    );
}

#[test]
fn durations_are_named() {
    let spec = json!({ "terminationGracePeriod": "Never", "expireAfter": "1.5h" });
    let expected = ["spec.template.spec.terminationGracePeriod", "spec.template.spec.expireAfter"];
    assert_eq!(fields(&json!({}), &spec), expected);
}

#[test]
fn a_claim_may_name_its_nodepool() {
    let claim: NodeClaim = serde_json::from_value(json!({
        "metadata": { "name": "c" },
        "spec": {
            "requirements": [
                { "key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"] },
                { "key": "k", "operator": "In" },
            ],
            "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
        },
    }))
    .unwrap();
    let faults = nodeclaim(&claim, &KWOK);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].to_string().starts_with("spec.requirements[1].values: "), "{}", faults[0]);
}

#[test]
fn overlays() {
    let overlay: NodeOverlay = serde_json::from_value(json!({
        "metadata": { "name": "o" },
        "spec": {
            "requirements": [{ "key": "k", "operator": "NotIn" }, { "key": "karpenter.sh/nodepool", "operator": "Exists" }],
            "capacity": { "cpu": 1, "example.com/gpu": "4" },
        },
    }))
    .unwrap();
    let fields: Vec<String> = nodeoverlay(&overlay, &KWOK).into_iter().map(|fault| fault.field).collect();
    assert_eq!(fields, ["spec.requirements[0].values", "spec.capacity[cpu]"]);
}
