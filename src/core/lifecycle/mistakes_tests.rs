//! Objects edited by hand into nonsense: said, and survived.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::facts::samples::{claim, machine, node, owner, pod, serving, serving_node, start};
use crate::core::facts::{Broken, Claim, Fact, Fold, Node, OwnerClaim, find_condition};
use crate::core::lifecycle::{Memory, step, termination};

struct World {
    claim: Claim,
    others: Vec<Claim>,
    nodes: Vec<Node>,
    memory: Memory,
}

impl World {
    fn new() -> Self {
        Self { claim: serving(), others: vec![], nodes: vec![serving_node()], memory: Memory::default() }
    }

    fn deleted() -> Self {
        let mut world = Self::new();
        world.claim.deleting = Some(start());
        world.memory.doubt_until = Some(start());
        world
    }

    fn look(&self) -> Step {
        let mut fold = Fold::default();
        let claims = std::iter::once(&self.claim).chain(&self.others);
        claims.for_each(|claim| fold.fold(Fact::ClaimSeen(Arc::new(claim.clone()))));
        self.nodes.iter().for_each(|node| fold.fold(Fact::NodeSeen(Arc::new(node.clone()))));
        fold.fold(Fact::PodSeen(Arc::new(pod("a", Some("node-1")))));
        step(&Situation::of(&self.claim, fold.snapshot(), &self.memory, start()))
    }

    fn act(&self) -> Act {
        self.look().act.unwrap()
    }

    fn status(&self) -> (Status, String) {
        let Act::PatchStatus(patch) = self.act() else { panic!("{:?}", self.look()) };
        let conditions = patch.conditions.unwrap();
        let valid = find_condition(&conditions, "ValidationSucceeded").unwrap();
        (valid.status, valid.message.to_string())
    }
}

fn another() -> (Claim, Machine, Node) {
    let (mut claim, mut machine, mut node) = (serving(), machine(), serving_node());
    (claim.name, claim.uid, claim.node) = ("web-2".into(), "uid-2".into(), Some("node-2".into()));
    (machine.id, machine.token) = ("sim://a/2".into(), Some("uid-2".into()));
    claim.provider_id = Some(machine.id.clone());
    (node.name, node.uid, node.provider_id) = ("node-2".into(), "node-uid-2".into(), Some(machine.id.clone()));
    node.owner_claims = vec![OwnerClaim::of(&claim)];
    (claim, machine, node)
}

#[test]
fn a_deadline_that_is_no_time_is_said_and_the_grace_period_counts() {
    let mut world = World::new();
    world.claim.annotations.insert(labels::TERMINATION_TIMESTAMP.into(), "tomorrow".into());
    let (status, message) = world.status();
    assert_eq!(status, Status::False);
    assert!(message.contains("nodeclaim-termination-timestamp]: \"tomorrow\" is no time; write one as"), "{message}");
    assert!(message.ends_with("there is no deadline"));
    assert_eq!(world.look().mistakes, [message]);
    let mut claim = world.claim.clone();
    claim.deleting = Some(start());
    assert_eq!(termination::deadline(&claim), None, "politely, for as long as it takes");
    claim.termination_grace = Some(Duration::from_mins(1));
    assert_eq!(termination::deadline(&claim), Some(start() + jiff::SignedDuration::from_mins(1)));
    world.claim.annotations.clear();
    assert!(world.look().mistakes.is_empty());
}

#[test]
fn a_provider_id_that_was_edited_is_looked_up_and_written_back() {
    let mut world = World::new();
    world.claim.provider_id = Some("sim://nonsense".into());
    assert!(world.look().mistakes[0].starts_with("status.providerID: sim://nonsense is not the ID of Node node-1"));
    assert_eq!(world.act(), Act::Find("uid-1".into()));
    world.memory.sight = Sight::Present(Arc::new(machine()));
    let Act::PatchStatus(patch) = world.act() else { panic!("not written back") };
    assert_eq!(patch.provider_id, Some("sim://a/1".into()));
}

#[test]
fn a_provider_id_that_was_taken_away_is_looked_up_and_written_back_while_the_node_drains() {
    let mut world = World::deleted();
    world.claim.provider_id = None;
    assert_eq!(world.act(), Act::Find("uid-1".into()), "a drain may last for hours");
    world.memory.sight = Sight::Present(Arc::new(machine()));
    assert!(matches!(world.act(), Act::DeleteNode(..)));
    world.nodes[0].deleting = Some(start());
    assert!(matches!(world.act(), Act::PatchNode(..)), "closed");
    world.nodes[0]
        .taints
        .push(crate::core::facts::Taint::new(labels::DISRUPTED_TAINT, crate::core::facts::Effect::NoSchedule));
    world.nodes[0].labels.insert(labels::EXCLUDE_BALANCERS.into(), "karpenter".into());
    let Act::PatchStatus(patch) = world.act() else { panic!("not written back") };
    assert_eq!(patch.provider_id, Some("sim://a/1".into()));
}

#[test]
fn somebody_elses_machine_and_node_are_left_alone() {
    let (other, theirs, node) = another();
    let mut world = World::deleted();
    world.claim.provider_id = Some(theirs.id.clone());
    world.others.push(other);
    world.nodes = vec![node];
    world.memory.gone_node = world.claim.node.clone();
    assert_eq!(world.act(), Act::Find("uid-1".into()), "their Node is not touched, and the mark is looked for first");
    world.memory.sight = Sight::Absent;
    assert_eq!(world.act(), Act::Get(theirs.id.clone()), "a list by mark may lag behind");
    world.memory.tried.insert(theirs.id.clone());
    world.memory.sight = Sight::Present(Arc::new(theirs));
    assert!(world.look().mistakes[0].contains("carries the mark of another NodeClaim and is left alone"));
    assert_eq!(world.act(), Act::Find("uid-1".into()), "where is its own?");
    let mut found =
        World { memory: Memory { sight: Sight::Present(Arc::new(machine())), ..world.memory.clone() }, ..world };
    assert_eq!(found.act(), Act::FindNode("sim://a/1".into()), "does it have a Node that nobody has seen?");
    found.memory.roll = Some((start(), "sim://a/1".into(), None));
    assert_eq!(found.act(), Act::DeleteMachine("sim://a/1".into()));
    found.memory.sight = Sight::Absent;
    (found.memory.looked, found.memory.doubt_until) = (Some(start()), Some(start()));
    found.memory.tried.clear();
    assert!(matches!(found.act(), Act::Get(_)), "a list by token may lag behind");
    found.memory.sight = Sight::Gone;
    assert!(matches!(found.act(), Act::PatchStatus(_) | Act::PatchClaim(_)), "there is none: it may go");
}

/// Somebody wrote its ID into another NodeClaim, which took the Node before it was registered.
#[test]
fn a_node_that_another_nodeclaim_has_taken_is_taken_back_by_the_mark() {
    let mut world = World::new();
    world.others.push(another().0);
    world.nodes[0].owner_claims = vec![owner("web-2", "uid-2")];
    world.claim.conditions.retain(|condition| &*condition.kind != "Registered");
    assert_eq!(world.act(), Act::Find("uid-1".into()), "whose is it?");
    world.memory.sight = Sight::Present(Arc::new(machine()));
    let Act::PatchNode(node, _, patch) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!((node.as_str(), patch.owner), ("node-1", Some(owner("web-1", "uid-1"))));
    assert_eq!(patch.disowned, [owner("web-2", "uid-2")]);
}

/// Somebody wrote another's provider ID into it while joiner was away.
#[test]
fn whoever_has_not_launched_a_machine_asks_which_one_it_is_before_a_node_is_taken() {
    let (_, theirs, mut node) = another();
    node.owner_claims.clear();
    node.labels.remove(labels::REGISTERED);
    node.finalizers.clear();
    let mut world = World::new();
    world.claim.conditions.retain(|condition| matches!(&*condition.kind, "Launched"));
    (world.claim.provider_id, world.claim.node) = (Some(theirs.id.clone()), None);
    world.nodes = vec![node];
    assert_eq!(world.act(), Act::Find("uid-1".into()), "whose is it?");
    (world.memory.sight, world.memory.looked) = (Sight::Absent, Some(start()));
    assert_eq!(world.act(), Act::Get(theirs.id.clone()), "the mark may be lost");
    let mut unmarked =
        World { memory: world.memory.clone(), claim: world.claim.clone(), others: vec![], nodes: world.nodes.clone() };
    unmarked.memory.tried.insert(theirs.id.clone());
    unmarked.memory.sight = Sight::Present(Arc::new(Machine { token: None, ..theirs.clone() }));
    assert!(matches!(unmarked.act(), Act::PatchNode(..)), "nobody else says that it is theirs");
    world.memory.tried.insert(theirs.id.clone());
    world.memory.sight = Sight::Present(Arc::new(theirs));
    assert_eq!(world.act(), Act::Find("uid-1".into()), "where is its own?");
    world.memory.sight = Sight::Absent;
    while let Some(Act::PatchStatus(patch)) = world.look().act {
        world.claim.conditions = patch.conditions.unwrap();
    }
    assert_eq!(world.look().act, None, "their Node is not taken");
    world.memory.sight = Sight::Present(Arc::new(machine()));
    let Act::PatchStatus(patch) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!(patch.provider_id, Some("sim://a/1".into()));
}

/// Its own Node came, and nobody saw that it is this one's: the ID was edited while joiner was away.
#[test]
fn a_machine_whose_node_does_not_come_is_looked_for_before_it_is_given_up() {
    let mut world = World::new();
    world.claim.conditions.retain(|condition| matches!(&*condition.kind, "Launched"));
    world.claim.provider_id = Some("2026-02-30T12:00:00Z".into());
    world.claim.node = None;
    world.nodes[0].owner_claims.clear();
    let ago = |minutes| start() - jiff::SignedDuration::from_mins(minutes);
    for condition in &mut world.claim.conditions {
        condition.since = ago(2);
    }
    assert!(!matches!(world.look().act, Some(Act::Find(_))), "it may come yet");
    for condition in &mut world.claim.conditions {
        condition.since = ago(20);
    }
    assert_eq!(world.act(), Act::Find("uid-1".into()));
    world.memory.sight = Sight::Present(Arc::new(machine()));
    let Act::PatchNode(node, ..) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!(node.as_str(), "node-1");
}

#[test]
fn a_node_that_was_taken_by_mistake_and_goes_takes_nobody_with_it() {
    let (other, theirs, mut taken) = another();
    taken.owner_claims = vec![owner("web-1", "uid-1")];
    taken.deleting = Some(start());
    let mut world = World::new();
    world.others.push(other);
    world.nodes = vec![serving_node(), taken];
    world.claim.provider_id = Some(theirs.id);
    assert_eq!(world.act(), Act::Find("uid-1".into()), "whose is it?");
    world.memory.sight = Sight::Present(Arc::new(machine()));
    let Act::PatchStatus(patch) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!(patch.provider_id, Some("sim://a/1".into()));
}

/// Somebody has stripped a NodeClaim of its finalizers in its drain, and made it anew under its name: what its predecessor has left is not its own.
#[test]
fn a_namesake_that_was_made_anew_does_not_take_its_predecessors_node() {
    let mut world = World::new();
    world.claim = Claim { uid: "uid-1-anew".into(), finalizers: vec![labels::TERMINATION_FINALIZER.into()], ..claim() };
    world.nodes[0].deleting = Some(start());
    assert_eq!(world.act(), Act::Launch, "it is launched like any other, and not deleted with that Node");
    world.claim.deleting = Some(start());
    world.memory.sight = Sight::Gone;
    let Act::PatchStatus(patch) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!(patch.node, None);
    world.claim.conditions = patch.conditions.unwrap();
    let Act::PatchClaim(patch) = world.act() else { panic!("the Node keeps its finalizer: {:?}", world.look()) };
    assert_eq!(patch.finalizers, Some(vec![]));
}

#[test]
fn a_node_that_another_nodeclaim_has_taken_is_emptied_before_its_machine_goes() {
    let mut world = World::deleted();
    world.others.push(another().0);
    world.nodes[0].owner_claims = vec![owner("web-2", "uid-2")];
    world.memory.sight = Sight::Present(Arc::new(machine()));
    assert!(matches!(world.act(), Act::DeleteNode(..)), "{:?}", world.look());
}

#[test]
fn an_id_that_the_cloud_does_not_know_is_no_proof_that_there_is_no_machine() {
    let mut world = World::deleted();
    world.nodes.clear();
    world.memory.gone_node = world.claim.node.clone();
    world.claim.provider_id = Some("sim://nonsense".into());
    assert_eq!(world.act(), Act::Get("sim://nonsense".into()));
    world.memory.sight = Sight::Missing;
    world.memory.tried.insert("sim://nonsense".into());
    assert_eq!(world.act(), Act::Find("uid-1".into()));
}

#[test]
fn a_machine_without_its_mark_is_known_by_its_node_when_its_id_was_edited() {
    let unmarked = Machine { token: None, claim: None, ..machine() };
    for mut world in [World::new(), World::deleted()] {
        world.claim.provider_id = Some("sim://nonsense".into());
        world.claim.node = None;
        assert_eq!(world.act(), Act::Find("uid-1".into()));
        world.memory.sight = Sight::Absent;
        assert_eq!(world.act(), Act::Get("sim://nonsense".into()), "no list shows its mark");
        world.memory.tried.insert("sim://nonsense".into());
        world.memory.sight = Sight::Missing;
        assert_eq!(world.act(), Act::Get("sim://a/1".into()), "so its Node says");
        world.memory.tried.insert("sim://a/1".into());
        world.memory.sight = Sight::Present(Arc::new(unmarked.clone()));
        let act = world.act();
        assert!(matches!(act, Act::PatchStatus(_) | Act::DeleteNode(..)), "{act:?}");
    }
}

#[test]
fn a_machine_without_any_mark_is_not_taken_from_the_nodeclaim_whose_node_it_has() {
    let (other, theirs, node) = another();
    let mut world = World::new();
    world.claim.provider_id = Some(theirs.id.clone());
    world.others.push(other);
    world.nodes.push(node);
    world.memory.tried = [theirs.id.clone()].into();
    world.memory.sight = Sight::Present(Arc::new(Machine { token: None, claim: None, ..theirs }));
    assert_eq!(world.act(), Act::Get("sim://a/1".into()), "by the ID of its own Node");
}

#[test]
fn a_node_without_its_label_and_finalizer_is_drained_all_the_same() {
    let mut world = World::deleted();
    world.memory.sight = Sight::Present(Arc::new(machine()));
    world.nodes[0].labels.remove(labels::REGISTERED);
    world.nodes[0].finalizers.clear();
    let Act::PatchNode(_, _, patch) = world.act() else { panic!("it would vanish with its deletion") };
    assert_eq!(patch.finalizers, Some(vec![labels::TERMINATION_FINALIZER.into()]));
    world.nodes[0].finalizers.push(labels::TERMINATION_FINALIZER.into());
    assert!(matches!(world.act(), Act::DeleteNode(..)));
    world.nodes[0].deleting = Some(start());
    assert!(matches!(world.act(), Act::PatchNode(..)), "closed, then drained");
}

#[test]
fn what_is_broken_for_good_can_be_deleted() {
    let mut world = World::deleted();
    let broken = |conditions| Some(Broken { problem: "spec.resources: is no map; write one".into(), conditions });
    world.claim.broken = broken(false);
    assert!(matches!(world.act(), Act::DeleteNode(..)));
    world.nodes[0].deleting = Some(start());
    world.nodes[0]
        .taints
        .push(crate::core::facts::Taint::new(labels::DISRUPTED_TAINT, crate::core::facts::Effect::NoSchedule));
    world.nodes[0].labels.insert(labels::EXCLUDE_BALANCERS.into(), "karpenter".into());
    let Act::PatchStatus(patch) = world.act() else { panic!("the drain is written down") };
    let conditions = patch.conditions.unwrap();
    assert!(find_condition(&conditions, "Drained").is_some());
    assert_eq!(find_condition(&conditions, "ValidationSucceeded").unwrap().status, Status::False);
    world.claim.broken = broken(true);
    assert_eq!(world.look().phase, Phase::Quarantined, "a drain could not be written down");
}

#[test]
fn finalizers_of_others_are_named() {
    let mut world = World::deleted();
    world.claim.finalizers = vec!["example.com/backup".into()];
    assert!(matches!(world.act(), Act::DeleteNode(..)), "its machine runs, though nothing holds the NodeClaim for it");
    (world.memory.sight, world.memory.doubt_until) = (Sight::Gone, None);
    world.nodes.clear();
    let Act::PatchStatus(patch) = world.act() else { panic!("that the machine is gone is written down") };
    world.claim.conditions = patch.conditions.unwrap();
    let step = world.look();
    assert_eq!(step.phase, Phase::Gone);
    assert_eq!(
        step.waits_for.as_deref(),
        Some("others to take their finalizers off the NodeClaim: example.com/backup")
    );
    assert!(step.mistakes.is_empty() && step.act.is_none(), "they need a moment");
    world.claim.conditions.iter_mut().for_each(|condition| condition.since -= jiff::SignedDuration::from_mins(1));
    let step = world.look();
    assert!(step.mistakes[0].starts_with("metadata.finalizers: the NodeClaim is kept by example.com/backup; "));
    assert!(matches!(step.act, Some(Act::PatchStatus(_))));
}

#[test]
fn a_node_that_nobody_owns_yet_is_matched_by_its_id() {
    let mut world = World::new();
    world.claim = Claim { provider_id: Some(machine().id), conditions: vec![], ..claim() };
    world.nodes = vec![node()];
    let mut fold = Fold::default();
    fold.fold(Fact::NodeSeen(Arc::new(node())));
    assert!(Situation::of(&world.claim, fold.snapshot(), &Memory::default(), start()).node().is_some());
}

#[test]
fn a_provider_id_that_was_edited_is_doubted_though_the_node_has_lost_its_owner() {
    let mut world = World::new();
    let (other, _, others) = another();
    world.nodes[0].owner_claims.clear();
    world.claim.provider_id = other.provider_id.clone();
    world.others.push(other);
    world.nodes.push(others);
    assert_eq!(world.act(), Act::Find(world.claim.uid.clone()));
}

#[test]
fn a_provider_id_whose_node_is_anothers_is_doubted_before_there_is_a_node() {
    let mut world = World::new();
    let (other, _, others) = another();
    (world.claim.provider_id, world.claim.node) = (other.provider_id.clone(), None);
    world.claim.conditions = world.claim.conditions.iter().filter(|one| &*one.kind == "Launched").cloned().collect();
    world.others.push(other);
    world.nodes = vec![others];
    assert_eq!(world.act(), Act::Find(world.claim.uid.clone()));
    world.memory = Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() };
    let Act::PatchStatus(patch) = world.act() else { panic!("{:?}", world.look()) };
    assert_eq!(patch.provider_id, Some(machine().id));
}
