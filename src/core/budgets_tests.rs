//! Disruption budgets, one behaviour each.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Reason, allowed, census, problems};
use crate::core::facts::{Budget, Claim, Node, Pool, Snapshot, Status, samples};
use crate::core::labels;

/// A Wednesday.
const NOON: &str = "2026-11-18T12:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn budget(nodes: &str) -> Budget {
    Budget { nodes: nodes.into(), reasons: None, schedule: None, duration: None }
}

fn of_reasons(nodes: &str, reasons: &[&str]) -> Budget {
    Budget { reasons: Some(reasons.iter().map(|reason| Arc::from(*reason)).collect()), ..budget(nodes) }
}

fn scheduled(nodes: &str, schedule: &str, minutes: u64) -> Budget {
    Budget { schedule: Some(schedule.into()), duration: Some(Duration::from_mins(minutes)), ..budget(nodes) }
}

fn pool(budgets: &[Budget]) -> Pool {
    let mut pool = samples::pool();
    pool.disruption.budgets = budgets.to_vec();
    pool
}

/// What ten nodes are allowed for each reason: empty, drifted, underutilized, unhealthy.
fn of_ten(budgets: &[Budget], time: &str) -> [Option<u64>; 4] {
    Reason::ALL.map(|reason| allowed(&pool(budgets), reason, 10, at(time)))
}

#[test]
fn without_budgets_nothing_is_bounded() {
    assert_eq!(of_ten(&[], NOON), [None; 4]);
}

#[test]
fn a_count_is_a_count_and_a_share_is_rounded_up() {
    assert_eq!(of_ten(&[budget("3")], NOON), [Some(3); 4]);
    assert_eq!(of_ten(&[budget("25%")], NOON), [Some(3); 4]);
    assert_eq!(of_ten(&[budget("1%")], NOON), [Some(1); 4]);
    assert_eq!(of_ten(&[budget("0%")], NOON), [Some(0); 4]);
    assert_eq!(of_ten(&[budget("100%")], NOON), [Some(10); 4]);
    assert_eq!(allowed(&pool(&[budget("10%")]), Reason::Empty, 0, at(NOON)), Some(0));
}

#[test]
fn the_smallest_budget_of_a_reason_counts() {
    let budgets = [budget("8"), of_reasons("5", &["Drifted", "Empty"]), of_reasons("2", &["Drifted"])];
    assert_eq!(of_ten(&budgets, NOON), [Some(5), Some(2), Some(8), Some(8)]);
}

#[test]
fn a_budget_of_zero_for_all_reasons_wins() {
    assert_eq!(of_ten(&[budget("0"), of_reasons("5", &["Empty"])], NOON), [Some(0); 4]);
}

#[test]
fn a_list_of_no_reasons_is_for_none() {
    assert_eq!(of_ten(&[of_reasons("0", &[])], NOON), [None; 4]);
}

#[test]
fn a_budget_counts_for_its_duration_after_each_hit_of_its_schedule() {
    let budgets = [scheduled("0", "30 9 * * mon-fri", 60)];
    for (time, counts) in [
        ("2026-11-18T09:29:59Z", false),
        ("2026-11-18T09:30:00Z", true),
        ("2026-11-18T10:00:00Z", true),
        ("2026-11-18T10:29:59Z", true),
        ("2026-11-18T10:30:00Z", false),
        ("2026-11-21T10:00:00Z", false), // a Saturday
    ] {
        assert_eq!(of_ten(&budgets, time)[0], counts.then_some(0), "{time}");
    }
}

#[test]
fn an_inactive_budget_bounds_nothing_and_leaves_the_others() {
    let night = scheduled("0", "@daily", 60);
    assert_eq!(of_ten(std::slice::from_ref(&night), NOON), [None; 4]);
    assert_eq!(of_ten(&[night.clone(), budget("4")], NOON), [Some(4); 4]);
    assert_eq!(of_ten(&[night, budget("4")], "2026-11-18T00:30:00Z"), [Some(0); 4]);
}

#[test]
fn a_duration_longer_than_the_schedules_pause_is_always() {
    for time in [NOON, "2026-11-18T12:59:59Z", "2026-11-18T13:00:00Z"] {
        assert_eq!(of_ten(&[scheduled("1", "@hourly", 90)], time), [Some(1); 4], "{time}");
    }
}

#[test]
fn schedules_have_names_and_are_of_utc() {
    for (schedule, hit) in [
        ("@yearly", "2026-01-01T00:00:30Z"),
        ("@annually", "2026-01-01T00:00:30Z"),
        ("@monthly", "2026-12-01T00:00:30Z"),
        ("@weekly", "2026-11-22T00:00:30Z"),
        ("@daily", "2026-11-18T00:00:30Z"),
        ("@midnight", "2026-11-18T00:00:30Z"),
        ("@hourly", "2026-11-18T12:00:30Z"),
        ("0 12 ? * WED", "2026-11-18T12:00:30Z"),
        ("*/20 8-10,12 * nov *", "2026-11-18T12:40:30Z"),
    ] {
        assert_eq!(of_ten(&[scheduled("1", schedule, 1)], hit), [Some(1); 4], "{schedule}");
        assert_eq!(of_ten(&[scheduled("1", schedule, 1)], "2026-11-18T13:07:30Z"), [None; 4], "{schedule}");
    }
}

#[test]
fn a_day_that_never_comes_is_never() {
    assert_eq!(of_ten(&[scheduled("0", "0 0 30 2 *", 60)], NOON), [None; 4]);
}

#[test]
fn what_cannot_be_read_lets_nothing_go_for_any_reason() {
    for bad in [
        budget("many"),
        budget("-1"),
        budget("101%"),
        Budget { reasons: Some(vec!["Drifted".into()]), ..scheduled("5", "every morning at nine o'clock", 60) },
        scheduled("5", "@dailyX", 60),
        scheduled("5", "0 61 * * *", 60),
        scheduled("5", "TZ=Europe/Berlin 0 9 * * *", 60),
        scheduled("5", "0 9 * * * Europe/Berlin", 60),
    ] {
        assert_eq!(of_ten(&[budget("5"), bad.clone()], NOON), [Some(0); 4], "{bad:?}");
        let problems = problems(&pool(&[budget("5"), bad]));
        assert!(problems.len() == 1 && problems[0].starts_with("spec.disruption.budgets[1]."), "{problems:?}");
    }
}

/// A NodeClaim of the NodePool with its Node, initialized and ready.
fn serving(number: usize) -> (Claim, Node) {
    let (mut claim, mut node) = (samples::claim(), samples::node());
    let (name, id) = (format!("web-{number}"), format!("sim://a/web-{number}"));
    (claim.name, claim.uid) = (name.as_str().into(), name.as_str().into());
    claim.provider_id = Some(id.as_str().into());
    claim.labels.insert(labels::NODEPOOL.into(), "web".into());
    claim.deleting = None;
    claim.conditions = vec![];
    (node.name, node.provider_id) = (name.as_str().into(), claim.provider_id.clone());
    node.labels.insert(labels::INITIALIZED.into(), "true".into());
    node.conditions = vec![samples::condition("Ready", Status::True)];
    node.deleting = None;
    claim.node = Some(node.name.clone());
    (claim, node)
}

#[test]
fn nodes_that_served_and_are_not_gone_are_counted_and_those_that_are_missing_are_charged() {
    let mut pairs: Vec<_> = (0..8).map(serving).collect();
    // 0 and 1 serve. 2 is not ready, 3 is being deleted, 4 loses its machine already, 5 restarts, 6 has not served yet, and of 7 the Node is deleted.
    pairs[2].1.conditions = vec![samples::condition("Ready", Status::Unknown)];
    pairs[3].0.deleting = Some(samples::start());
    pairs[4].0.deleting = Some(samples::start());
    pairs[4].0.conditions = vec![samples::condition("InstanceTerminating", Status::True)];
    pairs[5].0.conditions = vec![samples::condition("Rebooting", Status::True)];
    pairs[5].1.labels.remove(labels::INITIALIZED);
    pairs[6].1.labels.remove(labels::INITIALIZED);
    pairs[7].1.deleting = Some(samples::start());
    let mut snapshot = Snapshot::default();
    snapshot.pools.insert("web".into(), Arc::new(pool(&[])));
    for (claim, node) in pairs {
        let id = claim.provider_id.clone().unwrap();
        snapshot.nodes_of.entry(id).or_default().insert(node.name.clone());
        snapshot.nodes.insert(node.name.clone(), Arc::new(node));
        snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
    }
    let census = census(&snapshot)[&"web".into()];
    assert_eq!(census.nodes, 6);
    assert_eq!(Reason::ALL.map(|reason| census.consuming(reason)), [4, 4, 4, 3]);
}
