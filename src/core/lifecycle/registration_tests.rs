//! What a Node gets when it is registered, and when it is registered again.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{claim, machine, node, serving, serving_node, start};
use crate::core::facts::{Claim, Fact, Fold};
use crate::core::lifecycle::{Act, Memory, Sight, step};

/// The taints that a registration puts on a Node; nothing when it writes nothing to it.
fn taints(claim: &Claim, node: &Node) -> Option<Vec<String>> {
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(node.clone())));
    let memory = Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() };
    match step(&Situation::of(claim, fold.snapshot(), &memory, start())).act {
        Some(crate::core::lifecycle::Act::PatchNode(_, patch)) => {
            Some(patch.taints?.iter().map(|taint| taint.key.to_string()).collect())
        }
        _ => None,
    }
}

/// The serving NodeClaim after somebody has taken Registered out of its status.
fn taken_out() -> Claim {
    let mut claim = serving();
    claim.conditions.retain(|condition| &*condition.kind != "Registered");
    claim
}

#[test]
fn startup_taints_come_with_the_first_registration() {
    let mut fresh = taken_out();
    fresh.conditions.retain(|condition| &*condition.kind == "Launched");
    let closed = node();
    assert_eq!(taints(&fresh, &closed).unwrap(), ["node.kubernetes.io/not-ready", "team", "cilium"]);
}

#[test]
fn startup_taints_do_not_come_back_on_a_node_that_was_registered_whatever_somebody_took_off_it() {
    assert_eq!(claim().startup_taints.len(), 1);
    assert_eq!(taints(&taken_out(), &serving_node()), None, "all is there but the condition");
    let without = |change: fn(&mut Node)| {
        let mut node = serving_node();
        node.owner_claims.clear();
        change(&mut node);
        taints(&taken_out(), &node).unwrap()
    };
    assert_eq!(without(|_| {}), ["team"], "the owner");
    let labels_gone = |node: &mut Node| node.labels.retain(|key, _| !key.starts_with("karpenter.sh/"));
    assert_eq!(without(labels_gone), ["team"], "and the labels");
    assert_eq!(without(|node| node.finalizers.clear()), ["team"], "or the finalizer");
}
