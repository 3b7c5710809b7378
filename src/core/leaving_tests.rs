//! Who is about to need another place, and how a plan for them is remembered.

use jiff::SignedDuration;

use super::*;
use crate::core::facts::samples::{self, serving, serving_node, start};
use crate::core::facts::{
    Claim, ClaimDraft, Count, DoNotDisrupt, Effect, Fact, Fold, Node, PodBudget, PodPhase, PodShape, Selector, Status,
    Toleration, TolerationOperator,
};
use crate::core::ids::ObjectKey;
use crate::core::labels;
use crate::core::scheduling::{PlacedOn, PlannedClaim, Reason, Refusal};

/// A cluster with a NodeClaim `web-1` and its Node `node-1`.
struct Scene {
    fold: Fold,
}

impl Scene {
    fn of(claim: Claim, node: Node) -> Self {
        let mut fold = Fold::default();
        for kind in Kind::ALL {
            fold.fold(Fact::Relisting(kind));
            fold.fold(Fact::Relisted(kind));
        }
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.fold(Fact::NodeSeen(Arc::new(node)));
        Self { fold }
    }

    /// The NodeClaim is being deleted.
    fn leaving() -> Self {
        Self::of(Claim { deleting: Some(start()), ..serving() }, serving_node())
    }

    fn with(mut self, pod: Pod) -> Self {
        self.fold.fold(Fact::PodSeen(Arc::new(pod)));
        self
    }

    fn guarded(mut self, name: &str, budget: PodBudget) -> Self {
        let key = ObjectKey::new("default", name);
        self.fold.fold(Fact::PodBudgetSeen(Arc::new(PodBudget { key, ..budget })));
        self
    }

    fn leavers(&self) -> Vec<String> {
        leavers(self.fold.snapshot(), start()).iter().map(|pod| pod.key.name.to_string()).collect()
    }
}

/// A pod on the Node, of the application `web` and a ReplicaSet.
fn pod(name: &str) -> Pod {
    let pod = samples::pod(name, Some("node-1"));
    shaped(pod, |shape| drop(shape.labels.insert("app".into(), "web".into())))
}

fn shaped(mut pod: Pod, change: impl FnOnce(&mut PodShape)) -> Pod {
    change(Arc::make_mut(&mut pod.shape));
    pod
}

fn owned(name: &str, owner: Owner) -> Pod {
    shaped(pod(name), |shape| shape.owner = owner)
}

fn ending(pod: Pod) -> Pod {
    Pod { deleting: Some(start()), ..pod }
}

/// A budget over the application `web`.
fn budget(min_available: Option<Count>, max_unavailable: Option<Count>) -> PodBudget {
    let selector = Selector { labels: [("app".into(), "web".into())].into(), ..Selector::default() };
    let key = ObjectKey::new("default", "web");
    PodBudget { key, selector: Some(selector), min_available, max_unavailable, spares_unready: false }
}

#[test]
fn pods_of_a_nodeclaim_that_is_deleted_leave() {
    assert_eq!(Scene::leaving().with(pod("a")).with(pod("b")).leavers(), ["a", "b"]);
}

#[test]
fn pods_of_a_node_that_is_deleted_leave() {
    let node = Node { deleting: Some(start()), ..serving_node() };
    assert_eq!(Scene::of(serving(), node).with(pod("a")).leavers(), ["a"]);
}

#[test]
fn pods_of_a_machine_that_ends_leave() {
    let mut claim = serving();
    claim.conditions.push(samples::condition("InstanceTerminating", Status::True));
    assert_eq!(Scene::of(claim, serving_node()).with(pod("a")).leavers(), ["a"]);
}

#[test]
fn pods_of_a_node_that_stays_do_not_leave() {
    let scene = Scene::of(serving(), serving_node()).with(pod("a"));
    assert!(scene.leavers().is_empty() && !is_anybody_going(scene.fold.snapshot()));
}

#[test]
fn pods_that_go_with_the_node_need_no_other_place() {
    let scene = Scene::leaving().with(owned("daemon", Owner::DaemonSet)).with(owned("mirror", Owner::Node));
    assert!(scene.leavers().is_empty() && !is_anybody_going(scene.fold.snapshot()));
}

#[test]
fn pods_that_nobody_makes_again_need_no_other_place() {
    assert!(Scene::leaving().with(owned("bare", Owner::Nobody)).leavers().is_empty());
}

#[test]
fn a_pod_that_has_ended_needs_no_other_place() {
    assert!(Scene::leaving().with(Pod { phase: PodPhase::Succeeded, ..pod("done") }).leavers().is_empty());
}

#[test]
fn the_successor_of_a_pod_that_ends_waits_by_itself_but_for_a_stateful_set() {
    let scene = Scene::leaving().with(ending(pod("web"))).with(ending(owned("db-0", Owner::StatefulSet)));
    assert_eq!(scene.leavers(), ["db-0"]);
}

#[test]
fn a_pod_that_must_not_be_disrupted_does_not_leave_until_its_time_is_over() {
    let protected = |said| shaped(pod("a"), |shape| shape.do_not_disrupt = said);
    assert!(Scene::leaving().with(protected(DoNotDisrupt::Always)).leavers().is_empty());
    let hour = std::time::Duration::from_hours(1);
    let scene = Scene::leaving().with(protected(DoNotDisrupt::For(hour)));
    assert!(scene.leavers().is_empty() && is_anybody_going(scene.fold.snapshot()));
    let later = start() + SignedDuration::from_hours(1);
    assert_eq!(leavers(scene.fold.snapshot(), later).len(), 1);
}

#[test]
fn a_budget_that_lets_nobody_go_keeps_its_pods() {
    let closed = [
        budget(None, Some(Count::Pods(0))),
        budget(None, Some(Count::Percent(0))),
        budget(Some(Count::Percent(100)), None),
    ];
    for budget in closed {
        let other = shaped(pod("other"), |shape| drop(shape.labels.remove("app")));
        let scene = Scene::leaving().with(pod("a")).with(other).guarded("one", budget.clone());
        assert_eq!(scene.leavers(), ["other"], "{budget:?}");
    }
}

#[test]
fn a_budget_that_lets_some_go_keeps_nobody() {
    let open = [
        budget(None, Some(Count::Pods(1))),
        budget(None, Some(Count::Percent(1))),
        budget(Some(Count::Percent(99)), None),
        // It may let pods go when there are more of them.
        budget(Some(Count::Pods(1)), None),
    ];
    for budget in open {
        assert_eq!(Scene::leaving().with(pod("a")).guarded("one", budget.clone()).leavers(), ["a"], "{budget:?}");
    }
}

#[test]
fn two_budgets_over_one_pod_keep_it() {
    let open = budget(None, Some(Count::Pods(1)));
    let scene = Scene::leaving().with(pod("a")).guarded("one", open.clone()).guarded("two", open);
    assert!(scene.leavers().is_empty());
}

#[test]
fn a_budget_of_another_namespace_keeps_nobody() {
    let mut other = pod("a");
    other.key = ObjectKey::new("shop", "a");
    assert_eq!(Scene::leaving().with(other).guarded("one", budget(None, Some(Count::Pods(0)))).leavers(), ["a"]);
}

#[test]
fn a_closed_budget_may_spare_pods_that_are_not_ready() {
    let sparing = PodBudget { spares_unready: true, ..budget(None, Some(Count::Pods(0))) };
    let ready = Pod { ready: Some(start()), ..pod("ready") };
    assert_eq!(Scene::leaving().with(pod("sick")).with(ready).guarded("one", sparing).leavers(), ["sick"]);
}

#[test]
fn a_pod_on_its_way_out_is_kept_by_no_budget() {
    let scene = Scene::leaving().with(ending(owned("db-0", Owner::StatefulSet)));
    assert_eq!(scene.guarded("one", budget(None, Some(Count::Pods(0)))).leavers(), ["db-0"]);
}

#[test]
fn a_pod_that_is_not_evicted_leaves_with_the_machine() {
    let tolerating = shaped(pod("a"), |shape| {
        let (key, effect) = (labels::DISRUPTED_TAINT.into(), Some(Effect::NoSchedule));
        shape.tolerations.push(Toleration {
            key,
            operator: TolerationOperator::Exists,
            value: "".into(),
            effect,
            seconds: None,
        });
    });
    let closed = budget(None, Some(Count::Pods(0)));
    assert_eq!(Scene::leaving().with(tolerating).guarded("one", closed).leavers(), ["a"]);
}

#[test]
fn nobody_leaves_early_where_budgets_cannot_be_seen() {
    let mut fold = Fold::default();
    fold.fold(Fact::Withheld(Kind::PodBudget));
    fold.fold(Fact::ClaimSeen(Arc::new(Claim { deleting: Some(start()), ..serving() })));
    fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
    assert!(Scene { fold }.with(pod("a")).leavers().is_empty());
}

#[test]
fn who_leaves_comes_after_who_waits() {
    let scene = Scene::leaving().with(pod("a"));
    assert_eq!(leavers(scene.fold.snapshot(), start())[0].created, Timestamp::MAX);
}

#[test]
fn that_a_node_with_pods_begins_to_go_is_news_once() {
    let going = |version: &str| Claim { deleting: Some(start()), version: version.into(), ..serving() };
    let mut scene = Scene::of(serving(), serving_node()).with(pod("a"));
    scene.fold.take_news();
    scene.fold.fold(Fact::ClaimSeen(Arc::new(going("2"))));
    assert!(scene.fold.take_news().pending);
    scene.fold.fold(Fact::ClaimSeen(Arc::new(going("3"))));
    assert!(!scene.fold.take_news().pending);
    let mut empty = Scene::of(serving(), serving_node());
    empty.fold.take_news();
    empty.fold.fold(Fact::ClaimSeen(Arc::new(going("2"))));
    assert!(!empty.fold.take_news().pending, "there is nobody on it");
}

/// A plan with a new NodeClaim `new` for some, a Node for others, and no place for a third kind.
fn plan(new: &[&str], placed: &[&str], refused: &[&str]) -> Plan {
    let pods = |names: &[&str]| names.iter().map(|name| Arc::new(pod(name))).collect::<Vec<_>>();
    let draft = ClaimDraft {
        name: "new".into(),
        pool: "web".into(),
        pool_uid: "pool-uid-1".into(),
        labels: Arc::default(),
        annotations: Arc::default(),
        requirements: Arc::default(),
        requests: crate::core::resources::Resources::new(),
        taints: vec![],
        startup_taints: vec![],
        class: serving().class,
        termination_grace: None,
        expire_after: None,
    };
    Plan {
        claims: vec![PlannedClaim { draft, instance_types: Arc::from([]), pods: pods(new), price: 1.0 }],
        existing: vec![PlacedOn { node: Some("other".into()), claim: None, pods: pods(placed) }],
        refused: refused.iter().map(|name| Refusal { pod: (*name).into(), reasons: vec![Reason::NoPools] }).collect(),
        ..Plan::default()
    }
}

fn uids(names: &[&str]) -> BTreeSet<PodUid> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn what_was_planned_for_leavers_is_bought_and_nobody_is_told() {
    let mut plan = plan(&["a", "x"], &["b"], &["c", "y"]);
    let foreseen = Foreseen::take_out(&uids(&["a", "b", "c"]), &mut plan);
    assert_eq!((foreseen.placed(), foreseen.refused()), (2, 1));
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(plan.claims[0].pods.iter().map(|pod| &*pod.key.name).collect::<Vec<_>>(), ["x"]);
    assert!(plan.existing.is_empty());
    assert_eq!(plan.refused.iter().map(|refusal| refusal.pod.to_string()).collect::<Vec<_>>(), ["y"]);
}

#[test]
fn leavers_are_planned_anew_only_when_one_has_come_or_has_lost_its_place() {
    let mut scene = Scene::leaving().with(pod("a")).with(pod("b"));
    let snapshot = scene.fold.snapshot();
    assert!(Foreseen::default().misses(snapshot, start(), |_| true), "nobody has a place");
    let foreseen = Foreseen::take_out(&uids(&["a", "b"]), &mut plan(&["a"], &[], &["b"]));
    assert!(!foreseen.misses(snapshot, start(), |name| name.as_str() == "new"), "it is being written");
    assert!(foreseen.misses(snapshot, start(), |_| false), "it could not be written");
    let there = Claim { name: "new".into(), uid: "uid-2".into(), provider_id: None, ..serving() };
    scene.fold.fold(Fact::ClaimSeen(Arc::new(there.clone())));
    assert!(!foreseen.misses(scene.fold.snapshot(), start(), |_| false), "it is there");
    scene = scene.with(pod("c"));
    assert!(foreseen.misses(scene.fold.snapshot(), start(), |_| false), "one more leaves");
    scene.fold.fold(Fact::PodGone("c".into()));
    scene.fold.fold(Fact::ClaimSeen(Arc::new(Claim { deleting: Some(start()), version: "2".into(), ..there })));
    assert!(foreseen.misses(scene.fold.snapshot(), start(), |_| false), "it goes too");
}
