//! What the pods of DaemonSets really are. Webhooks, LimitRanges and autoscalers of pods change what a template says, so the newest pod that is
//! there tells better than the template what a new node will carry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::ids::{ObjectKey, PodUid};
use crate::core::labels;

use super::fold::Fold;
use super::{DaemonSet, NodeAffinity, Owner, Pod, PodShape};

/// DaemonSets as they were written, and the newest pod of each.
#[derive(Debug, Default)]
pub(super) struct Daemons {
    templates: BTreeMap<ObjectKey, Arc<DaemonSet>>,
    newest: BTreeMap<ObjectKey, Newest>,
    /// Those whose newest pod has gone: another is looked for once, when all that is new is folded.
    bereft: BTreeSet<ObjectKey>,
}

#[derive(Clone, Debug)]
struct Newest {
    created: Timestamp,
    uid: PodUid,
    shape: Arc<PodShape>,
}

impl Daemons {
    pub(super) fn template_gone(&mut self, key: &ObjectKey) {
        self.templates.remove(key);
    }
}

impl Newest {
    fn of(pod: &Pod) -> Self {
        Self { created: pod.created, uid: pod.uid.clone(), shape: Arc::clone(&pod.shape) }
    }

    fn is_younger_than(&self, other: &Self) -> bool {
        (self.created, &self.uid) > (other.created, &other.uid)
    }
}

impl Fold {
    pub(super) fn daemon_seen(&mut self, daemon: Arc<DaemonSet>) {
        let key = daemon.key.clone();
        self.daemons.templates.insert(key.clone(), daemon);
        self.shape_daemon(&key);
    }

    pub(super) fn daemon_pod_seen(&mut self, pod: &Pod) {
        let Some(key) = daemon_of(pod) else { return };
        let now = Newest::of(pod);
        let is_news = |known: &Newest| {
            if known.uid == now.uid { known.shape != now.shape } else { now.is_younger_than(known) }
        };
        if self.daemons.newest.get(&key).is_none_or(is_news) {
            self.daemons.newest.insert(key.clone(), now);
            self.shape_daemon(&key);
        }
    }

    pub(super) fn daemon_pod_gone(&mut self, pod: &Pod) {
        let Some(key) = daemon_of(pod) else { return };
        if self.daemons.newest.get(&key).is_some_and(|newest| newest.uid == pod.uid) {
            self.daemons.bereft.insert(key);
        }
    }

    /// Finds the newest pod of each DaemonSet whose newest has gone: one walk over all pods for all of them.
    pub(super) fn look_for_daemon_pods(&mut self) {
        let bereft = std::mem::take(&mut self.daemons.bereft);
        let is_gone = |newest: &Newest| !self.snapshot.pods.contains_key(&newest.uid);
        let bereft: BTreeSet<ObjectKey> =
            bereft.into_iter().filter(|key| self.daemons.newest.get(key).is_some_and(is_gone)).collect();
        if bereft.is_empty() {
            return;
        }
        for key in &bereft {
            self.daemons.newest.remove(key);
        }
        for pod in self.snapshot.pods.values() {
            let Some(key) = daemon_of(pod).filter(|key| bereft.contains(key)) else { continue };
            let now = Newest::of(pod);
            if self.daemons.newest.get(&key).is_none_or(|known| now.is_younger_than(known)) {
                self.daemons.newest.insert(key, now);
            }
        }
        for key in &bereft {
            self.shape_daemon(key);
        }
    }

    /// Takes the shape of the newest pod for that of the DaemonSet, or that of the template if there is none.
    fn shape_daemon(&mut self, key: &ObjectKey) {
        let Some(template) = self.daemons.templates.get(key) else { return };
        let daemon = match self.daemons.newest.get(key) {
            Some(newest) => Arc::new(DaemonSet { key: key.clone(), shape: live(&template.shape, &newest.shape) }),
            None => Arc::clone(template),
        };
        let known = self.snapshot.daemons.get(key);
        if known == Some(&daemon) {
            return;
        }
        // It may have become smaller.
        self.news.supply |= known.is_some();
        self.snapshot.daemons.insert(key.clone(), daemon);
    }
}

/// The DaemonSet that a pod belongs to.
fn daemon_of(pod: &Pod) -> Option<ObjectKey> {
    if pod.shape.owner != Owner::DaemonSet {
        return None;
    }
    let (kind, name) = pod.owned_by.as_deref()?.rsplit_once('/')?;
    kind.ends_with("/daemonsets").then(|| ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: name.into() })
}

/// A pod's shape without what ties it to its node. The DaemonSet's controller puts a term for the node into the place of the template's required
/// terms, so those come from the template; and labels with each revision, on which nothing here depends.
fn live(template: &Arc<PodShape>, pod: &PodShape) -> Arc<PodShape> {
    let untied = |term: &Vec<_>| {
        let free = |line: &&crate::core::requirements::Requirement| &*line.key != labels::HOSTNAME;
        term.iter().filter(free).cloned().collect::<Vec<_>>()
    };
    let mut required = template.node_affinity.required.clone();
    if required.is_empty() {
        required = pod.node_affinity.required.iter().map(untied).collect();
        if required.iter().any(Vec::is_empty) {
            required.clear();
        }
    }
    let node_affinity = NodeAffinity { required, preferred: pod.node_affinity.preferred.clone() };
    let shape = PodShape { node_affinity, labels: template.labels.clone(), ..pod.clone() };
    if shape == **template { Arc::clone(template) } else { Arc::new(shape) }
}

#[cfg(test)]
#[path = "fold_daemons_tests.rs"]
mod tests;
