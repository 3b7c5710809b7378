//! Nodes that are smaller than they should be.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{serving, serving_node, start};
use crate::core::facts::{Claim, Fact, Fold};
use crate::core::lifecycle::Memory;
use crate::core::resources::Resources;

const GIB: i64 = 1000 << 30;

fn found(claim: &Claim, capacity: Resources) -> Option<(Status, &'static str, String)> {
    let mut fold = Fold::default();
    let mut node = serving_node();
    node.capacity = capacity;
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    wanted(&Situation::of(claim, fold.snapshot(), &Memory::default(), start()))
}

fn claim() -> Claim {
    let mut claim = serving();
    claim.requests = Resources::new().with("cpu", 1000).with("memory", 100 * GIB);
    claim.capacity = Resources::new().with("cpu", 16_000).with("memory", 128 * GIB).with("pods", 110_000);
    claim
}

#[test]
fn a_node_may_lack_a_tenth_and_no_more() {
    let large = |cpu, gib| Resources::new().with("cpu", cpu).with("memory", gib * GIB);
    let fine = Some((Status::True, CONSISTENT, String::new()));
    assert_eq!(found(&claim(), large(16_000, 128)), fine, "pods are not asked for");
    assert_eq!(found(&claim(), large(14_400, 116)), fine);
    let problem = "expected 128Gi of resource memory, but found 64Gi (50.0% of expected)";
    let bad = found(&claim(), large(16_000, 64)).unwrap();
    assert_eq!(bad, (Status::False, "ConsistencyCheckFailed", problem.to_owned()));
    let (_, _, message) = found(&claim(), large(8_000, 64)).unwrap();
    let all: Vec<_> = listed(&message).collect();
    assert_eq!(all, ["expected 16 of resource cpu, but found 8 (50.0% of expected)", problem]);
}

#[test]
fn a_node_that_is_away_is_not_judged() {
    assert_eq!(
        wanted(&Situation::of(&claim(), &crate::core::facts::Snapshot::default(), &Memory::default(), start())),
        None
    );
}
