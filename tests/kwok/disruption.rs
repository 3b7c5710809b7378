//! Nodes that go: a NodeClaim or a Node is deleted, and joiner sees to it that nobody is harmed and nothing is left.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::controlplane::{eventually, fail};
use crate::common::kube_api::{CLAIMS, Change, History, NODES, POOLS, condition, name, text};
use crate::ending::{DRAINED, Excuse};
use crate::stage::{LIMIT, Stage, deployment, pool};

/// A PodDisruptionBudget for an app.
fn budget(namespace: &str, app: &str, max_unavailable: u32) -> String {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": app, "namespace": namespace },
        "spec": { "maxUnavailable": max_unavailable, "selector": { "matchLabels": { "app": app } } },
    })
    .to_string()
}

fn nodes_of(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_deleted_nodeclaim_is_drained_under_budgets_and_leaves_nothing() {
    let stage = Stage::set("drain");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("drain", &json!({})));
    stage.plane().apply(&deployment("drain", "web", 6, ["500m", "512Mi"], &json!({})));
    stage.plane().apply(&budget("drain", "web", 0));
    let pods = stage.all_run("drain", 6);
    let nodes = stage.settled();
    assert_eq!(nodes.len(), 1, "six small pods need one node");
    let (claim, node) = (format!("{CLAIMS}/{}", name(&nodes[0].0)), format!("{NODES}/{}", name(&nodes[0].1)));
    stage.plane().kubectl("wait pdb/web -n drain --for=jsonpath={.status.currentHealthy}=6 --timeout=60s");

    // Nobody may be evicted: the node closes, and waits.
    api.delete(&claim);
    let drained = eventually("the drain has begun", LIMIT, || {
        let claim = api.get(&claim).expect("pods are on its node");
        (condition(&claim, "Drained") == "Unknown/Draining").then_some(claim)
    });
    assert!(!text(&drained, "/metadata/deletionTimestamp").is_empty());
    let closed = api.get(&node).expect("its finalizer holds it");
    let taints = closed["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let disrupted = |taint: &Value| taint["key"] == "karpenter.sh/disrupted" && taint["effect"] == "NoSchedule";
    assert!(taints.iter().any(disrupted), "{taints:?}");
    eventually("an eviction was refused, and joiner says why", LIMIT, || {
        let said = joiner.said("pod not evicted, asking again").pop()?;
        assert!(text(&said, "/answer").contains("disruption budget"), "{said}");
        Some(())
    });
    let uids = |pods: &[Value]| pods.iter().map(|pod| text(pod, "/metadata/uid")).collect::<BTreeSet<_>>();
    assert_eq!(uids(&stage.all_run("drain", 6)), uids(&pods), "nobody was evicted");
    assert_eq!(api.list(CLAIMS).len(), 1, "nothing is bought for pods that cannot leave");

    // Two at a time: they move to a new node, and the old one goes with all that belongs to it.
    stage.plane().apply(&budget("drain", "web", 2));
    eventually("NodeClaim and Node are gone", LIMIT, || {
        (api.get(&claim).is_none() && api.get(&node).is_none()).then_some(())
    });
    let moved = stage.all_run("drain", 6);
    assert!(nodes_of(&moved).is_disjoint(&nodes_of(&pods)));
    assert!(uids(&moved).is_disjoint(&uids(&pods)));
    // Those that still run when the first two are planned are planned along; at worst they are planned while the successors of the first two are
    // on their way.
    let new = stage.settled().len();
    assert!((1..=2).contains(&new), "{new} nodes for six small pods");

    // A NodePool takes its NodeClaims with it.
    api.delete("/apis/apps/v1/namespaces/drain/deployments");
    api.delete(&format!("{POOLS}/drain"));
    eventually("nothing is left", LIMIT, || (api.list(CLAIMS).is_empty() && api.list(NODES).is_empty()).then_some(()));
    stage.ends_well_but(joiner, &[DRAINED]);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_node_deleted_behind_our_back_is_drained_and_replaced() {
    let stage = Stage::set("deleted");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("deleted", &json!({})));
    stage.plane().apply(&deployment("deleted", "web", 3, ["500m", "512Mi"], &json!({})));
    stage.all_run("deleted", 3);
    let (claim, node) = stage.settled().pop().expect("there is a node");

    api.delete(&format!("{NODES}/{}", name(&node)));
    eventually("NodeClaim and Node are gone", LIMIT, || {
        let gone = |collection: &str, object: &Value| api.get(&format!("{collection}/{}", name(object))).is_none();
        (gone(CLAIMS, &claim) && gone(NODES, &node)).then_some(())
    });
    let pods = stage.all_run("deleted", 3);
    let nodes = stage.settled();
    assert_eq!(nodes_of(&pods), nodes.iter().map(|(_, node)| name(node)).collect());
    stage.ends_well_but(joiner, &[DRAINED]);
}

/// A Deployment whose pods must not be disrupted.
fn protected(namespace: &str, name: &str, grace: u32) -> String {
    let deployment =
        deployment(namespace, name, 1, ["500m", "512Mi"], &json!({ "terminationGracePeriodSeconds": grace }));
    let mut deployment: Value = serde_json::from_str(&deployment).expect("it was JSON a moment ago");
    deployment["spec"]["template"]["metadata"]["annotations"] = json!({ "karpenter.sh/do-not-disrupt": "true" });
    deployment.to_string()
}

/// Node closed, pods gone, Node gone, NodeClaim gone: in this order.
fn went_in_order(history: &History, claim: &Value, node: &Value, pods: &[Value]) {
    // A watch may tell of it later than a list did.
    let when = |kind: &str, object: &Value, what: &str, is: &dyn Fn(&Change) -> bool| -> u64 {
        let found = || history.of(kind, &name(object)).into_iter().find(is).map(|change| change.revision);
        eventually(what, LIMIT, found)
    };
    let taints = |object: &Value| object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_closed =
        |change: &Change| taints(&change.object).iter().any(|taint| taint["key"] == "karpenter.sh/disrupted");
    let is_leaving = |change: &Change| !text(&change.object, "/metadata/deletionTimestamp").is_empty();
    let is_gone = |change: &Change| change.gone;
    let closed = when("Node", node, "the Node is tainted", &is_closed);
    let node_gone = when("Node", node, "the Node is gone", &is_gone);
    let claim_gone = when("NodeClaim", claim, "the NodeClaim is gone", &is_gone);
    for pod in pods {
        let asked = when("Pod", pod, "the pod is asked to leave", &is_leaving);
        assert!(closed < asked, "the Node closes before pods leave");
        assert!(when("Pod", pod, "the pod is gone", &is_gone) < node_gone, "pods leave before the machine goes");
    }
    assert!(node_gone < claim_gone, "the NodeClaim stays as long as its Node");
    for change in history.of("NodeClaim", &name(claim)).iter().filter(|change| change.revision < node_gone) {
        assert_eq!(
            change.object["metadata"]["finalizers"],
            json!(["karpenter.sh/termination"]),
            "it is held until then"
        );
    }
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_protected_pod_keeps_its_node_until_it_is_released() {
    let stage = Stage::set("protected");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("protected", &json!({})));
    stage.plane().apply(&protected("protected", "guarded", 1));
    stage.plane().apply(&deployment("protected", "web", 2, ["500m", "512Mi"], &json!({})));
    let pods = stage.all_run("protected", 3);
    let (claim, node) = stage.settled().pop().expect("there is a node");
    let on_it: Vec<Value> = pods.into_iter().filter(|pod| text(pod, "/spec/nodeName") == name(&node)).collect();
    let history = api.record(&[CLAIMS, NODES, "/api/v1/namespaces/protected/pods"]);
    let is_guarded = |pod: &Value| text(pod, "/metadata/labels/app") == "guarded";
    let guarded = on_it.iter().find(|pod| is_guarded(pod)).map(name).expect("three small pods need one node");

    api.delete(&format!("{CLAIMS}/{}", name(&claim)));
    eventually("the others have moved, and the page of actors names who stays", LIMIT, || {
        let actor = joiner.actor("claim", &name(&claim))?;
        let waits_for = text(&actor, "/waitsFor");
        (waits_for.starts_with("1 pods") && waits_for.contains(&guarded) && waits_for.contains("do-not-disrupt"))
            .then_some(())
    });
    let pods = stage.all_run("protected", 3);
    assert!(pods.iter().filter(|pod| !is_guarded(pod)).all(|pod| text(pod, "/spec/nodeName") != name(&node)));
    assert!(pods.iter().any(|pod| name(pod) == guarded && pod["metadata"]["deletionTimestamp"].is_null()));
    assert_eq!(
        condition(&api.get(&format!("{CLAIMS}/{}", name(&claim))).expect("it waits"), "Drained"),
        "Unknown/Draining"
    );

    let released = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": null } } });
    api.patch(&format!("/api/v1/namespaces/protected/pods/{guarded}"), &released);
    eventually("the NodeClaim is gone", LIMIT, || {
        api.get(&format!("{CLAIMS}/{}", name(&claim))).is_none().then_some(())
    });
    stage.all_run("protected", 3);
    stage.ends_well_but(joiner, &[DRAINED]);
    went_in_order(&history, &claim, &node, &on_it);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_termination_grace_period_ends_what_protection_would_hold_up() {
    let stage = Stage::set("deadline");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("deadline", &json!({ "template": { "spec": { "terminationGracePeriod": "20s" } } })));
    // One whose pods have ten seconds to end, one that a budget protects, and one that anybody may evict.
    stage.plane().apply(&protected("deadline", "guarded", 10));
    stage.plane().apply(&deployment("deadline", "web", 1, ["500m", "512Mi"], &json!({})));
    stage.plane().apply(&deployment("deadline", "kept", 1, ["500m", "512Mi"], &json!({})));
    stage.plane().apply(&budget("deadline", "kept", 0));
    let pods = stage.all_run("deadline", 3);
    stage.plane().kubectl("wait pdb/kept -n deadline --for=jsonpath={.status.currentHealthy}=1 --timeout=60s");
    let (claim, node) = stage.settled().pop().expect("there is a node");
    let history = api.record(&[CLAIMS, NODES, "/api/v1/namespaces/deadline/pods"]);

    api.delete(&format!("{CLAIMS}/{}", name(&claim)));
    eventually("the NodeClaim is gone", LIMIT, || {
        api.get(&format!("{CLAIMS}/{}", name(&claim))).is_none().then_some(())
    });
    stage.all_run("deadline", 3);
    let deadline = Excuse::Warning("TerminationGracePeriodExpiring", "All pods will be deleted by ");
    stage.ends_well_but(joiner, &[DRAINED, deadline]);
    went_in_order(&history, &claim, &node, &pods);

    let of_claim = history.of("NodeClaim", &name(&claim));
    let last = &of_claim.last().expect("it was deleted").object;
    let deadline = time(last, "/metadata/annotations/karpenter.sh~1nodeclaim-termination-timestamp");
    let asked = time(last, "/metadata/deletionTimestamp");
    assert_eq!(deadline.duration_since(asked).as_secs(), 20, "{last}");
    let end = |app: &str| {
        let pod = pods.iter().find(|pod| text(pod, "/metadata/labels/app") == app).expect("there is one");
        let is_leaving = |change: &Change| !text(&change.object, "/metadata/deletionTimestamp").is_empty();
        let asked = history.of("Pod", &name(pod)).into_iter().find(is_leaving).expect("it was deleted").object;
        let grace = asked["metadata"]["deletionGracePeriodSeconds"].as_i64().expect("it was deleted with some grace");
        // When its grace period would have ended, counted from the deadline, and how long that was.
        (time(&asked, "/metadata/deletionTimestamp").duration_since(deadline).as_secs(), grace)
    };
    let (guarded, grace) = end("guarded");
    assert!(
        (-2..=2).contains(&guarded) && (8..=10).contains(&grace),
        "early enough to end by the deadline: {guarded} {grace}"
    );
    let (kept, _) = end("kept");
    assert!((-2..=4).contains(&kept), "the budget counts until the deadline: {kept}");
    assert!(end("web").0 < -10, "who may be evicted is not kept waiting");
}

fn time(object: &Value, pointer: &str) -> jiff::Timestamp {
    text(object, pointer).parse().unwrap_or_else(|error| fail(&format!("{pointer}: {error}: {object}")))
}
