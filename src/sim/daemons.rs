//! The DaemonSet controller's stand-in: every node that a DaemonSet fits gets its pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;

use super::cluster::SimCluster;
use super::matching;
use super::store::{NewPod, Store};
use crate::core::facts::{DaemonSet, Fact, Node, Owner, PodShape, tolerate_as_daemon};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels::NODE_NAME_FIELD;

/// Keeps the pods of DaemonSets. Unlike the real controller it binds them itself, before the scheduler looks at the node: daemons come
/// with priority in practice.
pub struct Daemons {
    cluster: SimCluster,
    sets: BTreeMap<ObjectKey, Arc<PodShape>>,
    pods: BTreeMap<(ObjectKey, NodeName), PodUid>,
    homes: BTreeMap<PodUid, (ObjectKey, NodeName)>,
    /// Nodes to look at again.
    dirty: BTreeSet<NodeName>,
}

impl Daemons {
    /// The controller of a cluster's DaemonSets.
    pub fn new(cluster: SimCluster) -> Self {
        Self { cluster, sets: BTreeMap::new(), pods: BTreeMap::new(), homes: BTreeMap::new(), dirty: BTreeSet::new() }
    }

    /// Plays for as long as it is polled.
    pub async fn run(mut self) {
        let mut facts = self.cluster.prompt_facts().ready_chunks(1_024);
        while let Some(chunk) = facts.next().await {
            for fact in chunk {
                self.note(fact);
            }
            let cluster = self.cluster.clone();
            let mut store = cluster.store();
            for name in std::mem::take(&mut self.dirty) {
                self.serve(&mut store, &name);
            }
        }
    }

    fn note(&mut self, fact: Fact) {
        match fact {
            Fact::NodeSeen(node) => {
                self.dirty.insert(node.name.clone());
            }
            Fact::DaemonSeen(daemon) => {
                self.sets.insert(daemon.key.clone(), daemon_shape(&daemon));
                self.dirty.extend(self.cluster.store().nodes.keys().cloned());
            }
            Fact::DaemonGone(key) => self.retire(&key),
            Fact::PodGone(uid) => {
                if let Some(home) = self.homes.remove(&uid) {
                    self.dirty.insert(home.1.clone());
                    self.pods.remove(&home);
                }
            }
            _ => {}
        }
    }

    fn retire(&mut self, key: &ObjectKey) {
        self.sets.remove(key);
        let mut store = self.cluster.store();
        for (_, uid) in self.pods.iter().filter(|((set, _), _)| set == key) {
            let Some(pod) = store.pods.get(uid).map(|record| record.pod.key.clone()) else { continue };
            // It was there a line above.
            store.delete_pod(&pod, uid, None).ok();
        }
    }

    /// Gives a node the daemon pods that it lacks.
    fn serve(&mut self, store: &mut Store, name: &NodeName) {
        let Some(node) = store.nodes.get(name).cloned() else { return };
        if node.deleting.is_some() {
            return;
        }
        for (key, shape) in &self.sets {
            let home = (key.clone(), name.clone());
            if self.pods.contains_key(&home) || !eligible(shape, &node) || !fits(store, shape, &node) {
                continue;
            }
            let suffix = store.suffix(5);
            let new = NewPod {
                key: ObjectKey::new(key.namespace.clone(), format!("{}-{suffix}", key.name)),
                shape: Arc::clone(shape),
                runs_for: None,
                workload: None,
                node: Some(name.clone()),
                volumes: Vec::new(),
            };
            if let Ok(uid) = store.create_pod(new) {
                self.homes.insert(uid.clone(), home.clone());
                self.pods.insert(home, uid);
            }
        }
    }
}

fn daemon_shape(daemon: &DaemonSet) -> Arc<PodShape> {
    let mut shape = (*daemon.shape).clone();
    shape.owner = Owner::DaemonSet;
    tolerate_as_daemon(&mut shape.tolerations, false);
    Arc::new(shape)
}

fn eligible(shape: &PodShape, node: &Node) -> bool {
    let by_name = shape.node_affinity.required.iter().flatten().any(|line| &*line.key == NODE_NAME_FIELD);
    let mut labels = Cow::Borrowed(&node.labels);
    if by_name {
        labels.to_mut().insert(NODE_NAME_FIELD.into(), node.name.as_str().into());
    }
    matching::attracted(shape, &labels) && matching::tolerates(&shape.tolerations, &node.taints)
}

fn fits(store: &Store, shape: &PodShape, node: &Node) -> bool {
    let mut free = node.allocatable.clone();
    for uid in store.bound.get(&node.name).into_iter().flatten() {
        if let Some(record) = store.pods.get(uid).filter(|record| !record.pod.is_terminal()) {
            free.subtract(&record.pod.shape.requests);
        }
    }
    shape.requests.fits(&free)
}
