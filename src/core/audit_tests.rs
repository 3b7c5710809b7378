//! Nothing is removed on absence alone, and nothing in bulk.

use super::*;
use crate::core::facts::{Condition, Fact, Fold, Node, Status};
use crate::core::labels::{self, Labels};
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
    consent: Consent,
    said: Option<String>,
    snapshot: Snapshot,
}

impl World {
    fn new(machines: impl IntoIterator<Item = usize>, claims: impl IntoIterator<Item = usize>) -> Self {
        Self {
            machines: machines.into_iter().map(machine).collect(),
            claims: claims.into_iter().map(claim).collect(),
            complete: true,
            history: History::new(),
            consent: Consent::default(),
            said: None,
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
            said: self.said.as_deref(),
            now: at(minute),
            rules: Rules::default(),
        };
        audit(&look, &mut self.history, &mut self.consent)
    }

    /// Looks until there is evidence enough, and returns what the last look says.
    fn wait(&mut self) -> Verdict {
        (10..16).step_by(2).for_each(|minute| drop(self.look(minute)));
        self.look(16)
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
        boot_id: None,
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
fn the_only_machine_of_a_cluster_goes_when_the_cluster_is_ours_and_asks_when_it_may_be_another() {
    let mut world = World::new(0..1, []);
    let open = world.wait().breaker.unwrap();
    assert!(open.reason.ends_with("and there is neither NodeClaim nor NodePool"), "{open}");
    let mut world = World::new(0..1, []);
    let pool = crate::core::facts::samples::pool();
    world.snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    assert_eq!(world.wait().reap, vec![ProviderId::from("sim://0")]);
}

#[test]
fn what_a_person_approves_is_done_slowly_and_only_as_long_as_they_say_so() {
    let mut world = World::new(0..40, 20..40);
    let id = world.wait().breaker.unwrap().id.unwrap();
    world.said = Some(format!("approve {id}"));
    let verdict = world.look(18);
    assert_eq!((verdict.decided, verdict.breaker), (Some((Decision::Approve, 20)), None));
    assert_eq!(verdict.reap.len(), 4, "few at a time");
    assert_eq!(world.consent.describe(), Some(format!("approve {id}: 20 findings")));
    // Four have gone, and what is left is another set: it was approved as a part of the first.
    world.machines.retain(|machine| !verdict.reap.contains(&machine.id));
    let verdict = world.look(20);
    assert_eq!((verdict.decided, verdict.reap.len()), (None, 4));
    // More orphans than were approved, and more than a fifth.
    world.claims.truncate(5);
    let open = world.look(22).breaker.unwrap();
    assert_ne!(open.id, Some(id));
    world.claims = (20..40).map(claim).collect();
    world.said = None;
    assert!(world.look(24).breaker.is_some(), "the approval was taken back");
}

#[test]
fn what_a_person_dismisses_is_left_alone_and_stands_in_nobodys_way() {
    let mut world = World::new(0..40, 20..40);
    let id = world.wait().breaker.unwrap().id.unwrap();
    world.said = Some(format!("dismiss {id}"));
    let verdict = world.look(18);
    assert_eq!((verdict.decided, verdict.reap.len()), (Some((Decision::Dismiss, 20)), 0));
    world.claims.remove(0);
    for minute in [20, 22, 24] {
        assert!(world.look(minute).reap.is_empty());
    }
    assert_eq!(world.look(26).reap, vec![ProviderId::from("sim://20")], "others are looked after");
}

#[test]
fn a_decision_about_something_else_decides_nothing() {
    let mut world = World::new(0..40, 20..40);
    world.said = Some("approve 01234567".into());
    let id = world.wait().breaker.unwrap().id.unwrap();
    let why = world.consent.misunderstood.clone().unwrap();
    assert!(why.contains("is about 01234567") && why.contains(&id), "{why}");
    world.said = Some("yes please".into());
    assert!(world.look(18).breaker.is_some());
    assert!(world.consent.misunderstood.clone().unwrap().contains(&format!("write \"approve {id}\"")));
}

#[test]
fn a_finding_says_what_was_seen() {
    let mut world = World::new(0..20, 1..20);
    world.look(10);
    let evidence = &world.history[&Finding::OrphanMachine("sim://0".into())];
    assert!(evidence.seen.starts_with("its mark names NodeClaim claim-0 with UID uid-0"), "{evidence}");
    assert!(evidence.seen.ends_with("20 machines and 19 NodeClaims were listed"), "{evidence}");
}

#[test]
fn evidence_that_a_clock_which_was_ahead_has_dated_counts_from_when_the_clock_is_right() {
    let mut world = World::new(0..20, 1..20);
    world.look(500);
    world.look(10);
    assert!(world.look(12).reap.is_empty(), "three looks, but not five minutes");
    assert_eq!(world.look(15).reap, vec![ProviderId::from("sim://0")]);
}
