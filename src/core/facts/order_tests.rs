//! Karpenter's suite of cluster state: what the snapshot says does not depend on the order in which facts come, on facts that were missed,
//! or on what was there before.
//!
//! Plans that follow kube-scheduler: `fold_tests.rs`. Volumes: `fold_volumes_tests.rs`. Waiting times: `waits_tests.rs`. Taints, labels and
//! room of nodes that start: `core/scheduling/tests/checklist/underway.rs`. Which pods nominations are kept for, and marks for deletion: a
//! snapshot has no such memory, both are fields of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::samples::{claim, node, owner, pod, start};
use super::{Claim, Fact, Fold, Kind, Node, Pod, PodPhase, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::resources::Resources;

fn seen(pod: Pod) -> Fact {
    Fact::PodSeen(Arc::new(pod))
}

fn node_called(name: &str) -> Node {
    Node { name: name.into(), provider_id: Some(format!("sim://{name}").into()), ..node() }
}

fn claim_of(name: &str, node: &str) -> Claim {
    Claim {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        provider_id: Some(format!("sim://{node}").into()),
        ..claim()
    }
}

fn after(facts: impl IntoIterator<Item = Fact>) -> Fold {
    let mut fold = Fold::default();
    facts.into_iter().for_each(|fact| fold.fold(fact));
    fold
}

fn on(fold: &Fold, node: &str) -> usize {
    fold.snapshot().pods_on(&node.into()).count()
}

#[test]
fn a_pod_without_a_node_takes_no_room_and_a_bound_one_does() {
    let fold = after([seen(pod("free", None)), seen(pod("bound", Some("n")))]);
    assert_eq!((on(&fold, "n"), fold.snapshot().pending.len()), (1, 1));
}

#[test]
fn a_pod_that_ends_or_is_gone_gives_its_room_back() {
    let ended = Pod { phase: PodPhase::Succeeded, ..pod("a", Some("n")) };
    assert_eq!(on(&after([seen(pod("a", Some("n"))), seen(ended)]), "n"), 0);
    assert_eq!(on(&after([seen(pod("a", Some("n"))), Fact::PodGone("a".into())]), "n"), 0);
}

#[test]
fn a_pod_whose_binding_was_missed_counts_when_it_is_seen() {
    // Seen pending, then running elsewhere than anybody knew.
    assert_eq!(on(&after([seen(pod("a", None)), seen(pod("a", Some("n")))]), "n"), 1);
}

#[test]
fn a_pod_of_the_same_name_elsewhere_is_another_pod() {
    let again = Pod { uid: "a-2".into(), ..pod("a", Some("m")) };
    let fold = after([seen(pod("a", Some("n"))), seen(again), Fact::PodGone("a".into())]);
    assert_eq!((on(&fold, "n"), on(&fold, "m")), (0, 1));
}

#[test]
fn a_pod_that_was_planned_is_forgotten_with_its_plan() {
    let mut fold = after([seen(pod("a", None))]);
    fold.planned(&"claim".into(), vec!["a".into()]);
    assert_eq!(fold.snapshot().planned_for.len(), 1);
    fold.fold(Fact::PodGone("a".into()));
    let snapshot = fold.snapshot();
    assert!(snapshot.planned.is_empty() && snapshot.planned_for.is_empty() && snapshot.pending.is_empty());
}

#[test]
fn a_pod_that_is_gone_cannot_be_planned() {
    let mut fold = after([seen(pod("a", None)), Fact::PodGone("a".into())]);
    fold.planned(&"claim".into(), vec!["a".into()]);
    assert!(fold.snapshot().planned_for.is_empty());
}

#[test]
fn node_and_nodeclaim_find_each_other_in_either_order() {
    let facts = [Fact::NodeSeen(Arc::new(node_called("n"))), Fact::ClaimSeen(Arc::new(claim_of("c", "n")))];
    for facts in [facts.clone().to_vec(), facts.into_iter().rev().collect()] {
        let fold = after(facts);
        let claim = &fold.snapshot().claims[&ClaimName::from("c")];
        assert_eq!(fold.snapshot().node_of(claim).map(|node| node.name.clone()), Some("n".into()));
    }
}

#[test]
fn a_provider_id_that_comes_later_connects_them() {
    let blank = Node { provider_id: None, ..node_called("n") };
    let mut fold = after([Fact::ClaimSeen(Arc::new(claim_of("c", "n"))), Fact::NodeSeen(Arc::new(blank))]);
    let node_of = |fold: &Fold| fold.snapshot().node_of(&claim_of("c", "n")).is_some();
    assert!(!node_of(&fold));
    fold.fold(Fact::NodeSeen(Arc::new(node_called("n"))));
    assert!(node_of(&fold));
    assert!(fold.take_news().claims.contains(&ClaimName::from("c")));
}

#[test]
fn a_provider_id_that_changes_leaves_nothing_behind() {
    let moved = Node { provider_id: Some("sim://other".into()), ..node_called("n") };
    let fold = after([Fact::NodeSeen(Arc::new(node_called("n"))), Fact::NodeSeen(Arc::new(moved))]);
    assert_eq!(fold.snapshot().nodes_of.keys().map(ToString::to_string).collect::<Vec<_>>(), ["sim://other"]);
}

#[test]
fn two_nodes_of_one_machine_are_nobodys_node() {
    let twin = Node { provider_id: node_called("n").provider_id, ..node_called("m") };
    let mut fold = after([Fact::NodeSeen(Arc::new(node_called("n"))), Fact::NodeSeen(Arc::new(twin))]);
    assert!(fold.snapshot().node_of(&claim_of("c", "n")).is_none());
    fold.fold(Fact::NodeGone("m".into()));
    assert!(fold.snapshot().node_of(&claim_of("c", "n")).is_some(), "the one that is left is it");
}

#[test]
fn a_node_is_news_for_the_nodeclaim_that_owns_it_though_somebody_wrote_another_id_into_it() {
    let estranged = Claim { provider_id: Some("sim://other".into()), deleting: Some(start()), ..claim_of("c", "n") };
    let owned = Node { owner_claims: vec![owner("c", "uid-c")], ..node_called("n") };
    let mut fold = after([Fact::ClaimSeen(Arc::new(estranged)), Fact::NodeSeen(Arc::new(owned.clone()))]);
    let mut concerns = |fact: Fact| {
        fold.take_news();
        fold.fold(fact);
        fold.take_news().claims.contains(&ClaimName::from("c"))
    };
    assert!(concerns(Fact::NodeSeen(Arc::new(Node { version: "101".into(), ..owned }))));
    assert!(concerns(seen(pod("a", Some("n")))));
    assert!(concerns(Fact::PodGone("a".into())));
    assert!(concerns(Fact::NodeGone("n".into())));
}

#[test]
fn a_node_and_a_nodeclaim_of_one_name_do_not_hold_each_other() {
    let mut fold =
        after([Fact::NodeSeen(Arc::new(node_called("same"))), Fact::ClaimSeen(Arc::new(claim_of("same", "same")))]);
    fold.fold(Fact::NodeGone("same".into()));
    assert_eq!(fold.snapshot().claims.len(), 1);
    fold.fold(Fact::ClaimGone("same".into(), "uid-same".into()));
    let snapshot = fold.snapshot();
    assert!(snapshot.claims.is_empty() && snapshot.nodes.is_empty() && snapshot.nodes_of.is_empty());
}

#[test]
fn a_nodeclaim_that_is_being_deleted_sets_its_pods_free() {
    let mut fold = after([seen(pod("a", None)), Fact::ClaimSeen(Arc::new(claim_of("c", "n")))]);
    fold.planned(&"c".into(), vec!["a".into()]);
    fold.take_news();
    fold.fold(Fact::ClaimSeen(Arc::new(Claim { deleting: Some(start()), version: "2".into(), ..claim_of("c", "n") })));
    assert!(fold.snapshot().planned.is_empty());
    assert!(fold.take_news().pending, "they need another place");
}

#[test]
fn an_older_version_of_a_nodeclaim_does_not_count() {
    let newer = Claim { version: "7".into(), node: Some("n".into()), ..claim_of("c", "n") };
    let fold = after([Fact::ClaimSeen(Arc::new(newer)), Fact::ClaimSeen(Arc::new(claim_of("c", "n")))]);
    assert!(fold.snapshot().claims[&ClaimName::from("c")].node.is_some());
}

#[test]
fn absence_means_nothing_before_everything_was_listed() {
    let mut fold = Fold::default();
    for kind in Kind::ALL {
        assert!(!fold.snapshot().is_complete(), "{kind:?} is missing");
        fold.fold(Fact::Relisting(kind));
        fold.fold(Fact::Relisted(kind));
    }
    assert!(fold.snapshot().is_complete());
    // A node that comes later changes nothing of that.
    fold.fold(Fact::NodeSeen(Arc::new(Node { provider_id: None, ..node_called("n") })));
    assert!(fold.snapshot().is_complete());
}

#[test]
fn what_a_new_list_does_not_show_is_gone() {
    let mut fold = after([seen(pod("stays", Some("n"))), seen(pod("goes", Some("n")))]);
    fold.fold(Fact::Relisting(Kind::Pod));
    fold.fold(seen(pod("stays", Some("n"))));
    assert_eq!(on(&fold, "n"), 2, "not before the list has ended");
    fold.fold(Fact::Relisted(Kind::Pod));
    assert_eq!(on(&fold, "n"), 1);
}

#[test]
fn what_the_machines_of_a_pool_use_follows_them() {
    let usage = |fold: &Fold| {
        let all = crate::core::pools::usage(fold.snapshot());
        all.into_iter()
            .map(|(pool, used)| (pool.to_string(), used.get(&"cpu".into()), used.get(&"nodes".into())))
            .collect::<Vec<_>>()
    };
    let estimated = Claim { capacity: Resources::new().with("cpu", 4000), ..claim_of("c", "n") };
    let mut fold = after([Fact::ClaimSeen(Arc::new(estimated.clone()))]);
    assert_eq!(usage(&fold), [("web".to_owned(), 4000, 1000)], "before there is a Node: what the cloud said");
    let mut node = node_called("n");
    node.labels.insert(crate::core::labels::REGISTERED.into(), "true".into());
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    assert_eq!(usage(&fold), [("web".to_owned(), 1000, 1000)], "then what the Node says, once");
    let mut moved = Claim { version: "2".into(), ..estimated };
    moved.labels.insert(crate::core::labels::NODEPOOL.into(), "other".into());
    fold.fold(Fact::ClaimSeen(Arc::new(moved)));
    assert_eq!(usage(&fold), [("other".to_owned(), 1000, 1000)]);
    fold.fold(Fact::ClaimGone("c".into(), "uid-c".into()));
    assert_eq!(usage(&fold), []);
}

/// One thing that happens to one of a few pods.
fn any_fact() -> impl Strategy<Value = Fact> {
    let name = || proptest::sample::select(&["a", "b", "c", "d"][..]);
    let place = proptest::option::of(proptest::sample::select(&["n", "m"][..]));
    let phase = proptest::sample::select(&[PodPhase::Pending, PodPhase::Running, PodPhase::Failed][..]);
    prop_oneof![
        4 => (name(), place, phase).prop_map(|(name, node, phase)| seen(Pod { phase, ..pod(name, node) })),
        1 => name().prop_map(|name| Fact::PodGone(name.into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However long the history: each node has exactly the pods that were last seen on it.
    #[test]
    fn long_histories_leave_exactly_what_is_there(facts in prop::collection::vec(any_fact(), 0..200)) {
        let fold = after(facts);
        let snapshot: &Snapshot = fold.snapshot();
        let mut bound: BTreeMap<NodeName, Vec<PodUid>> = BTreeMap::new();
        for pod in snapshot.pods.values().filter(|pod| pod.is_active_on_node()) {
            bound.entry(pod.node.clone().unwrap()).or_default().push(pod.uid.clone());
        }
        let kept: BTreeMap<NodeName, Vec<PodUid>> =
            snapshot.bound.iter().map(|(node, pods)| (node.clone(), pods.iter().cloned().collect())).collect();
        prop_assert_eq!(bound, kept);
        let waiting: Vec<&PodUid> = snapshot.pods.values().filter(|pod| pod.is_provisionable()).map(|pod| &pod.uid).collect();
        prop_assert_eq!(waiting, snapshot.pending.keys().collect::<Vec<_>>());
    }
}
