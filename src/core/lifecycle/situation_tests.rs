//! Who is nominated, and when.

use super::*;
use crate::core::facts::samples::{claim, node, pod, zone_spread};
use crate::core::facts::{Fact, Fold};

/// A NodeClaim with its Node and three pods of one Deployment that are planned for it. They came in the order c, b, a.
fn three(spread: Option<i32>) -> Fold {
    let mut fold = Fold::default();
    let mut claim = claim();
    claim.provider_id = node().provider_id;
    let name = claim.name.clone();
    fold.fold(Fact::ClaimSeen(Arc::new(claim)));
    fold.fold(Fact::NodeSeen(Arc::new(node())));
    for uid in ["c", "b", "a"] {
        see(&mut fold, uid, spread, None, None);
        fold.planned(&name, vec![uid.into()]);
    }
    fold
}

fn see(fold: &mut Fold, uid: &str, spread: Option<i32>, nominated: Option<&str>, bound: Option<&str>) {
    let mut pod = pod(uid, bound);
    pod.nominated = nominated.map(Into::into);
    let mut shape = (*pod.shape).clone();
    shape.spreads.extend(spread.map(zone_spread));
    pod.shape = Arc::new(shape);
    fold.fold(Fact::PodSeen(Arc::new(pod)));
}

fn next(fold: &Fold, memory: &Memory) -> Vec<String> {
    let snapshot = fold.snapshot();
    let claim = snapshot.claims.values().next().unwrap();
    unnominated(snapshot, claim, &node().name, memory).iter().map(|pod| pod.uid.to_string()).collect()
}

fn tried(uids: &[&str]) -> Memory {
    Memory { nominated: uids.iter().map(|uid| ((*uid).into(), 0)).collect(), ..Memory::default() }
}

#[test]
fn pods_are_nominated_in_the_order_in_which_they_came() {
    let fold = three(None);
    assert_eq!(next(&fold, &Memory::default()), ["c", "b", "a"]);
    assert_eq!(next(&fold, &tried(&["c"])), ["b", "a"]);
}

#[test]
fn of_pods_that_spread_only_so_many_are_nominated_as_may_be_there_at_a_time() {
    let mut fold = three(Some(1));
    assert_eq!(next(&fold, &Memory::default()), ["c"]);
    assert_eq!(next(&fold, &tried(&["c"])), Vec::<String>::new(), "its nomination shows soon");
    see(&mut fold, "c", Some(1), Some(node().name.as_str()), None);
    assert_eq!(next(&fold, &tried(&["c"])), Vec::<String>::new());
    fold.take_news();
    see(&mut fold, "c", Some(1), None, Some(node().name.as_str()));
    assert_eq!(fold.take_news().claims.len(), 1, "its claim is told");
    assert_eq!(next(&fold, &tried(&["c"])), ["b"], "the next, when it is bound");
    assert_eq!(next(&three(Some(2)), &Memory::default()), ["c", "b"]);
}

#[test]
fn a_nomination_that_was_taken_away_is_renewed_once() {
    let mut fold = three(Some(1));
    for times in 1..=2 {
        see(&mut fold, "c", Some(1), Some(node().name.as_str()), None);
        see(&mut fold, "c", Some(1), None, None);
        let expected: &[&str] = if times == 1 { &["c"] } else { &["b"] };
        let memory = Memory { nominated: [("c".into(), times - 1)].into(), ..Memory::default() };
        assert_eq!(next(&fold, &memory), expected, "lost {times} times");
    }
}
