//! Nothing is removed on absence alone, and nothing in bulk.

use super::*;
use crate::core::consent;
use crate::core::facts::samples::{self, pod, serving_node};
use crate::core::facts::{Condition, Fact, Fold, OwnerClaim, Status, VolumeAttachment};
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
    ordered: BTreeSet<ProviderId>,
    draining: BTreeMap<ProviderId, Timestamp>,
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
            ordered: BTreeSet::new(),
            draining: BTreeMap::new(),
            history: History::new(),
            consent: Consent::default(),
            said: None,
            snapshot: Snapshot::default(),
        }
    }

    fn look(&mut self, minute: i64) -> Verdict {
        self.look_when(minute, minute)
    }

    /// Looks when it is a minute, and the clock says another.
    fn look_when(&mut self, minute: i64, clock: i64) -> Verdict {
        let look = Look {
            machines: &self.machines,
            complete: self.complete,
            settles_within: SignedDuration::from_mins(1),
            claims: &self.claims,
            classes: &[("g", "k")],
            snapshot: &self.snapshot,
            ordered: &self.ordered,
            draining: &self.draining,
            said: self.said.as_deref(),
            now: at(clock),
            moment: Duration::from_mins(minute.unsigned_abs()),
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

/// The NodeClaims that are to be deleted.
fn claims(verdict: &Verdict) -> Vec<ClaimName> {
    let name = |finding: &Finding| if let Finding::LostMachine(name, _) = finding { Some(name.clone()) } else { None };
    verdict.finish.iter().filter_map(name).collect()
}

/// The Nodes that are to be let go.
fn nodes(verdict: &Verdict) -> Vec<NodeName> {
    let name = |finding: &Finding| if let Finding::LeftNode(name, _) = finding { Some(name.clone()) } else { None };
    verdict.finish.iter().filter_map(name).collect()
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

/// Gives these NodeClaims a Node each, of which those of `ready` are Ready.
fn with_nodes(world: &mut World, nodes: std::ops::Range<usize>, ready: std::ops::Range<usize>) {
    let mut fold = Fold::default();
    for n in nodes {
        let mut node = held_node(n, false);
        node.conditions.retain(|condition| &*condition.kind != "Ready");
        let status = if ready.contains(&n) { Status::True } else { Status::False };
        node.conditions.push(Condition { kind: "Ready".into(), status, ..claim(n).conditions[0].clone() });
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    world.snapshot = fold.snapshot().clone();
}

#[test]
fn a_listing_that_kubelets_speak_against_proves_no_absence() {
    // The credentials are those of another account: of twenty NodeClaims no machine is listed, and two Nodes are not Ready.
    let mut world = World::new([], 0..20);
    with_nodes(&mut world, 0..20, 2..20);
    for minute in 10..40 {
        let verdict = world.look(minute);
        assert_eq!(verdict.finish, vec![]);
        let reason = verdict.breaker.unwrap().reason;
        assert_eq!(
            reason,
            "the machines of 20 of 20 NodeClaims are not in the listing, though 18 of their Nodes are Ready"
        );
    }
    // However few they are: one that is Ready is enough, once that is certain.
    let mut world = World::new(2..20, 0..20);
    with_nodes(&mut world, 0..20, 1..20);
    for minute in [10, 12, 14] {
        assert_eq!(world.look(minute), Verdict::default(), "its Node may not have noticed yet");
    }
    for minute in 16..40 {
        let verdict = world.look(minute);
        assert_eq!((verdict.finish, verdict.breaker.unwrap().cause), (vec![], Cause::ListingDoubted));
    }
    // It stands in nobody's way when somebody has said so.
    let said = world.history.keys().map(|finding| match finding {
        Finding::HiddenMachine(..) => format!("dismiss {}", consent::id(finding)),
        _ => format!("approve {}", consent::id(finding)),
    });
    world.said = Some(said.collect::<Vec<_>>().join(" "));
    let verdict = world.look(40);
    let goes = claims(&verdict);
    assert_eq!((verdict.breaker, verdict.decided), (None, vec![(Decision::Approve, 1), (Decision::Dismiss, 1)]));
    assert_eq!((goes, world.consent.misunderstood()), (vec![claim(0).name.clone()], None));
}

#[test]
fn nodes_speak_against_a_listing_and_a_list_of_nodeclaims_that_both_have_holes() {
    // Of twenty machines one is listed, and no NodeClaim: one of one belongs to nobody, which may go where it is one of few.
    let mut world = World::new(0..1, []);
    with_nodes(&mut world, 0..20, 0..20);
    let pool = samples::pool();
    world.snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    for minute in 10..40 {
        let verdict = world.look(minute);
        assert!(verdict.reap.is_empty() && verdict.drain.is_empty());
        assert_eq!(verdict.breaker.unwrap().reason, "19 of 20 Nodes are Ready, and have neither NodeClaim nor machine");
    }
    // Those of machines that have just gone are Ready for a while.
    let mut world = World::new(0..20, 1..18);
    with_nodes(&mut world, 0..22, 0..22);
    assert!(world.wait().breaker.is_none());
}

#[test]
fn a_node_that_is_ready_for_a_while_after_its_machine_holds_up_no_other() {
    let mut world = World::new(2..20, 0..20);
    with_nodes(&mut world, 0..20, 1..20);
    world.look(10);
    world.look(12);
    world.machines.push(Machine { deleting: true, ..machine(1) });
    world.look(14);
    assert_eq!(claims(&world.look(16)), [claim(0).name.clone()], "a machine on its way out is listed");
    assert!(!world.history.keys().any(|finding| matches!(finding, Finding::HiddenMachine(..))));
}

#[test]
fn who_has_just_been_launched_is_not_missing_however_long_that_took() {
    let mut world = World::new(1..20, 0..20);
    Arc::make_mut(&mut world.claims[0]).conditions[0].since = at(15);
    assert_eq!((world.wait(), world.history.len()), (Verdict::default(), 0));
    world.look(17);
    assert_eq!(world.history.len(), 1);
}

#[test]
fn machines_of_another_cluster_are_asked_about_where_the_listing_shows_none_of_ours() {
    // The name of another cluster was given to this one, and that one has a single machine.
    for claims in [1..2, 1..11] {
        for ready in [0..0, claims.clone()] {
            let mut world = World::new(0..1, claims.clone());
            with_nodes(&mut world, claims.clone(), ready);
            for minute in 10..40 {
                let verdict = world.look(minute);
                assert!(verdict.reap.is_empty() && verdict.breaker.is_some(), "{claims:?}");
            }
        }
    }
}

#[test]
fn a_nodeclaim_whose_machine_is_gone_is_finished_as_carefully() {
    let mut world = World::new(1..20, 0..20);
    for minute in [10, 12, 14] {
        assert_eq!(world.look(minute), Verdict::default());
    }
    assert_eq!(claims(&world.look(16)), [ClaimName::from("claim-0")]);
}

#[test]
fn a_nodeclaim_that_names_no_machine_of_the_listing_is_not_lost_while_one_carries_its_mark() {
    let mut world = World::new(0..20, 0..20);
    let edited = Claim { provider_id: Some("sim://nowhere".into()), ..Claim::clone(&world.claims[0]) };
    world.claims[0] = Arc::new(edited);
    for minute in 10..40 {
        assert_eq!(world.look(minute), Verdict::default());
    }
    world.machines[0].deleting = true;
    for minute in 40..50 {
        world.look(minute);
    }
    assert_eq!(claims(&world.look(50)), [ClaimName::from("claim-0")], "one that is on its way out is none");
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
fn what_cannot_go_holds_up_nothing_else() {
    // Of ten, one may go at a look.
    let mut world = World::new(0..10, 2..10);
    let first = ProviderId::from("sim://0");
    assert_eq!(world.wait().reap, vec![first.clone()]);
    world.history.get_mut(&Finding::OrphanMachine(first.clone())).unwrap().vain += 1;
    let second = ProviderId::from("sim://1");
    assert_eq!(world.look(18).reap, vec![second.clone()], "its deletion was refused: the other has its turn");
    world.history.get_mut(&Finding::OrphanMachine(second)).unwrap().vain += 2;
    assert_eq!(world.look(20).reap, [first], "and then it has its turn again");

    let mut world = World::new(2..10, 0..10);
    assert_eq!(claims(&world.wait()), [claim(0).name.clone()]);
    let lost = Finding::LostMachine(claim(0).name.clone(), claim(0).uid.clone());
    world.history.get_mut(&lost).unwrap().vain += 1;
    assert_eq!(claims(&world.look(18)), [claim(1).name.clone()], "the cloud shows the machine of the first");
}

#[test]
fn what_is_going_already_is_no_measure_of_what_may_go_besides() {
    // A hundred go with their NodePool; of the twenty that are to stay, all have lost their NodeClaims.
    let mut world = World::new(0..120, 20..120);
    world.machines[20..].iter_mut().for_each(|machine| machine.deleting = true);
    let going = |claim: &Arc<Claim>| Arc::new(Claim { deleting: Some(at(5)), ..Claim::clone(claim) });
    world.claims = world.claims.iter().map(going).collect();
    let verdict = world.wait();
    assert!(verdict.reap.is_empty() && verdict.drain.is_empty(), "{verdict:?}");
    let reason = verdict.breaker.unwrap().reason;
    assert!(reason.starts_with("20 of 20 machines belong to no NodeClaim"), "{reason}");
    // Nor are they when machines are not listed.
    let mut world = World::new(10..120, 0..120);
    world.claims[20..].iter_mut().for_each(|claim| *claim = going(claim));
    let reason = world.wait().breaker.unwrap().reason;
    assert_eq!(reason, "the machines of 10 of 20 NodeClaims are not in the listing");
}

#[test]
fn of_a_hundred_machines_that_are_gone_at_once_every_nodeclaim_is_finished_and_no_other() {
    let mut world = World::new(100..1000, 0..1000);
    let mut finished = BTreeSet::new();
    for minute in (10..400).step_by(2) {
        let verdict = world.look(minute);
        let goes = claims(&verdict);
        assert_eq!((verdict.breaker, verdict.reap), (None, vec![]));
        world.claims.retain(|claim| !goes.contains(&claim.name));
        finished.extend(goes);
    }
    assert_eq!(finished, (0..100).map(|n| claim(n).name.clone()).collect());
}

/// A Node of claim and machine `n`, with joiner's finalizer and the label of our NodeClass.
fn held_node(n: usize, deleting: bool) -> Node {
    Node {
        name: format!("node-{n}").into(),
        uid: format!("node-uid-{n}").into(),
        created: at(0),
        deleting: deleting.then(|| at(5)),
        labels: Labels::from([("g/k".into(), "n".into())]),
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        owner_claims: vec![OwnerClaim::of(&claim(n))],
        provider_id: Some(format!("sim://{n}").into()),
        ..samples::node()
    }
}

/// A world of 20 NodeClaims with machines and Nodes, but that of number 0, and of its Node whatever the edit makes of it.
fn with_a_left_node(edit: impl FnOnce(&mut Node)) -> World {
    let mut world = World::new(1..20, 1..20);
    let mut fold = Fold::default();
    let mut left = held_node(0, true);
    edit(&mut left);
    for node in (1..20).map(|n| held_node(n, false)).chain([left]) {
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    world.snapshot = fold.snapshot().clone();
    world
}

#[test]
fn a_node_that_lost_its_nodeclaim_and_its_machine_is_let_go() {
    let mut world = with_a_left_node(|_| {});
    for minute in [10, 12, 14] {
        assert!(world.look(minute).finish.is_empty(), "at minute {minute}");
    }
    assert_eq!(nodes(&world.look(16)), [NodeName::from("node-0")]);
}

#[test]
fn a_node_that_is_anybodys_is_not_let_go() {
    let of_another = |edit: fn(&mut Claim)| {
        let mut world = with_a_left_node(|_| {});
        let mut foreign = Claim { name: "theirs".into(), provider_id: None, ..Claim::clone(&claim(0)) };
        (foreign.class.kind, foreign.uid) = ("EC2NodeClass".into(), "theirs".into());
        edit(&mut foreign);
        world.claims.push(Arc::new(foreign));
        world
    };
    let with_its_machine = || {
        let mut world = with_a_left_node(|_| {});
        world.machines.push(Machine { deleting: true, ..machine(0) });
        world
    };
    let cases = [
        ("it is not being deleted", with_a_left_node(|node| node.deleting = None)),
        ("it waits for nobody", with_a_left_node(|node| node.finalizers.clear())),
        ("it says of itself that it is another autoscaler's", with_a_left_node(|node| node.labels.clear())),
        ("its NodeClaim is there", with_a_left_node(|node| node.owner_claims = vec![OwnerClaim::of(&claim(3))])),
        ("its machine is there", with_its_machine()),
        (
            "another autoscaler's NodeClaim owns it",
            of_another(|foreign| (foreign.name, foreign.uid) = (claim(0).name.clone(), claim(0).uid.clone())),
        ),
        ("another autoscaler's NodeClaim names it", of_another(|claim| claim.node = Some("node-0".into()))),
        (
            "another autoscaler's NodeClaim has its machine",
            of_another(|claim| claim.provider_id = Some("sim://0".into())),
        ),
    ];
    for (case, mut world) in cases {
        assert_eq!(world.wait(), Verdict::default(), "{case}");
    }
}

#[test]
fn of_many_nodes_that_were_left_few_go_at_once_and_too_many_open_the_breaker() {
    let left = |count: usize| {
        let mut world = World::new(count..40, count..40);
        let mut fold = Fold::default();
        (0..40).for_each(|n| fold.fold(Fact::NodeSeen(Arc::new(held_node(n, n < count)))));
        world.snapshot = fold.snapshot().clone();
        world
    };
    assert_eq!(nodes(&left(8).wait()).len(), 4);
    let verdict = left(9).wait();
    assert_eq!(verdict.finish, vec![]);
    let reason = verdict.breaker.unwrap().reason;
    assert_eq!(reason, "9 of 40 Nodes have neither NodeClaim nor machine, and wait for their finalizer");
}

#[test]
fn who_approves_that_a_machine_goes_is_not_asked_about_its_node() {
    let mut world = with_a_left_node(|_| {});
    let mut fold = Fold::default();
    (0..4).for_each(|n| fold.fold(Fact::NodeSeen(Arc::new(held_node(n, n < 3)))));
    (world.machines, world.claims, world.snapshot) = (vec![machine(3)], vec![claim(3)], fold.snapshot().clone());
    let orphan = |n: usize| consent::id(&Finding::OrphanMachine(format!("sim://{n}").into()));
    world.said = Some(format!("approve {},{} dismiss {}", orphan(0), orphan(1), orphan(2)));
    let verdict = world.wait();
    assert!(verdict.breaker.is_some(), "nobody has approved that machine 2 goes");
    assert_eq!(nodes(&verdict), [NodeName::from("node-0")], "one at a time");
}

#[test]
fn another_autoscalers_nodeclaims_keep_their_machines_and_are_never_lost() {
    let mut world = World::new(0..20, 0..20);
    let mut foreign = Claim::clone(&world.claims[0]);
    foreign.class.kind = "EC2NodeClass".into();
    world.claims[0] = Arc::new(foreign);
    assert_eq!(world.wait(), Verdict::default(), "its machine is somebody's");
    world.machines.remove(0);
    world.history.clear();
    assert_eq!(world.wait(), Verdict::default(), "whoever looks after it knows where its machine is");
}

#[test]
fn the_only_machine_of_a_cluster_goes_when_the_cluster_is_ours_and_asks_when_it_may_be_another() {
    let mut world = World::new(0..1, []);
    let open = world.wait().breaker.unwrap();
    assert!(open.reason.ends_with("and there is neither NodeClaim nor NodePool"), "{open}");
    // A NodePool alone shows nothing, and neither does a NodeClaim that has no machine yet.
    let pool = crate::core::facts::samples::pool();
    let own = |claims| {
        let mut world = World::new(0..1, claims);
        world.snapshot.pools.insert(pool.name.clone(), Arc::new(pool.clone()));
        world
    };
    let mut unlaunched = Claim::clone(&claim(1));
    (unlaunched.provider_id, unlaunched.conditions) = (None, Vec::new());
    for claims in [vec![], vec![Arc::new(unlaunched)]] {
        let mut world = own(0..0);
        world.claims = claims;
        let open = world.wait().breaker.unwrap();
        assert!(open.reason.contains("and nothing shows that they are this cluster's"), "{open}");
    }
    // The Node does, and so does another machine that is somebody's.
    let mut world = World::new(0..1, []);
    let mut fold = Fold::default();
    fold.fold(Fact::NodeSeen(Arc::new(held_node(0, false))));
    fold.fold(Fact::PoolSeen(Arc::new(pool.clone())));
    world.snapshot = fold.snapshot().clone();
    assert_eq!(world.wait().reap, vec![ProviderId::from("sim://0")]);
    let mut world = own(1..2);
    world.machines.push(machine(1));
    assert_eq!(world.wait().reap, vec![ProviderId::from("sim://0")]);
}

#[test]
fn what_a_person_approves_is_done_slowly_and_only_as_long_as_they_say_so() {
    let mut world = World::new(0..40, 20..40);
    world.said = Some(world.wait().breaker.unwrap().question.unwrap().approve);
    let verdict = world.look(18);
    assert_eq!((verdict.decided, verdict.breaker), (vec![(Decision::Approve, 20)], None));
    assert_eq!(verdict.reap.len(), 4, "few at a time");
    // Four have gone, and what is left is another set: each of it was named.
    world.machines.retain(|machine| !verdict.reap.contains(&machine.id));
    let verdict = world.look(20);
    assert_eq!((verdict.decided, verdict.reap.len()), (vec![], 4));
    // More orphans than were approved: they wait, and those that were approved go on.
    world.claims.truncate(5);
    let verdict = world.look(22);
    let question = verdict.breaker.unwrap().question.unwrap();
    assert!(question.approve.len() > question.dismiss.len() - 20, "{question:?}");
    assert!(verdict.reap.iter().all(|id| (0..20).any(|n| id.as_str() == format!("sim://{n}"))), "{:?}", verdict.reap);
    world.claims = (20..40).map(claim).collect();
    world.said = None;
    assert!(world.look(24).breaker.is_some(), "the approval was taken back");
}

#[test]
fn a_joiner_that_was_restarted_goes_on_with_what_was_approved() {
    let mut world = World::new(0..40, 20..40);
    world.said = Some(world.wait().breaker.unwrap().question.unwrap().approve);
    let gone = world.look(18).reap;
    world.machines.retain(|machine| !gone.contains(&machine.id));
    (world.history, world.consent) = (History::new(), Consent::default());
    let verdict = world.wait();
    assert_eq!((verdict.breaker, verdict.reap.len()), (None, 4));
}

#[test]
fn what_a_person_dismisses_is_left_alone_and_stands_in_nobodys_way() {
    let mut world = World::new(0..40, 20..40);
    world.said = Some(world.wait().breaker.unwrap().question.unwrap().dismiss);
    let verdict = world.look(18);
    assert_eq!((verdict.decided, verdict.reap.len()), (vec![(Decision::Dismiss, 20)], 0));
    world.claims.remove(0);
    for minute in [20, 22, 24] {
        assert!(world.look(minute).reap.is_empty());
    }
    assert_eq!(world.look(26).reap, vec![ProviderId::from("sim://20")], "others are looked after");
}

#[test]
fn what_was_dismissed_is_left_alone_by_a_joiner_that_was_restarted_in_a_cluster_that_has_grown() {
    let mut world = World::new(0..10, 3..10);
    world.said = Some(world.wait().breaker.unwrap().question.unwrap().dismiss);
    // Three of forty are few enough to go without asking, if nobody had said anything about them. One is gone anyway.
    (world.machines, world.claims) = ((1..40).map(machine).collect(), (3..40).map(claim).collect());
    (world.history, world.consent) = (History::new(), Consent::default());
    let verdict = world.wait();
    assert_eq!((verdict.breaker, verdict.reap), (None, vec![]));
}

#[test]
fn who_approves_a_part_lets_nothing_else_go() {
    let mut world = World::new(0..40, 31..40);
    world.wait();
    let orphan = |n: usize| Finding::OrphanMachine(format!("sim://{n}").into());
    let ids: Vec<_> = (0..25).map(|n| consent::id(&orphan(n))).collect();
    world.said = Some(format!("approve {}", ids.join(",")));
    for minute in (18..60).step_by(2) {
        let verdict = world.look(minute);
        assert!(verdict.reap.iter().all(|id| (0..25).any(|n| id.as_str() == format!("sim://{n}"))), "{verdict:?}");
        world.machines.retain(|machine| !verdict.reap.contains(&machine.id));
    }
    assert_eq!(world.machines.len(), 15, "what was approved has gone");
}

#[test]
fn what_was_left_out_of_an_approval_waits_however_little_it_is_by_then() {
    let mut world = World::new(0..10, 3..10);
    world.wait();
    let ids = [0, 1, 2].map(|n| consent::id(&Finding::OrphanMachine(format!("sim://{n}").into())));
    world.said = Some(format!("approve {},{}", ids[0], ids[1]));
    for minute in (18..40).step_by(2) {
        let verdict = world.look(minute);
        world.machines.retain(|machine| !verdict.reap.contains(&machine.id));
    }
    assert_eq!(world.machines.len(), 8, "one orphan of eight machines needs nobody's word otherwise");
    let breaker = world.look(40).breaker.expect("it waits for a word");
    assert!(breaker.reason.contains("about 1 findings that a person was asked about"), "{breaker}");
    assert_eq!(breaker.question.unwrap().approve, format!("approve {}", ids[2]));
    world.said = None;
    assert!(world.look(42).breaker.is_some(), "who takes back what he has said of others says nothing of it");
    world.said = Some(format!("approve {}", ids[2]));
    assert_eq!(world.look(44).reap, [ProviderId::from("sim://2")]);
}

#[test]
fn a_cluster_that_grows_does_not_answer_what_a_person_was_asked() {
    // Two machines are another cluster's, and this one wears its name: they are all that there is, until eight are bought.
    let mut world = World::new(0..2, []);
    let pool = crate::core::facts::samples::pool();
    world.snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    assert!(world.look(10).breaker.is_some());
    (world.machines, world.claims) = ((0..10).map(machine).collect(), (2..10).map(claim).collect());
    for minute in (12..60).step_by(2) {
        if minute == 40 {
            let mut next = Consent::default();
            next.resume(world.consent.held().cloned().collect());
            (world.history, world.consent) = (History::new(), next);
        }
        let verdict = world.look(minute);
        let reason = verdict.breaker.unwrap().reason;
        assert_eq!(
            (verdict.reap, &*reason),
            (vec![], "nothing was decided about 2 findings that a person was asked about")
        );
    }
    let lost = world.machines.remove(0);
    let question = world.look(60).breaker.unwrap().question.unwrap();
    world.machines.push(lost);
    world.said = Some(question.approve);
    let verdict = world.look(62);
    assert_eq!(verdict.reap, vec![ProviderId::from("sim://1")], "what was approved goes");
    assert!(verdict.breaker.is_some(), "one that was not seen for a moment still waits");
    world.machines.retain(|machine| machine.id.as_str() != "sim://0");
    for minute in [64, 66, 68, 70] {
        world.look(minute);
    }
    assert_eq!(world.consent.held().count(), 1, "it is no more, and no question");
}

#[test]
fn a_decision_about_something_else_decides_nothing() {
    let mut world = World::new(0..40, 20..40);
    world.said = Some("approve 0123456789ab".into());
    let question = world.wait().breaker.unwrap().question.unwrap();
    let why = world.consent.misunderstood().unwrap();
    assert!(why.contains("is about 0123456789ab") && question.approve.starts_with("approve "), "{why}");
    let mut world = World::new(0..40, 0..40);
    world.said = Some("dismiss 0123456789ab".into());
    assert!(world.wait().breaker.is_none() && world.consent.misunderstood().is_some(), "it is said at any time");
}

#[test]
fn nothing_goes_while_what_a_person_has_written_is_not_understood() {
    let mut world = World::new(0..10, 3..10);
    let question = world.wait().breaker.unwrap().question.unwrap();
    world.said = Some(question.dismiss.clone());
    assert_eq!(world.look(18).breaker, None);
    // Three of forty are few enough to go without asking; what else is found is, too.
    (world.machines, world.claims) = ((0..40).map(machine).collect(), (4..40).map(claim).collect());
    let last = consent::id(&Finding::OrphanMachine("sim://3".into()));
    world.said = Some(format!("{} {last}", question.dismiss));
    let mut minute = 20;
    let mut look = |world: &mut World| {
        minute += 2;
        world.look(minute)
    };
    for restarted in [false, false, false, false, true, false, false, false] {
        if restarted {
            (world.history, world.consent) = (History::new(), Consent::default());
        }
        let verdict = look(&mut world);
        let breaker = verdict.breaker.clone().unwrap();
        assert_eq!((breaker.cause, verdict.reap), (Cause::AnnotationNotUnderstood, vec![]));
        assert!(breaker.reason.contains("\" is neither approve nor dismiss; right are"), "{breaker}");
        // Who was there before is remembered as long as joiner lives.
        let (open, decided) = (breaker.question.clone().unwrap(), world.consent.describe().is_some());
        assert_eq!(open.approve, if decided { format!("approve {last} {}", question.dismiss) } else { all_of(&world) });
    }
    world.said = Some(format!("{},{last}", question.dismiss));
    let verdict = look(&mut world);
    assert_eq!((verdict.breaker, verdict.reap, world.consent.misunderstood()), (None, vec![], None));
}

/// What approves of all orphans of a world.
fn all_of(world: &World) -> String {
    format!("approve {}", world.history.keys().map(consent::id).collect::<Vec<_>>().join(","))
}

#[test]
fn what_was_approved_stops_when_a_word_comes_that_is_not_understood_and_goes_on_after_it() {
    let mut world = World::new(0..40, 20..40);
    let approve = world.wait().breaker.unwrap().question.unwrap().approve;
    world.said = Some(approve.clone());
    assert_eq!(world.look(18).reap.len(), 4);
    world.said = Some("stop!".into());
    let verdict = world.look(20);
    let breaker = verdict.breaker.unwrap();
    assert_eq!((verdict.reap, breaker.question.unwrap().approve), (vec![], approve.clone()));
    world.said = Some(approve);
    assert_eq!(world.look(22).reap.len(), 4);
}

#[test]
fn a_word_that_is_not_understood_is_asked_about_where_nothing_is_found() {
    let mut world = World::new(0..40, 0..40);
    world.said = Some("approve".into());
    let breaker = world.look(10).breaker.unwrap();
    assert_eq!((breaker.cause, &*breaker.question.unwrap().approve), (Cause::AnnotationNotUnderstood, ""));
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
fn a_clock_that_is_set_neither_shortens_evidence_nor_draws_it_out() {
    for clocks in [[500, 500, 14, 15], [10, 12, 500, 501]] {
        let mut world = World::new(0..20, 1..20);
        let looks = [10, 12, 14, 15].into_iter().zip(clocks);
        let gone: Vec<_> = looks.map(|(minute, clock)| world.look_when(minute, clock).reap.len()).collect();
        assert_eq!(gone, [0, 0, 0, 1], "after three looks and five minutes, with a clock that said {clocks:?}");
        let since = world.history[&Finding::OrphanMachine("sim://0".into())].since;
        assert_eq!(since, at(*clocks.iter().min().unwrap()), "as far as the clock is right by now");
    }
}

/// A cluster in which the cloud has made a second machine for NodeClaim 3.
fn with_a_second_one() -> World {
    let mut world = World::new(0..10, 0..10);
    world.machines.insert(0, Machine { id: "sim://second".into(), ..machine(3) });
    world
}

#[test]
fn the_second_machine_of_a_nodeclaim_goes_on_the_same_evidence_and_again_until_it_is_gone() {
    let mut world = with_a_second_one();
    for minute in [10, 12, 14] {
        assert_eq!(world.look(minute), Verdict::default(), "at minute {minute}");
    }
    let second = ProviderId::from("sim://second");
    // The order fails, or the cloud forgets it: it is given again with every look.
    for minute in [16, 18, 20] {
        let verdict = world.look(minute);
        assert_eq!((verdict.reap, verdict.again), (vec![second.clone()], vec![]), "at minute {minute}");
    }
    // The cloud has taken it, and the machine lingers; then no list shows it any more.
    world.ordered.insert(second.clone());
    world.machines[0].deleting = true;
    let verdict = world.look(22);
    assert_eq!((verdict.reap, verdict.again), (vec![], vec![second.clone()]));
    world.machines.remove(0);
    assert_eq!(world.look(24).again, vec![second]);
    world.ordered.clear();
    assert_eq!(world.look(26), Verdict::default());
}

/// What is different in a world.
type Edit = fn(&mut World);

#[test]
fn the_machine_that_a_nodeclaim_names_is_never_the_superfluous_one() {
    let edits: [(&str, Edit); 6] = [
        ("its name is not written yet", |world| Arc::make_mut(&mut world.claims[3]).provider_id = None),
        ("what it names is not listed", |world| drop(world.machines.remove(4))),
        ("what it names is going", |world| world.machines[4].deleting = true),
        ("what it names is another's", |world| world.machines[4].token = Some("uid-4".into())),
        ("what it names has lost its mark", |world| world.machines[4].token = None),
        ("a Node of its says that this is its machine", |world| {
            let node = Node {
                owner_claims: vec![OwnerClaim::of(&claim(3))],
                provider_id: Some("sim://second".into()),
                ..samples::node()
            };
            let mut fold = Fold::default();
            fold.fold(Fact::NodeSeen(Arc::new(node)));
            world.snapshot = fold.snapshot().clone();
        }),
    ];
    for (case, edit) in edits {
        let mut world = with_a_second_one();
        edit(&mut world);
        for minute in (10..40).step_by(2) {
            assert_eq!(world.look(minute).reap, vec![], "{case}");
        }
    }
    // Another NodeClaim may have been given its name by hand.
    let mut world = with_a_second_one();
    Arc::make_mut(&mut world.claims[7]).provider_id = Some("sim://second".into());
    assert_eq!(world.wait().reap, vec![]);
}

#[test]
fn many_second_machines_at_once_are_a_mistake_of_the_looking() {
    let mut world = World::new(0..10, 0..10);
    for n in 0..5 {
        world.machines.push(Machine { id: format!("sim://second-{n}").into(), ..machine(n) });
    }
    let verdict = world.wait();
    assert_eq!(verdict.reap, vec![]);
    assert_eq!(verdict.breaker.unwrap().reason, "0 of 15 machines belong to no NodeClaim, 5 are the second of theirs");
}

#[test]
fn an_order_is_not_repeated_for_a_machine_that_somebody_claims_by_now_or_that_stands() {
    let mut world = World::new(0..10, 0..10);
    world.ordered = [ProviderId::from("sim://3")].into();
    world.machines[3].deleting = true;
    assert_eq!(world.look(10).again, vec![], "NodeClaim 3 names it");
    world.machines.push(machine(20));
    world.ordered = [ProviderId::from("sim://20")].into();
    let verdict = world.look(12);
    assert_eq!((verdict.again, verdict.reap), (vec![], vec![]), "it stands, and there is no evidence yet");
}

/// A Node for a machine, with one pod.
fn inhabited(n: usize) -> Snapshot {
    let mut fold = Fold::default();
    let mut node = serving_node();
    (node.provider_id, node.owner_claims) = (Some(machine(n).id), vec![OwnerClaim::of(&claim(n))]);
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    fold.fold(Fact::PodSeen(Arc::new(pod("a", Some("node-1")))));
    fold.snapshot().clone()
}

#[test]
fn what_runs_on_an_orphan_leaves_it_first_or_has_had_its_time() {
    let mut world = World::new(0..20, 1..20);
    world.snapshot = inhabited(0);
    let id = ProviderId::from("sim://0");
    let first = world.wait();
    assert_eq!((first.drain, first.reap), (vec![id.clone()], vec![]));
    world.draining.insert(id.clone(), at(16));
    let second = world.look(25);
    assert_eq!((second.drain, second.reap), (vec![id.clone()], vec![]), "it has ten minutes");
    let late = world.look(26);
    assert_eq!((late.drain, late.reap), (vec![], vec![id.clone()]), "it does not live for ever");
    world.snapshot = Snapshot::default();
    assert_eq!(world.look(25).reap, [id], "nothing runs there any more");
    world.claims.push(claim(0));
    assert_eq!(world.look(26), Verdict::default(), "it is claimed again");
}

#[test]
fn machines_whose_pods_are_leaving_hold_up_no_others() {
    let mut world = World::new(0..20, 3..20);
    world.snapshot = inhabited(0);
    let ids: Vec<ProviderId> = (0..3).map(|n| machine(n).id).collect();
    let first = world.wait();
    assert_eq!((first.drain, first.reap), (vec![ids[0].clone()], vec![ids[1].clone()]), "a tenth at a time");
    world.draining.insert(ids[0].clone(), at(16));
    world.machines.remove(1);
    let second = world.look(18);
    assert_eq!((second.drain, second.reap), (vec![ids[0].clone()], vec![ids[2].clone()]));
}

#[test]
fn its_volumes_leave_first_too() {
    let mut world = World::new(0..20, 1..20);
    let mut fold = Fold::default();
    fold.fold(Fact::NodeSeen(Arc::new(Node { provider_id: Some(machine(0).id), ..serving_node() })));
    let one = VolumeAttachment { name: "csi-1".into(), node: "node-1".into(), volume: Some("pv-1".into()) };
    fold.fold(Fact::AttachmentSeen(Arc::new(one)));
    world.snapshot = fold.snapshot().clone();
    let verdict = world.wait();
    assert_eq!((verdict.drain, verdict.reap), (vec![machine(0).id], vec![]));
}
