//! What the auditor's looks show of promises that were broken before.

use super::*;
use crate::core::facts::samples::machine;

const MINUTE: Duration = Duration::from_mins(1);

/// A look that took no time, at so many minutes, at a cloud whose word is two minutes old at most.
fn look(at: u32, machines: &[Machine]) -> Looked<'_> {
    let now = MINUTE * at;
    Looked { began: now, now, lag: MINUTE * 2, machines, orphans: BTreeSet::new() }
}

fn names(broken: &[Broken]) -> Vec<(Invariant, &str)> {
    broken.iter().map(|broken| (broken.promise, broken.object.as_str())).collect()
}

#[test]
fn two_machines_with_one_mark_break_a_promise_unless_one_is_going() {
    let other = Machine { id: "sim://a/2".into(), ..machine() };
    let broken = Vigil::default().look(&look(1, &[machine(), other.clone()]));
    assert_eq!(names(&broken), [(Invariant::OneMachine, "NodeClaim web-1")]);
    assert_eq!(broken[0].what, "NodeClaim web-1 has the machines sim://a/1 and sim://a/2");
    assert_eq!(Vigil::default().look(&look(1, &[machine(), Machine { deleting: true, ..other.clone() }])), []);
    assert_eq!(Vigil::default().look(&look(1, &[machine(), Machine { token: None, ..other }])), []);
}

#[test]
fn a_finalizer_that_went_before_its_machine_is_noticed_when_the_cloud_shows_it() {
    let mut vigil = Vigil::default();
    vigil.release(MINUTE * 10, Released::Claim("web-1".into(), "uid-1".into()));
    vigil.release(MINUTE * 10, Released::Node("node-1".into(), "sim://a/1".into()));
    let going = [Machine { deleting: true, ..machine() }];
    assert_eq!(vigil.look(&look(12, &going)), [], "so old may the cloud's word be");
    let broken = vigil.look(&look(13, &going));
    let both = [(Invariant::FinalizerLast, "NodeClaim web-1"), (Invariant::NodeFinalizerLast, "Node node-1")];
    assert_eq!(names(&broken), both);
    assert_eq!(
        vigil.look(&look(14, &[Machine { token: Some("uid-2".into()), id: "sim://a/2".into(), ..machine() }])),
        []
    );
    assert_eq!(vigil.look(&look(70, &going)), [], "after an hour it is forgotten");
}

#[test]
fn no_finalizer_had_to_wait_for_a_machine_that_was_launched_when_it_was_gone() {
    let mut vigil = Vigil::default();
    for uid in ["uid-1", "uid-2"] {
        vigil.release(MINUTE, Released::Claim(uid.into(), uid.into()));
    }
    vigil.launch(&"uid-1".into());
    let other = Machine { token: Some("uid-2".into()), id: "sim://a/2".into(), ..machine() };
    let broken = vigil.look(&look(10, &[machine(), other]));
    assert_eq!(names(&broken), [(Invariant::FinalizerLast, "NodeClaim uid-2")]);
}

#[test]
fn a_machine_may_be_without_a_nodeclaim_for_two_hours_in_a_row() {
    let id = machine().id;
    let orphaned = |at| Looked { orphans: [&id].into(), ..look(at, &[]) };
    let mut vigil = Vigil::default();
    assert_eq!(vigil.look(&orphaned(0)), []);
    assert_eq!(vigil.look(&orphaned(120)), []);
    assert_eq!(names(&vigil.look(&orphaned(121))), [(Invariant::NoOrphan, "machine sim://a/1")]);
    assert_eq!(vigil.look(&look(122, &[])), []);
    assert_eq!(vigil.look(&orphaned(123)), [], "it counts anew");
}
