//! The pods of files, and what keeps pods: which wait, which wait for something else, and which hold their nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expand::{Family, Owners};
use super::mounts::Mounts;
use crate::cluster::convert::namespace_labels;
use crate::core::facts::{Fact, Fold, Owner, Pod, PodShape};
use crate::core::ids::{ObjectKey, PodUid};
use crate::manifests::{Owned, VolumeSource, Workload};

/// Pods and workloads as they are read, one after another.
#[derive(Default)]
pub(super) struct Pods {
    /// Pods by themselves.
    lone: Owners,
    workloads: Vec<(Workload, Vec<Owned>)>,
    /// Scheduling gates of each workload's pods.
    gates: Vec<Vec<String>>,
    /// Pods that wait for something else, and for what.
    set_aside: Vec<(ObjectKey, String)>,
    /// Volumes of the pods that wait, by their place in `lone`.
    volumes: BTreeMap<usize, Vec<VolumeSource>>,
    uids: BTreeSet<PodUid>,
    /// Pods on nodes of whose requests not all could be read, by their place in `lone`.
    unread: Vec<usize>,
}

/// What there is beside the facts.
pub(super) struct Rest {
    /// Pods that wait for something else, and for what.
    pub(super) set_aside: Vec<(ObjectKey, String)>,
    /// Pods on their way out in whose place others are planned already.
    pub(super) replaced: BTreeSet<PodUid>,
    /// What the user ought to know.
    pub(super) notices: Vec<String>,
}

impl Pods {
    /// Takes note of a pod by itself; `unread` says that not all of its requests could be read. One that is wrong waits behind no gate: it would not
    /// be there.
    pub(super) fn pod(
        &mut self,
        mut pod: Pod,
        volumes: Vec<VolumeSource>,
        owners: Vec<Owned>,
        gates: &[String],
        unread: bool,
    ) {
        // A pod that no API server has seen has no UID, and copied ones share theirs.
        if pod.uid == PodUid::from(Arc::clone(&pod.key.name)) || !self.uids.insert(pod.uid.clone()) {
            pod.uid = PodUid::from(pod.key.to_string());
        }
        let waits = waits(&pod);
        let is_gated = !gates.is_empty() && pod.shape.broken.is_none();
        let foreign = pod.shape.scheduler.clone().filter(|_| !pod.unschedulable && pod.shape.broken.is_none());
        pod.unschedulable = waits && !is_gated && foreign.is_none();
        // kube-scheduler does not look at a pod behind gates, whether or not the file shows that it knows of them.
        pod.unjudged &= !is_gated;
        if waits && is_gated {
            self.set_aside.push((pod.key.clone(), behind(gates)));
        } else if let Some(scheduler) = foreign.filter(|_| waits) {
            self.set_aside.push((pod.key.clone(), left_to(&scheduler)));
        }
        if waits && !volumes.is_empty() {
            self.volumes.insert(self.lone.len(), volumes);
        }
        if unread {
            self.unread.push(self.lone.len());
        }
        self.lone.push((Arc::new(pod), owners));
    }

    /// Takes note of what keeps pods, and of the gates of these.
    pub(super) fn workload(&mut self, workload: Workload, owners: Vec<Owned>, gates: Vec<String>) {
        self.workloads.push((workload, owners));
        self.gates.push(gates);
    }

    /// Tells all pods, those that workloads lack among them. Nodes and what is behind claims are known already.
    pub(super) fn tell(mut self, mut mounts: Mounts, fold: &mut Fold) -> Rest {
        let notices = self.fill(fold);
        for (at, volumes) in &self.volumes {
            if let Some((pod, _)) = self.lone.get_mut(*at) {
                *pod = mounts.mount(pod, volumes, fold.snapshot());
            }
        }
        let mut family = Family::new(&self.lone, &self.workloads);
        let mut made: Vec<Arc<Pod>> = Vec::new();
        for ((workload, _), gates) in self.workloads.iter().zip(&self.gates) {
            let missing = family.missing(workload);
            let missing = missing.iter().map(|pod| mounts.mount(pod, &workload.volumes, fold.snapshot()));
            let foreign = workload.shape.scheduler.as_ref().map(|scheduler| left_to(scheduler));
            let waits_for = if gates.is_empty() { foreign } else { Some(behind(gates)) };
            let Some(waits_for) = waits_for.filter(|_| workload.shape.broken.is_none()) else {
                made.extend(missing);
                continue;
            };
            let first = made.len();
            made.extend(missing.map(|pod| Arc::new(Pod { unschedulable: false, ..(*pod).clone() })));
            self.set_aside.extend(made.iter().skip(first).map(|pod| (pod.key.clone(), waits_for.clone())));
        }
        mounts.made().for_each(|claim| fold.fold(Fact::VolumeClaimSeen(Arc::new(claim))));
        // The solver takes pods as they came: here, whatever the order of the files, by name.
        let mut all: Vec<&Arc<Pod>> = self.lone.iter().map(|(pod, _)| pod).chain(&made).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        for pod in all {
            see(fold, pod);
        }
        Rest { set_aside: self.set_aside, replaced: replaced(&self.lone, &self.workloads), notices }
    }

    /// A node of which it is not known what its pods request takes nobody new: such a pod has all of it.
    fn fill(&mut self, fold: &Fold) -> Vec<String> {
        let mut notices = Vec::new();
        for at in std::mem::take(&mut self.unread) {
            let Some((pod, _)) = self.lone.get_mut(at).filter(|(pod, _)| pod.is_active_on_node()) else { continue };
            let Some(node) = pod.node.as_ref().and_then(|name| fold.snapshot().nodes.get(name)) else { continue };
            let mut requests = pod.shape.requests.clone();
            requests.raise(&node.allocatable);
            // A node that is not initialized may not know yet what it has.
            let snapshot = fold.snapshot();
            let claims = snapshot
                .claims
                .values()
                .filter(|claim| snapshot.node_of(claim).is_some_and(|its| its.name == node.name));
            claims.for_each(|claim| requests.raise(&claim.allocatable));
            let shape = Arc::new(PodShape { requests, ..(*pod.shape).clone() });
            notices.push(format!(
                "Node {}: takes nobody new, as what pod {} requests of it cannot be read; correct the pod",
                node.name, pod.key
            ));
            *pod = Arc::new(Pod { shape, ..(**pod).clone() });
        }
        notices
    }
}

/// Takes note of a pod. A namespace of which there is no manifest is there all the same, or its pods could not be.
fn see(fold: &mut Fold, pod: &Arc<Pod>) {
    let namespace = &pod.key.namespace;
    if !fold.snapshot().namespaces.contains_key(namespace) {
        fold.fold(Fact::NamespaceSeen(Arc::clone(namespace), Arc::new(namespace_labels(namespace))));
    }
    fold.fold(Fact::PodSeen(Arc::clone(pod)));
}

/// Whether a pod has no place and needs one.
pub(super) fn waits(pod: &Pod) -> bool {
    pod.node.is_none()
        && pod.deleting.is_none()
        && !pod.is_terminal()
        && !matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node)
}

/// Pods on their way out in whose place others are planned already, because their workload is there.
fn replaced(pods: &Owners, workloads: &[(Workload, Vec<Owned>)]) -> BTreeSet<PodUid> {
    let is_there = |pod: &Pod, owner: &Owned| {
        workloads.iter().any(|(workload, _)| {
            workload.kind.as_str() == owner.kind
                && *workload.key.name == *owner.name
                && workload.key.namespace == pod.key.namespace
        })
    };
    let leaving = pods.iter().filter(|(pod, _)| pod.deleting.is_some());
    let replaced = leaving.filter(|(pod, owners)| owners.iter().any(|owner| is_there(pod, owner)));
    replaced.map(|(pod, _)| pod.uid.clone()).collect()
}

/// What a pod of another scheduler waits for: as for Karpenter, its scheduler has to say that it fits nowhere.
pub(super) fn left_to(scheduler: &str) -> String {
    format!(
        "the pod is left to scheduler {scheduler}, which has not said that it fits nowhere; it is planned once it has"
    )
}

/// What a pod behind scheduling gates waits for.
fn behind(gates: &[String]) -> String {
    format!("the pod has scheduling gates ({}); it is planned once they are removed", gates.join(", "))
}
