//! Optional features on a real control plane: static NodePools, NodeOverlays and CapacityBuffers. Each with the rights that the chart gives for it.

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::joiner::Joiner;
use crate::common::kube_api::{CLAIMS, POOLS, condition, condition_message, name, text};
use crate::ending::{DRAINED, Excuse};
use crate::stage::{LIMIT, Stage, deployment, pool, small_machines};

const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";
const DONGLE: &str = "example.com/dongle";

/// A joiner of a release in which this gate is open, and no other that is not by default.
fn gated(stage: &Stage, gate: &str) -> Joiner {
    stage.joiner_of(
        &format!("joiner-{}", gate.to_lowercase()),
        &json!({ "settings": { "featureGates": { (gate): true } } }),
    )
}

/// A NodePool of small machines with `replicas`.
fn fleet(replicas: u32, limit: u32) -> String {
    let mut spec = small_machines();
    spec["replicas"] = replicas.into();
    spec["limits"] = json!({ "nodes": limit });
    pool("fleet", &spec)
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_static_nodepool_holds_its_number_of_nodes() {
    let stage = Stage::set("statics");
    let api = stage.api();
    let joiner = gated(&stage, "staticCapacity");
    stage.plane().apply(&fleet(3, 4));
    let serving = |wanted: usize| {
        eventually(&format!("{wanted} nodes serve"), LIMIT, || {
            let nodes = stage.settled();
            let counted = api.get(&format!("{POOLS}/fleet")).is_some_and(|pool| pool["status"]["nodes"] == wanted);
            (nodes.len() == wanted && counted).then_some(nodes)
        })
    };
    let nodes = serving(3);
    // One that a user deletes is made up for.
    let (victim, _) = nodes.first().expect("there are three");
    api.delete(&format!("{CLAIMS}/{}", name(victim)));
    eventually("the deleted one is gone", LIMIT, || {
        api.get(&format!("{CLAIMS}/{}", name(victim))).is_none().then_some(())
    });
    serving(3);
    // The limit is kept, and the number follows `replicas`, as `kubectl scale` writes it.
    stage.plane().kubectl("scale nodepool fleet --replicas=6");
    serving(4);
    // Pods use the nodes; those that nothing runs on go first.
    stage.plane().apply(&deployment("statics", "web", 1, ["3", "512Mi"], &json!({})));
    let pods = stage.all_run("statics", 1);
    let home = text(pods.first().expect("there is one"), "/spec/nodeName");
    stage.plane().kubectl("scale nodepool fleet --replicas=1");
    let left = serving(1);
    assert_eq!(left.iter().map(|(_, node)| name(node)).collect::<Vec<_>>(), [home]);
    assert_eq!(stage.ends_well_but(joiner, &[DRAINED]).len(), 1);
}

fn overlay(name: &str, spec: &Value) -> String {
    json!({ "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name }, "spec": spec })
        .to_string()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn nodeoverlays_change_prices_and_capacity_and_say_what_is_wrong() {
    let stage = Stage::set("overlays");
    let api = stage.api();
    let joiner = gated(&stage, "nodeOverlay");
    let only = |key: &str, value: &str| json!([{ "key": key, "operator": "In", "values": [value] }]);
    let cheap = only("node.kubernetes.io/instance-type", "m-16x-amd64-linux");
    let overlays = [
        overlay("cheap", &json!({ "requirements": cheap, "price": "0.0001", "weight": 2 })),
        overlay("dongles", &json!({ "requirements": cheap, "capacity": { DONGLE: "2" } })),
        overlay(
            "rival-a",
            &json!({ "requirements": only("karpenter.sh/capacity-type", "spot"), "priceAdjustment": "-10%" }),
        ),
        overlay(
            "rival-b",
            &json!({ "requirements": only("topology.kubernetes.io/zone", "test-zone-a"), "price": "9" }),
        ),
    ];
    stage.plane().apply(&overlays.join("\n---\n"));
    stage.plane().apply(&pool("default", &json!({})));
    let said = |name: &str, kind: &str, wanted: &str| {
        eventually(&format!("NodeOverlay {name} has {kind} {wanted}"), LIMIT, || {
            let overlay = api.get(&format!("{OVERLAYS}/{name}")).expect("nobody deletes it");
            (condition(&overlay, kind) == wanted).then(|| condition_message(&overlay, kind))
        })
    };
    for name in ["cheap", "dongles", "rival-b"] {
        said(name, "Ready", "True/Ready");
    }
    let why = said("rival-a", "ValidationSucceeded", "False/Conflict");
    assert!(why.contains("NodeOverlay rival-b"), "{why}");
    said("rival-a", "Ready", "False/UnhealthyDependents");

    let dongle = json!({ "containers": [{ "name": "main", "image": "main", "resources": {
        "requests": { "cpu": "100m", DONGLE: "1" }, "limits": { DONGLE: "1" },
    } }] });
    stage.plane().apply(&deployment("overlays", "web", 3, ["100m", "64Mi"], &dongle));
    stage.all_run("overlays", 3);
    let nodes = stage.ends_well(joiner);
    assert_eq!(nodes.len(), 2, "two dongles a node");
    for (claim, node) in &nodes {
        assert_eq!(text(claim, "/metadata/labels/node.kubernetes.io~1instance-type"), "m-16x-amd64-linux");
        assert_eq!(text(claim, "/metadata/annotations/karpenter.sh~1price-overlay-applied"), "true");
        assert_eq!(text(claim, "/metadata/annotations/karpenter.sh~1capacity-overlay-applied"), "true");
        assert_eq!(text(node, "/status/allocatable/example.com~1dongle"), "2");
    }
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_capacitybuffer_keeps_room_for_pods_to_come() {
    let stage = Stage::set("buffers");
    let api = stage.api();
    let joiner = gated(&stage, "capacityBuffer");
    stage.plane().apply(&pool("default", &small_machines()));
    let template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "chunk", "namespace": "buffers" },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [
            { "name": "main", "image": "main", "resources": { "requests": { "cpu": "1", "memory": "256Mi" } } },
        ] } },
    });
    let buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": { "name": "spare", "namespace": "buffers" },
        "spec": { "podTemplateRef": { "name": "chunk" }, "replicas": 3 },
    });
    stage.plane().apply(&buffer.to_string());
    let path = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/buffers/capacitybuffers/spare";
    let said = |kind: &str, wanted: &str| {
        eventually(&format!("the buffer has {kind} {wanted}"), LIMIT, || {
            let buffer = api.get(path).expect("nobody deletes it");
            (condition(&buffer, kind) == wanted).then_some(buffer)
        })
    };
    said("ReadyForProvisioning", "False/PodTemplateNotFound");
    stage.plane().apply(&template.to_string());
    said("ReadyForProvisioning", "True/Resolved");
    let filled = said("Provisioning", "True/FitsExistingCapacity");
    assert_eq!((&filled["status"]["replicas"], &filled["status"]["podTemplateGeneration"]), (&json!(3), &json!(1)));
    assert_eq!(stage.settled().len(), 1, "three chunks fit on one machine");
    assert!(api.pods("buffers").is_empty(), "placeholders are no pods");
    // Real pods run where room was kept, and room is bought anew.
    stage.plane().apply(&deployment("buffers", "web", 3, ["1", "256Mi"], &json!({})));
    stage.all_run("buffers", 3);
    eventually("there is room again", LIMIT, || (stage.settled().len() == 2).then_some(()));
    said("Provisioning", "True/FitsExistingCapacity");
    assert!(api.events("buffers", "FailedScheduling").iter().all(|(about, _)| !about.contains("capacity-buffer")));
    let nodes: Vec<String> = stage.settled().iter().map(|(_, node)| name(node)).collect();
    let kept_free: Vec<Excuse<'_>> = nodes.iter().map(|node| Excuse::Empty(node)).collect();
    stage.ends_well_but(joiner, &kept_free);
}
