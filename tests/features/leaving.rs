//! Pods of nodes that go: the nodes that they will need are bought before they have left, once, and only for those that can leave.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use joiner::actors::Joiner;
use joiner::actors::runtime::Kind;
use joiner::command::{Rehearsal, scenario_of};
use joiner::core::facts::{Pod, Snapshot};
use joiner::core::ids::NodeName;
use joiner::plan;
use joiner::sim::Scenario;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rehearsals::{assert_intact, delete, settings, settled, truth};
use super::{apply, tell};

/// Four pods of 3 cores.
const PODS: usize = 4;

fn template() -> Value {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": "3" } } });
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } })
}

fn workload(kind: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" },
        "spec": { "replicas": PODS, "template": template() },
    })
}

fn budget(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name }, "spec": spec })
}

fn scenario(manifests: &[Value]) -> Scenario {
    scenario_of("leaving", manifests).expect("the manifests are well-formed")
}

/// The workload runs, and then all its nodes are deleted. What follows is told which nodes those were.
fn told(manifests: &[Value], story: impl AsyncFnOnce(&Rehearsal, &Joiner, &BTreeSet<NodeName>)) {
    tell(&scenario(manifests), settings(), async |rehearsal, joiner| {
        settled(rehearsal).await;
        assert_intact(rehearsal, PODS, "before");
        let now = truth(rehearsal);
        for claim in now.claims.keys() {
            delete(rehearsal, "NodeClaim", claim.as_str());
        }
        story(rehearsal, joiner, &now.nodes.keys().cloned().collect()).await;
    });
}

/// How many pods run on these nodes.
fn on(now: &Snapshot, nodes: &BTreeSet<NodeName>) -> usize {
    now.pods.values().filter(|pod| pod.node.as_ref().is_some_and(|node| nodes.contains(node))).count()
}

/// NodeClaims that nobody has deleted.
fn bought(now: &Snapshot) -> usize {
    now.claims.values().filter(|claim| claim.deleting.is_none()).count()
}

#[test]
fn their_nodes_are_bought_while_they_still_run_and_once() {
    told(
        &[workload("Deployment"), budget("one-by-one", &json!({ "maxUnavailable": 1 }))],
        async |rehearsal, _, old| {
            sleep(Duration::from_secs(5)).await;
            let now = truth(rehearsal);
            assert_eq!(on(&now, old), PODS - 1, "the budget has let one go");
            assert_eq!(bought(&now), old.len(), "there is room on its way for all of them");
            let misled = |pod: &&std::sync::Arc<Pod>| pod.node.is_some() && pod.nominated.is_some();
            assert_eq!(now.pods.values().filter(misled).count(), 0, "who runs is nominated nowhere");
            settled(rehearsal).await;
            assert_intact(rehearsal, PODS, "after");
            assert_eq!(truth(rehearsal).claims.len(), old.len(), "nothing was bought twice");
        },
    );
}

#[test]
fn pods_of_a_stateful_set_come_to_the_nodes_that_were_bought_for_them() {
    let manifests = [workload("StatefulSet"), budget("one-by-one", &json!({ "maxUnavailable": 1 }))];
    told(&manifests, async |rehearsal, _, old| {
        sleep(Duration::from_secs(5)).await;
        let now = truth(rehearsal);
        assert_eq!(on(&now, old), PODS - 1, "the budget has let one go");
        let first = bought(&now);
        assert!((1..=old.len()).contains(&first), "they came one by one, and go together");
        settled(rehearsal).await;
        assert_intact(rehearsal, PODS, "after");
        assert_eq!(truth(rehearsal).claims.len(), first, "nothing was bought twice");
    });
}

/// Half an hour in which nobody may leave.
async fn nothing_is_bought(rehearsal: &Rehearsal, old: &BTreeSet<NodeName>) {
    sleep(Duration::from_mins(30)).await;
    let now = truth(rehearsal);
    assert_eq!((bought(&now), on(&now, old)), (0, PODS));
}

#[test]
fn nothing_is_bought_for_pods_that_a_budget_holds_until_it_no_longer_does() {
    let manifests = [workload("Deployment"), budget("closed", &json!({ "maxUnavailable": "0%" }))];
    told(&manifests, async |rehearsal, _, old| {
        nothing_is_bought(rehearsal, old).await;
        // It opens as far as joiner can see; that it is too narrow for anybody to go is seen by who counts.
        apply(rehearsal, &budget("closed", &json!({ "minAvailable": PODS })));
        sleep(Duration::from_secs(15)).await;
        let now = truth(rehearsal);
        assert_eq!((bought(&now), on(&now, old)), (old.len(), PODS));
    });
}

#[test]
fn nothing_is_bought_for_pods_that_two_budgets_hold() {
    let open = json!({ "maxUnavailable": 1 });
    told(&[workload("Deployment"), budget("one", &open), budget("two", &open)], async |rehearsal, _, old| {
        nothing_is_bought(rehearsal, old).await;
    });
}

#[test]
fn nothing_is_bought_for_pods_that_must_not_be_disrupted() {
    let mut workload = workload("Deployment");
    workload["spec"]["template"]["metadata"]["annotations"] = json!({ "karpenter.sh/do-not-disrupt": "true" });
    told(&[workload], async |rehearsal, _, old| nothing_is_bought(rehearsal, old).await);
}

#[test]
fn while_a_drain_hangs_nothing_is_planned_again_and_nothing_more_is_bought() {
    let manifests = [workload("Deployment"), budget("narrow", &json!({ "minAvailable": PODS }))];
    told(&manifests, async |rehearsal, joiner, old| {
        sleep(Duration::from_secs(5)).await;
        let now = truth(rehearsal);
        let pod = now.pods.keys().next().expect("there are pods").clone();
        let planned_at = || joiner.boards().decisions().about_pod(&pod).expect("it was planned").question.at;
        let first = planned_at();
        assert_eq!((bought(&now), on(&now, old)), (old.len(), PODS));
        let asked = plan::from_snapshot(now, vec![], plan::Features::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(asked.pods.len(), PODS, "`joiner plan` plans for them too");
        sleep(Duration::from_hours(1)).await;
        assert_eq!(planned_at(), first, "one plan was enough");
        // A provisioner that knows of no plan finds room for everybody on what was bought.
        joiner.house().saboteur.strike(Kind::Provisioner, 0, 1);
        rehearsal.world.cluster.store().delete_budget(&joiner::core::ids::ObjectKey::new("default", "narrow"));
        apply(rehearsal, &budget("narrow", &json!({ "minAvailable": PODS })));
        apply(
            rehearsal,
            &json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "small" },
                "spec": { "replicas": 1, "template": { "spec": { "containers": [
                    { "name": "c", "resources": { "requests": { "cpu": "1m" } } } ] } } },
            }),
        );
        sleep(Duration::from_mins(5)).await;
        assert_eq!(bought(&truth(rehearsal)), old.len(), "nothing was bought twice");
    });
}
