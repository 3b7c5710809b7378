//! NodePools: which of several is taken, and what becomes of those that cannot be used.

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, POOLS, condition, condition_message};
use crate::ending::Excuse;
use crate::stage::{LIMIT, Stage, deployment, pool};

/// Pods that insist on a NodePool.
fn only(pool: &str) -> Value {
    json!({ "nodeSelector": { "karpenter.sh/nodepool": pool } })
}

/// Waits until a NodePool has a condition so: `Status/Reason`. Returns the condition's message.
#[track_caller]
pub(crate) fn says(stage: &Stage, pool: &str, kind: &str, wanted: &str) -> String {
    eventually(&format!("NodePool {pool} has {kind} {wanted}"), LIMIT, || {
        let pool = stage.api().get(&format!("{POOLS}/{pool}")).expect("nobody deletes it");
        (condition(&pool, kind) == wanted).then(|| condition_message(&pool, kind))
    })
}

/// Waits until a pod of an app is told that it waits for such a reason. Returns the whole message.
#[track_caller]
pub(crate) fn is_told(stage: &Stage, namespace: &str, app: &str, why: &str) -> String {
    let found = eventually(&format!("a pod of {app} is told why it waits"), LIMIT, || {
        let told = stage.api().events(namespace, "FailedScheduling");
        told.into_iter().find(|(pod, message)| pod.starts_with(app) && message.contains(why))
    });
    found.1
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn nodepools_that_cannot_be_used_say_why_and_the_others_go_on() {
    let stage = Stage::set("pools");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    let taint = json!({ "key": "example.com/twice", "effect": "NoSchedule" });
    let twice = json!({ "template": { "spec": { "taints": [taint], "startupTaints": [taint] } } });
    let missing = json!({ "template": { "spec": { "nodeClassRef": { "name": "missing" } } } });
    let small = json!({
        "limits": { "nodes": 1 },
        "template": { "spec": { "requirements": [
            { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
            { "key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["2"] },
        ] } },
    });
    let pools =
        [pool("fine", &json!({})), pool("invalid", &twice), pool("classless", &missing), pool("limited", &small)];
    stage.plane().apply(&pools.join("\n---\n"));
    let deployments = [
        deployment("pools", "fine", 3, ["500m", "512Mi"], &only("fine")),
        deployment("pools", "invalid", 1, ["500m", "512Mi"], &only("invalid")),
        deployment("pools", "classless", 1, ["500m", "512Mi"], &only("classless")),
        // One pod fills a node; the second would need another.
        deployment("pools", "limited", 2, ["1500m", "512Mi"], &only("limited")),
    ];
    stage.plane().apply(&deployments.join("\n---\n"));

    let said = |name: &str, kind: &str, wanted: &str| says(&stage, name, kind, wanted);
    let why = said("invalid", "ValidationSucceeded", "False/NodePoolValidationFailed");
    assert!(why.contains("startupTaints[0]") && why.contains("same key and effect"), "{why}");
    said("invalid", "Ready", "False/UnhealthyDependents");
    let why = said("classless", "NodeClassReady", "False/NodeClassNotFound");
    assert!(why.contains("missing"), "{why}");
    said("classless", "Ready", "False/UnhealthyDependents");
    said("fine", "Ready", "True/Ready");
    said("limited", "Ready", "True/Ready");

    let running = |app: &str| {
        let pods = api.pods("pools");
        let runs = |pod: &&Value| pod["metadata"]["labels"]["app"] == app && pod["status"]["phase"] == "Running";
        pods.iter().filter(runs).count()
    };
    eventually("what can run runs", LIMIT, || (running("fine") == 3 && running("limited") == 1).then_some(()));
    for (app, pool, why) in [
        ("invalid", "invalid", "same key and effect"),
        ("classless", "classless", "missing"),
        ("limited", "limited", "limit"),
    ] {
        let message = is_told(&stage, "pools", app, why);
        assert!(message.contains(pool), "it names the NodePool: {message}");
    }
    assert_eq!((running("invalid"), running("classless"), running("limited")), (0, 0, 1));
    let claims = api.list(CLAIMS);
    let bought = |pool: &str| {
        let of_pool = |claim: &&Value| claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool;
        claims.iter().filter(of_pool).count()
    };
    assert_eq!((bought("fine"), bought("limited"), claims.len()), (1, 1, 2));

    // What is mended is used.
    stage.plane().apply("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: missing}}");
    let mended = json!({ "spec": { "template": { "spec": { "startupTaints": null, "taints": null } } } });
    api.patch(&format!("{POOLS}/invalid"), &mended);
    api.patch(&format!("{POOLS}/limited"), &json!({ "spec": { "limits": { "nodes": 2 } } }));
    stage.all_run("pools", 7);
    let waited = ["same key and effect", "missing", "limit"].map(|why| Excuse::Warning("FailedScheduling", why));
    assert_eq!(stage.ends_well_but(joiner, &waited).len(), 5);
}

/// How many NodeClaims of a NodePool there are.
fn bought(stage: &Stage, pool: &str) -> usize {
    stage.api().list(&format!("{CLAIMS}?labelSelector=karpenter.sh/nodepool={pool}")).len()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn the_heavier_nodepool_is_taken_first_and_the_lighter_one_when_its_limit_is_reached() {
    let stage = Stage::set("weights");
    let joiner = stage.joiner("joiner-a");
    // The heavier one is the dearer one: its machines are twice as large as its pods need.
    let heavy = json!({
        "weight": 50,
        "limits": { "nodes": 2 },
        "template": { "spec": { "requirements": [
            { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
            { "key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"] },
            { "key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": ["m"] },
        ] } },
    });
    let light = json!({ "weight": 1 });
    // The lighter one comes first in the alphabet.
    stage.plane().apply(&[pool("rich", &heavy), pool("cheap", &light)].join("\n---\n"));
    stage.plane().apply(&deployment("weights", "web", 2, ["3", "1Gi"], &json!({})));
    stage.all_run("weights", 2);
    assert_eq!((bought(&stage, "rich"), bought(&stage, "cheap")), (2, 0), "weight comes before price");

    stage.plane().apply(&deployment("weights", "web", 4, ["3", "1Gi"], &json!({})));
    stage.all_run("weights", 4);
    assert_eq!(bought(&stage, "rich"), 2, "its limit holds");
    assert!(bought(&stage, "cheap") >= 1, "the other one is taken instead");
    let cheap = bought(&stage, "cheap");

    stage.api().patch(&format!("{POOLS}/rich"), &json!({ "spec": { "limits": { "nodes": 3 } } }));
    stage.plane().apply(&deployment("weights", "more", 1, ["3", "1Gi"], &json!({})));
    stage.all_run("weights", 5);
    assert_eq!((bought(&stage, "rich"), bought(&stage, "cheap")), (3, cheap), "with a higher limit it is first again");
    stage.ends_well(joiner);
}
