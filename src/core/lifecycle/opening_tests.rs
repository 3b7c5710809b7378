//! Who waits for whom, and for how long.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::core::facts::samples::{claim, node, pod, start};
use crate::core::facts::{Broken, Fact, Fold};
use crate::core::ids::PodUid;

fn at(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

/// A plan of two NodeClaims, `a` and `b`, with a pod each; `b` is as `change` makes it.
fn two(change: impl FnOnce(&mut Claim)) -> Fold {
    let mut fold = Fold::default();
    let (mut a, mut b) = (claim(), claim());
    (a.name, a.uid) = ("a".into(), "uid-a".into());
    (b.name, b.uid) = ("b".into(), "uid-b".into());
    change(&mut b);
    for (claim, uid) in [(a, "pod-a"), (b, "pod-b")] {
        let name = claim.name.clone();
        fold.fold(Fact::PodSeen(Arc::new(pod(uid, None))));
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.planned(&name, vec![PodUid::from(uid)]);
    }
    fold
}

fn names(names: &[&str]) -> Vec<ClaimName> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn nodes_of_one_plan_open_together() {
    let fold = two(|_| {});
    let mut opening = Opening::default();
    opening.join(&"a".into(), at(0));
    assert_eq!(opening.take(fold.snapshot(), at(1)), names(&[]));
    opening.join(&"b".into(), at(2));
    assert_eq!(opening.take(fold.snapshot(), at(2)), names(&["a", "b"]));
    assert!(opening.is_empty());
}

#[test]
fn a_node_that_has_not_appeared_is_not_waited_for_long() {
    let fold = two(|_| {});
    let mut opening = Opening::default();
    opening.join(&"a".into(), at(0));
    assert_eq!(opening.take(fold.snapshot(), at(4)), names(&[]));
    assert_eq!(opening.take(fold.snapshot(), at(5)), names(&["a"]));
}

#[test]
fn a_node_whose_pods_are_being_nominated_is_waited_for_longer() {
    let mut fold = two(|b| b.provider_id = Some("sim://a/1".into()));
    fold.fold(Fact::NodeSeen(Arc::new(node())));
    let mut opening = Opening::default();
    opening.join(&"a".into(), at(0));
    assert_eq!(opening.take(fold.snapshot(), at(9)), names(&[]));
    assert_eq!(opening.clone().take(fold.snapshot(), at(10)), names(&["a"]));
    opening.join(&"c".into(), at(9));
    assert_eq!(opening.take(fold.snapshot(), at(18)), names(&[]), "as long as others get ready");
    assert_eq!(opening.take(fold.snapshot(), at(19)), names(&["c", "a"]));
}

#[test]
fn nobody_waits_for_those_that_will_not_come() {
    let changes: [fn(&mut Claim); 2] = [
        |b| b.deleting = Some(at(0)),
        |b| b.broken = Some(Broken { problem: "spec.requirements[0]: no".into(), conditions: false }),
    ];
    for change in changes {
        let mut fold = two(change);
        // A deletion frees the pods; they may be promised again before the object is gone.
        fold.planned(&"b".into(), vec![PodUid::from("pod-b")]);
        let mut opening = Opening::default();
        opening.join(&"a".into(), at(0));
        assert_eq!(opening.take(fold.snapshot(), at(0)), names(&["a"]));
    }
}

#[test]
fn only_pods_whose_place_depends_on_others_make_their_node_wait() {
    let mut pod = pod("pod", None);
    assert!(!depends_on_others(&pod));
    let mut shape = (*pod.shape).clone();
    shape.anti_affinity.push(crate::core::facts::AffinityTerm {
        key: "kubernetes.io/hostname".into(),
        selector: None,
        namespaces: vec![],
        namespace_selector: None,
    });
    pod.shape = Arc::new(shape);
    assert!(depends_on_others(&pod));
}
