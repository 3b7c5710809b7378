//! Which policy speaks for a condition, when, and how several of them make one.

use jiff::SignedDuration;

use super::*;
use crate::core::facts::samples::{serving_node, start};

fn policy(condition: &'static str, minutes: u64, reason: Option<&'static str>) -> RepairPolicy {
    RepairPolicy {
        condition,
        status: Status::False,
        toleration: Duration::from_mins(minutes),
        action: RepairAction::Replace,
        termination_grace: None,
        priority: 0,
        reason,
    }
}

fn node(conditions: &[(&str, Status, &str, i64)]) -> Node {
    let condition = |(kind, status, reason, minute): &(&str, Status, &str, i64)| Condition {
        kind: (*kind).into(),
        status: *status,
        reason: (*reason).into(),
        message: "".into(),
        since: at(*minute),
        generation: 0,
    };
    Node { conditions: conditions.iter().map(condition).collect(), ..serving_node() }
}

fn at(minute: i64) -> Timestamp {
    start() + SignedDuration::from_mins(minute)
}

#[test]
fn policies_are_checked_as_a_whole() {
    let good = vec![policy("Ready", 10, None), policy("Disk", 1, Some("^Full$"))];
    assert!(Policies::new(good.clone()).is_ok());
    let reboot = RepairPolicy { action: RepairAction::Reboot, ..policy("Ready", 10, None) };
    let urgent = RepairPolicy { priority: 101, ..policy("", 1, Some("(")) };
    let problems = Policies::new(vec![reboot, urgent]).unwrap_err();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(Policies::new(vec![]).unwrap_err()[0].starts_with("0 policies without a reason"));
    assert!(Policies::new([good.clone(), good].concat()).unwrap_err()[0].starts_with("2 policies"));
}

#[test]
fn a_condition_is_due_after_its_toleration_counted_from_the_node_or_its_last_reboot() {
    let policies = Policies::new(vec![policy("Ready", 10, None)]).unwrap();
    let ill = node(&[("Ready", Status::False, "KubeletNotReady", 5)]);
    let due = |node: &Node, rebooted| policies.diagnose(node, rebooted, at(7)).map(|found| found.due);
    assert_eq!(due(&ill, None), Some(at(15)));
    assert_eq!(due(&Node { created: at(6), ..ill.clone() }, None), Some(at(16)));
    assert_eq!(due(&ill, Some(at(20))), Some(at(30)));
    assert_eq!(due(&node(&[("Ready", Status::True, "", 5), ("Disk", Status::False, "", 5)]), None), None);
}

#[test]
fn a_policy_about_the_reason_silences_the_fallback_even_while_it_tolerates() {
    let disk = policy("Disk", 30, Some("Full"));
    let policies = Policies::new(vec![policy("Ready", 10, None), disk]).unwrap();
    let due = |reason| policies.diagnose(&node(&[("Disk", Status::False, reason, 0)]), None, at(0)).unwrap().due;
    assert_eq!(due("DiskFullNow"), at(30));
    assert_eq!(due("Rotten"), at(10), "the fallback, whatever it was declared for");
}

#[test]
fn several_matches_make_one_diagnosis_whatever_their_order() {
    let minute = Some(Duration::from_mins(1));
    let reboot = RepairPolicy {
        action: RepairAction::Reboot,
        priority: 50,
        termination_grace: minute,
        ..policy("Network", 1, Some(".*"))
    };
    let urgent =
        RepairPolicy { priority: 20, termination_grace: Some(Duration::from_mins(5)), ..policy("Disk", 2, Some(".*")) };
    let mut list = vec![policy("Ready", 10, None), reboot, urgent];
    let ill =
        node(&[("Ready", Status::False, "x", 0), ("Network", Status::False, "y", 0), ("Disk", Status::False, "z", 0)]);
    for _ in 0..list.len() {
        list.rotate_left(1);
        let policies = Policies::new(list.clone()).unwrap();
        let found = policies.diagnose(&ill, None, at(1)).unwrap();
        assert_eq!((&*found.condition, found.action), ("Network", RepairAction::Reboot));
        let found = policies.diagnose(&ill, None, at(32)).unwrap();
        assert_eq!(
            (&*found.condition, found.action, found.due),
            ("Disk", RepairAction::Replace, at(2)),
            "most disruptive"
        );
        assert_eq!(found.grace, minute, "the shortest of all");
        assert!((found.score - (2.0 + 31.0 / 30.0)).abs() < 1e-9, "{}", found.score);
    }
}

#[test]
fn legacy_repair_knows_replacements_only_and_no_fallback_for_other_conditions() {
    let reboot = RepairPolicy { action: RepairAction::Reboot, ..policy("Network", 1, Some(".*")) };
    let policies = Policies::new(vec![policy("Ready", 10, None), reboot, policy("Disk", 1, Some("^Full$"))]).unwrap();
    let legacy = |conditions: &[(&str, Status, &str, i64)]| policies.legacy(&node(conditions)).map(|found| found.due);
    assert_eq!(legacy(&[("Network", Status::False, "x", 0)]), None);
    assert_eq!(legacy(&[("Disk", Status::False, "Rotten", 0)]), None);
    assert_eq!(
        legacy(&[("Disk", Status::False, "Full", 20), ("Ready", Status::False, "x", 0)]),
        Some(at(10)),
        "the soonest"
    );
    assert_eq!(legacy(&[("Ready", Status::Unknown, "x", 0)]), None);
}

#[test]
fn too_many_ill_nodes_stop_repair() {
    let policies = Policies::new(vec![policy("Ready", 10, None)]).unwrap();
    let cluster = |all: usize, ill: usize| {
        let mut snapshot = Snapshot::default();
        for n in 0..all {
            let status = if n < ill { Status::False } else { Status::True };
            let name = crate::core::ids::NodeName::from(format!("node-{n}"));
            let node = Node { name: name.clone(), ..node(&[("Ready", status, "x", 0)]) };
            snapshot.nodes.insert(name, Arc::new(node));
        }
        snapshot
    };
    let web = PoolName::from("web");
    assert_eq!(policies.blocked(&cluster(3, 1), Some(&web)), None, "rounded up");
    assert_eq!(policies.blocked(&cluster(10, 2), Some(&web)), None);
    let why = policies.blocked(&cluster(10, 3), Some(&web)).unwrap();
    assert_eq!(why, "more than 20% of nodes in nodepool \"web\" are unhealthy");
    assert!(policies.blocked(&cluster(10, 3), None).unwrap().contains("in the cluster"));
    assert_eq!(policies.blocked(&cluster(10, 3), Some(&"other".into())), None);
    let restarts = RepairPolicy { action: RepairAction::Reboot, ..policy("Ready", 10, Some(".*")) };
    let policies = Policies::new(vec![restarts, policy("Disk", 10, None)]).unwrap();
    assert_eq!(policies.blocked(&cluster(10, 10), Some(&web)), None, "what is restarted is not replaced");
}
