//! What is said of conditions that change.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{condition, node, pool, serving_node, start};
use crate::core::facts::{Fold, Node, Pool, Status};
use crate::core::labels::Labels;

/// A cluster of which everything has been listed, and nothing was there.
struct Watched {
    fold: Fold,
    witness: Witness,
}

impl Watched {
    fn new() -> Self {
        let mut fold = Fold::default();
        for kind in Kind::ALL {
            fold.fold(Fact::Relisting(kind));
            fold.fold(Fact::Relisted(kind));
        }
        Self { fold, witness: Witness::default() }
    }

    fn see(&mut self, fact: Fact) -> Vec<String> {
        let told = self.witness.see(&fact, self.fold.snapshot(), true, start());
        self.fold.fold(fact);
        told.into_iter().map(|event| format!("{} {}", event.reason, event.message)).collect()
    }
}

#[test]
fn a_condition_that_nobody_has_written_is_unknown_and_what_follows_is_said() {
    let mut watched = Watched::new();
    let bare = Pool { conditions: Vec::new(), ..pool() };
    assert_eq!(watched.see(Fact::PoolSeen(Arc::new(bare.clone()))), [""; 0], "it has just come");
    let judged = vec![condition("ValidationSucceeded", Status::True), condition("Ready", Status::False)];
    let told = watched.see(Fact::PoolSeen(Arc::new(Pool { conditions: judged, ..bare.clone() })));
    assert_eq!(
        told,
        [
            "ValidationSucceeded Status condition transitioned, Type: ValidationSucceeded, Status: Unknown -> True, Reason: ValidationSucceeded",
            "Ready Status condition transitioned, Type: Ready, Status: Unknown -> False, Reason: Ready"
        ]
    );
    let deleted = Pool { deleting: Some(start()), ..bare };
    watched.see(Fact::PoolSeen(Arc::new(deleted)));
    assert_eq!(watched.see(Fact::PoolGone(pool().name)), ["Finalized Finalized karpenter.sh/termination"]);
}

#[test]
fn only_nodes_of_joiner_are_spoken_of() {
    let mut watched = Watched::new();
    let stranger = Node { name: "stranger".into(), owner_claims: Vec::new(), finalizers: Vec::new(), ..node() };
    for (node, expected) in [(serving_node(), 1), (Node { labels: Labels::new(), ..stranger }, 0)] {
        let with = |status| Node { conditions: vec![condition("Ready", status)], ..node.clone() };
        assert_eq!(watched.see(Fact::NodeSeen(Arc::new(with(Status::True)))), [""; 0]);
        let told = watched.see(Fact::NodeSeen(Arc::new(with(Status::Unknown))));
        assert_eq!(told.len(), expected, "{told:?}");
        watched.see(Fact::NodeSeen(Arc::new(Node { deleting: Some(start()), ..node.clone() })));
        assert_eq!(watched.see(Fact::NodeGone(node.name.clone())).len(), expected);
    }
}

#[test]
fn a_standby_says_nothing() {
    let mut watched = Watched::new();
    watched.see(Fact::PoolSeen(Arc::new(Pool { conditions: Vec::new(), ..pool() })));
    let judged = Fact::PoolSeen(Arc::new(Pool { conditions: vec![condition("Ready", Status::True)], ..pool() }));
    assert_eq!(watched.witness.see(&judged, watched.fold.snapshot(), false, start()), []);
}
