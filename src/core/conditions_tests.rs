//! The root follows its dependents, and time stands still as long as a status does.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ready(list: &[Condition]) -> (&'static str, String, String) {
    let root = list.iter().find(|c| &*c.kind == "Ready").unwrap();
    (root.status.as_str(), root.reason.to_string(), root.message.to_string())
}

const DEPENDENTS: [&str; 2] = ["Launched", "Registered"];

#[test]
fn a_new_object_awaits_reconciliation_since_its_creation() {
    let list = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200)).finish();
    assert_eq!(list.len(), 3);
    assert!(list.iter().all(|c| c.status == Status::Unknown && c.since == at(100)));
    assert_eq!(
        ready(&list),
        ("Unknown", "ReconcilingDependents".into(), "Launched=Unknown, Registered=Unknown".into())
    );
    assert_eq!(&*list.last().unwrap().kind, "Ready");
}

#[test]
fn ready_is_true_when_all_dependents_are_and_false_when_one_failed() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set_true("Launched");
    let mut failed = conditions.clone();
    failed.set("Registered", Status::False, "MultipleNodesFound", "two nodes");
    assert_eq!(ready(&failed.finish()), ("False", "UnhealthyDependents".into(), "Registered=False".into()));
    conditions.set_true("Registered");
    assert_eq!(ready(&conditions.finish()), ("True", "Ready".into(), String::new()));
}

#[test]
fn a_judgement_of_an_older_generation_counts_as_none() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set_true("Launched");
    conditions.set_true("Registered");
    let list = conditions.finish();
    let list = Conditions::of(&list, &DEPENDENTS, 2, at(100), at(300)).finish();
    assert_eq!(ready(&list).0, "Unknown");
}

#[test]
fn transition_times_move_with_the_status_only() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set("Launched", Status::Unknown, "LaunchFailed", "no network");
    let list = conditions.finish();
    assert_eq!(list.iter().find(|c| &*c.kind == "Launched").unwrap().since, at(100));
    let mut conditions = Conditions::of(&list, &DEPENDENTS, 1, at(100), at(300));
    conditions.set_true("Launched");
    assert_eq!(conditions.get("Launched").unwrap().since, at(300));
}

#[test]
fn dependents_cannot_be_cleared() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set_true("Drifted");
    conditions.clear("Drifted");
    conditions.clear("Launched");
    assert!(conditions.get("Drifted").is_none() && conditions.get("Launched").is_some());
}

#[test]
fn ready_names_the_newest_trouble_first() {
    let list = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200)).finish();
    let mut conditions = Conditions::of(&list, &DEPENDENTS, 1, at(100), at(300));
    conditions.set("Registered", Status::False, "MultipleNodesFound", "");
    let list = conditions.finish();
    assert_eq!(ready(&list).2, "Registered=False, Launched=Unknown");
    assert_eq!(list.iter().find(|c| &*c.kind == "Ready").unwrap().since, at(300));
}

#[test]
fn a_failure_of_an_older_generation_leaves_ready_unknown() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set("Registered", Status::False, "MultipleNodesFound", "");
    let mut conditions = Conditions::of(&conditions.finish(), &DEPENDENTS, 2, at(100), at(300));
    conditions.set_true("Launched");
    assert_eq!(ready(&conditions.finish()).0, "Unknown");
}

#[test]
fn judging_the_same_again_changes_nothing() {
    let mut conditions = Conditions::of(&[], &DEPENDENTS, 1, at(100), at(200));
    conditions.set_true("Launched");
    let list = conditions.finish();
    let mut again = Conditions::of(&list, &DEPENDENTS, 1, at(100), at(300));
    again.set_true("Launched");
    assert_eq!(again.finish(), list);
}
