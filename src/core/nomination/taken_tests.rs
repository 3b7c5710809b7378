//! Who has lost a place to others.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{claim, node, pod};
use crate::core::facts::{Fact, Fold, PodShape};
use crate::core::labels;

/// A node with room for 4 CPU, open or closed, with pods that are planned for it and others that are there, by CPU.
fn scene(is_open: bool, planned: &[i64], there: &[i64]) -> Fold {
    let mut fold = Fold::default();
    let (mut claim, mut node) = (claim(), node());
    (claim.name, claim.provider_id) = ("a".into(), Some("sim://a".into()));
    (node.name, node.provider_id) = ("node-a".into(), Some("sim://a".into()));
    if is_open {
        node.labels.insert(labels::REGISTERED.into(), "true".into());
    }
    node.allocatable = Resources::new().with("cpu", 4000).with("pods", 110_000);
    fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    for (number, (cpu, on)) in
        planned.iter().map(|cpu| (cpu, None)).chain(there.iter().map(|cpu| (cpu, Some("node-a")))).enumerate()
    {
        let name = format!("pod-{number}");
        let mut pod = pod(&name, on);
        pod.shape = Arc::new(PodShape::plain(Resources::new().with("cpu", cpu * 1000)));
        let uid = pod.uid.clone();
        fold.fold(Fact::PodSeen(Arc::new(pod)));
        if on.is_none() {
            fold.planned(&"a".into(), vec![uid]);
        }
    }
    fold
}

#[test]
fn a_place_is_taken_when_those_who_are_planned_do_not_fit_beside_those_who_are_there() {
    assert!(!is_any_taken(scene(true, &[2, 1], &[1]).snapshot()), "there is just room enough");
    assert!(is_any_taken(scene(true, &[2, 1], &[2]).snapshot()));
    assert!(!is_any_taken(scene(true, &[], &[2, 2, 2]).snapshot()), "nobody waits for it");
    assert!(!is_any_taken(scene(false, &[2, 1], &[2]).snapshot()), "nobody can be bound to a closed node");
}
