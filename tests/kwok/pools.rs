//! NodePools: which of several is taken, and what becomes of those that cannot be used or are changed under their nodes.

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, POOLS, condition, condition_message, name, text};
use crate::stage::{LIMIT, Stage, deployment, pool};

const CLASSES: &str = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";

/// Pods that insist on a NodePool.
fn only(pool: &str) -> Value {
    json!({ "nodeSelector": { "karpenter.sh/nodepool": pool } })
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
    assert_eq!(stage.ends_well(joiner).len(), 5);
    api.delete(&format!("{CLASSES}/missing"));
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

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn what_is_edited_or_taken_away_under_nodes_leaves_them_alone_and_says_what_is_wrong() {
    let stage = Stage::set("edited");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    let class = |name: &str| json!({ "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": name } });
    stage.plane().apply(&class("own").to_string());
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
    stage.plane().apply(&deployment("edited", "first", 2, ["500m", "512Mi"], &of("first")));
    let pods = stage.all_run("edited", 2);
    let (claim, node) = stage.settled().pop().expect("there is a node");
    let hash = |object: &Value| text(object, "/metadata/annotations/karpenter.sh~1nodepool-hash");
    let path = format!("{POOLS}/edited");
    let says = |wanted: &str| {
        eventually(&format!("the NodePool's NodeClassReady is {wanted}"), LIMIT, || {
            let pool = api.get(&path).expect("nobody deletes it");
            (condition(&pool, "NodeClassReady") == wanted).then(|| condition_message(&pool, "NodeClassReady"))
        })
    };
    let unharmed = || {
        let (claims, now) = (stage.settled(), stage.all_run("edited", 2));
        assert!(claims.iter().any(|(other, _)| other["metadata"]["uid"] == claim["metadata"]["uid"]), "{claims:?}");
        let of = |pods: &[Value]| pods.iter().map(|pod| text(pod, "/metadata/uid")).collect::<Vec<_>>();
        assert_eq!(of(&now), of(&pods), "the pods stay where they are");
    };

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
    unharmed();
    assert_eq!(hash(&stage.settled()[0].0), hash(&claim), "a NodeClaim keeps the hash it was made with");
    assert_eq!(text(&node, "/metadata/labels/example.com~1edition"), "first");

    // A NodeClass that is not ready, and then one that is gone: nothing new, nothing lost, and the pods that wait are told.
    let not_ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "False", "reason": "ImageGone", "message": "there is no such image",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }] } });
    api.patch(&format!("{CLASSES}/own/status"), &not_ready);
    assert!(says("False/ImageGone").contains("there is no such image"));
    stage.plane().apply(&deployment("edited", "second", 1, ["500m", "512Mi"], &of("second")));
    let waits = |why: &str| {
        eventually(&format!("the pod is told that it waits for {why}"), LIMIT, || {
            let told = api.events("edited", "FailedScheduling");
            told.into_iter().find(|(pod, message)| pod.starts_with("second") && message.contains(why))
        });
    };
    waits("there is no such image");
    api.delete(&format!("{CLASSES}/own"));
    assert!(says("False/NodeClassNotFound").contains("own"));
    let first = |pod: &&Value| text(pod, "/metadata/labels/app") == "first";
    let still: Vec<Value> = api.pods("edited").iter().filter(first).cloned().collect();
    assert_eq!(still.iter().map(name).collect::<Vec<_>>(), pods.iter().map(name).collect::<Vec<_>>());
    assert!(still.iter().all(|pod| pod["status"]["phase"] == "Running"));
    assert_eq!(stage.settled().len(), 1, "the node stays, and none is added");

    // It is back: the pod that waited gets a node of the second edition.
    stage.plane().apply(&class("own").to_string());
    says("True/NodeClassReady");
    stage.all_run("edited", 3);
    let nodes = stage.ends_well(joiner);
    let new = nodes.iter().find(|(other, _)| name(other) != name(&claim)).expect("there is a second node");
    assert_eq!(text(&new.1, "/metadata/labels/example.com~1edition"), "second");
    assert_eq!(text(&new.1, "/metadata/labels/karpenter.sh~1capacity-type"), "spot");
    assert_eq!(hash(&new.0), hash(&api.get(&path).expect("nobody deletes it")));
    assert_eq!(nodes.len(), 2);
    api.delete(&format!("{CLASSES}/own"));
}
