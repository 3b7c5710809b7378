//! Static NodePools.

use std::collections::BTreeSet;
use std::time::Duration;

use joiner::actors::runtime::Kind;
use joiner::actors::{Features, Settings};
use joiner::command::scenario_of;
use joiner::core::facts::{Snapshot, Status, find_condition};
use joiner::core::labels;
use joiner::sim::Scenario;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rehearsals::{
    assert_intact, assert_whole, delete, in_virtual_time, machines, play, rehearsal, settings, settled, truth,
};
use super::{apply, tell};

fn on() -> Settings {
    Settings { features: Features { static_capacity: true, ..Features::default() }, ..settings() }
}

fn class() -> Value {
    json!({ "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "default" } })
}

fn pool(replicas: u64, limit: Option<u64>) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "fleet" },
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": { "labels": { "team": "shop" } },
                "spec": {
                    "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                    "requirements": [
                        { "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"] },
                        { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
                    ],
                    "expireAfter": "Never",
                },
            },
        },
    });
    if let Some(limit) = limit {
        pool["spec"]["limits"] = json!({ "nodes": limit });
    }
    pool
}

fn fleet(replicas: u64, limit: Option<u64>) -> Scenario {
    scenario_of("fleet", &[class(), pool(replicas, limit)]).expect("the manifests are well-formed")
}

fn names(now: &Snapshot) -> BTreeSet<String> {
    now.claims.keys().map(ToString::to_string).collect()
}

/// `status.nodes` of the NodePool.
fn counted(now: &Snapshot) -> Option<i64> {
    now.pools.values().next().and_then(|pool| pool.status_nodes)
}

#[test]
fn a_static_pool_gets_its_nodes_without_a_pod() {
    tell(&fleet(3, None), on(), async |rehearsal, joiner| {
        settled(rehearsal).await;
        assert_intact(rehearsal, 0, "three nodes");
        assert_whole(joiner, rehearsal, "three nodes");
        let now = truth(rehearsal);
        assert_eq!((now.claims.len(), now.nodes.len(), counted(&now)), (3, 3, Some(3)));
        for node in now.nodes.values() {
            let label = |key: &str| node.labels.get(key).map(ToString::to_string);
            assert_eq!(label("team").as_deref(), Some("shop"));
            assert_eq!(label(labels::NODEPOOL).as_deref(), Some("fleet"));
            assert_eq!(label(labels::INSTANCE_TYPE).as_deref(), Some("c-4x-amd64-linux"));
            assert_eq!(label(labels::CAPACITY_TYPE).as_deref(), Some("on-demand"));
        }
    });
}

#[test]
fn without_the_gate_nothing_happens() {
    tell(&fleet(3, None), settings(), async |rehearsal, _| {
        sleep(Duration::from_mins(10)).await;
        assert!(truth(rehearsal).claims.is_empty());
    });
}

#[test]
fn a_static_pool_grows_and_shrinks_with_its_replicas() {
    tell(&fleet(2, None), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        let before = names(&truth(rehearsal));
        for (replicas, story) in [(5, "grown"), (1, "shrunk"), (0, "empty"), (2, "grown from nothing")] {
            apply(rehearsal, &pool(replicas, None));
            settled(rehearsal).await;
            assert_intact(rehearsal, 0, story);
            let now = truth(rehearsal);
            assert_eq!((now.claims.len() as u64, counted(&now)), (replicas, i64::try_from(replicas).ok()), "{story}");
            if story == "grown" {
                assert!(names(&now).is_superset(&before), "nodes that were there stay");
            }
        }
    });
}

#[test]
fn the_node_limit_is_kept_and_more_come_when_it_is_raised() {
    tell(&fleet(5, Some(2)), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        sleep(Duration::from_mins(5)).await;
        assert_eq!(truth(rehearsal).claims.len(), 2);
        apply(rehearsal, &pool(5, Some(4)));
        settled(rehearsal).await;
        assert_eq!(truth(rehearsal).claims.len(), 4);
    });
}

#[test]
fn a_deleted_node_claim_is_made_up_for() {
    tell(&fleet(3, None), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        let victim = names(&truth(rehearsal)).pop_first().expect("there are three");
        delete(rehearsal, "NodeClaim", &victim);
        settled(rehearsal).await;
        let now = truth(rehearsal);
        assert!(!names(&now).contains(&victim));
        assert_intact(rehearsal, 0, "made up for");
        assert_eq!((now.claims.len(), machines(rehearsal).len()), (3, 3));
    });
}

#[test]
fn a_node_claim_that_is_deleted_before_it_has_a_machine_is_made_up_for_at_once() {
    tell(&fleet(3, None), on(), async |rehearsal, _| {
        let young = async || loop {
            if let Some(victim) = names(&truth(rehearsal)).pop_first() {
                return victim;
            }
            sleep(Duration::from_millis(10)).await;
        };
        let victim = young().await;
        assert!(truth(rehearsal).claims.values().all(|claim| claim.provider_id.is_none()), "it has just been created");
        delete(rehearsal, "NodeClaim", &victim);
        // What joiner gives up itself is made up for after half a minute.
        sleep(Duration::from_secs(10)).await;
        let now = truth(rehearsal);
        assert!(!names(&now).contains(&victim));
        assert_eq!(now.claims.len(), 3);
        settled(rehearsal).await;
        assert_intact(rehearsal, 0, "made up for");
    });
}

#[test]
fn a_static_pool_that_is_deleted_leaves_nothing() {
    tell(&fleet(3, None), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        delete(rehearsal, "NodePool", "fleet");
        settled(rehearsal).await;
        sleep(Duration::from_mins(5)).await;
        let now = truth(rehearsal);
        assert!(now.claims.is_empty() && now.nodes.is_empty() && machines(rehearsal).is_empty());
    });
}

#[test]
fn pods_do_not_make_a_static_pool_grow_and_use_its_nodes() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 4, "template": { "spec": { "containers": [
            { "name": "c", "resources": { "requests": { "cpu": "1500m" } } },
        ] } } },
    });
    let scenario = scenario_of("fleet", &[class(), pool(1, None), deployment]).expect("well-formed");
    tell(&scenario, on(), async |rehearsal, _| {
        sleep(Duration::from_mins(10)).await;
        let now = truth(rehearsal);
        assert_eq!(now.claims.len(), 1);
        assert_eq!(now.pods.values().filter(|pod| pod.node.is_some()).count(), 2, "as many as fit on four cores");
        apply(rehearsal, &pool(3, None));
        settled(rehearsal).await;
        assert_eq!(truth(rehearsal).pods.values().filter(|pod| pod.node.is_some()).count(), 4);
    });
}

#[test]
fn shrinking_takes_the_nodes_that_nothing_runs_on() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 1, "template": { "spec": { "containers": [
            { "name": "c", "resources": { "requests": { "cpu": "1500m" } } },
        ] } } },
    });
    let scenario = scenario_of("fleet", &[class(), pool(4, None), deployment]).expect("well-formed");
    tell(&scenario, on(), async |rehearsal, _| {
        settled(rehearsal).await;
        let home = truth(rehearsal).pods.values().next().and_then(|pod| pod.node.clone());
        apply(rehearsal, &pool(1, None));
        settled(rehearsal).await;
        let now = truth(rehearsal);
        assert_eq!(now.claims.len(), 1);
        assert_eq!(now.pods.values().next().and_then(|pod| pod.node.clone()), home, "the pod stayed where it was");
    });
}

#[test]
fn a_pool_whose_class_is_missing_waits_for_it() {
    let scenario = scenario_of("fleet", &[pool(2, None)]).expect("well-formed");
    tell(&scenario, on(), async |rehearsal, _| {
        sleep(Duration::from_mins(2)).await;
        let now = truth(rehearsal);
        let ready = now.pools.values().next().and_then(|pool| find_condition(&pool.conditions, "Ready").cloned());
        assert_eq!((now.claims.len(), ready.map(|ready| ready.status)), (0, Some(Status::False)));
        apply(rehearsal, &class());
        settled(rehearsal).await;
        assert_eq!(truth(rehearsal).claims.len(), 2);
    });
}

#[test]
fn where_nothing_can_be_bought_node_claims_do_not_come_and_go_without_a_pause() {
    let mut scenario = fleet(2, None);
    let sold_out = json!({ "soldOut": [{ "instanceType": "c-4x-amd64-linux" }] });
    scenario.cloud = serde_json::from_value(sold_out).expect("the behaviour is well-formed");
    tell(&scenario, on(), async |rehearsal, _| {
        sleep(Duration::from_mins(10)).await;
        let created = rehearsal.world.cluster.requests()[&("create", "nodeclaims")];
        assert!((2..=50).contains(&created), "{created} NodeClaims in ten minutes");
    });
}

#[test]
fn statics_may_die_at_any_message() {
    for (after, times) in [(0, 1), (1, 1), (3, 1), (5, 1), (10, 1), (3, 5)] {
        tell(&fleet(6, Some(7)), on(), async |rehearsal, joiner| {
            joiner.house().saboteur.strike(Kind::Statics, after, times);
            settled(rehearsal).await;
            sleep(Duration::from_mins(1)).await;
            settled(rehearsal).await;
            let story = format!("struck {times} times after {after} messages");
            assert!(joiner.house().saboteur.is_done(), "{story}");
            assert_intact(rehearsal, 0, &story);
            assert_eq!(truth(rehearsal).claims.len(), 6, "{story}");
        });
    }
}

#[test]
fn a_joiner_that_is_killed_while_it_creates_makes_none_too_many() {
    for millis in [1_005, 1_010, 1_050, 1_500, 5_000] {
        let scenario = fleet(6, None);
        in_virtual_time(async {
            let rehearsal = rehearsal(&scenario, 7, on());
            let first = rehearsal.joiner();
            play(&rehearsal, &scenario, async {
                sleep(Duration::from_millis(millis)).await;
                first.kill();
                let second = rehearsal.joiner();
                settled(&rehearsal).await;
                assert_intact(&rehearsal, 0, "after a restart");
                assert_eq!(truth(&rehearsal).claims.len(), 6);
                second.kill();
            })
            .await;
        });
    }
}
