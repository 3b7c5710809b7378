//! How a pod has to leave at one moment, whatever was said of it before.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{condition, pod, serving, serving_node, start};
use crate::core::facts::{Condition, DoNotDisrupt, Fact, Fold, Status};
use crate::core::time::rfc3339;

fn later(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn way(claim: &Claim, pod: &Pod, now: Timestamp) -> Option<Way> {
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
    fold.fold(Fact::PodSeen(Arc::new(pod.clone())));
    way_out(claim, fold.snapshot(), &pod.uid, now)
}

/// A pod with 30 s of grace on the node.
fn victim(do_not_disrupt: bool) -> Pod {
    let mut pod = pod("a", Some("node-1"));
    let shape = Arc::make_mut(&mut pod.shape);
    shape.grace_seconds = 30;
    shape.do_not_disrupt = if do_not_disrupt { DoNotDisrupt::Always } else { DoNotDisrupt::Unsaid };
    pod
}

fn going(deadline: Option<i64>) -> Claim {
    let mut claim = serving();
    claim.deleting = Some(start());
    claim
        .annotations
        .extend(deadline.map(|deadline| (labels::TERMINATION_TIMESTAMP.into(), rfc3339(later(deadline)).into())));
    claim
}

fn rebooting(grace: Option<&str>) -> Claim {
    let mut claim = serving();
    let request = Condition { since: start(), ..condition("Rebooting", Status::True) };
    claim.conditions.push(Condition { reason: "RebootRequested".into(), ..request });
    claim.annotations.extend(grace.map(|grace| (labels::REBOOT_GRACE.into(), grace.into())));
    claim
}

#[test]
fn only_pods_of_nodes_that_go_have_to_leave() {
    assert_eq!(way(&serving(), &victim(false), later(1)), None);
    assert_eq!(way(&going(None), &victim(false), later(1)), Some(Way::Evict));
    let mut elsewhere = victim(false);
    elsewhere.node = Some("node-2".into());
    assert_eq!(way(&going(None), &elsewhere, later(1)), None);
}

#[test]
fn who_is_protected_by_now_stays_until_the_deadline_wants_it() {
    assert_eq!(way(&going(None), &victim(true), later(1)), None);
    assert_eq!(way(&going(Some(100)), &victim(true), later(69)), None);
    assert_eq!(way(&going(Some(100)), &victim(true), later(70)), Some(Way::Delete(30)));
}

#[test]
fn the_grace_is_what_is_left_when_it_is_asked() {
    let claim = going(Some(100));
    let graces = [69, 70, 85, 99, 100, 120].map(|at| way(&claim, &victim(false), later(at)));
    let expected = [Way::Evict, Way::Delete(30), Way::Delete(15), Way::Delete(1), Way::Delete(1), Way::Delete(1)];
    assert_eq!(graces, expected.map(Some));
    // It leaves already, in time or not.
    let leaving = |end| Pod { deleting: Some(later(end)), ..victim(false) };
    assert_eq!(way(&claim, &leaving(100), later(80)), None);
    assert_eq!(way(&claim, &leaving(101), later(80)), Some(Way::Delete(20)));
}

#[test]
fn for_a_reboot_pods_are_asked_until_its_grace_is_over() {
    let at = |grace, now| way(&rebooting(grace), &victim(false), later(now));
    assert_eq!([at(Some("1m"), 59), at(Some("1m"), 60)], [Some(Way::Evict), None]);
    assert_eq!(at(None, 100_000), Some(Way::Evict));
    assert_eq!(at(Some("0s"), 0), None);
    assert_eq!(at(Some("soon"), 1), None);
    assert_eq!(way(&rebooting(None), &victim(true), later(1)), None);
    // The machine is about to restart, or was told to.
    let mut noted = rebooting(None);
    noted.annotations.insert(labels::PRE_BOOT_ID.into(), "first".into());
    assert_eq!(way(&noted, &victim(false), later(1)), None);
    let mut issued = rebooting(None);
    issued.conditions.iter_mut().filter(|it| &*it.kind == "Rebooting").for_each(|it| it.reason = "RebootIssued".into());
    assert_eq!(way(&issued, &victim(false), later(1)), None);
}

#[test]
fn a_node_without_a_nodeclaim_lets_its_pods_stay_as_soon_as_it_says_no_more_that_they_leave() {
    let way = |node: Node| {
        let mut fold = Fold::default();
        fold.fold(Fact::NodeSeen(Arc::new(node.clone())));
        fold.fold(Fact::PodSeen(Arc::new(victim(false))));
        way_off(&node, fold.snapshot(), later(600), &victim(false).uid, later(1))
    };
    let mut leaving = serving_node();
    leaving.annotations.insert(labels::ORPHAN_TERMINATION_TIMESTAMP.into(), rfc3339(later(600)).into());
    assert_eq!((way(leaving), way(serving_node())), (Some(Way::Evict), None));
}
