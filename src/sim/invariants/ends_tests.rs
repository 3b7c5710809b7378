//! What must be true of a NodeClaim that lives on when faults have stopped, and of joiner when nothing is left.

use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::core::facts::samples::condition;
use crate::core::facts::{Effect, Status, Taint};
use crate::sim::invariants::stage::Stage;
use crate::sim::props::draft;

/// What is said of a NodeClaim that was served for two hours, and of which something was changed then.
async fn settled(change: impl FnOnce(&mut Claim, &mut Node)) -> Vec<String> {
    let stage = Stage::new();
    let (_, name) = stage.serving(&draft("one")).await;
    sleep(Duration::from_hours(2)).await;
    let (mut claim, mut node) = (Claim::clone(&stage.claim("one")), Node::clone(&stage.node(&name)));
    claim.conditions.push(condition("Ready", Status::True));
    change(&mut claim, &mut node);
    {
        let mut store = stage.cluster.store();
        store.update_claim(&"one".into(), |there| *there = claim);
        store.update_node(&name, |there| *there = node);
    }
    stage.invariants.settled(&BTreeMap::new(), &BTreeMap::new());
    assert_eq!(stage.broken(Invariant::Settles), stage.invariants.violations().len());
    stage.invariants.violations().into_iter().map(|broken| broken.what).collect()
}

/// What somebody does to a NodeClaim and its Node.
type Change = fn(&mut Claim, &mut Node);

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_that_lives_on_is_whole_and_so_is_its_node() {
    assert_eq!(settled(|_, _| {}).await, [""; 0]);
    let changes: [(Change, &str); 8] = [
        (|claim, _| claim.finalizers.clear(), "has lost its finalizer"),
        (|claim, _| claim.conditions.clear(), "is not ready"),
        (|_, node| node.finalizers.clear(), "has no finalizer of joiner's"),
        (|_, node| node.owner_claims.clear(), "does not name it as its owner"),
        (|_, node| drop(node.labels.remove(labels::REGISTERED)), "has no label karpenter.sh/registered"),
        (
            |_, node| node.taints.push(Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule)),
            "has the taint karpenter.sh/disrupted",
        ),
        (
            |_, node| node.taints.push(Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute)),
            "has the taint karpenter.sh/unregistered",
        ),
        (|_, node| node.conditions.clear(), "is not ready"),
    ];
    for (change, what) in changes {
        let said = settled(change).await;
        assert!(said.len() == 1 && said[0].contains(what), "{what}: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_has_one_node() {
    let stage = Stage::new();
    let (_, name) = stage.serving(&draft("one")).await;
    sleep(Duration::from_hours(2)).await;
    let twin = Node { name: "twin".into(), ..Node::clone(&stage.node(&name)) };
    stage.cluster.store().create_node(twin).unwrap();
    stage.invariants.settled(&BTreeMap::new(), &BTreeMap::new());
    let said = stage.invariants.violations();
    assert!(said.len() == 1 && said[0].what.contains("NodeClaim one has 2 Nodes"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_say_what_is_left_in_its_memory_may_remember_everything() {
    let broken = |left: &[(&str, usize)], silent: &[&str]| {
        let stage = Stage::new();
        let left = left.iter().map(|(what, number)| ((*what).to_owned(), *number)).collect();
        let silent = silent.iter().map(|name| (*name).to_owned()).collect();
        stage.invariants.emptied(Memory { left, silent }, &BTreeMap::new());
        stage.broken(Invariant::MemoryReturns)
    };
    assert_eq!(broken(&[("pods", 0)], &[]), 0);
    assert_eq!(broken(&[("pods", 1)], &[]), 1);
    assert_eq!(broken(&[("pods", 0)], &["evictor"]), 1);
}
