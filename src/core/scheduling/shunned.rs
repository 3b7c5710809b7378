//! DaemonSet pods that may not be on a node with a pod: by the pod's required anti-affinity per node, or by their own.
//!
//! Those that run are counted like all pods. Those that will come to a new node, or to one that starts, are no pods yet: kube-scheduler would find
//! them, or the pod, in the way when the node is there. So such a node is not planned.

use std::sync::Arc;

use crate::core::facts::{DaemonSet, PodShape};
use crate::core::labels::HOSTNAME;

use super::topology::Target;
use super::world::World;

/// Numbers of DaemonSets, in the order of the snapshot.
pub(super) type Shunned = Vec<u32>;

/// Whether one of these daemons is among those that come.
pub(super) fn any_of(shunned: &[u32], coming: &[u32]) -> bool {
    shunned.iter().any(|which| coming.contains(which))
}

impl World<'_> {
    /// The DaemonSets that will come somewhere, with their numbers.
    pub(super) fn expected_daemons(&self) -> impl Iterator<Item = (u32, &Arc<DaemonSet>)> {
        (0..).zip(self.problem.snapshot.daemons.values()).filter(|(_, daemon)| daemon.is_expected())
    }

    /// Whether one of these daemons will come to a node that is there, where both would see each other: it has a host name, and nobody who runs there keeps
    /// the daemon away.
    pub(super) fn is_shunned(&mut self, at: usize, shunned: &[u32]) -> bool {
        let host = &self.hosts[at];
        let (profile, taints, named) = (host.profile, host.taints, host.named);
        if shunned.is_empty() || !named {
            return false;
        }
        let belonging = self.daemons_on(profile, taints);
        if !any_of(shunned, &belonging.coming) {
            return false;
        }
        let running = self.hosts[at].running.iter().filter(|(_, many)| many.staying > 0);
        let kept_out: Shunned = running.flat_map(|(shape, _)| self.shunned_by(shape)).collect();
        shunned.iter().any(|which| belonging.coming.contains(which) && !kept_out.contains(which))
    }

    /// The DaemonSets whose pods may not be on a node with pods of this shape.
    pub(super) fn shunned_by(&self, shape: &PodShape) -> Shunned {
        let targets = |one: &PodShape| -> Vec<Target> {
            let per_node = one.anti_affinity.iter().filter(|term| &*term.key == HOSTNAME);
            per_node.map(|term| Target::of(term, self.problem.snapshot)).collect()
        };
        let own = targets(shape);
        let means = |targets: &[Target], other: &PodShape| targets.iter().any(|target| target.selects(other));
        let is_barred = |daemon: &PodShape| means(&own, daemon) || means(&targets(daemon), shape);
        self.expected_daemons().filter(|(_, daemon)| is_barred(&daemon.shape)).map(|(which, _)| which).collect()
    }
}
