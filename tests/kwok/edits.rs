//! NodePools and NodeClasses that are edited, made invalid, mended or taken away under their nodes: these stay, and the next ones are as is asked now.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, NODES, POOLS, condition, condition_message, name, text};
use crate::ending::Excuse;
use crate::pools::{is_told, says};
use crate::stage::{CLASSES, LIMIT, Stage, deployment, pool, small_machines};

/// NodeClaims, Nodes and running pods, each with what an edit elsewhere must not change.
fn there(stage: &Stage, namespace: &str) -> BTreeSet<String> {
    let (claims, nodes, mut pods) = (stage.api().list(CLAIMS), stage.api().list(NODES), stage.api().pods(namespace));
    pods.retain(|pod| pod["status"]["phase"] == "Running");
    let all = claims.iter().chain(&nodes).chain(&pods);
    let stays = all.filter(|object| object["metadata"]["deletionTimestamp"].is_null());
    let line = |object: &Value| {
        let [uid, node] = ["/metadata/uid", "/spec/nodeName"].map(|field| text(object, field));
        format!("{} {uid} {node} {}", name(object), object["spec"]["taints"])
    };
    stays.map(line).collect()
}

/// What was there still is; more may have come.
#[track_caller]
fn unharmed(before: &BTreeSet<String>, stage: &Stage, namespace: &str) {
    let now = there(stage, namespace);
    assert!(before.is_subset(&now), "{before:#?} became {now:#?}");
}

fn class(name: &str) -> String {
    json!({ "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": name } })
        .to_string()
}

/// Runs pods of the app `first`, on one node. Returns its NodeClaim and Node, and what must stay.
#[track_caller]
fn begins(stage: &Stage, namespace: &str, changes: &Value) -> (Value, Value, BTreeSet<String>) {
    stage.plane().apply(&deployment(namespace, "first", 2, ["500m", "512Mi"], changes));
    stage.all_run(namespace, 2);
    let mut nodes = stage.settled();
    assert_eq!(nodes.len(), 1, "two small pods need one node");
    let (claim, node) = nodes.remove(0);
    (claim, node, there(stage, namespace))
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_nodepool_made_invalid_keeps_its_nodes_and_buys_none_until_it_is_mended() {
    let stage = Stage::set("invalid");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("spoilt", &small_machines()));
    let (claim, _, before) = begins(&stage, "invalid", &json!({}));

    // The API server lets it through; taints have to differ in key or effect all the same.
    let twice = json!([{ "key": "example.com/twice", "effect": "NoSchedule" }]);
    let edit =
        |taints: &Value| json!({ "spec": { "template": { "spec": { "taints": taints, "startupTaints": taints } } } });
    let path = format!("{POOLS}/spoilt");
    api.patch(&path, &edit(&twice));
    let why = says(&stage, "spoilt", "ValidationSucceeded", "False/NodePoolValidationFailed");
    assert!(why.contains("startupTaints[0]") && why.contains("same key and effect"), "{why}");
    says(&stage, "spoilt", "Ready", "False/UnhealthyDependents");
    says(&stage, "spoilt", "NodeClassReady", "True/NodeClassReady");

    // One that fits on the node that is there, and one that would need another.
    let pods = [
        deployment("invalid", "beside", 1, ["500m", "512Mi"], &json!({})),
        deployment("invalid", "second", 1, ["3", "512Mi"], &json!({})),
    ];
    stage.plane().apply(&pods.join("\n---\n"));
    let why = is_told(&stage, "invalid", "second", "same key and effect");
    assert!(why.contains("spoilt"), "it names the NodePool: {why}");
    eventually("the room that is there is used", LIMIT, || {
        (there(&stage, "invalid").len() == before.len() + 1).then_some(())
    });
    unharmed(&before, &stage, "invalid");
    let claims = api.list(CLAIMS);
    assert_eq!(claims.len(), 1, "nothing is bought");
    assert_eq!(condition(&claims[0], "Drifted"), "", "what is half edited is nothing to drift from");

    api.patch(&path, &edit(&Value::Null));
    says(&stage, "spoilt", "ValidationSucceeded", "True/ValidationSucceeded");
    stage.all_run("invalid", 4);
    unharmed(&before, &stage, "invalid");
    let nodes = stage.ends_well_but(joiner, &[Excuse::Warning("FailedScheduling", "same key and effect")]);
    assert_eq!(nodes.len(), 2);
    let new = nodes.iter().map(|(other, _)| other).find(|other| name(other) != name(&claim)).expect("there is another");
    let hash = |claim: &Value| text(claim, "/metadata/annotations/karpenter.sh~1nodepool-hash");
    assert_eq!(hash(new), hash(&claim), "it is what it was before");
}

/// Karpenter's KWOK provider knows no drift from its NodeClass: what was launched with another one is as good.
#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_nodeclass_whose_spec_is_edited_counts_for_the_next_node_and_no_other() {
    let stage = Stage::set("respecified");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&class("own"));
    let mut spec = small_machines();
    spec["template"]["spec"]["nodeClassRef"] = json!({ "name": "own" });
    stage.plane().apply(&pool("respecified", &spec));
    let (_, _, before) = begins(&stage, "respecified", &json!({}));
    says(&stage, "respecified", "NodeRegistrationHealthy", "True/NodeRegistrationHealthy");
    let path = format!("{CLASSES}/own");
    let delay = |delay: &Value| json!({ "spec": { "nodeRegistrationDelay": delay } });
    // None of them fits beside another, or beside those that came first.
    let grow = |app: &str| stage.plane().apply(&deployment("respecified", app, 1, ["3", "512Mi"], &json!({})));

    api.patch(&path, &delay(&json!("4s")));
    says(&stage, "respecified", "NodeRegistrationHealthy", "Unknown/AwaitingReconciliation");
    grow("second");
    stage.all_run("respecified", 3);
    unharmed(&before, &stage, "respecified");
    let slow = api.list(CLAIMS).into_iter().find(|claim| before.iter().all(|line| !line.starts_with(&name(claim))));
    let slow = slow.expect("there is a second NodeClaim");
    let since = |kind: &str| -> jiff::Timestamp {
        let conditions = slow["status"]["conditions"].as_array().expect("it is Ready");
        let found = conditions.iter().find(|condition| condition["type"] == kind).expect("it is Ready");
        text(found, "/lastTransitionTime").parse().expect("the API server takes no other times")
    };
    let took = since("Registered").duration_since(since("Launched")).as_secs();
    assert!(took >= 3, "the delay is obeyed, to the second: {took} s");
    says(&stage, "respecified", "NodeRegistrationHealthy", "True/NodeRegistrationHealthy");

    // What is no duration the API server refuses; which are too long, no pattern can tell.
    let patch = ["patch", "kwoknodeclass", "own", "--type=merge", "--patch"];
    let soon = delay(&json!("soon")).to_string();
    let refused = stage.plane().try_kubectl(&[&patch[..], &[&*soon]].concat(), None).expect_err("it is no duration");
    assert!(refused.contains("spec.nodeRegistrationDelay"), "{refused}");
    api.patch(&path, &delay(&json!("99999999999999h")));
    grow("third");
    let why = eventually("the NodeClaim says what is wrong with the NodeClass", LIMIT, || {
        let claims = api.list(CLAIMS);
        let late = claims.iter().find(|claim| condition(claim, "Launched") == "Unknown/InvalidRequest")?;
        Some(condition_message(late, "Launched"))
    });
    assert!(why.contains("own") && why.contains("spec.nodeRegistrationDelay"), "{why}");
    unharmed(&before, &stage, "respecified");
    assert_eq!(api.list(NODES).len(), 2, "there is no machine of it");

    api.patch(&path, &delay(&Value::Null));
    stage.all_run("respecified", 4);
    unharmed(&before, &stage, "respecified");
    assert_eq!(stage.ends_well(joiner).len(), 3);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn what_is_edited_or_taken_away_under_nodes_leaves_them_alone_and_says_what_is_wrong() {
    let stage = Stage::set("edited");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&class("own"));
    // A budget of none: that nodes have drifted from their NodePool is no reason to replace them here.
    let own = json!({
        "disruption": { "budgets": [{ "nodes": "0" }] },
        "template": {
            "metadata": { "labels": { "example.com/edition": "first" } },
            "spec": { "nodeClassRef": { "name": "own" } },
        },
    });
    stage.plane().apply(&pool("edited", &own));
    let of = |edition: &str| json!({ "nodeSelector": { "example.com/edition": edition } });
    let (claim, node, before) = begins(&stage, "edited", &of("first"));
    let hash = |object: &Value| text(object, "/metadata/annotations/karpenter.sh~1nodepool-hash");
    let path = format!("{POOLS}/edited");

    // Another template: it is for new nodes.
    let requirements = json!([
        { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
        { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"] },
    ]);
    let template = json!({ "metadata": { "labels": { "example.com/edition": "second" } }, "spec": { "requirements": requirements } });
    let edited = api.patch(&path, &json!({ "spec": { "template": template } }));
    assert_eq!(hash(&edited), hash(&claim), "the hash is joiner's to write");
    eventually("the NodePool has another hash", LIMIT, || {
        (hash(&api.get(&path).expect("nobody deletes it")) != hash(&claim)).then_some(())
    });
    unharmed(&before, &stage, "edited");
    assert_eq!(hash(&stage.settled()[0].0), hash(&claim), "a NodeClaim keeps the hash it was made with");
    assert_eq!(text(&node, "/metadata/labels/example.com~1edition"), "first");

    // A NodeClass that is not ready, and then one that is gone: nothing new, nothing lost, and the pods that wait are told.
    let not_ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "False", "reason": "ImageGone", "message": "there is no such image",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }] } });
    api.patch(&format!("{CLASSES}/own/status"), &not_ready);
    assert!(says(&stage, "edited", "NodeClassReady", "False/ImageGone").contains("there is no such image"));
    stage.plane().apply(&deployment("edited", "second", 1, ["500m", "512Mi"], &of("second")));
    is_told(&stage, "edited", "second", "there is no such image");
    api.delete(&format!("{CLASSES}/own"));
    assert!(says(&stage, "edited", "NodeClassReady", "False/NodeClassNotFound").contains("own"));
    unharmed(&before, &stage, "edited");
    assert_eq!(stage.settled().len(), 1, "the node stays, and none is added");

    // It is back: the pod that waited gets a node of the second edition.
    stage.plane().apply(&class("own"));
    says(&stage, "edited", "NodeClassReady", "True/NodeClassReady");
    stage.all_run("edited", 3);
    let excuses = [
        Excuse::Condition("NodeClaim", "Drifted", "True/NodePoolDrifted"),
        Excuse::Warning("FailedScheduling", "there is no such image"),
    ];
    let nodes = stage.ends_well_but(joiner, &excuses);
    let new = nodes.iter().find(|(other, _)| name(other) != name(&claim)).expect("there is a second node");
    assert_eq!(text(&new.1, "/metadata/labels/example.com~1edition"), "second");
    assert_eq!(text(&new.1, "/metadata/labels/karpenter.sh~1capacity-type"), "spot");
    assert_eq!(hash(&new.0), hash(&api.get(&path).expect("nobody deletes it")));
    assert_eq!(nodes.len(), 2);
}
