//! Nothing is removed on absence alone, and nothing in bulk.

use super::*;
use crate::core::facts::{Condition, Fact, Fold, Node, Status};
use crate::core::labels::Labels;
use crate::core::resources::Resources;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + minutes * 60).unwrap()
}

fn machine(n: usize) -> Machine {
    Machine {
        id: format!("sim://{n}").into(),
        token: Some(format!("uid-{n}").into()),
        claim: Some(format!("claim-{n}").into()),
        created: Some(at(0)),
        deleting: false,
        instance_type: None,
        labels: Labels::new(),
        annotations: Labels::new(),
        image: None,
        capacity: Resources::new(),
        allocatable: Resources::new(),
    }
}

fn claim(n: usize) -> Arc<Claim> {
    Arc::new(Claim {
        name: format!("claim-{n}").into(),
        uid: format!("uid-{n}").into(),
        generation: 1,
        version: "1".into(),
        created: at(0),
        deleting: None,
        labels: Labels::new(),
        annotations: Labels::new(),
        finalizers: vec![],
        owner_pool: None,
        requirements: vec![],
        requests: Resources::new(),
        taints: vec![],
        startup_taints: vec![],
        class: crate::core::ids::ClassRef { group: "g".into(), kind: "k".into(), name: "n".into() },
        termination_grace: None,
        expire_after: None,
        provider_id: Some(format!("sim://{n}").into()),
        node: None,
        image: None,
        capacity: Resources::new(),
        allocatable: Resources::new(),
        last_pod_event: None,
        conditions: vec![Condition {
            kind: "Launched".into(),
            status: Status::True,
            reason: "Launched".into(),
            message: "".into(),
            since: at(0),
            generation: 1,
        }],
        broken: None,
    })
}

struct World {
    machines: Vec<Machine>,
    claims: Vec<Arc<Claim>>,
    complete: bool,
    history: History,
    snapshot: Snapshot,
}

impl World {
    fn new(machines: impl IntoIterator<Item = usize>, claims: impl IntoIterator<Item = usize>) -> Self {
        Self {
            machines: machines.into_iter().map(machine).collect(),
            claims: claims.into_iter().map(claim).collect(),
            complete: true,
            history: History::new(),
            snapshot: Snapshot::default(),
        }
    }

    fn look(&mut self, minute: i64) -> Verdict {
        let look = Look {
            machines: &self.machines,
            complete: self.complete,
            settles_within: SignedDuration::from_mins(1),
            claims: &self.claims,
            snapshot: &self.snapshot,
            now: at(minute),
            rules: Rules::default(),
        };
        audit(&look, &mut self.history)
    }
}

#[test]
fn an_orphan_is_taken_down_after_three_looks_and_five_minutes() {
    let mut world = World::new(0..20, 1..20);
    for minute in [10, 12, 14] {
        assert_eq!(world.look(minute), Verdict::default(), "at minute {minute}");
    }
    assert_eq!(world.look(16).reap, vec![ProviderId::from("sim://0")]);
}

#[test]
fn a_look_that_finds_nothing_begins_the_row_anew() {
    let mut world = World::new(0..20, 1..20);
    world.look(10);
    world.look(12);
    let orphan = world.machines.remove(0);
    world.look(14);
    world.machines.push(orphan);
    for minute in [16, 18] {
        assert!(world.look(minute).reap.is_empty());
    }
}

#[test]
fn a_machine_whose_token_is_claimed_is_no_orphan_even_before_its_provider_id_is_written() {
    let mut world = World::new(0..5, 0..5);
    let mut fresh = Claim::clone(&world.claims[0]);
    fresh.provider_id = None;
    world.claims[0] = Arc::new(fresh);
    for minute in 10..40 {
        assert_eq!(world.look(minute), Verdict::default());
    }
}

#[test]
fn a_machine_with_a_damaged_mark_is_reported_and_left_alone() {
    let mut world = World::new(0..20, 1..20);
    world.machines[0].token = None;
    for minute in 10..40 {
        assert_eq!(world.look(minute), Verdict::default());
    }
    assert!(world.history.contains_key(&Finding::UnmarkedMachine("sim://0".into())));
}

#[test]
fn an_incomplete_listing_removes_nothing_and_forgets_what_was_suspected() {
    let mut world = World::new(0..20, 1..20);
    world.look(10);
    world.look(12);
    world.complete = false;
    assert!(world.look(14).breaker.is_some());
    world.complete = true;
    assert!(world.look(16).reap.is_empty() && world.look(18).reap.is_empty());
}

#[test]
fn an_empty_list_of_nodeclaims_opens_the_breaker() {
    let mut world = World::new(0..20, []);
    for minute in 10..40 {
        let verdict = world.look(minute);
        assert!(verdict.reap.is_empty() && verdict.breaker.is_some(), "{verdict:?}");
    }
}

#[test]
fn an_empty_listing_of_the_cloud_opens_the_breaker() {
    let mut world = World::new([], 0..20);
    for minute in 10..40 {
        let verdict = world.look(minute);
        assert!(verdict.finish.is_empty() && verdict.breaker.is_some(), "{verdict:?}");
    }
}

#[test]
fn a_nodeclaim_whose_machine_is_gone_is_finished_as_carefully() {
    let mut world = World::new(1..20, 0..20);
    for minute in [10, 12, 14] {
        assert_eq!(world.look(minute), Verdict::default());
    }
    assert_eq!(world.look(16).finish, vec![ClaimName::from("claim-0")]);
}

#[test]
fn of_many_orphans_few_go_at_once() {
    let mut world = World::new(0..40, 6..40);
    for minute in [10, 12, 14] {
        world.look(minute);
    }
    assert_eq!(world.look(16).reap.len(), 4);
}

#[test]
fn a_node_that_lost_its_nodeclaim_and_its_machine_is_let_go() {
    let mut fold = Fold::default();
    let node = |n: usize, deleting: bool| Node {
        name: format!("node-{n}").into(),
        uid: format!("node-uid-{n}").into(),
        created: at(0),
        deleting: deleting.then(|| at(5)),
        version: "1".into(),
        labels: Labels::new(),
        annotations: Labels::new(),
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        owner_claims: vec![format!("claim-{n}").into()],
        provider_id: Some(format!("sim://{n}").into()),
        taints: vec![],
        cordoned: false,
        capacity: Resources::new(),
        allocatable: Resources::new(),
        conditions: vec![],
    };
    // 0: no NodeClaim, no machine. 1: not deleted. 2: its machine runs. 3: its NodeClaim is there.
    for (n, deleting) in [(0, true), (1, false), (2, true), (3, true)] {
        fold.fold(Fact::NodeSeen(Arc::new(node(n, deleting))));
    }
    let mut world = World::new(2..20, 3..20);
    world.snapshot = fold.snapshot().clone();
    for minute in [10, 12, 14] {
        assert!(world.look(minute).release.is_empty(), "at minute {minute}");
    }
    assert_eq!(world.look(16).release, vec![NodeName::from("node-0")]);
}

#[test]
fn evidence_that_a_clock_which_was_ahead_has_dated_counts_from_when_the_clock_is_right() {
    let mut world = World::new(0..20, 1..20);
    world.look(500);
    world.look(10);
    assert!(world.look(12).reap.is_empty(), "three looks, but not five minutes");
    assert_eq!(world.look(15).reap, vec![ProviderId::from("sim://0")]);
}
