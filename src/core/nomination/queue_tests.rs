//! Who is nominated, and when.

use super::*;
use crate::core::facts::samples::{claim, node, pod, start, zone_spread};
use crate::core::facts::{Claim, Fact, Fold, Node};
use crate::core::labels;

/// NodeClaims, each with its Node, which is open.
fn nodes(names: &[&str]) -> Fold {
    let mut fold = Fold::default();
    for name in names {
        let (mut claim, mut node) = (claim(), node());
        (claim.name, claim.uid) = ((*name).into(), format!("uid-{name}").into());
        claim.provider_id = Some(format!("sim://{name}").into());
        (node.name, node.provider_id) = ((*name).into(), claim.provider_id.clone());
        node.labels.insert(labels::REGISTERED.into(), "true".into());
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    fold
}

/// The labels of a node change.
fn relabel(fold: &mut Fold, name: &str, change: impl FnOnce(&mut labels::Labels)) {
    let mut node = (*fold.snapshot().nodes[&NodeName::from(name)]).clone();
    change(&mut node.labels);
    fold.fold(Fact::NodeSeen(Arc::new(node)));
}

fn closed(labels: &mut labels::Labels) {
    labels.remove(labels::REGISTERED);
}

fn in_zone(zone: &str) -> impl FnOnce(&mut labels::Labels) {
    move |labels| drop(labels.insert(labels::ZONE.into(), zone.into()))
}

/// Three pods of one Deployment that are planned for node `a`. They came in the order z, y, x.
fn three(spread: Option<i32>) -> Fold {
    let mut fold = nodes(&["a"]);
    for uid in ["z", "y", "x"] {
        fold.fold(seen(uid, spread, |_| {}));
        fold.planned(&"a".into(), vec![uid.into()]);
    }
    fold
}

fn seen(uid: &str, spread: Option<i32>, change: impl FnOnce(&mut Pod)) -> Fact {
    let mut pod = pod(uid, None);
    let mut shape = (*pod.shape).clone();
    shape.spreads.extend(spread.map(zone_spread));
    pod.shape = Arc::new(shape);
    change(&mut pod);
    Fact::PodSeen(Arc::new(pod))
}

fn at(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

/// Who is nominated next where, as `pod>node`.
fn next(nominations: &mut Nominations, fold: &Fold, now: Timestamp) -> Vec<String> {
    let next = nominations.next(fold.snapshot(), &BTreeSet::new(), |_, _| true, usize::MAX, now);
    next.iter().map(|next| format!("{}>{}", next.pod.uid, next.node)).collect()
}

fn first(fold: &Fold) -> Vec<String> {
    next(&mut Nominations::default(), fold, start())
}

fn nominated(node: &str) -> impl FnOnce(&mut Pod) {
    move |pod| pod.nominated = Some(node.into())
}

fn bound(node: &str) -> impl FnOnce(&mut Pod) {
    move |pod| pod.node = Some(node.into())
}

const NOBODY: [&str; 0] = [];

#[test]
fn pods_are_nominated_once_in_the_order_in_which_they_came() {
    let fold = three(None);
    let mut nominations = Nominations::default();
    assert_eq!(next(&mut nominations, &fold, at(0)), ["z>a", "y>a", "x>a"]);
    assert_eq!(next(&mut nominations, &fold, at(1)), NOBODY, "their nominations show soon");
    nominations.forget(&"y".into());
    assert_eq!(next(&mut nominations, &fold, at(2)), ["y>a"], "that was not written");
}

#[test]
fn whom_kube_scheduler_has_tried_in_vain_comes_after_whom_it_has_not_and_priority_before_all() {
    let mut fold = nodes(&["a"]);
    let young = |pod: &mut Pod| (pod.unjudged, pod.unschedulable) = (true, false);
    let urgent = |pod: &mut Pod| {
        let mut shape = (*pod.shape).clone();
        shape.priority = 7;
        pod.shape = Arc::new(shape);
        (pod.unjudged, pod.unschedulable) = (true, false);
    };
    fold.fold(seen("tried", None, young));
    fold.fold(seen("young", None, young));
    fold.fold(seen("urgent", None, urgent));
    fold.planned(&"a".into(), vec!["tried".into(), "young".into(), "urgent".into()]);
    fold.fold(seen("tried", None, |_| {}));
    fold.fold(seen("late", None, young));
    fold.planned(&"a".into(), vec!["late".into()]);
    assert_eq!(first(&fold), ["urgent>a", "young>a", "tried>a", "late>a"]);
}

#[test]
fn no_more_are_named_than_are_asked_for_and_the_others_next_time() {
    let fold = three(None);
    let mut nominations = Nominations::default();
    let mut two = || {
        let next = nominations.next(fold.snapshot(), &BTreeSet::new(), |_, _| true, 2, start());
        (next.iter().map(|next| next.pod.uid.to_string()).collect::<Vec<_>>(), nominations.left())
    };
    assert_eq!(two(), (vec!["z".to_owned(), "y".to_owned()], 1));
    assert_eq!(two(), (vec!["x".to_owned()], 0));
    assert_eq!(nominations.standing(), 3);
}

#[test]
fn nobody_is_nominated_to_a_node_that_is_closed_or_goes() {
    for (change, may_open, expected) in [
        ((|_: &mut Claim, node: &mut Node| node.labels = labels::Labels::new()) as fn(&mut Claim, &mut Node), false, 0),
        (|_, node| node.labels = labels::Labels::new(), true, 3),
        (|_, node| node.deleting = Some(start()), true, 0),
        (|claim, _| claim.deleting = Some(start()), true, 0),
    ] {
        let mut fold = three(None);
        let (mut claim, mut node) = (
            (*fold.snapshot().claims[&ClaimName::from("a")]).clone(),
            (*fold.snapshot().nodes[&NodeName::from("a")]).clone(),
        );
        change(&mut claim, &mut node);
        claim.version = "2".into();
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.fold(Fact::NodeSeen(Arc::new(node)));
        fold.planned(&"a".into(), vec!["x".into(), "y".into(), "z".into()]);
        let opening: BTreeSet<ClaimName> = may_open.then(|| "a".into()).into_iter().collect();
        let next = Nominations::default().next(fold.snapshot(), &opening, |_, _| true, usize::MAX, start());
        assert_eq!(next.len(), expected);
    }
}

#[test]
fn those_that_are_not_wanted_are_passed_over() {
    let wanted = |pod: &Pod, _: &NodeName| pod.uid != "y".into();
    let fold = three(None);
    let next = Nominations::default().next(fold.snapshot(), &BTreeSet::new(), wanted, 2, start());
    assert_eq!(next.iter().map(|next| next.pod.uid.to_string()).collect::<Vec<_>>(), ["z", "x"]);
}

#[test]
fn of_pods_that_spread_only_so_many_are_nominated_as_may_be_there_at_a_time() {
    let mut fold = three(Some(1));
    let mut nominations = Nominations::default();
    assert_eq!(next(&mut nominations, &fold, at(0)), ["z>a"]);
    assert_eq!(next(&mut nominations, &fold, at(1)), NOBODY, "its nomination shows soon");
    fold.fold(seen("z", Some(1), nominated("a")));
    assert_eq!(next(&mut nominations, &fold, at(2)), NOBODY);
    assert_eq!(first(&fold), NOBODY, "nor after a restart");
    fold.fold(seen("z", Some(1), bound("a")));
    assert_eq!(next(&mut nominations, &fold, at(3)), ["y>a"], "the next, when it is bound");
    assert_eq!(first(&three(Some(2))), ["z>a", "y>a"]);
}

#[test]
fn pods_that_spread_take_turns_with_the_nodes_of_a_domain() {
    let mut fold = nodes(&["a", "b"]);
    for (uid, claim) in [("w", "a"), ("x", "a"), ("y", "b"), ("z", "b")] {
        fold.fold(seen(uid, Some(1), |pod| pod.unjudged = true));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    // One zone: those that come first are nominated, and not two of four in the order of the plan.
    assert_eq!(first(&fold), ["w>a", "x>b"]);
    relabel(&mut fold, "a", in_zone("zone-a"));
    relabel(&mut fold, "b", in_zone("zone-b"));
    assert_eq!(first(&fold), ["w>a", "x>b"], "of two zones, from one to the other");
}

#[test]
fn who_spreads_goes_where_the_balance_is_when_its_turn_comes_and_not_where_the_plan_had_it() {
    let young = |pod: &mut Pod| pod.unjudged = true;
    let mut fold = nodes(&["a", "b"]);
    relabel(&mut fold, "a", in_zone("zone-a"));
    relabel(&mut fold, "b", in_zone("zone-b"));
    for (uid, claim) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b"), ("5", "a"), ("6", "b")] {
        fold.fold(seen(uid, Some(1), young));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    let mut nominations = Nominations::default();
    assert_eq!(next(&mut nominations, &fold, at(0)), ["1>a", "2>b"]);
    fold.fold(seen("1", Some(1), bound("a")));
    // kube-scheduler has tried it before the second, without a nomination.
    fold.fold(seen("3", Some(1), bound("b")));
    assert_eq!(next(&mut nominations, &fold, at(1)), ["4>a"], "the second keeps its place, which makes two on b");
}

#[test]
fn to_nodes_that_are_closed_those_that_kube_scheduler_takes_first_are_nominated_last() {
    let young = |pod: &mut Pod| pod.unjudged = true;
    let mut fold = nodes(&["a"]);
    for uid in ["x", "y", "z"] {
        fold.fold(seen(uid, None, young));
        fold.planned(&"a".into(), vec![uid.into()]);
    }
    relabel(&mut fold, "a", closed);
    let opening = BTreeSet::from([ClaimName::from("a")]);
    let mut nominations = Nominations::default();
    let mut one = |fold: &Fold, now| {
        let next = nominations.next(fold.snapshot(), &opening, |_, _| true, 1, now);
        next.iter().map(|next| next.pod.uid.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(one(&fold, at(0)), ["z"]);
    // It is tried in vain meanwhile, and comes after the others.
    fold.fold(seen("x", None, |_| {}));
    assert_eq!([one(&fold, at(1)), one(&fold, at(2))].concat(), ["x", "y"]);
}

#[test]
fn of_equal_pods_that_spread_the_one_whose_turn_is_first_gets_the_first_place_of_the_plan() {
    let young = |pod: &mut Pod| pod.unjudged = true;
    let mut fold = nodes(&["a", "b"]);
    for (uid, claim) in [("x", "a"), ("y", "b"), ("z", "a")] {
        fold.fold(seen(uid, Some(2), young));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    assert_eq!(first(&fold), ["x>a", "y>b", "z>a"]);
    for uid in ["z", "x", "y"] {
        fold.fold(seen(uid, Some(2), |_| {}));
    }
    assert_eq!(first(&fold), ["z>a", "x>b", "y>a"]);
    fold.fold(seen("z", Some(2), nominated("b")));
    assert_eq!(first(&fold), ["x>a", "y>a"], "who is nominated to a place keeps it");
}

#[test]
fn of_equal_pods_that_may_go_anywhere_the_ones_whose_turn_is_first_get_the_nodes_that_are_there_first() {
    let mut fold = nodes(&["b", "c"]);
    // Of NodeClaim `a` no Node is there.
    for (uid, claim) in [("x", "a"), ("y", "c"), ("z", "b")] {
        fold.fold(seen(uid, None, |_| {}));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    assert_eq!(first(&fold), ["x>b", "y>c"], "z comes last, and gets the node that is not there");
    relabel(&mut fold, "b", closed);
    let opening = BTreeSet::from([ClaimName::from("b")]);
    let next = Nominations::default().next(fold.snapshot(), &opening, |_, _| true, usize::MAX, start());
    let next: Vec<String> = next.iter().map(|next| format!("{}>{}", next.pod.uid, next.node)).collect();
    assert_eq!(next, ["x>c", "y>b"], "an open node before one that opens");
    fold.fold(seen("y", None, nominated("c")));
    assert_eq!(first(&fold), NOBODY, "who is nominated to the one place that is there keeps it");
}

#[test]
fn pods_with_volumes_keep_the_places_that_suit_these() {
    let mut fold = nodes(&["a", "b"]);
    for (uid, claim) in [("x", "b"), ("y", "a")] {
        fold.fold(seen(uid, None, |pod| pod.volume_claims = vec!["data".into()]));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    assert_eq!(first(&fold), ["x>b", "y>a"]);
}

#[test]
fn a_nomination_is_replaced_when_the_plan_changes() {
    for spread in [None, Some(1)] {
        let mut fold = nodes(&["a", "b"]);
        fold.fold(seen("x", spread, |_| {}));
        fold.planned(&"a".into(), vec!["x".into()]);
        let mut nominations = Nominations::default();
        assert_eq!(next(&mut nominations, &fold, at(0)), ["x>a"]);
        fold.fold(seen("x", spread, nominated("a")));
        fold.planned(&"b".into(), vec!["x".into()]);
        assert_eq!(next(&mut nominations, &fold, at(1)), ["x>b"]);
        assert_eq!(next(&mut nominations, &fold, at(2)), NOBODY, "it shows soon");
        fold.fold(seen("x", spread, nominated("b")));
        assert_eq!(next(&mut nominations, &fold, at(3)), NOBODY);
    }
}

#[test]
fn who_was_tried_for_a_place_keeps_it_though_another_comes_first() {
    let young = |pod: &mut Pod| pod.unjudged = true;
    let mut fold = nodes(&["a", "b"]);
    for (uid, claim) in [("x", "a"), ("y", "b")] {
        fold.fold(seen(uid, Some(1), young));
        fold.planned(&claim.into(), vec![uid.into()]);
    }
    let mut nominations = Nominations::default();
    assert_eq!(next(&mut nominations, &fold, at(0)), ["x>a", "y>b"]);
    fold.fold(seen("x", Some(1), |_| {}));
    assert_eq!(next(&mut nominations, &fold, at(1)), NOBODY);
}

#[test]
fn a_nomination_that_was_taken_away_is_renewed_once_when_it_is_its_turn_again() {
    let mut fold = three(Some(1));
    let mut nominations = Nominations::default();
    assert_eq!(next(&mut nominations, &fold, at(0)), ["z>a"]);
    let lose = |fold: &mut Fold| {
        fold.fold(seen("z", Some(1), nominated("a")));
        fold.fold(seen("z", Some(1), |_| {}));
    };
    lose(&mut fold);
    assert_eq!(next(&mut nominations, &fold, at(1)), ["y>a"], "kube-scheduler tries z again after the others");
    for uid in ["y", "x"] {
        fold.fold(seen(uid, Some(1), bound("a")));
    }
    assert_eq!(next(&mut nominations, &fold, at(2)), ["z>a"]);
    lose(&mut fold);
    assert_eq!(next(&mut nominations, &fold, at(3)), NOBODY);
}

/// What happens to pods that wait, and their nominations; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Turn {
    /// A pod comes, of one of three kinds, and is planned for a node.
    Comes(u8, u8),
    /// kube-scheduler binds a pod where it is nominated, or elsewhere.
    Binds(u8, Option<u8>),
    /// kube-scheduler takes a nomination away.
    Denominates(u8),
    /// Nominations show in the API.
    Shows(u8),
    Deleted(u8),
    /// A nomination could not be written.
    Forgotten(u8),
    /// Nothing is planned for a node any more.
    Unplanned(u8),
    NodeGone(u8),
}

fn turns() -> impl proptest::strategy::Strategy<Value = Vec<Turn>> {
    use proptest::prelude::*;
    let turn = prop_oneof![
        4 => (any::<u8>(), any::<u8>()).prop_map(|(kind, on)| Turn::Comes(kind, on)),
        6 => (any::<u8>(), proptest::option::weighted(0.2, any::<u8>())).prop_map(|(pod, on)| Turn::Binds(pod, on)),
        3 => any::<u8>().prop_map(Turn::Shows),
        1 => any::<u8>().prop_map(Turn::Denominates),
        1 => any::<u8>().prop_map(Turn::Deleted),
        1 => any::<u8>().prop_map(Turn::Forgotten),
        1 => any::<u8>().prop_map(Turn::Unplanned),
        1 => any::<u8>().prop_map(Turn::NodeGone),
    ];
    proptest::collection::vec(turn, 1..60)
}

/// A cluster of three nodes, and where pods were nominated.
struct Ward {
    fold: Fold,
    came: usize,
    nominated: BTreeMap<PodUid, NodeName>,
}

impl Ward {
    fn waiting(&self, choice: u8) -> Option<Pod> {
        let all = self.fold.snapshot().pods.values().filter(|pod| pod.node.is_none()).collect::<Vec<_>>();
        (!all.is_empty()).then(|| (**all[usize::from(choice) % all.len()]).clone())
    }

    fn changed(&mut self, choice: u8, change: impl FnOnce(&mut Pod, Option<&NodeName>)) {
        if let Some(mut pod) = self.waiting(choice) {
            let own = self.nominated.get(&pod.uid);
            change(&mut pod, own);
            self.fold.fold(Fact::PodSeen(Arc::new(pod)));
        }
    }

    fn play(&mut self, turn: &Turn) {
        let name = |choice: u8| ["a", "b", "c"][usize::from(choice) % 3];
        match *turn {
            Turn::Comes(kind, on) => {
                self.came += 1;
                let uid = format!("pod-{}", self.came);
                let spread = [None, Some(1), Some(2)][usize::from(kind) % 3];
                self.fold.fold(seen(&uid, spread, |_| {}));
                self.fold.planned(&name(on).into(), vec![uid.as_str().into()]);
            }
            Turn::Binds(choice, elsewhere) => self.changed(choice, |pod, own| {
                let elsewhere = elsewhere.map(|on| NodeName::from(name(on)));
                pod.node = elsewhere.or_else(|| own.cloned());
            }),
            Turn::Shows(choice) => self.changed(choice, |pod, own| pod.nominated = own.cloned()),
            Turn::Denominates(choice) => self.changed(choice, |pod, _| pod.nominated = None),
            Turn::Deleted(choice) => {
                if let Some(pod) = self.waiting(choice) {
                    self.fold.fold(Fact::PodGone(pod.uid));
                }
            }
            Turn::Unplanned(choice) => self.fold.unplanned(&name(choice).into()),
            Turn::NodeGone(choice) => self.fold.fold(Fact::NodeGone(name(choice).into())),
            Turn::Forgotten(_) => {}
        }
    }
}

proptest::proptest! {
    /// Who is not looked at would not have been nominated.
    #[test]
    fn the_order_does_not_depend_on_what_is_remembered(turns in turns()) {
        let mut ward = Ward { fold: nodes(&["a", "b", "c"]), came: 0, nominated: BTreeMap::new() };
        let (mut clever, mut plain) = (Nominations::default(), Nominations::default());
        for (turn, seconds) in turns.iter().zip(0..) {
            ward.play(turn);
            if let Turn::Forgotten(choice) = turn
                && let Some(pod) = ward.waiting(*choice)
            {
                clever.forget(&pod.uid);
                plain.forget(&pod.uid);
            }
            plain.content.clear();
            plain.looked = Looked::default();
            plain.tried.retain(|uid, _| ward.fold.snapshot().pods.contains_key(uid));
            let ask = |one: &mut Nominations| {
                one.next(ward.fold.snapshot(), &BTreeSet::new(), |_, _| true, usize::MAX, at(seconds))
            };
            let next = ask(&mut clever);
            proptest::prop_assert_eq!(&next, &ask(&mut plain));
            ward.nominated.extend(next.into_iter().map(|one| (one.pod.uid.clone(), one.node)));
        }
    }
}
