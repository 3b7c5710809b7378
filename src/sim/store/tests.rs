//! The API server's rules, one by one.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep};

use super::NewPod;
use crate::api::classes::kwok::{KwokNodeClass, KwokNodeClassBody, KwokNodeClassSpec};
use crate::cluster::{ClaimPatch, ClaimStatusPatch, Cluster, DryRun, Error, NodePatch};
use crate::core::facts::{Count, Fact, Kind, NodeClass, OwnerClaim, PodBudget, Selector, samples};
use crate::core::ids::{ClaimName, NodeName, NodeUid, ObjectKey, PodUid, ProviderId};
use crate::sim::admission::{Gate, Verdict};
use crate::sim::cluster::SimCluster;
use crate::sim::props;

fn name() -> ClaimName {
    ClaimName::from("one")
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_created_once_per_name() {
    let cluster = props::cluster(1);
    let first = cluster.create_claim(&props::draft("one")).await.unwrap();
    assert!(matches!(cluster.create_claim(&props::draft("one")).await, Err(Error::Exists(_))));
    assert_eq!(cluster.list_claims().await.unwrap(), [first]);
    assert_eq!(cluster.requests()[&("create", "nodeclaims")], 2);
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_is_a_conflict_and_changes_nothing() {
    let cluster = props::cluster(1);
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    let patch = ClaimStatusPatch { provider_id: Some(ProviderId::from("sim://a/1")), ..Default::default() };
    let after = cluster.patch_claim_status(&name(), &patch).await.unwrap();
    assert_ne!(after.version, claim.version);
    assert_eq!(after.generation, claim.generation, "a status is no change of what is wanted");
    let stale = ClaimPatch {
        version: Some(claim.version.clone()),
        finalizers: Some(vec!["karpenter.sh/termination".into()]),
        ..Default::default()
    };
    assert!(matches!(cluster.patch_claim(&name(), &stale).await, Err(Error::Conflict(_))));
    assert!(cluster.store().claims[&name()].finalizers.is_empty());
    let unguarded = ClaimPatch { version: None, ..stale };
    assert!(matches!(cluster.patch_claim(&name(), &unguarded).await, Err(Error::Invalid { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_changes_nothing_makes_no_version() {
    let cluster = props::cluster(1);
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    let same = ClaimPatch { labels: claim.labels.clone(), ..Default::default() };
    assert_eq!(cluster.patch_claim(&name(), &same).await.unwrap().version, claim.version);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deleted_claim_until_the_last_is_off() {
    let cluster = props::cluster(1);
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    let hold = ClaimPatch {
        version: Some(claim.version.clone()),
        finalizers: Some(vec!["karpenter.sh/termination".into()]),
        ..Default::default()
    };
    cluster.patch_claim(&name(), &hold).await.unwrap();
    cluster.delete_claim(&name(), &claim.uid).await.unwrap();
    let held = Arc::clone(&cluster.store().claims[&name()]);
    assert!(held.deleting.is_some());
    assert_eq!(held.generation, 2);
    cluster.delete_claim(&name(), &claim.uid).await.unwrap();
    assert_eq!(cluster.store().claims[&name()], held, "a second deletion changes nothing");
    let add = ClaimPatch {
        version: Some(held.version.clone()),
        finalizers: Some(vec!["karpenter.sh/termination".into(), "other".into()]),
        ..Default::default()
    };
    assert!(matches!(cluster.patch_claim(&name(), &add).await, Err(Error::Invalid { .. })));
    let free = ClaimPatch { version: Some(held.version.clone()), finalizers: Some(Vec::new()), ..Default::default() };
    cluster.patch_claim(&name(), &free).await.unwrap();
    assert!(cluster.store().claims.is_empty());
    assert!(matches!(cluster.delete_claim(&name(), &claim.uid).await, Err(Error::NotFound(_))));
    let namesake = cluster.create_claim(&props::draft("one")).await.unwrap();
    assert!(matches!(cluster.delete_claim(&name(), &claim.uid).await, Err(Error::NotFound(_))));
    cluster.delete_claim(&name(), &namesake.uid).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_is_deleted_by_uid_and_owned_once() {
    let cluster = props::cluster(1);
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    let node = cluster.store().create_node(props::node("n", "a", 1_000, 1_024)).unwrap();
    let own =
        NodePatch { version: Some(node.version.clone()), owner: Some(OwnerClaim::of(&claim)), ..Default::default() };
    cluster.patch_node(&node.name, &own).await.unwrap();
    assert!(matches!(cluster.patch_node(&node.name, &own).await, Err(Error::Conflict(_))));
    let other = NodeUid::from("another");
    assert!(matches!(cluster.delete_node(&node.name, &other).await, Err(Error::NotFound(_))));
    assert_eq!(cluster.store().nodes[&node.name].owner_claims, [OwnerClaim::of(&claim)]);
    cluster.delete_node(&node.name, &node.uid).await.unwrap();
    assert!(cluster.store().nodes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pool_takes_its_claims_along() {
    let cluster = props::cluster(1);
    let pool = cluster.store().apply_pool(props::pool("pool"));
    let mut draft = props::draft("one");
    draft.pool_uid = pool.uid.clone();
    cluster.create_claim(&draft).await.unwrap();
    cluster.create_claim(&props::draft("stranger")).await.unwrap();
    cluster.store().delete_pool(&pool.name).unwrap();
    let left: Vec<_> = cluster.store().claims.keys().cloned().collect();
    assert_eq!(left, [ClaimName::from("stranger")]);
    // Whoever made one for it before it heard.
    let made = cluster.create_claim(&draft).await.unwrap();
    assert_eq!(cluster.store().claims.len(), 1);
    // Or whoever applies one again.
    cluster.store().apply_claim((*made).clone());
    assert_eq!(cluster.store().claims.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_counts_generations_by_what_it_wants() {
    let cluster = props::cluster(1);
    let mut store = cluster.store();
    assert_eq!(store.apply_pool(props::pool("pool")).generation, 1);
    let mut other = props::pool("pool");
    other.annotations.insert("a".into(), "b".into());
    assert_eq!(store.apply_pool(other).generation, 1);
    let mut other = props::pool("pool");
    other.weight = 7;
    assert_eq!(store.apply_pool(other).generation, 2);
}

fn run_pods(cluster: &SimCluster, count: usize) -> Vec<(ObjectKey, PodUid)> {
    let shape = Arc::new(props::shape("web", 100, 64));
    cluster.store().create_node(props::node("n", "a", 8_000, 8_192)).ok();
    let names = (0..count).map(|i| format!("web-{i}"));
    let pods: Vec<_> =
        names.map(|name| (ObjectKey::new("default", name.as_str()), props::add_pod(cluster, &name, &shape))).collect();
    let mut store = cluster.store();
    for (_, uid) in &pods {
        assert!(store.bind(uid, &NodeName::from("n")));
        store.start_pod(uid);
    }
    pods
}

fn budget(min_available: Option<Count>, max_unavailable: Option<Count>) -> PodBudget {
    let labels = [("app".into(), "web".into())].into();
    let selector = Some(Selector { labels, expressions: Vec::new() });
    let key = ObjectKey::new("default", "pdb");
    PodBudget { key, selector, min_available, max_unavailable, spares_unready: false }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_the_budget() {
    let cluster = props::cluster(1);
    let pods = run_pods(&cluster, 4);
    cluster.store().apply_budget(budget(Some(Count::Percent(50)), None));
    for (key, uid) in &pods[..2] {
        cluster.evict(key, uid).await.unwrap();
    }
    let (key, uid) = &pods[2];
    let refused = cluster.evict(key, uid).await;
    let Err(Error::Budget { budget, message, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(budget.as_deref(), Some("pdb"));
    assert_eq!(
        message,
        "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget pdb needs 2 healthy pods and has 2 currently"
    );
    let (key, uid) = &pods[0];
    cluster.evict(key, uid).await.unwrap();
    cluster.store().remove_pod(uid);
    assert!(matches!(cluster.evict(key, uid).await, Err(Error::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_budget_by_unavailability_counts_the_one_that_is_going() {
    let cluster = props::cluster(1);
    let pods = run_pods(&cluster, 3);
    cluster.store().apply_budget(budget(None, Some(Count::Pods(1))));
    cluster.evict(&pods[0].0, &pods[0].1).await.unwrap();
    assert!(cluster.evict(&pods[1].0, &pods[1].1).await.is_err());
    cluster.store().apply_budget(PodBudget { key: ObjectKey::new("default", "second"), ..budget(None, None) });
    let refused = cluster.evict(&pods[1].0, &pods[1].1).await;
    assert!(matches!(&refused, Err(Error::Budget { budget: None, .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namesake_with_another_uid_is_left_alone() {
    let cluster = props::cluster(1);
    let pods = run_pods(&cluster, 1);
    let other = PodUid::from("another");
    assert!(matches!(cluster.evict(&pods[0].0, &other).await, Err(Error::NotFound(_))));
    assert!(matches!(cluster.delete_pod(&pods[0].0, &other, 30).await, Err(Error::NotFound(_))));
    assert!(matches!(cluster.nominate(&pods[0].0, &other, None).await, Err(Error::NotFound(_))));
    assert!(cluster.store().pods[&pods[0].1].pod.deleting.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_only_shortens_the_grace() {
    let cluster = props::cluster(1);
    let pods = run_pods(&cluster, 1);
    let (key, uid) = &pods[0];
    let end = || cluster.store().pods[uid].pod.deleting.unwrap();
    cluster.delete_pod(key, uid, 30).await.unwrap();
    let first = end();
    cluster.delete_pod(key, uid, 300).await.unwrap();
    assert_eq!(end(), first);
    cluster.delete_pod(key, uid, 1).await.unwrap();
    assert!(end() < first);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_one_holder_s_for_fifteen_seconds() {
    let cluster = props::cluster(1);
    assert_eq!(cluster.renew_lease("a", &|| None).await.unwrap().holder, "a");
    sleep(Duration::from_secs(10)).await;
    let seen = cluster.renew_lease("b", &|| None).await.unwrap();
    assert_eq!(seen.holder, "a");
    assert!(seen.remaining <= Duration::from_secs(5));
    sleep(Duration::from_secs(6)).await;
    assert_eq!(cluster.renew_lease("b", &|| None).await.unwrap().holder, "b");
    cluster.release_lease("a").await.unwrap();
    assert_eq!(cluster.renew_lease("c", &|| None).await.unwrap().holder, "b");
    cluster.release_lease("b").await.unwrap();
    assert_eq!(cluster.renew_lease("c", &|| None).await.unwrap().holder, "c");
}

#[tokio::test(start_paused = true)]
async fn every_subscriber_gets_the_list_and_then_changes_in_order() {
    let cluster = props::cluster(1);
    let shape = Arc::new(props::shape("web", 100, 64));
    let before = props::add_pod(&cluster, "before", &shape);
    let (mut one, mut other) = (cluster.facts(), cluster.facts());
    let started = Instant::now();
    for facts in [&mut one, &mut other] {
        let mut listed = Vec::new();
        while listed.len() < Kind::ALL.len() {
            match facts.next().await.unwrap() {
                Fact::Relisted(kind) => listed.push(kind),
                Fact::PodSeen(pod) => assert_eq!(pod.uid, before),
                _ => {}
            }
        }
        assert_eq!(listed, Kind::ALL);
        assert!(facts.next().now_or_never().is_none());
    }
    assert!(started.elapsed() >= Duration::from_millis(8), "the watch takes its time");
    let uid = props::add_pod(&cluster, "after", &shape);
    cluster.store().mark_unschedulable(&uid);
    cluster.store().remove_pod(&uid);
    for facts in [&mut one, &mut other] {
        assert!(matches!(facts.next().await, Some(Fact::PodSeen(pod)) if !pod.unschedulable));
        assert!(matches!(facts.next().await, Some(Fact::PodSeen(pod)) if pod.unschedulable));
        assert!(matches!(facts.next().await, Some(Fact::PodGone(gone)) if gone == uid));
    }
}

struct Lose;

impl Gate for Lose {
    fn judge(&mut self, verb: &'static str, _resource: &'static str) -> Verdict {
        match verb {
            "create" => Verdict::LoseAnswer,
            _ => Verdict::Refuse(Error::Temporary("etcd is busy".to_owned())),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_but_took_effect_and_a_refusal_did_not() {
    let cluster = props::cluster(1);
    cluster.set_gate(Box::new(Lose));
    assert!(matches!(cluster.create_claim(&props::draft("one")).await, Err(Error::Unknown(_))));
    assert!(matches!(cluster.delete_claim(&name(), &"uid".into()).await, Err(Error::Temporary(_))));
    assert!(cluster.store().claims[&name()].deleting.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_name_is_taken_until_the_pod_is_gone() {
    let cluster = props::cluster(1);
    let pods = run_pods(&cluster, 1);
    let record = cluster.store().pods[&pods[0].1].clone();
    let again = NewPod {
        key: pods[0].0.clone(),
        shape: Arc::clone(&record.pod.shape),
        runs_for: None,
        workload: None,
        node: None,
        volumes: Vec::new(),
    };
    assert!(matches!(cluster.store().create_pod(again.clone()), Err(Error::Exists(_))));
    cluster.store().remove_pod(&pods[0].1);
    assert_ne!(cluster.store().create_pod(again).unwrap(), pods[0].1);
}

#[tokio::test(start_paused = true)]
async fn a_class_counts_generations_by_its_spec() {
    let cluster = props::cluster(1);
    let class = |delay: Option<&str>| NodeClass {
        reference: props::class_ref(),
        generation: 0,
        body: Arc::new(KwokNodeClass::new(
            "default",
            KwokNodeClassBody { spec: KwokNodeClassSpec { node_registration_delay: delay.map(str::to_owned) } },
        )),
        ..samples::class()
    };
    let generation = |delay| {
        let mut store = cluster.store();
        store.apply_class(class(delay));
        store.classes[&props::class_ref()].generation
    };
    assert_eq!([None, None, Some("5s"), Some("5s")].map(generation), [1, 1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_deletes_a_nodeclaim_by_its_uid_too() {
    let cluster = DryRun::new(Arc::new(props::cluster(1)), props::clock());
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    assert!(matches!(cluster.delete_claim(&name(), &"of another".into()).await, Err(Error::NotFound(_))));
    assert_eq!(cluster.list_claims().await.unwrap(), [Arc::clone(&claim)]);
    cluster.delete_claim(&name(), &claim.uid).await.unwrap();
    assert!(cluster.list_claims().await.unwrap().is_empty());
}
