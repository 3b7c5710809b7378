//! What is missing is written back, and nothing else.

use super::*;
use crate::core::facts::samples::{condition, pool, serving, serving_node, start};
use crate::core::facts::{Claim, Fact, Fold, OwnerClaim};
use crate::core::lifecycle::Memory;

const CLASS: &str = "karpenter.kwok.sh/kwoknodeclass";

fn missing(claim: &Claim, node: Node) -> Option<Act> {
    let mut fold = Fold::default();
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    next(&Situation::of(claim, fold.snapshot(), &Memory::default(), start()))
}

#[test]
fn labels_and_the_finalizer_come_back() {
    assert_eq!(missing(&serving(), serving_node()), None);
    let mut claim = serving();
    claim.labels.remove(CLASS);
    let Some(Act::PatchClaim(patch)) = missing(&claim, serving_node()) else { panic!("not written back") };
    assert_eq!(patch.labels, Labels::from([(CLASS.into(), "default".into())]));
    let mut node = serving_node();
    node.labels.remove(CLASS);
    node.labels.remove(labels::REGISTERED);
    node.finalizers = vec!["example.com/theirs".into()];
    let Some(Act::PatchNode(_, _, patch)) = missing(&serving(), node.clone()) else { panic!("not written back") };
    assert_eq!(patch.labels.keys().map(|key| &**key).collect::<Vec<_>>(), [CLASS, labels::REGISTERED]);
    assert_eq!(patch.finalizers.unwrap(), ["example.com/theirs".into(), labels::TERMINATION_FINALIZER.into()]);
    assert_eq!(patch.owner, None);
    node.deleting = Some(start());
    assert_eq!(missing(&serving(), node), None, "nothing can be added to what is being deleted");
}

#[test]
fn the_owner_comes_back_to_a_node_that_the_nodeclaim_names() {
    let node = Node { owner_claims: vec![], ..serving_node() };
    let Some(Act::PatchNode(_, _, patch)) = missing(&serving(), node.clone()) else { panic!("not written back") };
    assert_eq!(patch.owner, Some(OwnerClaim::of(&serving())));
    assert_eq!(patch.version, Some(node.version.clone()));
    let unnamed = Claim { node: None, ..serving() };
    assert_eq!(missing(&unnamed, node), None, "an ID alone may be wrong");
}

#[test]
fn hashes_of_an_older_recipe_are_written_anew_but_for_those_that_have_drifted() {
    let hashed = |claim: &Claim, version: &str| {
        let mut pool = pool();
        pool.hash = "7".into();
        pool.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), version.into());
        let mut fold = Fold::default();
        fold.fold(Fact::PoolSeen(Arc::new(pool)));
        match next(&Situation::of(claim, fold.snapshot(), &Memory::default(), start())) {
            Some(Act::PatchClaim(patch)) => patch.annotations.values().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    };
    let mut claim = serving();
    claim.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), "v2".into());
    claim.annotations.insert(labels::NODEPOOL_HASH.into(), "1".into());
    assert_eq!(hashed(&claim, "v2"), ["7", "v3"]);
    claim.conditions.push(condition(DRIFTED, Status::True));
    assert_eq!(hashed(&claim, "v2"), ["v3"], "it stays drifted");
    assert!(hashed(&claim, "v3").is_empty(), "the NodePool has gone ahead");
    claim.annotations.insert(labels::NODEPOOL_HASH_VERSION.into(), "v3".into());
    assert!(hashed(&claim, "v2").is_empty(), "done");
}

#[test]
fn a_node_that_is_not_registered_gets_all_of_it_when_it_is() {
    let mut claim = serving();
    claim.conditions.retain(|condition| &*condition.kind != "Registered");
    assert_eq!(missing(&claim, crate::core::facts::samples::node()), None);
}
