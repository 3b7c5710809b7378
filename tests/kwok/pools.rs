//! NodePools that cannot be used: each says why, and so do the pods that wanted it, while the others go on.

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, POOLS, condition, condition_message};
use crate::stage::{LIMIT, Stage, deployment, pool};

/// Pods that insist on a NodePool.
fn only(pool: &str) -> Value {
    json!({ "nodeSelector": { "karpenter.sh/nodepool": pool } })
}

#[test]
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

    let said = |name: &str, kind: &str, wanted: &str| {
        eventually(&format!("NodePool {name} has {kind} {wanted}"), LIMIT, || {
            let pool = api.get(&format!("{POOLS}/{name}")).expect("nobody deletes it");
            (condition(&pool, kind) == wanted).then(|| condition_message(&pool, kind))
        })
    };
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
        let message = eventually(&format!("a pod of {app} is told why it waits"), LIMIT, || {
            let events = api.events("pools", "FailedScheduling");
            events.into_iter().find(|(pod, message)| pod.starts_with(app) && message.contains(why))
        });
        assert!(message.1.contains(pool), "it names the NodePool: {}", message.1);
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
    assert_eq!(stage.settled().len(), 5);
    api.delete("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/missing");
    assert!(joiner.stop().success());
}
