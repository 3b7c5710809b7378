//! The garbage collector's stand-in for Nodes: one whose owners are all gone is deleted a moment later. Its finalizers hold it as they hold any other.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::StreamExt;

use super::agenda::Agenda;
use super::cluster::SimCluster;
use super::seed::{self, Seed};
use super::store::Store;
use crate::core::facts::{Fact, Node, OwnerClaim};
use crate::core::ids::NodeName;

/// From the end of the last owner to the deletion: the collector of an API server at leisure is at most so far behind.
const BEHIND: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Deletes Nodes whose NodeClaims are gone.
pub(super) struct Collector {
    cluster: SimCluster,
    rng: Rng,
    agenda: Agenda<NodeName>,
}

impl Collector {
    pub(super) fn new(cluster: SimCluster, seed: Seed) -> Self {
        Self { cluster, rng: seed.stream("garbage collector"), agenda: Agenda::new() }
    }

    /// Plays for as long as it is polled.
    pub(super) async fn run(mut self) {
        let mut facts = self.cluster.prompt_facts();
        loop {
            tokio::select! {
                biased;
                fact = facts.next() => match fact {
                    Some(fact) => self.note(&fact),
                    None => return,
                },
                node = self.agenda.next() => self.collect(&node),
            }
        }
    }

    fn note(&mut self, fact: &Fact) {
        let abandoned: Vec<NodeName> = {
            let store = self.cluster.store();
            match fact {
                Fact::ClaimGone(claim, _) => {
                    let owned =
                        store.nodes.values().filter(|node| node.owner_claims.iter().any(|owner| owner.name == *claim));
                    owned.filter(|node| is_abandoned(&store, node)).map(|node| node.name.clone()).collect()
                }
                // One can name an owner that has gone before.
                Fact::NodeSeen(node) if is_abandoned(&store, node) => vec![node.name.clone()],
                _ => return,
            }
        };
        for node in abandoned {
            let wait = seed::between(&mut self.rng, BEHIND);
            self.agenda.after(wait, node);
        }
    }

    fn collect(&self, name: &NodeName) {
        let mut store = self.cluster.store();
        if store.nodes.get(name).is_some_and(|node| is_abandoned(&store, node)) {
            // It was there a line above.
            store.delete_node(name, None).ok();
        }
    }
}

/// Whether a Node that nobody has deleted has owners, and none of them is there.
fn is_abandoned(store: &Store, node: &Arc<Node>) -> bool {
    let is_there = |owner: &OwnerClaim| store.claims.get(&owner.name).is_some_and(|claim| owner.is(claim));
    node.deleting.is_none() && !node.owner_claims.is_empty() && !node.owner_claims.iter().any(is_there)
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::sim::props;

    #[tokio::test(start_paused = true)]
    async fn a_node_goes_with_the_last_of_its_owners_and_a_finalizer_holds_it() {
        let cluster = props::cluster(1);
        tokio::spawn(Collector::new(cluster.clone(), Seed(1)).run());
        let claims = ["one", "two"].map(|claim| cluster.store().create_claim(&props::draft(claim)).unwrap());
        let owner = |name: &&str| OwnerClaim::of(claims.iter().find(|claim| claim.name.as_str() == *name).unwrap());
        let node = |name: &str, owners: &[&str], finalizers: &[&str]| Node {
            owner_claims: owners.iter().map(owner).collect(),
            finalizers: finalizers.iter().map(|held| Arc::from(*held)).collect(),
            ..props::node(name, "a", 1_000, 1_024)
        };
        let left = || -> Vec<(String, bool)> {
            let store = cluster.store();
            store.nodes().map(|node| (node.name.to_string(), node.deleting.is_some())).collect()
        };
        {
            let mut store = cluster.store();
            for node in [
                node("a", &["one"], &[]),
                node("b", &["one"], &["held"]),
                node("c", &["one", "two"], &[]),
                node("d", &[], &[]),
            ] {
                store.create_node(node).unwrap();
            }
        }
        sleep(BEHIND.1).await;
        assert_eq!(left().len(), 4, "all owners are there");
        cluster.store().delete_claim(&"one".into()).unwrap();
        sleep(BEHIND.1 * 2).await;
        assert_eq!(left(), [("b".to_owned(), true), ("c".to_owned(), false), ("d".to_owned(), false)]);
        cluster.store().create_claim(&props::draft("one")).unwrap();
        cluster.store().create_node(node("e", &["one"], &[])).unwrap();
        cluster.store().delete_claim(&"two".into()).unwrap();
        sleep(BEHIND.1 * 2).await;
        assert_eq!(
            left(),
            [("b".to_owned(), true), ("d".to_owned(), false)],
            "one may name an owner that has gone before"
        );
    }
}
