//! Pods in the store: created by controllers, bound by the scheduler, run by the kubelet, evicted under budgets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::budgets::is_healthy;
use super::objects::Store;
use crate::cluster::{Error, refused_eviction};
use crate::core::facts::{DoNotDisrupt, Fact, Pod, PodPhase, PodShape};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::time::later;
use crate::manifests::VolumeSource;

/// A pod to create.
#[derive(Clone, Debug)]
pub struct NewPod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What it looks like.
    pub shape: Arc<PodShape>,
    /// After how long its containers end by themselves; nothing means never.
    pub runs_for: Option<Duration>,
    /// The workload that owns it.
    pub workload: Option<Arc<str>>,
    /// The node it is created on (daemons only).
    pub node: Option<NodeName>,
    /// Its volumes, as far as there are claims behind them.
    pub volumes: Vec<VolumeSource>,
}

/// A pod, with what only its kubelet and its controller care about.
#[derive(Clone, Debug)]
pub struct PodRecord {
    /// The pod as it is seen.
    pub pod: Arc<Pod>,
    /// After how long its containers end by themselves.
    pub runs_for: Option<Duration>,
    /// The workload that owns it.
    pub workload: Option<Arc<str>>,
}

/// How many pods of a shape there are.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(in crate::sim) struct Tally {
    /// Pods whose containers have not all ended, those that are going included.
    pub(in crate::sim) living: u64,
    /// Pods that run and are not going.
    pub(in crate::sim) healthy: u64,
    /// All pods, ended ones included.
    pub(in crate::sim) all: u64,
}

/// The pods of a workload.
#[derive(Clone, Default, Debug)]
pub(in crate::sim) struct Owned {
    pub(in crate::sim) pods: BTreeSet<PodUid>,
    /// How many of them have neither ended nor been asked to.
    pub(in crate::sim) living: u64,
    /// How many of them have ended well.
    pub(in crate::sim) succeeded: u64,
}

impl Store {
    /// The pods that are bound to a node.
    pub(in crate::sim) fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<Pod>> {
        let uids = self.bound.get(node).into_iter().flatten();
        uids.filter_map(|uid| self.pods.get(uid)).map(|record| &record.pod)
    }

    /// Creates a pod.
    pub fn create_pod(&mut self, new: NewPod) -> Result<PodUid, Error> {
        if self.pod_names.contains_key(&new.key) {
            return Err(Error::Exists(format!("pod {}", new.key)));
        }
        let uid = PodUid::from(self.uid());
        // Equal shapes share one value: that is what lets budgets and the scheduler work by shape.
        let shape = self.shapes.get_key_value(&new.shape).map_or(new.shape, |(shared, _)| Arc::clone(shared));
        let volume_claims = self.claims_of_pod(&new.key, &uid, &new.volumes);
        let pod = Pod {
            key: new.key.clone(),
            uid: uid.clone(),
            created: self.now(),
            shape,
            phase: PodPhase::Pending,
            nominated: None,
            unschedulable: false,
            unjudged: true,
            deleting: None,
            started: None,
            // A pod that is created on a node stands for one that was bound at once.
            scheduled: new.node.is_some().then(|| self.now()),
            ready: None,
            owned_by: None,
            node: new.node,
            volume_claims,
        };
        self.pod_names.insert(new.key, uid.clone());
        let pod = Arc::new(pod);
        if let Some(workload) = &new.workload {
            let owned = self.by_workload.entry(workload.clone()).or_default();
            owned.pods.insert(uid.clone());
            owned.count(None, Some(&pod));
        }
        self.count(None, Some(&pod));
        let record = PodRecord { pod: Arc::clone(&pod), runs_for: new.runs_for, workload: new.workload };
        self.touch(&record);
        self.pods.insert(uid.clone(), record);
        self.emit(&Fact::PodSeen(pod));
        Ok(uid)
    }

    /// Binds a pod to a node, as the scheduler does; false when it is gone, bound, or on its way out, or the node is gone.
    pub fn bind(&mut self, uid: &PodUid, node: &NodeName) -> bool {
        let free = self.pods.get(uid).is_some_and(|r| r.pod.node.is_none() && r.pod.deleting.is_none());
        let possible = free && self.nodes.contains_key(node);
        let now = self.now();
        if possible {
            if let (Some(record), Some(node)) = (self.pods.get(uid), self.nodes.get(node)) {
                let (pod, node) = (Arc::clone(&record.pod), Arc::clone(node));
                self.bind_claims(&pod, &node);
            }
            self.change_pod(uid, |pod| {
                pod.node = Some(node.clone());
                pod.scheduled = Some(now);
                // Kubernetes clears the nomination with the binding.
                pod.nominated = None;
                pod.unschedulable = false;
                pod.unjudged = false;
            });
        }
        possible
    }

    /// Says that the scheduler found no place for a pod.
    pub fn mark_unschedulable(&mut self, uid: &PodUid) {
        self.change_pod(uid, |pod| {
            pod.unschedulable = pod.node.is_none();
            pod.unjudged = false;
        });
    }

    /// Says that the containers of a pod run.
    pub fn start_pod(&mut self, uid: &PodUid) {
        let now = self.now();
        self.change_pod(uid, |pod| {
            if pod.phase == PodPhase::Pending && pod.node.is_some() {
                pod.phase = PodPhase::Running;
                pod.started = Some(now);
                pod.ready = Some(now);
            }
        });
    }

    /// Says that the containers of a pod have ended.
    pub fn end_pod(&mut self, uid: &PodUid, phase: PodPhase) {
        self.change_pod(uid, |pod| {
            pod.phase = phase;
            pod.ready = None;
        });
    }

    /// Sets or clears the nomination of a pod.
    pub fn nominate(&mut self, key: &ObjectKey, uid: &PodUid, node: Option<&NodeName>) -> Result<(), Error> {
        self.check_pod(key, uid)?;
        self.change_pod(uid, |pod| pod.nominated = node.cloned());
        Ok(())
    }

    /// Sets for how long a pod asks not to be disrupted, as its annotation says.
    pub fn protect_pod(&mut self, uid: &PodUid, do_not_disrupt: DoNotDisrupt) {
        let Some(record) = self.pods.get(uid) else { return };
        let shape = Arc::new(PodShape { do_not_disrupt, ..(*record.pod.shape).clone() });
        let shape = self.shapes.get_key_value(&shape).map_or(shape, |(shared, _)| Arc::clone(shared));
        self.change_pod(uid, |pod| pod.shape = shape);
    }

    /// Evicts a pod unless a budget forbids it.
    pub fn evict(&mut self, key: &ObjectKey, uid: &PodUid) -> Result<(), Error> {
        self.check_pod(key, uid)?;
        let Some(record) = self.pods.get(uid) else { return Ok(()) };
        let pod = Arc::clone(&record.pod);
        if let Some((code, status)) = self.verdict(&pod).refusal() {
            self.budgets_bite(&pod);
            return Err(refused_eviction(key, uid, code, &status));
        }
        self.end_gracefully(uid, own_grace(&pod.shape));
        Ok(())
    }

    /// Deletes a pod. Without a grace period its own is used; a pod without a node goes at once.
    pub fn delete_pod(&mut self, key: &ObjectKey, uid: &PodUid, grace: Option<Duration>) -> Result<(), Error> {
        self.check_pod(key, uid)?;
        let own = self.pods.get(uid).map_or(Duration::ZERO, |record| own_grace(&record.pod.shape));
        self.end_gracefully(uid, grace.unwrap_or(own));
        Ok(())
    }

    /// Takes a pod away for good: its kubelet has stopped it, or its node is no more.
    pub fn remove_pod(&mut self, uid: &PodUid) {
        let Some(record) = self.pods.remove(uid) else { return };
        self.pod_names.remove(&record.pod.key);
        if let Some(node) = &record.pod.node {
            self.unbind(node, uid);
        }
        if let Some(workload) = &record.workload
            && let Some(owned) = self.by_workload.get_mut(workload)
        {
            owned.pods.remove(uid);
            owned.count(Some(&record.pod), None);
            if owned.pods.is_empty() {
                self.by_workload.remove(workload);
            }
        }
        self.count(Some(&record.pod), None);
        self.touch(&record);
        self.leave_volumes(&record.pod);
        self.forget_claims_of(uid);
        self.emit(&Fact::PodGone(uid.clone()));
    }

    fn end_gracefully(&mut self, uid: &PodUid, grace: Duration) {
        let Some(record) = self.pods.get(uid) else { return };
        if record.pod.node.is_none() {
            self.remove_pod(uid);
            return;
        }
        let end = later(self.now(), grace);
        // A second deletion can only shorten the time that is left.
        self.change_pod(uid, |pod| pod.deleting = Some(pod.deleting.map_or(end, |earlier| earlier.min(end))));
    }

    fn check_pod(&self, key: &ObjectKey, uid: &PodUid) -> Result<(), Error> {
        match self.pod_names.get(key) {
            Some(there) if there == uid => Ok(()),
            Some(_) => Err(Error::NotFound(format!("pod {key} with UID {uid}"))),
            None => Err(Error::NotFound(format!("pod {key}"))),
        }
    }

    /// The one place where a pod changes: counts, indexes and watchers follow.
    fn change_pod(&mut self, uid: &PodUid, change: impl FnOnce(&mut Pod)) {
        let Some(record) = self.pods.get(uid) else { return };
        let old = Arc::clone(&record.pod);
        let mut pod = (*old).clone();
        change(&mut pod);
        if pod == *old {
            return;
        }
        let pod = Arc::new(pod);
        self.count(Some(&old), Some(&pod));
        let Some(record) = self.pods.get_mut(uid) else { return };
        record.pod = Arc::clone(&pod);
        let record = record.clone();
        if let Some(owned) = record.workload.as_ref().and_then(|workload| self.by_workload.get_mut(workload)) {
            owned.count(Some(&old), Some(&pod));
        }
        self.touch(&record);
        self.emit(&Fact::PodSeen(pod));
    }

    /// Moves a pod's weight in the tallies and in the index by node.
    fn count(&mut self, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let living = |pod: &Pod| u64::from(!pod.is_terminal());
        let healthy = |pod: &Pod| u64::from(is_healthy(pod));
        if let Some(pod) = new {
            let tally = self.shapes.entry(Arc::clone(&pod.shape)).or_default();
            tally.all += 1;
            tally.living += living(pod);
            tally.healthy += healthy(pod);
            if let Some(node) = &pod.node {
                self.bound.entry(node.clone()).or_default().insert(pod.uid.clone());
            }
        }
        if let Some(pod) = old
            && let Some(tally) = self.shapes.get_mut(&pod.shape)
        {
            tally.all -= 1;
            tally.living -= living(pod);
            tally.healthy -= healthy(pod);
            if tally.all == 0 {
                self.shapes.remove(&pod.shape);
            }
        }
    }

    fn unbind(&mut self, node: &NodeName, uid: &PodUid) {
        if let Some(pods) = self.bound.get_mut(node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.bound.remove(node);
            }
        }
    }

    fn touch(&mut self, record: &PodRecord) {
        if let Some(workload) = &record.workload {
            self.touch_workload(workload);
        }
    }

    /// Lets the controller look at a workload.
    pub(in crate::sim) fn touch_workload(&mut self, workload: &Arc<str>) {
        self.touched.insert(workload.clone());
        self.bell.notify_one();
    }
}

impl Owned {
    fn count(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        let living = |pod: &Pod| u64::from(is_living(pod));
        let succeeded = |pod: &Pod| u64::from(pod.phase == PodPhase::Succeeded);
        self.living = self.living + new.map_or(0, living) - old.map_or(0, living);
        self.succeeded = self.succeeded + new.map_or(0, succeeded) - old.map_or(0, succeeded);
    }
}

/// Whether a pod has neither ended nor been asked to.
pub(in crate::sim) fn is_living(pod: &Pod) -> bool {
    pod.deleting.is_none() && !pod.is_terminal()
}

/// The grace period of pods of a shape.
fn own_grace(shape: &PodShape) -> Duration {
    Duration::from_secs(u64::try_from(shape.grace_seconds).unwrap_or(0))
}
