//! From pending pods to machines and back to none, while answers are lost, lists lag behind, and two of three NodeClasses are wrong.

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, NODES, POOLS, condition, condition_message, text};
use crate::stage::{CLASSES, CLUSTER, LIMIT, Stage};

/// Image and security group that the account has.
const IMAGE: &str = "ami-00000001";
const GROUP: &str = "sg-00000001";

/// Machines boot and end within a second, are seen a second late, get no tags from their user data, and of each call that changes something the first
/// answers are lost; of all others a few.
const BAD_DAY: [&str; 15] = [
    "--boots-within=1s",
    "--ends-within=1s",
    "--silence=1s",
    "--lists-after=1s",
    "--ignores-section",
    "--loses-answers=2",
    "--loses-first=CreateVms",
    "--loses-first=CreateVms",
    "--loses-first=CreateTags",
    "--loses-first=CreateTags",
    "--loses-first=DeleteVms",
    "--loses-first=DeleteVms",
    "--loses-first=ReadImages",
    "--loses-first=ReadSubnets",
    "--seed=7",
];

/// What the fake counts at least: the calls that it takes, and that the day was as bad as it was meant to be.
const COUNTS: [(&str, &str, u64); 10] = [
    ("CreateVms", "calls", 5),
    ("CreateTags", "calls", 5),
    ("DeleteVms", "calls", 5),
    ("CreateVms", "answers lost", 2),
    ("CreateTags", "answers lost", 2),
    ("DeleteVms", "answers lost", 2),
    ("ReadImages", "answers lost", 1),
    ("ReadSubnets", "answers lost", 1),
    ("CreateVms", "with tags ignored", 5),
    ("ReadVms", "without what is listed late", 1),
];

/// A NodeClass, and a NodePool that uses it.
fn pool(name: &str, image: &str, secret: &str) -> String {
    let class = json!({
        "apiVersion": "karpenter.outscale.com/v1alpha1",
        "kind": "OutscaleNodeClass",
        "metadata": { "name": name },
        "spec": {
            "imageId": image,
            "subnetIds": ["subnet-00000001", "subnet-00000002"],
            "securityGroupIds": [GROUP],
            "vmTypes": { "names": ["tinav6.c2r4p2"] },
            "tags": { "team": "shop" },
            "talos": { "secretRef": { "name": secret } },
        },
    });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": { "template": {
            "metadata": { "labels": { "kind": name } },
            "spec": {
                "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] }],
                "nodeClassRef": { "group": "karpenter.outscale.com", "kind": "OutscaleNodeClass", "name": name },
                "startupTaints": [],
            },
        } },
    });
    format!("{class}\n---\n{pool}")
}

/// A Deployment of pods of which three fit a machine.
fn deployment(name: &str, kind: &str, replicas: u32) -> String {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": {
                "nodeSelector": { "kind": kind },
                "terminationGracePeriodSeconds": 1,
                "containers": [{ "name": "c", "image": "c", "resources": { "requests": { "cpu": "600m", "memory": "500Mi" } } }],
            } },
        },
    })
    .to_string()
}

/// The one thing that is wrong with a NodeClass, as it says itself: which condition, why, and the sentence. All else is fine.
#[track_caller]
fn complaint(stage: &Stage, name: &str) -> (String, String) {
    eventually(&format!("NodeClass {name} says what is wrong with it"), LIMIT, || {
        let class = stage.api.get(&format!("{CLASSES}/{name}"))?;
        let conditions = class["status"]["conditions"].as_array()?;
        let is_open = |one: &&Value| one["status"] != "True" && one["type"] != "Ready";
        match conditions.iter().filter(is_open).collect::<Vec<_>>().as_slice() {
            [one] if one["status"] == "False" && condition(&class, "Ready").starts_with("False/") => {
                let kind = text(one, "/type");
                Some((format!("{kind}/{}", text(one, "/reason")), condition_message(&class, &kind)))
            }
            _ => None,
        }
    })
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn machines_come_and_go_on_a_bad_day_while_others_wait_for_their_nodeclass() {
    let stage = Stage::set(&BAD_DAY);
    let api = &stage.api;
    stage.plane.namespace("shop");
    let joiner = stage.joiner("joiner-a");
    let pools = [
        pool("good", IMAGE, "talos-worker"),
        pool("odd-image", "ami-0bad0bad", "talos-worker"),
        pool("odd-secret", IMAGE, "talos-odd"),
    ];
    let work = [("web", "good", 9), ("batch", "odd-image", 2), ("jobs", "odd-secret", 1)];
    let work = work.map(|(name, kind, replicas)| deployment(name, kind, replicas));
    stage.plane.apply(&[pools.join("\n---\n"), work.join("\n---\n")].join("\n---\n"));

    // Two NodeClasses are wrong, and say how, in one place each.
    let (why, message) = complaint(&stage, "odd-image");
    assert_eq!(why, "ImagesReady/ImageNotFound", "{message}");
    assert!(message.contains("spec.imageId") && message.contains("name one of its region"), "{message}");
    let (why, message) = complaint(&stage, "odd-secret");
    assert_eq!(why, "UserDataReady/SecretKeyNotFound", "{message}");
    assert!(
        message.contains("spec.talos.secretRef") && message.contains("store the worker's configuration"),
        "{message}"
    );
    for name in ["odd-image", "odd-secret"] {
        eventually(&format!("NodePool {name} waits for its NodeClass"), LIMIT, || {
            let pool = api.get(&format!("{POOLS}/{name}"))?;
            condition(&pool, "NodeClassReady").starts_with("False/").then_some(())
        });
    }

    // The third one works.
    let running = || api.pods("shop").iter().filter(|pod| pod["status"]["phase"] == "Running").count();
    eventually("the pods of the good NodePool run", LIMIT, || (running() == 9).then_some(()));
    let machines = stage.settled();
    assert_eq!(machines.len(), 3, "{machines:?}");
    let [cluster, id] = CLUSTER;
    for vm in stage.account.alive() {
        let tag = |key: &str| vm.tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str());
        let marks =
            ["karpenter.sh/managed-by", &format!("OscK8sClusterID/{id}"), "karpenter.sh/nodepool", "team"].map(tag);
        assert_eq!(marks, [Some(cluster), Some("owned"), Some("good"), Some("shop")], "{:?}", vm.tags);
    }

    // What was wrong is mended, and the pods that waited for it run.
    api.patch(&format!("{CLASSES}/odd-image"), &json!({ "spec": { "imageId": IMAGE } }));
    eventually("the pods of the mended NodePool run", LIMIT, || (running() == 11).then_some(()));
    let before = stage.settled();
    assert_eq!(before.len(), 4, "{before:?}");

    // One NodeClaim is deleted under its pods: they move, its machine goes, another comes.
    let (victim, machine) = machines.first_key_value().expect("there are three");
    api.delete(&format!("{CLAIMS}/{victim}"));
    eventually("the NodeClaim is gone", LIMIT, || api.get(&format!("{CLAIMS}/{victim}")).is_none().then_some(()));
    let alive = stage.account.alive();
    assert!(alive.iter().all(|vm| vm.vm_id != *machine), "a NodeClaim goes when its machine is gone, and not before");
    eventually("all pods but one run again", LIMIT, || (running() == 11).then_some(()));
    let after = stage.settled();
    assert_eq!(after.len(), 4, "{after:?}");

    // A NodeClass that is in use outlives its deletion, and says why.
    api.delete(&format!("{CLASSES}/good"));
    eventually("an Event says whom the NodeClass waits for", LIMIT, || {
        let said = api.events("default", "WaitingOnNodeClaimTermination");
        said.into_iter().find(|(about, message)| about == "good" && after.keys().any(|claim| message.contains(claim)))
    });
    let class = api.get(&format!("{CLASSES}/good")).expect("NodeClaims use it");
    assert_eq!(class["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));

    // All work is over, and all is taken away.
    api.delete("/apis/apps/v1/namespaces/shop/deployments");
    for collection in [POOLS, CLAIMS, CLASSES] {
        api.delete(collection);
    }
    eventually("nothing is left", LIMIT, || {
        let empty = [CLAIMS, NODES, CLASSES].iter().all(|collection| api.list(collection).is_empty());
        (empty && stage.account.alive().is_empty()).then_some(())
    });
    assert!(joiner.stop().success());
    let made = stage.account.vms().len();
    assert_eq!(made, 5, "every NodeClaim had one machine");
    let counts = stage.close();
    for (action, what, least) in COUNTS {
        assert!(counts[action].get(what).is_some_and(|times| *times >= least), "{action} {what}: {counts:?}");
    }
}
