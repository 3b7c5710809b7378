//! What somebody wrote into a status by hand, and what a clock that jumped has left behind.

use std::sync::Arc;

use jiff::SignedDuration;

use super::*;
use crate::core::facts::samples::{claim, machine, node, owner, start};
use crate::core::facts::{Condition, Fact, Fold};
use crate::core::labels;
use crate::core::lifecycle::liveness::prove_nodeless;
use crate::core::lifecycle::{Act, DeleteReason, LaunchFailure, Phase, Step, step};

/// NodeClaim `web-1`, which serves.
fn serving() -> Claim {
    let condition = |kind: &str| Condition {
        kind: kind.into(),
        status: Status::True,
        reason: kind.into(),
        message: "".into(),
        since: start(),
        generation: 1,
    };
    Claim {
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        provider_id: Some("sim://a/1".into()),
        node: Some("node-1".into()),
        conditions: ["Launched", "Registered", "Initialized", "Ready"].map(condition).into(),
        ..claim()
    }
}

/// The registered Node of a NodeClaim.
fn node_of(claim: &str, number: u32) -> Node {
    let mut node = node();
    (node.name, node.uid) = (format!("node-{number}").into(), format!("node-uid-{number}").into());
    node.provider_id = Some(format!("sim://a/{number}").into());
    node.owner_claims = vec![owner(claim, &claim.replace("web", "uid"))];
    node.finalizers = vec![labels::TERMINATION_FINALIZER.into()];
    node.labels.insert(labels::REGISTERED.into(), "true".into());
    node.labels.insert(labels::INITIALIZED.into(), "true".into());
    node.taints.clear();
    node
}

/// One look, five minutes after the start: `web-1` has node 1, and `web-2` node 2.
fn look(claim: &Claim, memory: &Memory) -> Step {
    look_among(vec![node_of("web-1", 1), node_of("web-2", 2)], claim, memory)
}

fn look_among(nodes: Vec<Node>, claim: &Claim, memory: &Memory) -> Step {
    step(&Situation::of(claim, &snapshot_of(nodes, claim), memory, later(300)))
}

fn snapshot_of(nodes: Vec<Node>, claim: &Claim) -> Snapshot {
    let mut fold = Fold::default();
    let other = Claim { name: "web-2".into(), uid: "uid-2".into(), ..serving() };
    let other = Claim { provider_id: Some("sim://a/2".into()), node: Some("node-2".into()), ..other };
    fold.fold(Fact::ClaimSeen(Arc::new(other)));
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    for node in nodes {
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    fold.snapshot().clone()
}

fn held(until: Timestamp) -> Hold {
    Hold { until: Some(until), ..Hold::default() }
}

fn later(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn knows_its_machine() -> Memory {
    Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() }
}

#[test]
fn an_edited_provider_id_is_put_right() {
    for wrong in ["sim://a/2", "sim://nowhere/0"] {
        let edited = Claim { provider_id: Some(wrong.into()), ..serving() };
        assert!(matches!(look(&edited, &Memory::default()).act, Some(Act::Find(token)) if token == edited.uid));
        let Some(Act::PatchStatus(patch)) = look(&edited, &knows_its_machine()).act else {
            panic!("the status is written");
        };
        assert_eq!(patch.provider_id, Some("sim://a/1".into()));
    }
    let emptied = Claim { provider_id: None, ..serving() };
    assert!(matches!(look(&emptied, &Memory::default()).act, Some(Act::Find(_))), "it is not launched again");
}

#[test]
fn a_machine_that_was_launched_and_cannot_be_found_is_not_launched_again() {
    let emptied = Claim { provider_id: None, node: None, ..serving() };
    let absent = |since, looked| Memory {
        sight: Sight::Absent,
        absent_since: Some(later(since)),
        looked: Some(later(looked)),
        ..Memory::default()
    };
    let act = |memory: &Memory| look_among(vec![], &emptied, memory).act;
    assert_eq!(act(&absent(290, 290)), None, "it may show itself");
    assert!(matches!(act(&absent(200, 240)), Some(Act::Find(_))), "asked for again");
    assert!(matches!(act(&absent(0, 290)), Some(Act::DeleteClaim(DeleteReason::MachineGone))), "gone for five minutes");
    let serves = Claim { node: Some("node-1".into()), ..emptied.clone() };
    let mut node = node_of("web-1", 1);
    node.conditions = vec![Condition { kind: "Ready".into(), ..serving().conditions[0].clone() }];
    let act = look_among(vec![node], &serves, &absent(0, 290)).act;
    assert!(!matches!(act, Some(Act::DeleteClaim(_) | Act::Launch)), "its kubelet reports: {act:?}");
}

#[test]
fn a_nodeclaim_that_names_anothers_machine_takes_neither_that_nor_its_node() {
    let edited = Claim { provider_id: Some("sim://a/2".into()), deleting: Some(start()), ..serving() };
    assert!(matches!(look(&edited, &Memory::default()).act, Some(Act::Find(_))), "which one is its own?");
    let drains = look(&edited, &knows_its_machine()).act;
    assert!(matches!(&drains, Some(Act::DeleteNode(name, _)) if name.as_str() == "node-1"), "{drains:?}");

    // Its own Node is gone, and whoever took over remembers nothing.
    let look = |memory: &Memory| {
        let memory = Memory { gone_node: edited.node.clone(), ..memory.clone() };
        look_among(vec![node_of("web-2", 2)], &edited, &memory).act
    };
    assert!(matches!(look(&Memory::default()), Some(Act::Find(_))), "whose is it?");
    let theirs = Machine { id: "sim://a/2".into(), token: Some("uid-2".into()), ..machine() };
    let tried = ["sim://a/2".into()].into();
    let theirs = Memory { sight: Sight::Present(Arc::new(theirs)), tried, ..Memory::default() };
    assert!(matches!(look(&theirs), Some(Act::Find(_))), "another's");
    let found = look(&knows_its_machine());
    assert!(matches!(&found, Some(Act::FindNode(id)) if id.as_str() == "sim://a/1"), "{found:?}");
    let nodeless = Memory { roll: Some((later(300), "sim://a/1".into(), None)), ..knows_its_machine() };
    let taken_down = look(&nodeless);
    assert!(matches!(&taken_down, Some(Act::DeleteMachine(id)) if id.as_str() == "sim://a/1"), "{taken_down:?}");
    let looked = Memory { sight: Sight::Absent, looked: Some(later(300)), ..Memory::default() };
    assert!(matches!(look(&looked), Some(Act::Get(_))), "the machine that it names may yet be its own");
}

#[test]
fn anothers_node_that_is_seen_is_not_waited_for() {
    let stray = Claim { provider_id: Some("sim://a/2".into()), node: None, ..serving() };
    let told = Memory {
        roll: Some((later(300), "sim://a/2".into(), Some(Arc::new(node_of("web-2", 2))))),
        ..Memory::default()
    };
    let wait = |nodes| {
        let snapshot = snapshot_of(nodes, &stray);
        let situation = Situation::of(&stray, &snapshot, &told, later(301));
        prove_nodeless(&situation, Phase::Registering, &"sim://a/2".into()).and_then(|step| step.waits_for)
    };
    assert_eq!(wait(vec![]).as_deref(), Some("the watch to show Node node-2 as it is"));
    assert_eq!(wait(vec![node_of("web-2", 2)]), None);
}

#[test]
fn a_nodeclaim_that_serves_is_not_given_up_because_its_conditions_were_taken_out() {
    let mut emptied = Claim { conditions: Vec::new(), ..serving() };
    assert!(matches!(look(&emptied, &Memory::default()).act, Some(Act::Find(_))));
    assert!(matches!(look(&emptied, &knows_its_machine()).act, Some(Act::PatchClaim(_) | Act::PatchStatus(_))));
    emptied.created = later(-100_000);
    assert!(!matches!(look(&emptied, &knows_its_machine()).act, Some(Act::DeleteClaim(_))));

    // A kubelet that has registered twice is no reason either.
    let mut twin = node_of("web-1", 3);
    twin.provider_id = Some("sim://a/1".into());
    (twin.owner_claims, twin.finalizers) = (Vec::new(), Vec::new());
    twin.labels.remove(labels::REGISTERED);
    emptied.conditions = serving().conditions.into_iter().filter(|one| &*one.kind != "Registered").collect();
    let mut unlabelled = node_of("web-1", 1);
    unlabelled.labels.remove(labels::REGISTERED);
    for nodes in [vec![node_of("web-1", 1), twin], vec![unlabelled]] {
        let step = look_among(nodes, &emptied, &knows_its_machine());
        assert!(!matches!(step.act, Some(Act::DeleteClaim(_))), "{step:?}");
    }
}

#[test]
fn a_nodeclaim_without_conditions_was_launched_as_long_as_it_names_its_machine() {
    // The list of Nodes is older than its Node.
    let emptied = Claim { conditions: vec![], node: None, ..serving() };
    for memory in [Memory::default(), knows_its_machine()] {
        let step = look_among(vec![], &emptied, &memory);
        assert!(!matches!(step.act, Some(Act::DeleteClaim(_))), "{step:?}");
    }
}

#[test]
fn nobody_gives_up_what_they_have_not_tried() {
    // Five minutes old: by a clock that is ahead, or because nobody was there.
    let untried = Claim { finalizers: vec![labels::TERMINATION_FINALIZER.into()], ..claim() };
    assert!(matches!(
        look_among(vec![node_of("web-2", 2)], &untried, &Memory::default()).act,
        Some(Act::DeleteClaim(DeleteReason::LaunchTimeout))
    ));
    let new = Memory { since: Some(later(299)), ..Memory::default() };
    assert!(matches!(look_among(vec![node_of("web-2", 2)], &untried, &new).act, Some(Act::Launch)));
    let tired = Memory { since: Some(later(240)), ..Memory::default() };
    assert!(matches!(
        look_among(vec![node_of("web-2", 2)], &untried, &tired).act,
        Some(Act::DeleteClaim(DeleteReason::LaunchTimeout))
    ));
}

#[test]
fn moments_of_a_clock_that_was_ahead_are_not_waited_for() {
    let hours = later(20_000);
    let failure = LaunchFailure { cause: "LaunchFailed", message: "no network".into(), attempts: 3, retry_at: hours };
    let mut memory = Memory {
        since: Some(hours),
        doubt_until: Some(hours),
        looked: Some(hours),
        launch_failure: Some(failure.clone()),
        delete_asked: Some(hours),
        asked: Some(hours),
        deletion: Deletion::asked(&Act::DeleteClaim(DeleteReason::LaunchTimeout), hours),
        cluster: held(hours),
        cloud: held(hours),
        ..Memory::default()
    };
    memory.mend(start());
    let mended = Memory {
        since: Some(start()),
        doubt_until: Some(later(120)),
        launch_failure: Some(LaunchFailure { retry_at: start(), ..failure }),
        delete_asked: Some(start()),
        asked: Some(start()),
        deletion: Deletion::asked(&Act::DeleteClaim(DeleteReason::LaunchTimeout), start()),
        ..Memory::default()
    };
    assert_eq!(memory, mended);

    let sound = Memory { cloud: held(later(60)), doubt_until: Some(later(119)), ..mended };
    let mut same = sound.clone();
    same.mend(start());
    assert_eq!(same, sound);
}

#[test]
fn a_condition_from_the_future_is_as_old_as_its_nodeclaim() {
    let mut ahead = serving();
    ahead.conditions[0].since = later(20_000);
    let (fold, memory) = (Fold::default(), Memory::default());
    let situation = Situation::of(&ahead, fold.snapshot(), &memory, later(300));
    assert_eq!(situation.since("Launched"), start());
}

#[test]
fn a_nodeclaim_that_knows_its_machine_takes_no_node_by_an_id_that_somebody_wrote() {
    let edited = Claim { provider_id: Some("sim://a/2".into()), node: None, ..serving() };
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(edited.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(Node { owner_claims: vec![], ..node_of("web-2", 2) })));
    let nodes = |memory: &Memory| Situation::of(&edited, fold.snapshot(), memory, start()).nodes.len();
    assert_eq!((nodes(&knows_its_machine()), nodes(&Memory::default())), (0, 1));
}

#[test]
fn an_id_that_was_denied_counts_again_once_the_cloud_shows_its_machine() {
    let machine = crate::core::facts::samples::machine();
    let mut memory = Memory { tried: [machine.id.clone()].into(), ..Memory::default() };
    memory.shown(machine.clone());
    assert!(!memory.is_disproved(&machine.id));
}
