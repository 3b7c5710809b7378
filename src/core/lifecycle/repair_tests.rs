//! Legacy repair: at once, past everything, but not when too many are broken.

use std::time::Duration;

use super::*;
use crate::core::facts::samples::{condition, owner, serving, serving_node, start};
use crate::core::facts::{Claim, Fact, Fold, Node, Status, Taint};
use crate::core::lifecycle::{Memory, step};
use crate::core::repair::{RepairAction, RepairPolicy};

struct World {
    claim: Claim,
    nodes: Vec<Node>,
    repair: Repair,
    now: Timestamp,
    /// What the API server itself answered about the Node; nothing when it was not asked.
    word: Option<Node>,
}

impl World {
    fn new() -> Self {
        let policy = RepairPolicy {
            condition: "Ready",
            status: Status::False,
            toleration: Duration::from_mins(10),
            action: RepairAction::Replace,
            termination_grace: None,
            priority: 0,
            reason: None,
        };
        let mut node = serving_node();
        node.conditions = vec![condition("Ready", Status::False)];
        node.annotations.insert(labels::DO_NOT_DISRUPT.into(), "true".into());
        node.taints = Vec::<Taint>::new();
        let repair = Repair { policies: Policies::new(vec![policy]).unwrap(), legacy: true };
        Self { claim: serving(), nodes: vec![node.clone()], repair, now: start(), word: Some(node) }
    }

    fn look(&self) -> Step {
        let mut fold = Fold::default();
        fold.fold(Fact::ClaimSeen(Arc::new(self.claim.clone())));
        self.nodes.iter().for_each(|node| fold.fold(Fact::NodeSeen(Arc::new(node.clone()))));
        let id = self.claim.provider_id.clone().unwrap();
        let roll = self.word.clone().map(|node| (self.now, id, Some(Arc::new(node))));
        let memory = Memory { roll, ..Memory::default() };
        let situation = Situation::of(&self.claim, fold.snapshot(), &memory, self.now);
        step(&situation.with_repair(Some(&self.repair)))
    }

    /// The annotation that it writes, if that is what it does.
    fn deadline(&self) -> Option<String> {
        let Some(Act::PatchClaim(patch)) = self.look().act else { return None };
        patch.annotations.get(labels::TERMINATION_TIMESTAMP).map(ToString::to_string)
    }
}

#[test]
fn a_machine_that_is_broken_for_too_long_goes_at_once() {
    let mut world = World::new();
    let due = start() + SignedDuration::from_mins(10);
    let early = world.look();
    assert!(early.deadlines.contains(&("repair is due", due)) && early.look_at <= Some(due), "{early:?}");
    assert_eq!(world.deadline(), None);
    world.now = due;
    assert_eq!(world.deadline().as_deref(), Some("2027-01-15T08:10:00Z"), "no pod is waited for");
    let annotate = |world: &mut World, text: &str| {
        world.claim.annotations.insert(labels::TERMINATION_TIMESTAMP.into(), text.into());
    };
    annotate(&mut world, "2027-01-15T09:00:00Z");
    assert!(world.deadline().is_some(), "a later one counts no more");
    annotate(&mut world, "2027-01-15T08:00:00Z");
    assert_eq!(world.look().act, Some(Act::DeleteClaim(DeleteReason::Unhealthy("Ready".into()))), "a past one stays");
    world.repair.legacy = false;
    assert!(!matches!(world.look().act, Some(Act::DeleteClaim(_))), "that is for a disruption to do");
}

#[test]
fn a_watch_that_lags_takes_no_machine_that_is_well_again() {
    let mut world = World::new();
    world.now = start() + SignedDuration::from_mins(10);
    let broken = world.word.take();
    let id = world.claim.provider_id.clone().unwrap();
    assert_eq!(world.look().act, Some(Act::FindNode(id)), "the API server itself is asked first");
    world.word = Some(Node { conditions: vec![condition("Ready", Status::True)], ..world.nodes[0].clone() });
    let look = world.look();
    assert_eq!((look.act, look.look_at), (None, Some(world.now + SignedDuration::from_secs(10))), "and asked again");
    world.word = broken;
    assert!(world.deadline().is_some());
}

#[test]
fn a_node_that_recovers_or_is_leaving_already_is_left_alone() {
    let mut world = World::new();
    world.now = start() + SignedDuration::from_mins(10);
    world.claim.deleting = Some(start());
    assert_eq!(world.deadline(), None, "its drain is not cut short");
    world.claim.deleting = None;
    world.nodes[0].conditions = vec![condition("Ready", Status::True)];
    assert_eq!(world.deadline(), None);
}

#[test]
fn when_too_many_are_broken_none_is_repaired() {
    let mut world = World::new();
    world.now = start() + SignedDuration::from_mins(10);
    let other = |n: usize, status| {
        let (name, uid) = (format!("other-{n}"), format!("other-uid-{n}"));
        let id = Some(format!("sim://b/{n}").into());
        let conditions = vec![condition("Ready", status)];
        let owner_claims = vec![owner(&name, &format!("uid-other-{n}"))];
        Node { name: name.into(), uid: uid.into(), provider_id: id, conditions, owner_claims, ..serving_node() }
    };
    world.nodes.push(other(1, Status::False));
    let step = world.look();
    assert_eq!(step.blocked.as_deref(), Some("more than 20% of nodes in nodepool \"web\" are unhealthy"));
    assert!(step.look_at <= Some(world.now + SignedDuration::from_mins(5)));
    assert_eq!(world.deadline(), None);
    world.nodes.extend((2..10).map(|n| other(n, Status::True)));
    assert_eq!((world.look().blocked, world.deadline().is_some()), (None, true), "2 of 10 may");
}
