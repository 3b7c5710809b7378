//! Who waits for whom, and for how long.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{claim, node, pod, start, zone_spread};
use crate::core::facts::{Broken, Effect, Fact, Fold};

fn at(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

/// A plan of two NodeClaims, `a` and `b`, with a spread pod each; `b` is as `change` makes it. No node is there.
fn two(change: impl FnOnce(&mut Claim)) -> Fold {
    let mut fold = Fold::default();
    let (mut a, mut b) = (claim(), claim());
    (a.name, a.uid, a.provider_id) = ("a".into(), "uid-a".into(), Some("sim://a".into()));
    (b.name, b.uid, b.provider_id) = ("b".into(), "uid-b".into(), Some("sim://b".into()));
    a.startup_taints.clear();
    b.startup_taints.clear();
    change(&mut b);
    for (claim, uid) in [(a, "pod-a"), (b, "pod-b")] {
        let name = claim.name.clone();
        let mut pod = pod(uid, None);
        let mut shape = (*pod.shape).clone();
        shape.spreads.push(zone_spread(1));
        pod.shape = Arc::new(shape);
        fold.fold(Fact::PodSeen(Arc::new(pod)));
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.planned(&name, vec![uid.into()]);
    }
    fold
}

/// The node of a NodeClaim appears, and is ready.
fn appears(fold: &mut Fold, name: &str) {
    appears_with(fold, name, &[]);
}

/// The node of a NodeClaim is seen with these taints beside that of a node that is closed.
fn appears_with(fold: &mut Fold, name: &str, taints: &[Taint]) {
    let mut node = node();
    (node.name, node.provider_id) = (format!("node-{name}").into(), Some(format!("sim://{name}").into()));
    node.taints = vec![Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute)];
    node.taints.extend_from_slice(taints);
    fold.fold(Fact::NodeSeen(Arc::new(node)));
}

/// The node of a NodeClaim is seen open.
fn opens(fold: &mut Fold, name: &str) {
    appears(fold, name);
    let mut open = (*fold.snapshot().nodes[&NodeName::from(format!("node-{name}"))]).clone();
    open.labels.insert(labels::REGISTERED.into(), "true".into());
    fold.fold(Fact::NodeSeen(Arc::new(open)));
}

fn not_ready() -> Taint {
    Taint::new("node.kubernetes.io/not-ready", Effect::NoSchedule)
}

fn names(names: &[&str]) -> Vec<ClaimName> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn nodes_of_one_plan_open_together() {
    let mut fold = two(|_| {});
    let mut opening = Opening::default();
    assert_eq!(opening.look(fold.snapshot(), at(0)), names(&[]));
    appears(&mut fold, "a");
    assert_eq!(opening.look(fold.snapshot(), at(1)), names(&[]));
    assert_eq!(opening.waiting(), 1);
    appears(&mut fold, "b");
    assert_eq!(opening.look(fold.snapshot(), at(2)), names(&["a", "b"]));
    assert_eq!((opening.look(fold.snapshot(), at(2)), opening.waiting()), (names(&[]), 0), "once");
}

#[test]
fn a_node_that_has_not_appeared_is_not_waited_for_long() {
    let mut fold = two(|_| {});
    let mut opening = Opening::default();
    appears(&mut fold, "a");
    assert_eq!(opening.look(fold.snapshot(), at(0)), names(&[]));
    assert_eq!(opening.look_at(), Some(at(15)), "nothing need change for it");
    assert_eq!(opening.look(fold.snapshot(), at(14)), names(&[]));
    assert_eq!(opening.look(fold.snapshot(), at(15)), names(&["a"]));
    assert_eq!(opening.look_at(), None);
    appears(&mut fold, "b");
    assert_eq!(opening.look(fold.snapshot(), at(16)), names(&["b"]), "nobody is left to wait for");
}

#[test]
fn as_long_as_nodes_appear_others_are_waited_for_but_not_for_ever() {
    let mut fold = two(|_| {});
    for name in ["c", "d", "e", "f"] {
        let mut more = claim();
        (more.name, more.uid) = (name.into(), format!("uid-{name}").into());
        more.provider_id = Some(format!("sim://{name}").into());
        more.startup_taints.clear();
        fold.fold(Fact::ClaimSeen(Arc::new(more)));
        fold.fold(Fact::PodSeen(Arc::new(pod(&format!("pod-{name}"), None))));
        fold.planned(&name.into(), vec![format!("pod-{name}").as_str().into()]);
    }
    let mut opening = Opening::default();
    appears(&mut fold, "a");
    assert_eq!(opening.look(fold.snapshot(), at(0)), names(&[]));
    // Pods that can go anywhere make nobody wait, and nobody waits for them longer than for others.
    for (second, name) in [(6, "c"), (12, "d"), (18, "e"), (24, "f")] {
        appears(&mut fold, name);
        assert_eq!(opening.look(fold.snapshot(), at(second)), names(&[name]));
    }
    assert_eq!(opening.look(fold.snapshot(), at(29)), names(&["a"]));
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
        fold.planned(&"b".into(), vec!["pod-b".into()]);
        appears(&mut fold, "a");
        assert_eq!(Opening::default().look(fold.snapshot(), at(0)), names(&["a"]));
    }
}

#[test]
fn a_node_that_is_open_already_is_neither_opened_nor_waited_for() {
    let mut fold = two(|_| {});
    opens(&mut fold, "b");
    appears(&mut fold, "a");
    assert_eq!(Opening::default().look(fold.snapshot(), at(0)), names(&["a"]));
}

#[test]
fn who_has_nobody_to_wait_for_any_more_waits_no_longer() {
    let mut fold = two(|_| {});
    let mut opening = Opening::default();
    appears(&mut fold, "a");
    assert_eq!(opening.look(fold.snapshot(), at(0)), names(&[]));
    fold.fold(Fact::PodGone("pod-a".into()));
    assert!(!is_expected(fold.snapshot(), &"a".into()));
    assert_eq!((opening.look(fold.snapshot(), at(1)), opening.waiting()), (names(&[]), 0));
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

#[test]
fn nodes_open_together_when_the_last_of_them_is_ready() {
    let mut fold = two(|_| {});
    let mut opening = Opening::default();
    for name in ["a", "b"] {
        appears_with(&mut fold, name, &[not_ready()]);
    }
    assert_eq!((opening.look(fold.snapshot(), at(0)), opening.waiting()), (names(&[]), 2));
    appears(&mut fold, "a");
    assert_eq!((opening.look(fold.snapshot(), at(5)), opening.waiting()), (names(&[]), 2));
    appears(&mut fold, "b");
    assert_eq!((opening.look(fold.snapshot(), at(9)), opening.waiting()), (names(&["a", "b"]), 0));
}

#[test]
fn a_node_that_does_not_get_ready_opens_all_the_same_and_its_pool_is_not_waited_for_until_one_does() {
    let mut fold = two(|_| {});
    let mut opening = Opening::default();
    appears_with(&mut fold, "a", &[not_ready()]);
    assert_eq!(opening.look(fold.snapshot(), at(0)), names(&[]));
    assert_eq!(opening.look(fold.snapshot(), at(19)), names(&[]));
    appears(&mut fold, "b");
    assert_eq!(opening.look(fold.snapshot(), at(19)), names(&[]), "that one is ready, and waits for the other");
    assert_eq!(opening.look(fold.snapshot(), at(20)), names(&["a", "b"]));
    assert_eq!(opening.look(Fold::default().snapshot(), at(25)), names(&[]), "both are open");
    let mut next = two(|_| {});
    appears_with(&mut next, "b", &[not_ready()]);
    next.fold(Fact::PodGone("pod-a".into()));
    assert_eq!(opening.look(next.snapshot(), at(30)), names(&["b"]), "of the same NodePool");
    let mut third = two(|_| {});
    appears(&mut third, "a");
    opening.look(third.snapshot(), at(40));
    assert!(opening.impatient.is_empty(), "one is ready while it is closed");
}

#[test]
fn a_node_is_ready_when_its_startup_taints_have_come_and_gone() {
    let claim = claim();
    let startup = claim.startup_taints[0].clone();
    let unregistered = Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute);
    let is = |taints: &[&Taint], synced: bool| {
        let finalizers = if synced { vec![labels::TERMINATION_FINALIZER.into()] } else { vec![] };
        is_ready(&claim, &Node { taints: taints.iter().copied().cloned().collect(), finalizers, ..node() })
    };
    assert!(!is(&[&unregistered], false), "they are on their way");
    assert!(!is(&[&unregistered, &startup], true));
    assert!(is(&[&unregistered], true));
    assert!(!is(&[&unregistered, &not_ready()], true));
    assert!(is(&[&unregistered, &claim.taints[0]], true), "those of the NodePool stay");
}

#[test]
fn of_great_bursts_the_pods_of_the_first_plan_come_in_before_the_nodes_of_the_next_open() {
    let mut fold = two(|_| {});
    let uids = |claim: &str| (0..1_100).map(|number| format!("{claim}-{number}").into()).collect::<Vec<PodUid>>();
    for claim in ["a", "b"] {
        for uid in uids(claim) {
            fold.fold(Fact::PodSeen(Arc::new(pod(&uid.to_string(), None))));
        }
        fold.planned(&claim.into(), uids(claim));
    }
    opens(&mut fold, "a");
    appears(&mut fold, "b");
    let mut opening = Opening::default();
    for second in [0, 30, 74] {
        assert_eq!(opening.look(fold.snapshot(), at(second)), names(&[]));
    }
    assert_eq!(opening.clone().look(fold.snapshot(), at(75)), names(&["b"]), "not for ever");
    for uid in uids("a").iter().skip(900) {
        fold.fold(Fact::PodSeen(Arc::new(pod(&uid.to_string(), Some("node-a")))));
    }
    assert_eq!(opening.look(fold.snapshot(), at(74)), names(&["b"]), "few are left");
}

#[test]
fn kube_scheduler_gets_time_to_hear_of_nominations() {
    assert_eq!([0, 10, 1_000].map(heard_after).map(|time| time.as_millis()), [0, 20, 2_000]);
    assert_eq!(heard_after(usize::MAX), HEARD_AT_MOST);
}
