//! The attach-detach controller's stand-in: a volume is attached to a node when a pod there uses it, and detached some time after the last
//! such pod has gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use futures::StreamExt;
use tokio::time::Instant;

use super::agenda::Agenda;
use super::cluster::SimCluster;
use super::kubelet::Pace;
use super::seed::{self, Seed};
use crate::core::facts::{Fact, Pod};
use crate::core::ids::{NodeName, PodUid};

/// Attaches and detaches.
pub(super) struct Attacher {
    cluster: SimCluster,
    pace: Pace,
    rng: Rng,
    /// Pods with volumes, and the node that each is on.
    homes: BTreeMap<PodUid, NodeName>,
    agenda: Agenda<NodeName>,
}

impl Attacher {
    pub(super) fn new(cluster: SimCluster, pace: Pace, seed: Seed) -> Self {
        let rng = seed.stream("attacher");
        Self { cluster, pace, rng, homes: BTreeMap::new(), agenda: Agenda::new() }
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
                node = self.agenda.next() => self.sweep(&node),
            }
        }
    }

    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::PodSeen(pod) if !pod.volume_claims.is_empty() => self.see(pod),
            Fact::PodGone(uid) => {
                if let Some(node) = self.homes.remove(uid) {
                    self.sweep_later(node);
                }
            }
            Fact::NodeGone(name) => self.sweep_later(name.clone()),
            _ => {}
        }
    }

    fn see(&mut self, pod: &Arc<Pod>) {
        let Some(node) = &pod.node else { return };
        if pod.is_terminal() {
            if self.homes.remove(&pod.uid).is_some() {
                self.sweep_later(node.clone());
            }
        } else if self.homes.insert(pod.uid.clone(), node.clone()).is_none() {
            let mut store = self.cluster.store();
            for volume in store.attachable(pod) {
                store.attach(&volume, node);
            }
        }
    }

    fn sweep_later(&mut self, node: NodeName) {
        let wait = seed::between(&mut self.rng, self.pace.detach);
        self.agenda.after(wait, node);
    }

    /// Detaches what no pod of the node uses any more.
    fn sweep(&mut self, node: &NodeName) {
        let mut store = self.cluster.store();
        let pods = store.pods_on(node).filter(|pod| !pod.is_terminal());
        let used: Vec<Arc<str>> = pods.flat_map(|pod| store.attachable(pod)).collect();
        let idle = |one: &&Arc<crate::core::facts::VolumeAttachment>| {
            one.node == *node && one.volume.as_ref().is_none_or(|volume| !used.contains(volume))
        };
        let idle: Vec<Arc<str>> =
            store.volumes.attachments.values().filter(idle).map(|one| Arc::clone(&one.name)).collect();
        for name in &idle {
            match store.volumes.stuck.get(name).filter(|until| **until > Instant::now()) {
                Some(until) => {
                    self.agenda.at(*until, node.clone());
                    store.bitten.insert(name.to_string());
                }
                None => {
                    store.detach(name);
                }
            }
        }
    }
}
