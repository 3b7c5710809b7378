//! Manifests to facts: what real objects look like, and what broken ones become.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::classes::kwok::KwokNodeClass;
use crate::api::validation::CloudLabels;
use crate::core::facts::{
    ConsolidationPolicy, DoNotDisrupt, Effect, Owner, OwnerClaim, Pod, PodPhase, PolicyHonor, Status,
    TolerationOperator, find_condition,
};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

const MI: i64 = 1024 * 1024 * 1000;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn read(text: &str) -> Pod {
    read_pod(&yaml(text), &ShapeStore::new()).unwrap()
}

fn minimal(spec: &Value) -> Value {
    json!({ "metadata": { "name": "a", "namespace": "n", "uid": "u" }, "spec": spec })
}

fn requests(spec: &Value, status: Option<&Value>) -> Resources {
    let mut value = minimal(spec);
    if let Some(status) = status {
        value["status"] = status.clone();
    }
    let pod = read_pod(&value, &ShapeStore::new()).unwrap();
    assert_eq!(pod.shape.broken, None);
    pod.shape.requests.clone()
}

const WEB: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: web-7d9c-x2x
  namespace: shop
  uid: 0a1b
  creationTimestamp: "2026-11-21T10:00:00Z"
  labels: { app: web, pod-template-hash: 7d9c }
  annotations: { karpenter.sh/do-not-disrupt: 1h30m, prometheus.io/scrape: "true" }
  managedFields: [{ manager: kubelet, fieldsV1: { "f:status": {} } }]
  ownerReferences: [{ apiVersion: apps/v1, kind: ReplicaSet, name: web-7d9c, uid: r1, controller: true }]
spec:
  schedulerName: default-scheduler
  priority: 100
  nodeSelector: { beta.kubernetes.io/arch: amd64 }
  tolerations:
  - { key: dedicated, value: web, effect: NoSchedule }
  - { operator: Exists, tolerationSeconds: 300, effect: NoExecute }
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: { matchLabels: { app: web } }
    matchLabelKeys: [pod-template-hash, not-a-label]
    minDomains: 3
    nodeTaintsPolicy: Honor
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{ key: kubernetes.io/os, operator: In, values: [linux] }]
        - {}
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 5
        preference: { matchExpressions: [{ key: size, operator: Gt, values: ["4"] }] }
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: { matchExpressions: [{ key: app, operator: In, values: [web] }] }
        mismatchLabelKeys: [pod-template-hash]
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 10
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          namespaceSelector: {}
          labelSelector: { matchLabels: { app: cache } }
  containers:
  - name: web
    image: web:1
    resources: { requests: { cpu: 250m, memory: 64Mi }, limits: { memory: 128Mi, example.com/card: 1 } }
    ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81 }, { containerPort: 53, hostPort: 53, hostIP: 10.0.0.1, protocol: UDP }]
status:
  phase: Pending
  nominatedNodeName: node-1
  conditions: [{ type: PodScheduled, status: "False", reason: Unschedulable, message: none fits }]
"#;

#[test]
fn a_pod_of_a_deployment_is_read_whole() {
    let pod = read(WEB);
    assert_eq!(pod.key.to_string(), "shop/web-7d9c-x2x");
    assert_eq!(pod.uid, PodUid::from("0a1b"));
    assert_eq!(pod.created, "2026-11-21T10:00:00Z".parse().unwrap());
    assert_eq!(pod.phase, PodPhase::Pending);
    assert_eq!(pod.nominated.as_ref().unwrap().as_str(), "node-1");
    assert!(pod.is_provisionable() && pod.node.is_none());
    let shape = &pod.shape;
    assert_eq!(shape.broken, None);
    assert_eq!((shape.owner, shape.priority, &shape.scheduler), (Owner::Controller, 100, &None));
    assert_eq!(shape.do_not_disrupt, DoNotDisrupt::For(Duration::from_mins(90)));
    assert_eq!(
        shape.requests,
        Resources::new().with("cpu", 250).with("memory", 64 * MI).with("example.com/card", 1000).with("pods", 1000)
    );
    assert_eq!(
        shape.limits,
        Resources::new().with("memory", 128 * MI).with("example.com/card", 1000).with("pods", 1000)
    );
    assert_eq!(pod.owned_by.as_deref(), Some("/apis/apps/v1/namespaces/shop/replicasets/web-7d9c"));
    assert_eq!((pod.scheduled, pod.ready, shape.dynamic_resources), (None, None, false));
    assert_eq!(shape.node_selector.get(labels::ARCH).map(|v| &**v), Some("amd64"));
    let ports: Vec<_> = shape.host_ports.iter().map(|p| format!("{} {} {}", p.ip, p.port, p.protocol)).collect();
    assert_eq!(ports, ["0.0.0.0 8080 TCP", "10.0.0.1 53 UDP"]);
    assert_eq!(shape.tolerations[0].operator, TolerationOperator::Equal);
    assert_eq!((shape.tolerations[1].seconds, shape.tolerations[1].effect), (Some(300), Some(Effect::NoExecute)));
}

#[test]
fn constraints_are_read_with_the_pods_own_labels_and_namespace() {
    let shape = read(WEB).shape;
    assert_eq!(shape.node_affinity.required, [[Requirement::new(labels::OS, Operator::In, ["linux"])]]);
    assert_eq!(shape.node_affinity.preferred[0].weight, 5);
    let spread = &shape.spreads[0];
    assert!(spread.required);
    assert_eq!((spread.max_skew, spread.min_domains), (1, Some(3)));
    assert_eq!((spread.node_affinity_policy, spread.node_taints_policy), (PolicyHonor::Honor, PolicyHonor::Honor));
    let selector = spread.selector.as_ref().unwrap();
    assert_eq!(selector.expressions, [Requirement::new("pod-template-hash", Operator::In, ["7d9c"])]);
    let anti = &shape.anti_affinity[0];
    assert_eq!(*anti.namespaces, [Arc::from("shop")]);
    assert_eq!(
        anti.selector.as_ref().unwrap().expressions[1],
        Requirement::new("pod-template-hash", Operator::NotIn, ["7d9c"])
    );
    let near = &shape.preferred_affinity[0].term;
    assert!(near.namespaces.is_empty() && near.namespace_selector.as_ref().is_some_and(|s| s.labels.is_empty()));
}

#[test]
fn what_the_api_server_folded_already_is_not_folded_twice() {
    let mut value = yaml(WEB);
    value["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] =
        json!([{ "key": "pod-template-hash", "operator": "In", "values": ["7d9c"] }]);
    let shapes = ShapeStore::new();
    let folded = read_pod(&value, &shapes).unwrap();
    assert!(Arc::ptr_eq(&folded.shape, &read_pod(&yaml(WEB), &shapes).unwrap().shape));
}

#[test]
fn no_selector_matches_nothing_and_stays_none() {
    let pod = read_pod(
        &minimal(&json!({ "topologySpreadConstraints": [
            { "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway" }
        ] })),
        &ShapeStore::new(),
    )
    .unwrap();
    assert_eq!(pod.shape.spreads[0].selector, None);
    assert!(!pod.shape.spreads[0].required);
}

#[test]
fn a_spread_selector_that_asks_for_nothing_counts_nobody() {
    let of = |selector: Value| {
        let spread = json!({ "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector });
        let pod = read_pod(&minimal(&json!({ "topologySpreadConstraints": [spread] })), &ShapeStore::new()).unwrap();
        pod.shape.spreads[0].selector.clone()
    };
    assert_eq!((of(json!({})), of(json!({ "matchExpressions": [] }))), (None, None));
    assert!(of(json!({ "matchLabels": { "app": "web" } })).is_some());
}

#[test]
fn requests_are_counted_as_kube_scheduler_counts_them() {
    let cpu = |amount: &str| json!({ "requests": { "cpu": amount } });
    // Two containers, an init container that is larger than both, and a sidecar started before it.
    let spec = json!({
        "containers": [{ "name": "a", "resources": cpu("1") }, { "name": "b", "resources": cpu("500m") }],
        "initContainers": [
            { "name": "side", "restartPolicy": "Always", "resources": cpu("200m") },
            { "name": "init", "resources": cpu("3") },
            { "name": "late", "restartPolicy": "Always", "resources": cpu("100m") },
        ],
        "overhead": { "cpu": "10m", "memory": "1Mi" },
    });
    let expected = Resources::new().with("cpu", 3210).with("memory", MI).with("pods", 1000);
    assert_eq!(requests(&spec, None), expected);
    // Without the large init container, containers and sidecars run together.
    let spec = json!({
        "containers": [{ "name": "a", "resources": cpu("1") }],
        "initContainers": [{ "name": "side", "restartPolicy": "Always", "resources": cpu("200m") }],
    });
    assert_eq!(requests(&spec, None), Resources::new().with("cpu", 1200).with("pods", 1000));
    // Pod-level requests replace the sum, for CPU and memory only.
    let spec = json!({
        "containers": [{ "name": "a", "resources": { "requests": { "cpu": "1", "x/y": "1" } } }],
        "resources": { "requests": { "cpu": "5", "x/y": "7" } },
    });
    assert_eq!(requests(&spec, None), Resources::new().with("cpu", 5000).with("x/y", 1000).with("pods", 1000));
    // Pod-level limits stand for requests that neither the pod nor a container makes; those of huge pages for the sum, too.
    let spec = json!({
        "containers": [{ "name": "a", "resources": { "requests": { "cpu": "1", "hugepages-2Mi": "2Mi" } } }],
        "resources": { "limits": { "cpu": "5", "memory": "1Mi", "hugepages-2Mi": "4Mi", "x/y": "7" } },
    });
    let expected = Resources::new().with("cpu", 1000).with("memory", MI).with("hugepages-2Mi", 4 * MI);
    assert_eq!(requests(&spec, None), expected.with("pods", 1000));
    let spec = json!({
        "containers": [{ "name": "a" }],
        "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "2", "memory": "1Mi" } },
    });
    assert_eq!(requests(&spec, None), Resources::new().with("cpu", 1000).with("memory", MI).with("pods", 1000));
    // Unquoted numbers are quantities too.
    let spec = json!({ "containers": [{ "resources": { "requests": { "cpu": 0.5, "memory": 1024 } } }] });
    assert_eq!(requests(&spec, None), Resources::new().with("cpu", 500).with("memory", 1_024_000).with("pods", 1000));
}

#[test]
fn limits_are_put_together_like_requests() {
    let pod = |spec: &Value| read_pod(&minimal(spec), &ShapeStore::new()).unwrap();
    let limits = |spec: &Value| pod(spec).shape.limits.clone();
    let container = |cpu: &str| json!({ "name": "c", "resources": { "limits": { "cpu": cpu } } });
    let mut sidecar = container("100m");
    sidecar["restartPolicy"] = json!("Always");
    let parts = json!({
        "containers": [container("200m"), { "name": "free" }],
        "initContainers": [sidecar, container("900m")],
        "overhead": { "cpu": "10m", "memory": "1Mi" },
    });
    // The init container beside the sidecar is the peak; memory has no limit that the overhead could be added to.
    assert_eq!(limits(&parts), Resources::new().with("cpu", 1010).with("pods", 1000));
    let whole = json!({ "containers": [container("200m")], "resources": { "limits": { "cpu": "2", "pods": "9" } } });
    assert_eq!(limits(&whole), Resources::new().with("cpu", 2000).with("pods", 1000));
    let claims = json!({ "containers": [], "resourceClaims": [{ "name": "gpu", "resourceClaimName": "mine" }] });
    assert!(pod(&claims).shape.dynamic_resources);
}

#[test]
fn a_pod_knows_since_when_it_is_bound_and_ready_and_shares_the_name_of_its_owner() {
    let (mut value, store) = (yaml(WEB), ShapeStore::new());
    let at = |time: &str| Some(time.parse().unwrap());
    value["status"]["conditions"] = json!([
        { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T10:00:05Z" },
        { "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:09Z" },
    ]);
    let pod = read_pod(&value, &store).unwrap();
    assert_eq!((pod.scheduled, pod.ready), (at("2026-11-21T10:00:05Z"), at("2026-11-21T10:00:09Z")));
    value["status"]["conditions"][1]["status"] = json!("False");
    let other = read_pod(&value, &store).unwrap();
    assert_eq!(other.ready, None);
    assert!(Arc::ptr_eq(pod.owned_by.as_ref().unwrap(), other.owned_by.as_ref().unwrap()));
    value["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(read_pod(&value, &store).unwrap().owned_by, None);
}

#[test]
fn texts_that_nobody_holds_are_forgotten() {
    let store = ShapeStore::new();
    let kept = store.share_text("kept");
    (0..10_000).for_each(|n| drop(store.share_text(&format!("dropped {n}"))));
    assert!(store.texts() <= 2048, "{} texts", store.texts());
    assert!(Arc::ptr_eq(&kept, &store.share_text("kept")));
}

#[test]
fn a_resize_in_place_counts_the_larger_side_until_it_is_infeasible() {
    let spec = json!({ "containers": [{ "name": "a", "resources": { "requests": { "cpu": "1" } } }] });
    let status = |allocated: &str, in_force: &str| {
        json!({ "containerStatuses": [{
            "name": "a", "allocatedResources": { "cpu": allocated }, "resources": { "requests": { "cpu": in_force } },
        }] })
    };
    let cpu = |amount| Resources::new().with("cpu", amount).with("pods", 1000);
    assert_eq!(requests(&spec, Some(&status("2", "2"))), cpu(2000));
    assert_eq!(requests(&spec, Some(&status("1", "3"))), cpu(3000));
    assert_eq!(requests(&spec, Some(&status("500m", "500m"))), cpu(1000));
    let mut infeasible = status("500m", "500m");
    infeasible["conditions"] = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    assert_eq!(requests(&spec, Some(&infeasible)), cpu(500));
}

#[test]
fn a_broken_pod_is_there_with_field_and_remedy() {
    let shapes = ShapeStore::new();
    for (spec, needle) in [
        (
            json!({ "containers": [{ "resources": { "requests": { "cpu": "two" } } }] }),
            "spec.containers[0].resources.requests.cpu: \"two\" is not a quantity",
        ),
        (json!({ "containers": [{ "resources": { "requests": { "cpu": "-1" } } }] }), "write zero or more"),
        (
            json!({ "containers": [{ "ports": [{ "hostPort": "http" }] }] }),
            "spec.containers[0].ports[0].hostPort: invalid type",
        ),
        (
            json!({ "tolerations": [{ "operator": "Like" }] }),
            "spec.tolerations[0].operator: \"Like\" is no operator; write Equal",
        ),
        (json!({ "tolerations": [{ "operator": "Exists", "effect": "Never" }] }), "spec.tolerations[0].effect"),
        (
            json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Maybe" }] }),
            "DoNotSchedule",
        ),
        (
            json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{}] } } } }),
            "matches no node",
        ),
        (
            json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] }] } } } }),
            "matchFields",
        ),
        (
            json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "a", "operator": "Gte", "values": ["1"] }] }] } } } }),
            "\"Gte\" is no operator",
        ),
        (
            json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": "", "labelSelector": { "matchExpressions": [{ "key": "a", "operator": "Gt" }] } }] } } }),
            "topologyKey",
        ),
        (Value::Null, "spec: is missing"),
        (json!("nonsense"), "spec: invalid type"),
    ] {
        let pod = read_pod(&minimal(&spec), &shapes).unwrap();
        let broken = pod.shape.broken.as_deref().unwrap_or_else(|| panic!("{spec} is not broken"));
        assert!(broken.contains(needle), "{broken}");
        assert_eq!(pod.key.to_string(), "n/a");
        assert_eq!(pod.uid, "u".into());
    }
}

#[test]
fn a_pod_with_an_unreadable_status_keeps_its_spec() {
    let mut value = yaml(WEB);
    value["status"]["conditions"][0]["message"] = json!(false);
    let pod = read_pod(&value, &ShapeStore::new()).unwrap();
    assert_eq!(pod.shape.requests.get(&"cpu".into()), 250);
    assert!(pod.shape.broken.as_deref().unwrap().starts_with("status.conditions[0].message: invalid type"));
}

#[test]
fn only_a_pod_without_a_name_is_refused_whatever_else_of_its_metadata_cannot_be_read() {
    let error = read_pod(&json!({ "metadata": { "namespace": "n" } }), &ShapeStore::new()).unwrap_err();
    assert_eq!(error.to_string(), "Pod without a name: metadata.name: is missing; give the object a name");
    let wrong = json!({
        "annotations": { "a": 1 },
        "creationTimestamp": "yesterday",
        "deletionTimestamp": 7,
        "finalizers": "x",
        "labels": 7,
        "name": 12,
        "namespace": 5,
        "ownerReferences": [{ "kind": 5 }],
        "uid": false,
    });
    let pod = read_pod(&json!({ "metadata": wrong }), &ShapeStore::new()).unwrap();
    assert_eq!((pod.key.to_string().as_str(), pod.deleting), ("default/12", None));
    let broken = pod.shape.broken.clone().unwrap();
    for (field, _) in wrong.as_object().unwrap() {
        assert!(broken.contains(&format!("metadata.{field}")), "{field}: {broken}");
    }
}

#[test]
fn owners_and_annotations_decide_about_eviction() {
    let owner = |api: &str, kind: &str| {
        let mut value = minimal(&json!({}));
        value["metadata"]["ownerReferences"] = json!([{ "apiVersion": api, "kind": kind, "name": "o", "uid": "o" }]);
        read_pod(&value, &ShapeStore::new()).unwrap().shape.owner
    };
    assert_eq!(owner("apps/v1", "DaemonSet"), Owner::DaemonSet);
    assert_eq!(owner("v1", "Node"), Owner::Node);
    assert_eq!(owner("apps/v1", "StatefulSet"), Owner::StatefulSet);
    assert_eq!(owner("batch/v1", "Job"), Owner::Controller);
    assert_eq!(owner("mine.example/v1", "DaemonSet"), Owner::Controller);
    assert_eq!(read_pod(&minimal(&json!({})), &ShapeStore::new()).unwrap().shape.owner, Owner::Nobody);

    let blocks = |text: &str| {
        let mut value = minimal(&json!({}));
        value["metadata"]["annotations"] = json!({ labels::DO_NOT_DISRUPT: text });
        read_pod(&value, &ShapeStore::new()).unwrap().shape.do_not_disrupt.clone()
    };
    assert_eq!(blocks("true"), DoNotDisrupt::Always);
    assert_eq!(blocks("false"), DoNotDisrupt::Unsaid);
    assert_eq!(blocks("90s"), DoNotDisrupt::For(Duration::from_secs(90)));
    for ignored in ["True", "-1h", "0s", "soon", ""] {
        assert_eq!(blocks(ignored), DoNotDisrupt::Meaningless(ignored.into()), "{ignored}");
    }
}

#[test]
fn ports_of_a_host_network_pod_are_the_nodes() {
    let spec = json!({
        "hostNetwork": true,
        "containers": [{ "ports": [{ "containerPort": 9100 }, { "containerPort": 9100 }] }],
        "initContainers": [{ "ports": [{ "containerPort": 1 }] }],
    });
    let pod = read_pod(&minimal(&spec), &ShapeStore::new()).unwrap();
    assert_eq!(pod.shape.host_ports.len(), 1);
    assert_eq!(pod.shape.host_ports[0].port, 9100);
}

#[test]
fn equal_pods_share_a_shape_and_the_store_forgets_it_with_the_last() {
    let shapes = ShapeStore::new();
    let named = |name: &str| {
        let mut value = yaml(WEB);
        value["metadata"]["name"] = name.into();
        value["metadata"]["uid"] = name.into();
        read_pod(&value, &shapes).unwrap()
    };
    let (one, two) = (named("one"), named("two"));
    assert!(Arc::ptr_eq(&one.shape, &two.shape));
    assert_eq!(shapes.len(), 1);
    let other = read_pod(&minimal(&json!({})), &shapes).unwrap();
    assert_eq!(shapes.len(), 2);
    drop((one, two));
    assert_eq!(shapes.len(), 1);
    drop(other);
    assert!(shapes.is_empty());
}

#[test]
fn daemon_pods_share_a_shape_whatever_node_they_are_tied_to() {
    let shapes = ShapeStore::new();
    let on = |node: &str| {
        let mut value = minimal(&json!({ "nodeName": node, "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] }
            ] } } } }));
        value["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }]);
        read_pod(&value, &shapes).unwrap()
    };
    let (one, two) = (on("n1"), on("n2"));
    assert_eq!(one.shape.broken, None);
    assert!(Arc::ptr_eq(&one.shape, &two.shape));
}

#[test]
fn an_alternative_that_names_nodes_does_not_spoil_one_by_which_nodes_can_be_chosen() {
    let of = |terms: Value| {
        let required = json!({ "nodeSelectorTerms": terms });
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
        read_pod(&minimal(&json!({ "affinity": affinity })), &ShapeStore::new()).unwrap().shape
    };
    let named = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] });
    let zonal = json!({ "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] });
    let both = of(json!([named, zonal]));
    assert_eq!(both.broken, None);
    let by_name = Requirement::new(crate::core::labels::NODE_NAME_FIELD, Operator::In, ["n1"]);
    assert_eq!(both.node_affinity.required, [[by_name], [Requirement::new("zone", Operator::In, ["a"])]]);
    // An alternative that says nothing matches no node, and so is none.
    for terms in [json!([named]), json!([named, {}])] {
        assert!(of(terms).broken.as_deref().is_some_and(|broken| broken.contains("matchFields")));
    }
}

/// Its controller makes pods for the nodes that the template names: that counts, unlike the term by which it ties each pod to its node.
#[test]
fn a_daemonset_may_be_tied_to_nodes_by_name() {
    let of = |line: Value| {
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchFields": [line] }] } } });
        let spec = json!({ "affinity": affinity, "containers": [{ "name": "agent" }] });
        let value = json!({ "metadata": { "name": "agent" }, "spec": { "template": { "spec": spec } } });
        read_daemon(&value, &ShapeStore::new()).unwrap()
    };
    let named = of(json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] }));
    assert_eq!(named.shape.broken, None);
    let line = Requirement::new(crate::core::labels::NODE_NAME_FIELD, Operator::In, ["n1"]);
    assert_eq!(named.shape.node_affinity.required, [[line]]);
    for (line, needle) in [
        (json!({ "key": "spec.unschedulable", "operator": "In", "values": ["n1"] }), "matchFields[0].key: is no field"),
        (json!({ "key": "metadata.name", "operator": "Exists" }), "matchFields[0].operator: is not known"),
        (json!({ "key": "metadata.name", "operator": "In", "values": ["a", "b"] }), "matchFields[0].values: has to be"),
    ] {
        let broken = of(line).shape.broken.clone().unwrap();
        assert!(broken.contains(needle), "{broken}");
    }
}

#[test]
fn a_daemonset_is_the_shape_of_its_template() {
    let value = yaml(
        r"
metadata: { name: agent, namespace: kube-system }
spec:
  template:
    metadata: { labels: { app: agent } }
    spec:
      tolerations: [{ operator: Exists }]
      containers: [{ name: agent, resources: { requests: { cpu: 100m, memory: bad } } }]
",
    );
    let daemon = read_daemon(&value, &ShapeStore::new()).unwrap();
    assert_eq!(daemon.key.to_string(), "kube-system/agent");
    assert_eq!(&*daemon.shape.namespace, "kube-system");
    assert_eq!(daemon.shape.owner, Owner::DaemonSet);
    assert_eq!(daemon.shape.requests.get(&"cpu".into()), 100);
    let broken = daemon.shape.broken.as_deref().unwrap();
    assert!(broken.starts_with("spec.template.spec.containers[0].resources.requests.memory: "), "{broken}");
}

/// The DaemonSet controller adds tolerations to its pods: they come to cordoned nodes, and room is kept for them there.
#[test]
fn daemons_tolerate_what_their_controller_lets_them_tolerate() {
    let of = |host: &str| {
        let text = format!(
            "metadata: {{ name: a }}\nspec: {{ template: {{ spec: {{ {host} containers: [{{ name: a }}] }} }} }}"
        );
        read_daemon(&yaml(&text), &ShapeStore::new()).unwrap().shape
    };
    let tolerates = |shape: &crate::core::facts::PodShape, key: &str, effect: Effect| {
        shape.tolerations.iter().any(|toleration| toleration.tolerates(&crate::core::facts::Taint::new(key, effect)))
    };
    let daemon = of("");
    assert!(tolerates(&daemon, "node.kubernetes.io/unschedulable", Effect::NoSchedule));
    assert!(!tolerates(&daemon, "node.kubernetes.io/network-unavailable", Effect::NoSchedule));
    assert!(!tolerates(&daemon, "node.kubernetes.io/not-ready", Effect::NoSchedule));
    assert!(tolerates(&of("hostNetwork: true,"), "node.kubernetes.io/network-unavailable", Effect::NoSchedule));
}

#[test]
fn a_node_is_read_whole() {
    let node = read_node(&yaml(
        r#"
metadata:
  name: n1
  uid: nu
  resourceVersion: "7"
  labels: { karpenter.sh/nodepool: default, karpenter.sh/registered: "true" }
  annotations: { karpenter.sh/nodepool-hash: "1", karpenter.kwok.sh/x: a, other.example/x: z }
  finalizers: [karpenter.sh/termination]
  ownerReferences: [{ apiVersion: karpenter.sh/v1, kind: NodeClaim, name: c1, uid: cu }]
spec:
  providerID: kwok://n1
  unschedulable: true
  taints: [{ key: a, effect: NoExecute }, { key: b, value: c, effect: Strange }]
status:
  capacity: { cpu: "4", memory: 8Gi, pods: "110", broken: x }
  allocatable: { cpu: 3900m }
  conditions: [{ type: Ready, status: "True", reason: KubeletReady, message: ok, lastTransitionTime: "2026-01-01T00:00:00Z" }]
"#,
    ))
    .unwrap();
    assert!(node.is_ready() && node.is_registered() && !node.is_initialized() && node.cordoned);
    assert_eq!(node.annotations.len(), 2);
    assert_eq!(*node.owner_claims, [OwnerClaim { name: "c1".into(), uid: "cu".into() }]);
    assert_eq!(node.taints[1].effect, Effect::NoSchedule);
    assert_eq!(node.capacity, Resources::new().with("cpu", 4000).with("memory", 8192 * MI).with("pods", 110_000));
    assert_eq!((&*node.version, node.provider_id.unwrap().as_str()), ("7", "kwok://n1"));
    assert!(read_node(&json!({ "metadata": { "name": "x" }, "spec": { "taints": 1 } })).is_err());
}

#[test]
fn a_node_is_the_same_machine_whichever_way_its_provider_id_is_spelt() {
    let read = |id: &str| {
        let node = read_node(&json!({ "metadata": { "name": "n" }, "spec": { "providerID": id } })).unwrap();
        node.provider_id.map(|id| id.to_string()).unwrap_or_default()
    };
    for (written, known) in [
        ("aws:///eu-west-2a/i-0a1b2c3d", "aws:///eu-west-2a/i-0a1b2c3d"),
        ("osc:///eu-west-2a/i-0a1b2c3d", "aws:///eu-west-2a/i-0a1b2c3d"),
        ("osc://eu-west-2a/i-0a1b2c3d", "aws:///eu-west-2a/i-0a1b2c3d"),
        ("osc:///account/eu-west-2a/i-0a1b2c3d", "aws:///eu-west-2a/i-0a1b2c3d"),
        ("osc://", "osc://"),
        ("kwok://n", "kwok://n"),
        ("", ""),
    ] {
        assert_eq!(read(written), known, "{written}");
    }
}

const KWOK_LABELS: CloudLabels<'_> =
    CloudLabels { restricted_domains: &["karpenter.kwok.sh"], well_known: &["karpenter.kwok.sh/instance-size"] };

const POOL: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default, uid: pu, generation: 3, resourceVersion: "9" }
spec:
  weight: 10
  limits: { cpu: 1k, nodes: "5" }
  template:
    metadata: { labels: { team: a } }
    spec:
      requirements:
      - { key: beta.kubernetes.io/os, operator: In, values: [linux] }
      - { key: node.kubernetes.io/instance-type, operator: Exists, minValues: 3 }
      nodeClassRef: { group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default }
      taints: [{ key: t, effect: NoSchedule }]
      terminationGracePeriod: 5m
  disruption:
    consolidateAfter: Never
    budgets: [{ nodes: "3" }, { nodes: 0%, reasons: [Drifted], schedule: "@daily", duration: 1h30m }]
status: { nodes: 2, resources: { cpu: "8", nodes: "2" }, conditions: [{ type: Ready, status: "True", observedGeneration: 3, lastTransitionTime: "2026-01-01T00:00:00Z" }] }
"#;

#[test]
fn a_nodepool_is_read_whole() {
    let pool = read_pool(&yaml(POOL), &KWOK_LABELS).unwrap();
    assert!(pool.errors.is_empty(), "{:?}", pool.errors);
    assert!(pool.is_ready());
    assert_eq!((pool.weight, pool.replicas, pool.generation), (10, None, 3));
    assert_eq!(pool.limits, Resources::new().with("cpu", 1_000_000).with("nodes", 5000));
    assert_eq!(pool.template.requirements[0], Requirement::new(labels::OS, Operator::In, ["linux"]));
    assert_eq!(pool.template.requirements[1].min_values, Some(3));
    assert_eq!(pool.template.termination_grace, Some(Duration::from_mins(5)));
    assert_eq!(pool.template.expire_after, Some(Duration::from_hours(720)));
    assert_eq!(pool.hash.parse::<u64>().unwrap().to_string(), *pool.hash);
    assert_eq!(pool.disruption.consolidate_after, None);
    assert_eq!(pool.disruption.policy, ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!(pool.disruption.budgets[1].duration, Some(Duration::from_mins(90)));
    assert_eq!((pool.status_nodes, pool.status_resources.get(&"cpu".into())), (Some(2), 8000));
}

#[test]
fn a_nodepool_that_cannot_be_read_says_why() {
    for (pointer, wrong, needle) in [
        (
            "/spec/template/spec/expireAfter",
            json!("2 weeks"),
            "spec.template.spec.expireAfter: \"2 weeks\" is not a duration",
        ),
        ("/spec/template/spec/requirements/0/operator", json!("Is"), "requirements[0].operator: \"Is\" is no operator"),
        ("/spec/template/spec/taints/0/effect", json!("Never"), "spec.template.spec.taints[0].effect"),
        ("/spec/limits/cpu", json!("many"), "spec.limits.cpu: \"many\" is not a quantity"),
        ("/spec/disruption/consolidationPolicy", json!("Never"), "spec.disruption.consolidationPolicy"),
        ("/spec/disruption/budgets/1/duration", json!("1d"), "spec.disruption.budgets[1].duration"),
        ("/spec/template/metadata/labels", json!({ "karpenter.kwok.sh/x": "y" }), "karpenter.kwok.sh/x"),
        ("/spec/weight", json!("heavy"), "spec.weight: invalid type"),
        ("/spec/weight", json!(0), "spec.weight: 0 is not from 1 to 100; write such a number, or leave it out"),
        ("/spec/weight", json!(101), "spec.weight: 101 is not from 1 to 100"),
        ("/spec/replicas", json!(-1), "spec.replicas: -1 is not at least 0"),
        ("/spec/replicas", json!(2), "spec.weight: has no meaning beside spec.replicas"),
        ("/spec/replicas", json!(2), "spec.limits.cpu: has no meaning beside spec.replicas"),
        (
            "/spec/template/spec/requirements/1/minValues",
            json!(51),
            "requirements[1].minValues: 51 is not from 1 to 50",
        ),
        ("/spec", Value::Null, "spec: is missing"),
    ] {
        let mut value = yaml(POOL);
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is not there"))[field] = wrong;
        let pool = read_pool(&value, &KWOK_LABELS).unwrap();
        assert!(pool.errors.iter().any(|error| error.contains(needle)), "{:?}", pool.errors);
        assert!(!pool.is_ready());
        assert_eq!(pool.name.as_str(), "default");
        if pointer != "/spec" {
            assert_eq!(&*pool.template.class.kind, "KWOKNodeClass");
        }
    }
}

#[test]
fn a_nodeclaim_survives_the_way_out_and_back() {
    let draft = crate::core::facts::ClaimDraft {
        name: "default-abc".into(),
        pool: "default".into(),
        pool_uid: "pu".into(),
        labels: Arc::new([("karpenter.sh/nodepool".into(), "default".into())].into()),
        annotations: Arc::new([("karpenter.sh/nodepool-hash".into(), "12".into())].into()),
        requirements: Arc::new([
            Requirement::new(labels::INSTANCE_TYPE, Operator::In, ["a", "b"]),
            Requirement { min_values: Some(2), ..Requirement::new("x/y", Operator::Exists, [""; 0]) },
        ]),
        requests: Resources::new().with("cpu", 1500).with("memory", 64 * MI).with("pods", 3000),
        taints: vec![crate::core::facts::Taint { key: "k".into(), value: "v".into(), effect: Effect::NoSchedule }],
        startup_taints: vec![crate::core::facts::Taint::new("s", Effect::NoExecute)],
        class: crate::core::ids::ClassRef { group: "g".into(), kind: "K".into(), name: "n".into() },
        termination_grace: Some(Duration::from_secs(90)),
        expire_after: None,
    };
    let object = claim_object(&draft);
    assert_eq!(
        object,
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": "default-abc",
                "labels": { "karpenter.sh/nodepool": "default" },
                "annotations": { "karpenter.sh/nodepool-hash": "12" },
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "pu",
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "requirements": [
                    { "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["a", "b"] },
                    { "key": "x/y", "operator": "Exists", "minValues": 2 },
                ],
                "resources": { "requests": { "cpu": "1500m", "memory": "64Mi", "pods": "3" } },
                "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
                "taints": [{ "key": "k", "value": "v", "effect": "NoSchedule" }],
                "startupTaints": [{ "key": "s", "effect": "NoExecute" }],
                "terminationGracePeriod": "1m30s",
                "expireAfter": "Never",
            },
        })
    );
    let claim = read_claim(&object).unwrap();
    assert_eq!(claim.broken, None);
    assert_eq!(claim.requirements, *draft.requirements);
    assert_eq!(claim.requests, draft.requests);
    assert_eq!((&claim.taints, &claim.startup_taints), (&draft.taints, &draft.startup_taints));
    assert_eq!(
        (&claim.class, claim.termination_grace, claim.expire_after),
        (&draft.class, draft.termination_grace, None)
    );
    assert_eq!(claim.owner_pool.unwrap().as_str(), "pu");
}

#[test]
fn a_nodeclaim_that_cannot_be_read_is_broken_and_still_known() {
    let claim = read_claim(&json!({
        "metadata": { "name": "c", "uid": "cu", "finalizers": ["karpenter.sh/termination"] },
        "spec": { "requirements": "none", "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
        "status": { "providerID": "kwok://c", "conditions": [{ "type": "Launched", "status": "True" }] },
    }))
    .unwrap();
    let broken = claim.broken.clone().unwrap();
    assert!(broken.problem.starts_with("spec.requirements: invalid type"), "{broken:?}");
    assert!(!broken.conditions);
    assert!(claim.has_finalizer());
    // A condition without a time breaks the status; the conditions are read all the same.
    assert!(claim.is("Launched"));
    let claim = read_claim(&json!({
        "metadata": { "name": "c" },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" }, "expireAfter": "1d" },
        "status": { "providerID": "kwok://c" },
    }))
    .unwrap();
    assert_eq!(claim.provider_id.unwrap().as_str(), "kwok://c");
    let broken = claim.broken.unwrap();
    assert!(broken.problem.contains("spec.expireAfter") && !broken.conditions, "{broken:?}");
    let claim = read_claim(&json!({
        "metadata": { "name": "c" },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
        "status": { "conditions": [{ "type": "Launched", "status": "True", "lastTransitionTime": "yesterday" }] },
    }))
    .unwrap();
    let broken = claim.broken.unwrap();
    assert!(broken.problem.contains("status.conditions[0].lastTransitionTime") && broken.conditions, "{broken:?}");
}

fn kwok() -> ClassKind {
    ClassKind::of::<KwokNodeClass>("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses")
}

#[test]
fn a_nodeclass_carries_its_typed_body_and_its_conditions() {
    let value = json!({
        "metadata": { "name": "default", "generation": 2 },
        "spec": { "nodeRegistrationDelay": "30s" },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2024-01-01T01:01:01Z", "message": "" }] },
    });
    let class = read_class(&value, &kwok()).unwrap();
    assert_eq!(class.reference.label(), "karpenter.kwok.sh/kwoknodeclass");
    assert_eq!(find_condition(&class.conditions, "Ready").unwrap().status, Status::True);
    let body = class.body.downcast_ref::<KwokNodeClass>().unwrap();
    assert_eq!(body.spec.spec.node_registration_delay.as_deref(), Some("30s"));
    let bare = read_class(&json!({ "metadata": { "name": "bare" } }), &kwok()).unwrap();
    assert!(bare.body.is::<KwokNodeClass>());
}

#[test]
fn a_nodeclass_that_cannot_be_read_is_not_ready_and_says_why() {
    let value = json!({
        "metadata": { "name": "default" },
        "spec": { "nodeRegistrationDelay": 30 },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T01:01:01Z" }] },
    });
    let class = read_class(&value, &kwok()).unwrap();
    let ready = find_condition(&class.conditions, "Ready").unwrap();
    assert_eq!((ready.status, &*ready.reason), (Status::False, "Unreadable"));
    assert!(ready.message.contains("nodeRegistrationDelay"), "{}", ready.message);
}

#[test]
fn namespaces_are_names_with_labels() {
    let (name, labels) = read_namespace(&json!({ "metadata": { "name": "a", "labels": { "x": "1" } } })).unwrap();
    assert_eq!((&*name, labels.len()), ("a", 2));
    assert_eq!(&*labels["kubernetes.io/metadata.name"], "a", "the API server gives it to each");
}
