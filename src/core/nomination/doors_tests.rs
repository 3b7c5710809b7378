//! Whom kube-scheduler brings in, and whom it leaves aside.

use super::*;
use crate::core::facts::samples::{claim, condition, node, pod};
use crate::core::facts::{Fact, Fold, Pod, Status};
use crate::core::labels;

/// A NodeClaim with its Node, and pods planned for it that kube-scheduler has found no place for.
fn waiting(change: impl FnOnce(&mut Claim), pods: &[&str]) -> Fold {
    let mut fold = Fold::default();
    let (mut claim, mut node) = (claim(), node());
    claim.provider_id = Some("sim://a".into());
    claim.name = "a".into();
    claim.conditions = vec![condition("Initialized", Status::True)];
    change(&mut claim);
    (node.name, node.provider_id) = ("a".into(), Some("sim://a".into()));
    node.labels.insert(labels::REGISTERED.into(), "true".into());
    fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    for name in pods {
        comes(&mut fold, name);
    }
    fold
}

fn comes(fold: &mut Fold, name: &str) {
    seen(fold, name, |_| {});
    fold.planned(&"a".into(), vec![name.into()]);
}

fn seen(fold: &mut Fold, name: &str, change: impl FnOnce(&mut Pod)) {
    let mut pod = pod(name, None);
    pod.unschedulable = true;
    change(&mut pod);
    fold.fold(Fact::PodSeen(Arc::new(pod)));
}

fn names(fold: &Fold) -> Vec<String> {
    left_aside(fold.snapshot()).into_iter().map(|one| format!("{}>{}", one.pod.uid, one.node)).collect()
}

#[test]
fn who_is_planned_for_a_node_that_serves_stands_at_an_open_door() {
    assert_eq!(names(&waiting(|_| {}, &["x", "y"])), ["x>a", "y>a"]);
    assert!(names(&waiting(|claim| claim.conditions.clear(), &["x"])).is_empty(), "its node has not come up");
    let reboots = |claim: &mut Claim| claim.conditions.push(condition("Rebooting", Status::True));
    assert!(names(&waiting(reboots, &["x"])).is_empty(), "its node restarts");
    let mut fold = waiting(|_| {}, &["x"]);
    seen(&mut fold, "unplanned", |_| {});
    seen(&mut fold, "x", |pod| pod.node = Some("a".into()));
    assert!(names(&fold).is_empty(), "one is in, and nothing was planned for the other");
}

#[test]
fn doors_are_still_when_nobody_who_waited_has_got_a_place() {
    let mut fold = waiting(|_| {}, &["x", "y"]);
    let mut doors = Doors::default();
    assert!(!doors.are_still(fold.snapshot()), "it is the first look");
    seen(&mut fold, "x", |pod| pod.node = Some("a".into()));
    assert!(!doors.are_still(fold.snapshot()), "one has gone in");
    comes(&mut fold, "z");
    assert!(doors.are_still(fold.snapshot()), "others come, nobody goes in");
    seen(&mut fold, "z", |pod| pod.node = Some("elsewhere".into()));
    assert!(!doors.are_still(fold.snapshot()), "kube-scheduler is at work");
    seen(&mut fold, "y", |pod| pod.node = Some("a".into()));
    assert!(!doors.are_still(fold.snapshot()));
    assert!(!doors.are_still(fold.snapshot()), "nobody is left");
}

#[test]
fn whom_nothing_helps_is_shown_less_and_less_often() {
    let fold = waiting(|_| {}, &["x"]);
    let mut doors = Doors::default();
    doors.are_still(fold.snapshot());
    let shown: Vec<u32> = (1..=200).filter(|_| doors.are_still(fold.snapshot())).collect();
    assert_eq!(shown, [1, 2, 4, 8, 16, 32, 64, 128, 192]);
}

#[test]
fn kube_scheduler_has_time_to_try_all_who_wait() {
    let names: Vec<String> = (0..600).map(|number| format!("x{number}")).collect();
    let fold = waiting(|_| {}, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut doors = Doors::default();
    doors.are_still(fold.snapshot());
    let shown: Vec<u32> = (1..=30).filter(|_| doors.are_still(fold.snapshot())).collect();
    assert_eq!(shown, [3, 6, 12, 24]);
}
