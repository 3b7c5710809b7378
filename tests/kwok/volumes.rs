//! Volumes: pods follow them, nodes wait for them. The test plays the administrator who makes PersistentVolumes by hand.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::controlplane::{eventually, fail};
use crate::common::joiner::Joiner;
use crate::common::kube_api::{CLAIMS, KubeApi, NODES, condition, condition_message, name, text};
use crate::ending::{DRAINED, Excuse};
use crate::mishaps::Restored;
use crate::stage::{LIMIT, Stage, deployment, pool};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A PersistentVolume of a CSI driver, reachable from one zone.
fn volume(name: &str, class: &str, zone: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": { "driver": "disk.csi.example.com", "volumeHandle": name },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] },
            ] } },
        },
    })
    .to_string()
}

/// A StorageClass whose volumes are made by hand, and are bound when a pod has its node.
fn class(name: &str, zone: &str) -> String {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": name },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{ "matchLabelExpressions": [{ "key": ZONE, "values": [zone] }] }],
    })
    .to_string()
}

fn claim_spec(class: &str) -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class,
        "resources": { "requests": { "storage": "1Gi" } },
    })
}

/// A pod that mounts a claim.
fn pod(namespace: &str, name: &str, claim: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": "main",
                "resources": { "requests": { "cpu": "250m", "memory": "256Mi" } },
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
        },
    })
    .to_string()
}

fn zone_of(api: &KubeApi, pod: &Value) -> String {
    let node = api.get(&format!("{NODES}/{}", text(pod, "/spec/nodeName"))).expect("a pod runs on it");
    node["metadata"]["labels"][ZONE].as_str().unwrap_or_default().to_owned()
}

/// What the claim actor of a NodeClaim waits for, as the page of actors has it.
fn waits_for(joiner: &Joiner, claim: &str) -> String {
    let said = joiner.said("serving").pop().expect("it serves");
    let port = text(&said, "/metrics").rsplit(':').next().unwrap_or_default().to_owned();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("joiner serves its page");
    let request = "GET /actors.json?kind=claim HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("joiner listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("joiner answers");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    let page: Value = serde_json::from_str(&body).unwrap_or_else(|error| fail(&format!("{error}: {answer}")));
    let actors = page["actors"].as_array().cloned().unwrap_or_default();
    let of_claim = actors.iter().find(|actor| actor.to_string().contains(claim));
    of_claim.map(|actor| text(actor, "/waitsFor")).unwrap_or_default()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn pods_go_where_their_volumes_can_be_reached() {
    let stage = Stage::set("volumes");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("volumes", &json!({})));
    stage.plane().apply(&class("zonal", "test-zone-c"));
    for at in 0..3 {
        stage.plane().apply(&volume(&format!("zonal-{at}"), "zonal", "test-zone-c"));
    }
    // A StatefulSet whose class allows one zone only.
    let labels = json!({ "app": "db" });
    stage.plane().apply(
        &json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": { "name": "db", "namespace": "volumes" },
            "spec": {
                "replicas": 3,
                "podManagementPolicy": "Parallel",
                "serviceName": "db",
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{ "name": "main", "image": "main", "resources": { "requests": { "cpu": "500m", "memory": "512Mi" } } }],
                } },
                "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim_spec("zonal") }],
            },
        })
        .to_string(),
    );
    let pods = stage.all_run("volumes", 3);
    for pod in &pods {
        assert_eq!(zone_of(api, pod), "test-zone-c", "{}", name(pod));
        let claim = api.get(&format!("/api/v1/namespaces/volumes/persistentvolumeclaims/data-{}", name(pod)));
        assert_eq!(claim.expect("it was made for the pod")["status"]["phase"], "Bound");
    }

    // A pod whose claim is bound to a volume of another zone, and one whose claim is not there.
    stage.plane().apply(&volume("by-hand", "", "test-zone-a"));
    let mut spec = claim_spec("");
    spec["volumeName"] = "by-hand".into();
    let claim = |name: &str, spec: Value| {
        let metadata = json!({ "name": name, "namespace": "volumes" });
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec }).to_string()
    };
    stage.plane().apply(&claim("by-hand", spec));
    stage.plane().apply(&pod("volumes", "bound", "by-hand"));
    stage.plane().apply(&pod("volumes", "late", "late"));
    let bound = eventually("the pod with the bound claim runs", LIMIT, || {
        api.get("/api/v1/namespaces/volumes/pods/bound").filter(|pod| pod["status"]["phase"] == "Running")
    });
    assert_eq!(zone_of(api, &bound), "test-zone-a");
    eventually("the pod without its claim hears why", LIMIT, || {
        let said = api.events("volumes", "FailedScheduling");
        let told = "PersistentVolumeClaim volumes/late does not exist; create it";
        said.iter().any(|(pod, message)| pod == "late" && message.contains(told)).then_some(())
    });
    stage.plane().apply(&volume("zonal-late", "zonal", "test-zone-c"));
    stage.plane().apply(&claim("late", claim_spec("zonal")));
    let pods = stage.all_run("volumes", 5);
    let late = pods.iter().find(|pod| name(pod) == "late").expect("it runs");
    assert_eq!(zone_of(api, late), "test-zone-c");
    stage.ends_well_but(joiner, &[Excuse::Warning("FailedScheduling", "volumes/late does not exist")]);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_drained_node_waits_for_its_volumes_and_goes_when_they_have_gone() {
    let stage = Stage::set("attached");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("attached", &json!({})));
    stage.plane().apply(&deployment("attached", "web", 2, ["500m", "512Mi"], &json!({})));
    stage.all_run("attached", 2);
    let (claim, node) = stage.settled().pop().expect("there is a node");
    let (claim, node) = (name(&claim), name(&node));
    stage.plane().apply(&volume("held", "", "test-zone-a"));
    stage.plane().apply(
        &json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": { "name": "csi-held" },
            "spec": { "attacher": "disk.csi.example.com", "nodeName": node, "source": { "persistentVolumeName": "held" } },
        })
        .to_string(),
    );

    let path = format!("{CLAIMS}/{claim}");
    api.delete(&path);
    let waiting = eventually("the NodeClaim waits for the volume", LIMIT, || {
        let object = api.get(&path).expect("a volume is attached to its node");
        (condition(&object, "VolumesDetached") == "Unknown/AwaitingVolumeDetachment").then_some(object)
    });
    assert_eq!(condition(&waiting, "Drained"), "True/Drained");
    assert_eq!(condition_message(&waiting, "VolumesDetached"), "waiting for VolumeAttachments csi-held to go");
    assert_eq!(condition(&waiting, "InstanceTerminating"), "", "the machine is not touched");
    eventually("the page of actors shows it", LIMIT, || {
        (waits_for(&joiner, &claim) == "VolumeAttachments csi-held to go").then_some(())
    });
    eventually("the Node says why it stays", LIMIT, || {
        let said = api.events("default", "AwaitingVolumeDetachment");
        said.iter().any(|(about, message)| *about == node && message.contains("csi-held")).then_some(())
    });
    // Its pods do not wait for it.
    let pods = stage.all_run("attached", 2);
    assert!(pods.iter().all(|pod| text(pod, "/spec/nodeName") != node));
    assert!(api.get(&path).is_some() && api.get(&format!("{NODES}/{node}")).is_some());

    api.delete(&format!("{ATTACHMENTS}/csi-held"));
    eventually("NodeClaim and Node are gone", LIMIT, || {
        (api.get(&path).is_none() && api.get(&format!("{NODES}/{node}")).is_none()).then_some(())
    });
    stage.ends_well_but(joiner, &[DRAINED]);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_joiner_that_may_not_see_volumes_says_so_and_serves_all_other_pods() {
    let stage = Stage::set("unseen");
    let api = stage.api();
    let storage = |rule: &Value| {
        rule["apiGroups"] == json!(["storage.k8s.io"]) || rule["resources"].to_string().contains("persistentvolume")
    };
    let restored = Restored::after(&stage, |rules| rules.retain(|rule| !storage(rule)));
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("permission missing");
    stage.plane().apply(&pool("unseen", &json!({})));
    stage.plane().apply(&class("unseen", "test-zone-b"));
    stage.plane().apply(&volume("unseen-0", "unseen", "test-zone-b"));
    let metadata = json!({ "name": "data", "namespace": "unseen" });
    let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim_spec("unseen") });
    stage.plane().apply(&claim.to_string());
    stage.plane().apply(&pod("unseen", "with-volume", "data"));
    stage.plane().apply(&deployment("unseen", "web", 2, ["500m", "512Mi"], &json!({})));
    eventually("plain pods run", LIMIT, || {
        let running = |pod: &&Value| name(pod).starts_with("web-") && pod["status"]["phase"] == "Running";
        (api.pods("unseen").iter().filter(running).count() == 2).then_some(())
    });
    let rule = "add a rule to joiner's ClusterRole: apiGroups [\"\"], resources [\"persistentvolumeclaims\"], verbs [\"list\"]";
    let said = joiner.said("permission missing");
    assert!(said.iter().any(|line| text(line, "/error").contains(rule)), "{said:?}");
    eventually("the pod with a volume hears why it waits", LIMIT, || {
        let said = api.events("unseen", "FailedScheduling");
        let told = "joiner may not list PersistentVolumeClaims";
        said.iter().any(|(pod, message)| pod == "with-volume" && message.contains(told)).then_some(())
    });

    drop(restored);
    let pods = stage.all_run("unseen", 3);
    let with_volume = pods.iter().find(|pod| name(pod) == "with-volume").expect("it runs");
    assert_eq!(zone_of(api, with_volume), "test-zone-b");
    stage.ends_well_but(joiner, &[Excuse::Warning("FailedScheduling", "may not list PersistentVolumeClaims")]);
}
