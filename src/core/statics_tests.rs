//! Static NodePools.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::core::facts::samples::{self, start};
use crate::core::facts::{Condition, DoNotDisrupt, Fact, Fold, PodShape, Status};
use crate::core::requirements::{Operator, Requirement};

/// A ready static NodePool `web`.
fn pool(replicas: i64) -> Pool {
    Pool { replicas: Some(replicas), ..samples::ready_pool() }
}

fn limited(replicas: i64, nodes: i64) -> Pool {
    let mut pool = pool(replicas);
    pool.limits.set(ResourceName::nodes(), nodes * 1000);
    pool
}

fn condition(kind: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: Status::True,
        reason: kind.into(),
        message: "".into(),
        since: start(),
        generation: 1,
    }
}

/// A NodeClaim of `web` with a machine and a Node of the same name.
fn serving(name: &str) -> Claim {
    let id = format!("sim://{name}");
    Claim { name: name.into(), uid: name.into(), provider_id: Some(id.as_str().into()), ..samples::claim() }
}

fn unlaunched(name: &str) -> Claim {
    Claim { provider_id: None, ..serving(name) }
}

fn deleting(name: &str) -> Claim {
    Claim { deleting: Some(start()), ..serving(name) }
}

fn leaving(name: &str) -> Claim {
    Claim { conditions: vec![condition("DisruptionReason")], ..serving(name) }
}

/// NodeClaims with their Nodes, and pods there.
fn snapshot(claims: &[Claim], pods: &[Pod]) -> Snapshot {
    let mut fold = Fold::default();
    for claim in claims {
        fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
        if let Some(id) = &claim.provider_id {
            let node = crate::core::facts::Node {
                name: claim.name.as_str().into(),
                provider_id: Some(id.clone()),
                ..samples::node()
            };
            fold.fold(Fact::NodeSeen(Arc::new(node)));
        }
    }
    for pod in pods {
        fold.fold(Fact::PodSeen(Arc::new(pod.clone())));
    }
    fold.snapshot().clone()
}

fn of(claims: &[Claim], pool: &Pool) -> Need {
    need(&snapshot(claims, &[]), pool, &Ordered::default(), start())
}

fn more(create: i64, held_back: i64) -> Need {
    Need::More { create, held_back }
}

fn gone(need: Need) -> Vec<String> {
    let Need::Fewer(names) = need else { panic!("{need:?} takes none away") };
    names.iter().map(ToString::to_string).collect()
}

fn pod_on(node: &str, change: impl FnOnce(&mut PodShape)) -> Pod {
    let mut pod = samples::pod(&format!("pod-on-{node}"), Some(node));
    let mut shape = (*pod.shape).clone();
    change(&mut shape);
    pod.shape = Arc::new(shape);
    pod
}

#[test]
fn an_empty_pool_gets_all_its_replicas() {
    assert_eq!(of(&[], &pool(3)), more(3, 0));
}

#[test]
fn a_pool_is_topped_up() {
    assert_eq!(of(&[serving("a"), unlaunched("b")], &pool(5)), more(3, 0));
}

#[test]
fn large_counts_are_no_matter() {
    assert_eq!(of(&[], &pool(5_000)), more(5_000, 0));
}

#[test]
fn a_pool_that_has_enough_needs_nothing() {
    assert_eq!(of(&[serving("a"), unlaunched("b")], &pool(2)), Need::Nothing);
    assert_eq!(of(&[], &pool(0)), Need::Nothing);
}

#[test]
fn a_dynamic_pool_needs_nothing() {
    let dynamic = Pool { replicas: None, ..pool(1) };
    assert_eq!(of(&[], &dynamic), Need::Nothing);
}

#[test]
fn a_pool_that_is_not_ready_gets_nothing_new() {
    let unready = Pool { conditions: Vec::new(), ..pool(2) };
    assert_eq!(of(&[], &unready), Need::Nothing);
}

#[test]
fn a_pool_that_is_not_ready_shrinks_all_the_same() {
    let unready = Pool { conditions: Vec::new(), ..pool(0) };
    assert_eq!(gone(of(&[serving("a")], &unready)), ["a"]);
}

#[test]
fn a_pool_that_is_being_deleted_is_left_alone() {
    let going = |replicas| Pool { deleting: Some(start()), ..pool(replicas) };
    assert_eq!(of(&[], &going(2)), Need::Nothing);
    assert_eq!(of(&[serving("a")], &going(0)), Need::Nothing);
}

#[test]
fn node_claims_of_other_pools_do_not_count() {
    let mut other = serving("a");
    other.labels.insert(labels::NODEPOOL.into(), "batch".into());
    assert_eq!(of(&[other.clone()], &pool(1)), more(1, 0));
    assert_eq!(of(&[other], &pool(0)), Need::Nothing);
}

#[test]
fn a_deleted_node_claim_is_made_up_for() {
    assert_eq!(of(&[serving("a"), deleting("b")], &pool(2)), more(1, 0));
}

#[test]
fn the_node_limit_holds_back_what_does_not_fit() {
    assert_eq!(of(&[serving("a")], &limited(5, 3)), more(2, 2));
}

#[test]
fn nodes_that_are_going_count_against_the_limit_until_they_are_gone() {
    assert_eq!(of(&[serving("a"), deleting("b"), deleting("c")], &limited(3, 3)), more(0, 2));
}

#[test]
fn at_the_limit_nothing_is_created() {
    assert_eq!(of(&[serving("a"), serving("b")], &limited(10, 2)), more(0, 8));
    assert_eq!(of(&[serving("a"), serving("b"), deleting("c")], &limited(10, 1)), more(0, 8));
}

#[test]
fn what_was_ordered_counts_before_it_is_seen() {
    let ordered = Ordered {
        coming: BTreeMap::from([("x".into(), "web".into()), ("a".into(), "web".into()), ("y".into(), "batch".into())]),
        going: BTreeSet::from(["b".into()]),
    };
    let there = snapshot(&[serving("a"), serving("b")], &[]);
    let counted = census(&there, &"web".into(), &ordered);
    assert_eq!(counted, Census { active: 2, leaving: 0, deleting: 1 });
    assert_eq!(need(&there, &pool(3), &ordered, start()), more(1, 0));
    assert_eq!(need(&there, &pool(2), &ordered, start()), Need::Nothing);
}

#[test]
fn a_node_that_a_disruption_replaces_is_not_replaced_twice() {
    assert_eq!(of(&[serving("a"), leaving("b")], &pool(2)), Need::Nothing);
    assert_eq!(of(&[serving("a"), leaving("b")], &pool(3)), more(1, 0));
}

#[test]
fn a_replacement_beside_the_node_that_it_replaces_is_no_excess() {
    assert_eq!(of(&[serving("a"), serving("b"), leaving("c")], &pool(2)), Need::Nothing);
}

#[test]
fn only_what_stays_can_be_taken_away() {
    assert_eq!(gone(of(&[serving("a"), leaving("b"), deleting("c")], &pool(0))), ["a"]);
}

#[test]
fn to_zero_means_all() {
    assert_eq!(gone(of(&[serving("a"), serving("b"), unlaunched("c")], &pool(0))), ["c", "a", "b"]);
}

#[test]
fn what_has_no_machine_goes_first() {
    assert_eq!(gone(of(&[serving("a"), unlaunched("b")], &pool(1))), ["b"]);
}

#[test]
fn then_what_runs_nothing_but_daemons() {
    let daemon = pod_on("b", |shape| shape.owner = Owner::DaemonSet);
    let there = snapshot(&[serving("a"), serving("b")], &[pod_on("a", |_| ()), daemon]);
    assert_eq!(gone(need(&there, &pool(1), &Ordered::default(), start())), ["b"]);
}

#[test]
fn a_daemon_that_must_not_be_disrupted_keeps_its_node_longest() {
    let daemon = pod_on("b", |shape| {
        shape.owner = Owner::DaemonSet;
        shape.do_not_disrupt = DoNotDisrupt::Always;
    });
    let there = snapshot(&[serving("a"), serving("b")], &[pod_on("a", |_| ()), daemon]);
    assert_eq!(gone(need(&there, &pool(1), &Ordered::default(), start())), ["a"]);
}

#[test]
fn daemons_then_low_cost_then_high_cost_then_do_not_disrupt() {
    let pods = [
        pod_on("a", |shape| shape.do_not_disrupt = DoNotDisrupt::Always),
        pod_on("b", |shape| shape.priority = 1_000_000),
        pod_on("c", |_| ()),
        pod_on("d", |shape| shape.owner = Owner::DaemonSet),
    ];
    let there = snapshot(&["a", "b", "c", "d"].map(serving), &pods);
    let going = |replicas| gone(need(&there, &pool(replicas), &Ordered::default(), start()));
    assert_eq!(going(3), ["d"]);
    assert_eq!(going(2), ["d", "c"]);
    assert_eq!(going(1), ["d", "c", "b"]);
    assert_eq!(going(0), ["d", "c", "b", "a"]);
}

#[test]
fn a_node_that_expires_soon_is_missed_less() {
    let age = |name, hours| Claim {
        expire_after: Some(Duration::from_hours(10)),
        created: start() - jiff::SignedDuration::from_hours(hours),
        ..serving(name)
    };
    let there = snapshot(&[age("a", 1), age("b", 9)], &[pod_on("a", |_| ()), pod_on("b", |_| ())]);
    assert_eq!(gone(need(&there, &pool(1), &Ordered::default(), start())), ["b"]);
}

#[test]
fn of_equals_the_youngest_goes() {
    let older = Claim { created: start() - jiff::SignedDuration::from_hours(1), ..serving("b") };
    assert_eq!(gone(of(&[older, serving("c")], &pool(1))), ["c"]);
}

#[test]
fn a_node_claim_is_what_the_template_says_and_no_more() {
    let mut pool = pool(1);
    pool.template.labels.insert("team".into(), "shop".into());
    pool.template.annotations.insert("note".into(), "x".into());
    pool.template.requirements = vec![
        Requirement::new(labels::ZONE, Operator::In, ["a", "b"]),
        Requirement::new("example.com/tier", Operator::In, ["gold", "silver"]),
        Requirement::new("example.com/legacy", Operator::DoesNotExist, Vec::<&str>::new()),
    ];
    let draft = draft(&pool, "web-x".into(), |key| key == labels::ZONE);
    assert_eq!((draft.name.as_str(), draft.pool.as_str(), &draft.pool_uid), ("web-x", "web", &pool.uid));
    let label = |key: &str| draft.labels.get(key).map(|value| &**value);
    assert_eq!(label("team"), Some("shop"));
    assert_eq!(label(labels::NODEPOOL), Some("web"));
    assert_eq!(label("karpenter.kwok.sh/kwoknodeclass"), Some("default"));
    assert_eq!(label("example.com/tier"), Some("gold"), "one value, as the node needs one");
    assert_eq!(label("example.com/legacy"), None);
    assert_eq!(label(labels::ZONE), None, "the machine says this");
    assert_eq!(draft.annotations.get("note").map(|value| &**value), Some("x"));
    assert_eq!(draft.annotations.get(labels::NODEPOOL_HASH), Some(&pool.hash));
    assert!(draft.requests.is_empty(), "no pod asks for anything");
    let listed = |key: &str| draft.requirements.iter().any(|r| &*r.key == key);
    assert!(listed(labels::ZONE) && listed("example.com/tier"));
    assert!(!listed(labels::INSTANCE_TYPE) && !listed(labels::CAPACITY_TYPE), "any type that suits the template");
    assert_eq!((&draft.taints, draft.expire_after), (&pool.template.taints, pool.template.expire_after));
}
