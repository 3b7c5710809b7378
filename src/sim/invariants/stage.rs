//! A stage for the tests of this room: NodeClaims whose machines run and have their Nodes, and the watch that is kept on them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Invariant, Invariants, Journal};
use crate::clouds::Cloud;
use crate::clouds::simulated::{Conduct, Simulated};
use crate::cluster::Cluster;
use crate::core::facts::{Claim, ClaimDraft, Node, OwnerClaim};
use crate::core::ids::{ClaimName, NodeName, ProviderId};
use crate::core::labels;
use crate::sim::cluster::SimCluster;
use crate::sim::kubelet::{Kubelet, Pace, node_name};
use crate::sim::{Seed, props};

/// A world and the watch on it.
pub(super) struct Stage {
    pub(super) cluster: SimCluster,
    pub(super) cloud: Simulated,
    pub(super) invariants: Invariants,
}

impl Stage {
    /// An empty world.
    pub(super) fn new() -> Self {
        let (cluster, cloud) = (props::cluster(1), props::cloud(1, Conduct::default()));
        let invariants = Invariants::new(cluster.clone(), cloud.clone(), props::clock(), Journal::default());
        tokio::spawn(Kubelet::new(cluster.clone(), cloud.clone(), Pace::default(), Seed(1)).run());
        tokio::spawn(invariants.clone().run());
        Self { cluster, cloud, invariants }
    }

    /// A NodeClaim whose Node has registered; answers its machine and its Node.
    pub(super) async fn serving(&self, draft: &ClaimDraft) -> (ProviderId, NodeName) {
        let claim = self.cluster.create_claim(draft).await.unwrap();
        let id = self.cloud.create(&props::launch(&claim, 4)).await.unwrap().id;
        let node = node_name(&id);
        sleep(Duration::from_mins(2)).await;
        {
            let mut store = self.cluster.store();
            store.update_claim(&claim.name, |claim| {
                claim.provider_id = Some(id.clone());
                claim.node = Some(node.clone());
                claim.finalizers = vec![labels::TERMINATION_FINALIZER.into()];
            });
            store.update_node(&node, |node| {
                node.finalizers = vec![labels::TERMINATION_FINALIZER.into()];
                node.owner_claims = vec![OwnerClaim::of(&claim)];
                node.labels.insert(labels::REGISTERED.into(), "true".into());
                node.taints.clear();
            });
        }
        self.settle().await;
        (id, node)
    }

    /// Lets whoever watches see what has happened.
    pub(super) async fn settle(&self) {
        sleep(Duration::from_millis(1)).await;
    }

    pub(super) fn claim(&self, name: &str) -> Arc<Claim> {
        Arc::clone(&self.cluster.store().claims[&ClaimName::from(name)])
    }

    pub(super) fn node(&self, name: &NodeName) -> Arc<Node> {
        Arc::clone(&self.cluster.store().nodes[name])
    }

    /// How often a promise was broken so far.
    pub(super) fn broken(&self, invariant: Invariant) -> usize {
        self.invariants.violations().iter().filter(|broken| broken.invariant == invariant).count()
    }
}
