//! What a solve is asked: the cluster, the catalog, the pods, and what must be left out of account.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Catalog, Pod, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::labels;

use super::plan::Settings;

/// A question to the solver. Everything is borrowed: a disruption simulation differs from the provisioner's question in `pods` and
/// `excluded` only.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// What can be bought.
    pub catalog: &'a Catalog,
    /// The pods that need a place. Those that are bound are treated as if they had left their nodes.
    pub pods: &'a [Arc<Pod>],
    /// How to solve.
    pub settings: &'a Settings,
    /// Keys of the cloud that count as well-known (see `Cloud::label_keys`), besides those that its instance types carry.
    pub label_keys: &'a [&'static str],
    /// What must not be used although it is there.
    pub excluded: &'a Exclusions,
    /// Whether pods go to new nodes only: what exists counts as it does, in limits and between pods, but has no room.
    pub new_nodes_only: bool,
}

/// Nodes and NodeClaims that a solve must do without: the candidates of a disruption.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Exclusions {
    /// Nodes by name.
    pub nodes: BTreeSet<NodeName>,
    /// NodeClaims by name.
    pub claims: BTreeSet<ClaimName>,
}

/// Nothing is excluded.
pub static NOTHING_EXCLUDED: Exclusions = Exclusions { nodes: BTreeSet::new(), claims: BTreeSet::new() };

impl<'a> Problem<'a> {
    /// A question without exclusions and without keys of a cloud.
    pub fn new(snapshot: &'a Snapshot, catalog: &'a Catalog, pods: &'a [Arc<Pod>], settings: &'a Settings) -> Self {
        Self { snapshot, catalog, pods, settings, label_keys: &[], excluded: &NOTHING_EXCLUDED, new_nodes_only: false }
    }

    /// By what kube-scheduler takes pods of one priority: when they were made, when they were first seen waiting, and at last something that
    /// no two share.
    pub(super) fn age(&self, pod: &Pod) -> (Timestamp, u64, PodUid) {
        (pod.created, self.snapshot.arrival(&pod.uid).unwrap_or_default(), pod.uid.clone())
    }

    /// The keys that a NodeClaim leaves open when it does not mention them: the well-known ones, the cloud's, and all that instance
    /// types and offerings carry. Custom keys are not among them, nor is the host name.
    pub fn open_keys(&self) -> BTreeSet<&'a str> {
        let mut open: BTreeSet<&str> = labels::WELL_KNOWN.into_iter().chain(self.label_keys.iter().copied()).collect();
        let mut seen: Vec<*const Vec<Arc<crate::core::facts::InstanceType>>> = Vec::new();
        for list in self.catalog.pools.values() {
            if seen.contains(&Arc::as_ptr(list)) {
                continue;
            }
            seen.push(Arc::as_ptr(list));
            for kind in list.iter() {
                let offered = kind.offerings.iter().flat_map(|offering| &offering.requirements);
                open.extend(kind.requirements.iter().chain(offered).map(|r| labels::normalized(&r.key)));
            }
        }
        open.remove(labels::HOSTNAME);
        open
    }
}
