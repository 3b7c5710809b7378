//! Where pods may go: affinities, host ports and taints, on nodes whose daemons take their share.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{condition, name, text};
use crate::ending::Excuse;
use crate::stage::{LIMIT, Stage, deployment, merge, pool};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
/// Pods that are placed, daemons not counted.
const PODS: usize = 22;

/// Machines of four processors, of which 3.9 can be used.
fn four_cores() -> Value {
    json!([
        { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
        { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
        { "key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"] },
    ])
}

/// A required (anti-)affinity to the pods of an app.
fn near(kind: &str, app: &str, key: &str) -> Value {
    let term = json!([{ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } }]);
    json!({ "affinity": { (kind): { "requiredDuringSchedulingIgnoredDuringExecution": term } } })
}

/// A DaemonSet of one processor a pod, on the nodes of an architecture, whatever their taints.
fn daemon(name: &str, arch: &str) -> String {
    let labels = json!({ "app": name });
    let requests = json!({ "cpu": "1", "memory": "256Mi" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": name, "namespace": "placement-system" },
        "spec": { "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": {
                "nodeSelector": { "kubernetes.io/arch": arch },
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "main", "image": "main", "resources": { "requests": requests } }],
            },
        } },
    })
    .to_string()
}

fn workloads() -> [String; 7] {
    let port = json!({ "containers": [{
        "name": "main",
        "image": "main",
        "ports": [{ "containerPort": 80, "hostPort": 8080 }],
        "resources": { "requests": { "cpu": "100m" } },
    }] });
    let dedicated = json!({
        "nodeSelector": { "karpenter.sh/nodepool": "dedicated" },
        "tolerations": [{ "key": "example.com/dedicated", "operator": "Equal", "value": "yes", "effect": "NoSchedule" }],
    });
    let small = ["100m", "128Mi"];
    let of = |name: &str, replicas: u32, requests: [&str; 2], changes: &Value| {
        deployment("placement", name, replicas, requests, changes)
    };
    [
        of("db", 2, ["500m", "512Mi"], &near("podAffinity", "db", ZONE)),
        of("web", 6, ["1", "512Mi"], &near("podAffinity", "db", ZONE)),
        of("cache", 3, small, &near("podAffinity", "db", HOST)),
        of("alone", 4, small, &near("podAntiAffinity", "alone", HOST)),
        of("shy", 2, small, &near("podAntiAffinity", "web", HOST)),
        of("ported", 3, small, &port),
        of("dedicated", 2, ["1", "512Mi"], &dedicated),
    ]
}

/// A pod of its own.
fn pod(name: &str, cpu: &str, changes: &Value) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{ "name": "main", "image": "main", "resources": { "requests": { "cpu": cpu } } }],
    });
    merge(&mut spec, changes);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

/// kube-scheduler keeps room for a pod that is nominated, and sends others away. When that pod is bound to another node, none of kube-scheduler's events
/// says that the room is free: it would try the others again five minutes after it has sent them away.
#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_pod_that_kube_scheduler_has_left_aside_is_shown_to_it_again() {
    const PODS: &str = "/api/v1/namespaces/aside/pods";
    let stage = Stage::set("aside");
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("aside", &json!({ "template": { "spec": { "requirements": four_cores() } } })));
    let apart = near("podAntiAffinity", "wide", HOST);
    let of = |name: &str, cpu: &str, changes: &Value| deployment("aside", name, 1, [cpu, "128Mi"], changes);
    stage.plane().apply(&[of("wide", "2", &json!({})), of("slim", "100m", &apart)].join("\n---\n"));
    let pods = stage.all_run("aside", 2);
    let node_of = |app: &str| {
        let pod = pods.iter().find(|pod| text(pod, "/metadata/labels/app") == app);
        text(pod.expect("it runs"), "/spec/nodeName")
    };
    let (wide, slim) = (node_of("wide"), node_of("slim"));
    assert_ne!(wide, slim);
    let nodes = stage.settled();
    let node = nodes.iter().map(|(_, node)| node).find(|node| name(node) == wide).expect("it is there");
    let host = text(node, "/metadata/labels/kubernetes.io~1hostname");

    let api = stage.api();
    // Of the 3.8 processors that are free beside `slim`, one is kept for a pod that may not go anywhere yet; and beside `wide` 1.9 are free.
    assert!(api.create(PODS, &pod("kept", "1", &json!({ "schedulingGates": [{ "name": "testing/gate" }] }))));
    api.patch(&format!("{PODS}/kept/status"), &json!({ "status": { "nominatedNodeName": slim } }));
    assert!(api.create(PODS, &pod("left-aside", "3", &json!({}))));
    eventually("kube-scheduler has sent the pod away", LIMIT, || {
        (condition(&api.get(&format!("{PODS}/left-aside"))?, "PodScheduled") == "False/Unschedulable").then_some(())
    });
    let elsewhere = json!({ "spec": { "schedulingGates": null, "nodeSelector": { HOST: host } } });
    api.patch(&format!("{PODS}/kept"), &elsewhere);

    let pods = stage.all_run("aside", 4);
    let left_aside = pods.iter().find(|pod| name(pod) == "left-aside").expect("it runs");
    assert_eq!(text(left_aside, "/spec/nodeName"), slim);
    let said = joiner.said("kube-scheduler leaves pods aside whose nodes serve: it is shown them again");
    assert_eq!(said.first().map(|line| text(line, "/pods")).as_deref(), Some("aside/left-aside"), "{said:?}");
    assert_eq!(stage.ends_well(joiner).len(), 2, "nothing was bought for it");
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn pods_are_where_affinities_ports_and_taints_let_them_be_beside_the_daemons() {
    let stage = Stage::set("placement");
    stage.namespace("placement-system");
    let joiner = stage.joiner("joiner-a");
    let taint = json!([{ "key": "example.com/dedicated", "value": "yes", "effect": "NoSchedule" }]);
    let pools = [
        pool("general", &json!({ "template": { "spec": { "requirements": four_cores() } } })),
        pool("dedicated", &json!({ "template": { "spec": { "requirements": four_cores(), "taints": taint } } })),
    ];
    stage.plane().apply(&pools.join("\n---\n"));
    stage.plane().apply(&[daemon("agent", "amd64"), daemon("elsewhere", "arm64")].join("\n---\n"));
    stage.plane().apply(&workloads().join("\n---\n"));

    let pods = stage.all_run("placement", PODS);
    let nodes = stage.settled();
    let on = |app: &str, key: &str| places(&pods, &nodes, app, key);
    let set = |places: Vec<String>| places.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set(on("db", ZONE)).len(), 1, "what must be together is in one zone");
    assert_eq!(set(on("web", ZONE)), set(on("db", ZONE)), "who must be near db is in its zone");
    assert!(set(on("cache", HOST)).is_subset(&set(on("db", HOST))), "who must be beside db is on a node of it");
    assert_eq!(set(on("alone", HOST)).len(), 4, "no two share a node");
    assert!(set(on("shy", HOST)).is_disjoint(&set(on("web", HOST))), "who avoids web is on no node of it");
    assert_eq!(set(on("ported", HOST)).len(), 3, "a port of a node is one pod's");
    for (pod, pool) in pods.iter().zip(places_of_all(&pods, &nodes, "karpenter.sh/nodepool")) {
        let wanted = if text(pod, "/metadata/labels/app") == "dedicated" { "dedicated" } else { "general" };
        assert_eq!(pool, wanted, "{}", name(pod));
    }

    // Had the daemons not been counted, some of them would find no room.
    let daemons = eventually("every node has a daemon", LIMIT, || {
        let daemons = stage.api().pods("placement-system");
        // kube-scheduler has found room for it: kwok may leave a pod alone that was bound before it knew the node.
        (daemons.len() == nodes.len() && daemons.iter().all(|pod| pod["spec"]["nodeName"].is_string()))
            .then_some(daemons)
    });
    assert!(daemons.iter().all(|pod| text(pod, "/metadata/labels/app") == "agent"), "{daemons:?}");
    assert_eq!(set(places_of_all(&daemons, &nodes, HOST)).len(), nodes.len());
    // 8 processors of general pods on nodes that have 2.9 for them, four at least because of those who want to be alone, and one dedicated.
    assert!((5..=8).contains(&nodes.len()), "{} nodes", nodes.len());
    // The plan has a node for those who avoid web. Where web has filled other nodes first, kube-scheduler may find them a place there.
    let is_used = |node: &Value| pods.iter().any(|pod| text(pod, "/spec/nodeName") == name(node));
    let empty: Vec<String> = nodes.iter().filter(|(_, node)| !is_used(node)).map(|(_, node)| name(node)).collect();
    assert!(empty.len() <= 1, "there for nothing: {empty:?}");
    let empty: Vec<Excuse<'_>> = empty.iter().map(|node| Excuse::Empty(node)).collect();
    stage.ends_well_but(joiner, &empty);
}

/// What kube-scheduler gives to pods that have no spread constraints of their own. Which pods count together follows from their Services and their owner:
/// those of a ReplicaSet, and those that are nobody's and have a Service.
#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn pods_without_constraints_are_spread_as_kube_scheduler_is_configured_to() {
    let zonal = json!([{ "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule" }]);
    let stage = Stage::set_with_default_spreads("defaults", &zonal);
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("defaults", &json!({ "template": { "spec": { "requirements": four_cores() } } })));
    let labels = json!({ "app": "lone" });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "lone", "namespace": "defaults" },
        "spec": { "selector": labels, "ports": [{ "port": 80 }] },
    });
    stage.plane().apply(&service.to_string());
    let mut all = vec![deployment("defaults", "web", 8, ["500m", "256Mi"], &json!({}))];
    for at in 0..4 {
        let mut lone = pod(&format!("lone-{at}"), "250m", &json!({}));
        lone["metadata"]["namespace"] = "defaults".into();
        lone["metadata"]["labels"] = labels.clone();
        all.push(lone.to_string());
    }
    stage.plane().apply(&all.join("\n---\n"));

    let pods = stage.all_run("defaults", 12);
    let nodes = stage.settled();
    for (app, in_each) in [("web", 2), ("lone", 1)] {
        let mut zones = BTreeMap::<String, usize>::new();
        for zone in places(&pods, &nodes, app, ZONE) {
            *zones.entry(zone).or_default() += 1;
        }
        assert!(zones.len() == 4 && zones.values().all(|count| *count == in_each), "{app}: {zones:?}");
    }
    // Without the defaults one node would do, and kube-scheduler would not take it. That every pod is bound where it was planned luck decides.
    let first = &joiner.said("computed plan")[0];
    assert_eq!((&first["new_pods"], &first["nodeclaims"]), (&json!(12), &json!(4)), "one burst, one plan: {first}");
    stage.ends_well(joiner);
}

/// The value that the nodes of an app's pods have for a label.
fn places(pods: &[Value], nodes: &[(Value, Value)], app: &str, key: &str) -> Vec<String> {
    let of_app: Vec<Value> = pods.iter().filter(|pod| text(pod, "/metadata/labels/app") == app).cloned().collect();
    assert!(!of_app.is_empty(), "there are pods of {app}");
    places_of_all(&of_app, nodes, key)
}

/// The value that the nodes of pods have for a label.
fn places_of_all(pods: &[Value], nodes: &[(Value, Value)], key: &str) -> Vec<String> {
    let value = |node: &Value| node["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    let values: BTreeMap<String, String> = nodes.iter().map(|(_, node)| (name(node), value(node))).collect();
    pods.iter().map(|pod| values[&text(pod, "/spec/nodeName")].clone()).collect()
}
