//! What the newest pod of a DaemonSet says of the others.

use super::*;
use crate::core::facts::Fact;
use crate::core::facts::samples::{pod, start};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

fn key() -> ObjectKey {
    ObjectKey::new("default", "agent")
}

/// The DaemonSet, whose template asks for so much CPU.
fn template(cpu: i64) -> Fact {
    let mut shape = PodShape { owner: Owner::DaemonSet, ..PodShape::plain(Resources::new().with("cpu", cpu)) };
    shape.node_affinity.required = vec![vec![Requirement::new("disk", Operator::In, ["ssd"])]];
    Fact::DaemonSeen(Arc::new(DaemonSet { key: key(), shape: Arc::new(shape) }))
}

/// One of its pods, tied to its node as the controller does it.
fn of_agent(name: &str, second: i64, cpu: i64) -> Fact {
    let mut one = pod(name, Some("node-1"));
    one.created = start() + jiff::SignedDuration::from_secs(second);
    one.owned_by = Some("/apis/apps/v1/namespaces/default/daemonsets/agent".into());
    let mut shape = PodShape { owner: Owner::DaemonSet, ..PodShape::plain(Resources::new().with("cpu", cpu)) };
    shape.labels.insert("controller-revision-hash".into(), name.into());
    shape.node_affinity.required = vec![vec![Requirement::new(labels::HOSTNAME, Operator::In, ["node-1"])]];
    one.shape = Arc::new(shape);
    Fact::PodSeen(Arc::new(one))
}

/// What is expected of a new node, after all that is new was folded.
fn expected(fold: &mut Fold) -> i64 {
    fold.take_news();
    fold.snapshot().daemons[&key()].shape.requests.get(&"cpu".into())
}

#[test]
fn the_newest_pod_beats_the_template_and_the_template_is_there_before_any_pod() {
    let mut fold = Fold::default();
    fold.fold(template(100));
    assert_eq!(expected(&mut fold), 100);
    fold.fold(of_agent("b", 20, 500));
    assert_eq!(expected(&mut fold), 500);
    fold.fold(of_agent("a", 10, 300));
    assert_eq!(expected(&mut fold), 500, "an older one says nothing");
    fold.fold(of_agent("c", 30, 200));
    assert_eq!(expected(&mut fold), 200);
    fold.fold(of_agent("c", 30, 250));
    assert_eq!(expected(&mut fold), 250, "it was resized in place");
}

#[test]
fn when_the_newest_goes_the_newest_of_the_others_counts_and_at_last_the_template() {
    let mut fold = Fold::default();
    for fact in [of_agent("a", 10, 300), of_agent("b", 20, 500), of_agent("c", 30, 700), template(100)] {
        fold.fold(fact);
    }
    assert_eq!(expected(&mut fold), 700, "pods may be seen before their DaemonSet");
    fold.fold(Fact::PodGone("c".into()));
    assert_eq!(expected(&mut fold), 500);
    fold.fold(Fact::PodGone("a".into()));
    fold.fold(Fact::PodGone("b".into()));
    assert_eq!(expected(&mut fold), 100);
    fold.fold(template(150));
    assert_eq!(expected(&mut fold), 150);
    fold.fold(of_agent("d", 40, 400));
    fold.fold(Fact::DaemonGone(key()));
    fold.fold(template(150));
    assert_eq!(expected(&mut fold), 400, "it came again and took its pods over");
}

#[test]
fn what_ties_a_pod_to_its_node_ties_no_other() {
    let mut fold = Fold::default();
    fold.fold(template(100));
    fold.fold(of_agent("a", 10, 100));
    let required = &fold.snapshot().daemons[&key()].shape.node_affinity.required;
    assert_eq!(
        *required,
        [[Requirement::new("disk", Operator::In, ["ssd"])]],
        "the template's own, which the pod lacks"
    );
    // Pods that equal the template but for that and their revision make no news: nothing has to be compiled again.
    let mut fold = Fold::default();
    let Fact::DaemonSeen(plain) = template(100) else { unreachable!() };
    let mut shape = (*plain.shape).clone();
    shape.node_affinity.required.clear();
    let plain = Arc::new(DaemonSet { key: key(), shape: Arc::new(shape) });
    fold.fold(Fact::DaemonSeen(Arc::clone(&plain)));
    for (name, second) in [("a", 10), ("b", 20)] {
        fold.fold(of_agent(name, second, 100));
    }
    assert!(Arc::ptr_eq(&fold.snapshot().daemons[&key()], &plain));
}

#[test]
fn pods_of_others_say_nothing() {
    let mut fold = Fold::default();
    fold.fold(template(100));
    let Fact::PodSeen(one) = of_agent("a", 10, 300) else { unreachable!() };
    let elsewhere = Pod { key: ObjectKey::new("elsewhere", "a"), ..(*one).clone() };
    let stranger = Pod { owned_by: Some("/apis/mine/v1/namespaces/default/daemonsets/agent".into()), ..(*one).clone() };
    let stranger = Pod { shape: Arc::new(PodShape { owner: Owner::Controller, ..(*one.shape).clone() }), ..stranger };
    for pod in [elsewhere, stranger] {
        fold.fold(Fact::PodSeen(Arc::new(pod)));
    }
    assert_eq!(expected(&mut fold), 100);
}
