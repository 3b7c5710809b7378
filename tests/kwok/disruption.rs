//! Nodes that go: a NodeClaim or a Node is deleted, and joiner sees to it that nobody is harmed and nothing is left.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::controlplane::eventually;
use crate::common::kube_api::{CLAIMS, NODES, POOLS, condition, name, text};
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

    // Two at a time: they move to a new node, and the old one goes with all that belongs to it.
    stage.plane().apply(&budget("drain", "web", 2));
    eventually("NodeClaim and Node are gone", LIMIT, || {
        (api.get(&claim).is_none() && api.get(&node).is_none()).then_some(())
    });
    let moved = stage.all_run("drain", 6);
    assert!(nodes_of(&moved).is_disjoint(&nodes_of(&pods)));
    assert!(uids(&moved).is_disjoint(&uids(&pods)));
    // Evicted two by two, they are planned two by two.
    let new = stage.settled().len();
    assert!((1..=3).contains(&new), "{new} nodes for six small pods");

    // A NodePool takes its NodeClaims with it.
    api.delete("/apis/apps/v1/namespaces/drain/deployments");
    api.delete(&format!("{POOLS}/drain"));
    eventually("nothing is left", LIMIT, || (api.list(CLAIMS).is_empty() && api.list(NODES).is_empty()).then_some(()));
    assert!(joiner.stop().success());
}

#[test]
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
    assert!(joiner.stop().success());
}
