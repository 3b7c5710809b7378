//! What NodePools are told about themselves.

use super::*;
use crate::core::facts::samples::{class, condition, pool, serving, serving_node, start};
use crate::core::facts::{Fact, Fold, Node};
use crate::core::health::Failure;

fn snapshot(claims: Vec<Claim>, node: Option<Node>) -> Snapshot {
    let mut fold = Fold::default();
    for claim in claims {
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    }
    if let Some(node) = node {
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    fold.snapshot().clone()
}

fn cpu(snapshot: &Snapshot) -> i64 {
    usage(snapshot).get(&"web".into()).map_or(0, |used| used.get(&"cpu".into()))
}

#[test]
fn usage_is_what_the_nodes_report_and_before_that_what_the_cloud_said() {
    assert_eq!(cpu(&snapshot(vec![serving()], None)), 1000);
    let mut node = serving_node();
    node.capacity = Resources::new().with("cpu", 800);
    assert_eq!(cpu(&snapshot(vec![serving()], Some(node.clone()))), 800);
    node.capacity = Resources::new();
    assert_eq!(cpu(&snapshot(vec![serving()], Some(node.clone()))), 0, "an initialized node is believed");
    node.labels.remove(labels::INITIALIZED);
    assert_eq!(cpu(&snapshot(vec![serving()], Some(node))), 1000, "it has not reported yet");
    let leaving = Claim { deleting: Some(start()), ..serving() };
    assert!(usage(&snapshot(vec![leaving], None)).is_empty());
}

#[test]
fn what_no_node_has_any_more_leaves_the_status() {
    let used = Resources::new().with("cpu", 4000).with("nodes", 1000);
    let mut known = Pool { status_resources: used.clone().with("nvidia.com/gpu", 1000), ..pool() };
    known.annotations.insert(labels::NODEPOOL_HASH.into(), Arc::clone(&known.hash));
    known.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), labels::HASH_VERSION.into());
    let Some(Wanted::Status(patch)) = wanted_with(&known, &used) else { panic!("no status") };
    assert_eq!(patch.without_resources, [ResourceName::from("nvidia.com/gpu")]);
    let after = patch.resources_after(&known.status_resources);
    assert_eq!(after, with_zeros(&used));
    known.status_resources = after;
    if let Some(Wanted::Status(patch)) = wanted_with(&known, &used) {
        assert_eq!((patch.resources, patch.without_resources), (None, Vec::new()), "said once");
    }
}

fn wanted_with(pool: &Pool, used: &Resources) -> Option<Wanted> {
    wanted(pool, used, None, &Health::default(), &Alarm::Closed, || true, start())
}

fn next(pool: &Pool, class: Option<&NodeClass>, health: &Health, rehashed: bool) -> Option<Wanted> {
    let backing = class.map(|class| Backing { class, misfit: None });
    wanted(pool, &Resources::new(), backing, health, &Alarm::Closed, || rehashed, start())
}

#[test]
fn a_new_recipe_waits_for_the_nodeclaims_and_a_new_hash_does_not() {
    let mut edited = pool();
    edited.hash = "2".into();
    let is_hash = |wanted| matches!(wanted, Some(Wanted::Annotations(_)));
    assert!(is_hash(next(&edited, None, &Health::default(), false)));
    edited.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), "v2".into());
    assert!(!is_hash(next(&edited, None, &Health::default(), false)));
    assert!(is_hash(next(&edited, None, &Health::default(), true)));
    edited.hash = "".into();
    assert!(!is_hash(next(&edited, None, &Health::default(), true)), "a spec that cannot be read has none");

    let with = |version: &str| {
        let mut claim = serving();
        claim.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), version.into());
        claim
    };
    assert!(is_rehashed(&pool(), &snapshot(vec![with("v3")], None)));
    assert!(!is_rehashed(&pool(), &snapshot(vec![with("v2")], None)));
    assert!(!is_rehashed(&pool(), &snapshot(vec![serving()], None)));
    assert!(is_rehashed(&pool(), &snapshot(vec![Claim { deleting: Some(start()), ..with("v2") }], None)));
}

#[test]
fn registration_health_begins_unknown_and_follows_the_launches() {
    let health = |wanted: Option<Wanted>| match wanted {
        Some(Wanted::Status(patch)) => patch.conditions.map(|all| find_condition(&all, HEALTHY).cloned()),
        _ => None,
    };
    let unknown = health(next(&pool(), Some(&class()), &Health::default(), true)).unwrap().unwrap();
    assert_eq!((unknown.status, &*unknown.reason), (Status::Unknown, "AwaitingReconciliation"));
    assert_eq!(health(next(&pool(), None, &Health::default(), true)), Some(None), "not without its NodeClass");

    let mut judged = Pool { class_generation: Some(1), ..pool() };
    judged.conditions.push(condition(HEALTHY, Status::True));
    let mut bad = Health::default();
    for _ in 0..2 {
        bad.heard(Err(Failure { reason: "LaunchFailed".into(), message: "quota".into() }));
    }
    let found = health(next(&judged, Some(&class()), &bad, true)).unwrap().unwrap();
    assert_eq!((found.status, &*found.reason, &*found.message), (Status::False, "LaunchFailed", "quota"));
    judged.generation = 2;
    let found = health(next(&judged, Some(&class()), &bad, true)).unwrap().unwrap();
    assert_eq!(found.status, Status::Unknown, "it was edited");
}

#[test]
fn a_nodepool_for_which_its_nodeclass_is_of_no_use_is_not_ready_and_says_why() {
    let judged = |misfit: Option<&str>| {
        let class = class();
        let backing = Some(Backing { class: &class, misfit });
        match wanted(&pool(), &Resources::new(), backing, &Health::default(), &Alarm::Closed, || true, start()) {
            Some(Wanted::Status(patch)) => Pool { conditions: patch.conditions.expect("conditions"), ..pool() },
            other => panic!("{other:?}"),
        }
    };
    assert!(judged(None).is_ready());
    for refused in [judged(Some("metadata.name: too long")), refused(&pool(), "metadata.name: too long")] {
        assert!(!refused.is_ready());
        assert_eq!(why_not_ready(&refused), "NodeClassReady is False: metadata.name: too long");
    }
}

#[test]
fn a_nodeclass_that_is_being_deleted_makes_its_nodepools_unready() {
    let going = NodeClass { deleting: Some(start()), ..class() };
    let Some(Wanted::Status(patch)) = next(&pool(), Some(&going), &Health::default(), true) else {
        panic!("no status")
    };
    let conditions = patch.conditions.unwrap();
    let ready = find_condition(&conditions, "NodeClassReady").unwrap();
    assert_eq!((ready.status, &*ready.reason), (Status::False, "NodeClassTerminating"));
    assert_eq!(find_condition(&conditions, "Ready").unwrap().status, Status::False);
}

#[test]
fn the_auditors_breaker_is_a_condition_that_makes_no_nodepool_unready() {
    let judged = |pool: &Pool, alarm: &Alarm| {
        let class = class();
        let backing = Some(Backing { class: &class, misfit: None });
        match wanted(pool, &Resources::new(), backing, &Health::default(), alarm, || true, start()) {
            Some(Wanted::Status(patch)) => patch.conditions.unwrap_or_else(|| pool.conditions.clone()),
            _ => pool.conditions.clone(),
        }
    };
    let open = Alarm::Open {
        cause: crate::core::audit::Cause::TooManyFindings,
        message: "Nothing is removed: 2 of 3".to_owned(),
    };
    let told = Pool { conditions: judged(&pool(), &open), ..pool() };
    let breaker = find_condition(&told.conditions, BREAKER).unwrap();
    assert_eq!((breaker.status, &*breaker.reason), (Status::True, "TooManyFindings"));
    assert!(breaker.message.contains("2 of 3"));
    assert_eq!(find_condition(&told.conditions, "Ready").unwrap().status, Status::True);
    let kept = judged(&told, &Alarm::Unknown);
    assert!(find_condition(&kept, BREAKER).is_some(), "who has not looked yet takes nothing back");
    assert!(find_condition(&judged(&told, &Alarm::Closed), BREAKER).is_none());
}
