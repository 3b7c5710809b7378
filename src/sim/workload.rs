//! The workload controllers' stand-in: Deployments, ReplicaSets, StatefulSets, Jobs and bare pods keep the pods that they want.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cluster::SimCluster;
use super::store::{NewPod, Store, is_living};
use crate::core::facts::{Pod, PodPhase};
use crate::core::ids::{ObjectKey, PodUid};
use crate::manifests::{Workload, WorkloadKind};

/// All workloads of a cluster. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Workloads {
    cluster: SimCluster,
    kept: Arc<Mutex<BTreeMap<Arc<str>, Kept>>>,
}

/// A workload and what its controller remembers.
struct Kept {
    workload: Workload,
    /// The part of pod names that stands for the template.
    template: String,
    /// The one pod of a bare pod was made.
    made: bool,
    /// With how many living pods there was nothing to do when they were last looked at.
    settled: Option<u64>,
}

impl Workloads {
    /// The controllers of a cluster, without a workload yet.
    pub fn new(cluster: SimCluster) -> Self {
        Self { cluster, kept: Arc::default() }
    }

    /// Puts a workload, or changes the one of that name.
    pub fn apply(&self, workload: Workload) {
        let name = name(workload.kind.as_str(), &workload.key);
        let mut kept = self.kept();
        let mut store = self.cluster.store();
        if let Some(there) = kept.get_mut(&name) {
            if there.workload.shape != workload.shape {
                there.template = store.suffix(10);
                there.settled = None;
            }
            there.workload = workload;
        } else {
            let template = store.suffix(10);
            kept.insert(name.clone(), Kept { workload, template, made: false, settled: None });
        }
        store.touch_workload(&name);
    }

    /// Changes how many pods a workload wants; false when there is none of that name.
    pub fn scale(&self, kind: &str, key: &ObjectKey, replicas: u64) -> bool {
        let name = name(kind, key);
        let mut kept = self.kept();
        let Some(there) = kept.get_mut(&name) else { return false };
        there.workload.replicas = replicas;
        self.cluster.store().touch_workload(&name);
        true
    }

    /// Deletes a workload and, as the garbage collector does, its pods; false when there is none of that name.
    pub fn delete(&self, kind: &str, key: &ObjectKey) -> bool {
        let name = name(kind, key);
        let there = self.kept().remove(&name).is_some();
        let mut store = self.cluster.store();
        for uid in store.by_workload.get(&name).map(|owned| owned.pods.clone()).unwrap_or_default() {
            delete(&mut store, &uid);
        }
        there
    }

    /// Plays for as long as it is polled.
    pub async fn run(self) {
        let bell = Arc::clone(&self.cluster.store().bell);
        loop {
            self.reconcile();
            bell.notified().await;
        }
    }

    fn reconcile(&self) {
        let mut kept = self.kept();
        let mut store = self.cluster.store();
        while let Some(name) = store.touched.pop_first() {
            if let Some(one) = kept.get_mut(&name) {
                one.reconcile(&name, &mut store);
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn reconcile(&mut self, name: &Arc<str>, store: &mut Store) {
        let (there, succeeded) = store.by_workload.get(name).map_or((0, 0), |owned| (owned.living, owned.succeeded));
        let wanted = match self.workload.kind {
            WorkloadKind::Job { completions, .. } => self.workload.replicas.min(completions.saturating_sub(succeeded)),
            _ => self.workload.replicas,
        };
        // Most changes of pods change nothing here: their number is looked at before they are. Pods come from here only, and one that
        // leaves is missing in the number.
        if there == wanted && self.settled == Some(wanted) {
            return;
        }
        let pods = living(name, store);
        self.settled = (there == wanted && pods.iter().all(|pod| self.is_right(pod))).then_some(wanted);
        match self.workload.kind {
            WorkloadKind::Deployment => self.roll(name, store, pods, wanted),
            WorkloadKind::ReplicaSet | WorkloadKind::Job { .. } => self.keep(name, store, pods, wanted),
            WorkloadKind::StatefulSet { ordered } => self.keep_numbered(name, store, pods, wanted, ordered),
            WorkloadKind::Pod => {
                if !std::mem::replace(&mut self.made, true) {
                    self.create(name, store, self.workload.key.name.to_string());
                }
            }
        }
    }

    /// Whether a living pod is one of those that are wanted, as far as that does not depend on how many there are.
    fn is_right(&self, pod: &Pod) -> bool {
        match self.workload.kind {
            WorkloadKind::Deployment => !self.is_old(pod),
            WorkloadKind::StatefulSet { .. } => number(pod).is_some_and(|number| number < self.workload.replicas),
            WorkloadKind::ReplicaSet | WorkloadKind::Job { .. } | WorkloadKind::Pod => true,
        }
    }

    /// Whether a pod is of an earlier template.
    fn is_old(&self, pod: &Pod) -> bool {
        !Arc::ptr_eq(&pod.shape, &self.workload.shape) && pod.shape != self.workload.shape
    }

    /// Keeps a number of pods, whatever their template.
    fn keep(&self, name: &Arc<str>, store: &mut Store, mut living: Vec<Arc<Pod>>, wanted: u64) {
        for _ in count(&living)..wanted {
            self.create_generated(name, store);
        }
        let excess = count(&living).saturating_sub(wanted);
        if excess == 0 {
            return;
        }
        // Those that wait first, then the youngest, as ReplicaSets do.
        living.sort_by_key(|pod| {
            (pod.node.is_some(), pod.phase == PodPhase::Running, Reverse(pod.created), pod.key.clone())
        });
        for pod in living.iter().take(usize::try_from(excess).unwrap_or(usize::MAX)) {
            delete(store, &pod.uid);
        }
    }

    /// Keeps a number of pods of the current template, replacing older ones by a rolling update: at most a quarter more than wanted
    /// (rounded up), at most a quarter unavailable (rounded down), as Deployments do by default.
    fn roll(&self, name: &Arc<str>, store: &mut Store, pods: Vec<Arc<Pod>>, wanted: u64) {
        let (old, new): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| self.is_old(pod));
        if old.is_empty() {
            return self.keep(name, store, new, wanted);
        }
        let surge = wanted.div_ceil(4);
        let total = count(&old) + count(&new);
        let more = wanted.saturating_sub(count(&new)).min((wanted + surge).saturating_sub(total));
        for _ in 0..more {
            self.create_generated(name, store);
        }
        let runs = |pods: &[Arc<Pod>]| pods.iter().filter(|pod| pod.phase == PodPhase::Running).count() as u64;
        let least = wanted - wanted / 4;
        let mut spare = (runs(&old) + runs(&new)).saturating_sub(least);
        for pod in old {
            let running = pod.phase == PodPhase::Running;
            if !running || spare > 0 {
                spare -= u64::from(running);
                delete(store, &pod.uid);
            }
        }
    }

    fn keep_numbered(&self, name: &Arc<str>, store: &mut Store, living: Vec<Arc<Pod>>, wanted: u64, ordered: bool) {
        let numbers: BTreeMap<u64, Arc<Pod>> =
            living.into_iter().filter_map(|pod| Some((number(&pod)?, pod))).collect();
        for (_, pod) in numbers.range(wanted..).rev() {
            delete(store, &pod.uid);
        }
        for number in 0..wanted {
            match numbers.get(&number) {
                Some(pod) if ordered && pod.phase != PodPhase::Running => return,
                Some(_) => {}
                None => {
                    // While the namesake is still going, the name is taken; its end touches the workload again.
                    self.create(name, store, format!("{}-{number}", self.workload.key.name));
                    if ordered {
                        return;
                    }
                }
            }
        }
    }

    fn create_generated(&self, name: &Arc<str>, store: &mut Store) {
        let suffix = store.suffix(5);
        let stem = &self.workload.key.name;
        let pod = match self.workload.kind {
            WorkloadKind::Deployment => format!("{stem}-{}-{suffix}", self.template),
            _ => format!("{stem}-{suffix}"),
        };
        self.create(name, store, pod);
    }

    fn create(&self, workload: &Arc<str>, store: &mut Store, pod: String) {
        let new = NewPod {
            key: ObjectKey::new(self.workload.key.namespace.clone(), pod),
            shape: Arc::clone(&self.workload.shape),
            runs_for: self.workload.runs_for,
            workload: Some(workload.clone()),
            node: None,
            volumes: self.workload.volumes.clone(),
        };
        // A name that is taken is tried again when its holder changes.
        store.create_pod(new).ok();
    }
}

/// The pods of a workload that have neither ended nor been asked to.
fn living(workload: &Arc<str>, store: &Store) -> Vec<Arc<Pod>> {
    let uids = store.by_workload.get(workload).into_iter().flat_map(|owned| &owned.pods);
    let pods = uids.filter_map(|uid| store.pods.get(uid)).map(|record| &record.pod);
    pods.filter(|pod| is_living(pod)).cloned().collect()
}

/// The number of a StatefulSet's pod.
fn number(pod: &Pod) -> Option<u64> {
    pod.key.name.rsplit('-').next()?.parse().ok()
}

fn count(pods: &[Arc<Pod>]) -> u64 {
    pods.len() as u64
}

fn delete(store: &mut Store, uid: &PodUid) {
    if let Some(key) = store.pods.get(uid).map(|record| record.pod.key.clone()) {
        // It was there a line above.
        store.delete_pod(&key, uid, None).ok();
    }
}

fn name(kind: &str, key: &ObjectKey) -> Arc<str> {
    format!("{kind} {key}").into()
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
