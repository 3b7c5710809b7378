//! Workloads as the pods that their controllers would make, besides those that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Group, Kind, Pod, PodPhase, PodShape, Selector};
use crate::core::ids::{ObjectKey, PodUid};
use crate::manifests::{Owned, Workload, WorkloadKind, claims_of};

/// Pods, each with its owners.
pub(super) type Owners = Vec<(Arc<Pod>, Vec<Owned>)>;

/// Who owns whom among the manifests.
pub(super) struct Family<'a> {
    pods: &'a Owners,
    /// Names of pods that are taken: by pods that are there, and by those that were made for other workloads.
    names: BTreeSet<ObjectKey>,
    /// How many living pods each owner has.
    living: BTreeMap<(Arc<str>, Owned), u64>,
    /// How many pods of each owner have ended well.
    succeeded: BTreeMap<(Arc<str>, Owned), u64>,
    /// Deployments by the ReplicaSets that they own.
    parents: BTreeMap<ObjectKey, ObjectKey>,
    deployments: BTreeSet<ObjectKey>,
    /// Whether a selector tells the pods of a StatefulSet apart. Else they are left alike: pods that are alike are planned as one question.
    numbered: bool,
}

impl<'a> Family<'a> {
    pub(super) fn new(pods: &'a Owners, workloads: &[(Workload, Vec<Owned>)]) -> Self {
        let of_kind = |kind| workloads.iter().filter(move |(workload, _)| workload.kind == kind);
        let deployments: BTreeSet<ObjectKey> = of_kind(WorkloadKind::Deployment).map(|(w, _)| w.key.clone()).collect();
        let mut parents = BTreeMap::new();
        for (set, owners) in of_kind(WorkloadKind::ReplicaSet) {
            for owner in owners.iter().filter(|owner| owner.kind == "Deployment") {
                let deployment = ObjectKey::new(Arc::clone(&set.key.namespace), owner.name.as_str());
                if deployments.contains(&deployment) {
                    parents.insert(set.key.clone(), deployment);
                }
            }
        }
        let mut family = Self {
            pods,
            names: pods.iter().map(|(pod, _)| pod.key.clone()).collect(),
            living: BTreeMap::new(),
            succeeded: BTreeMap::new(),
            parents,
            deployments,
            numbered: pods.iter().any(|(pod, _)| tells_numbers(&pod.shape))
                || workloads.iter().any(|(workload, _)| tells_numbers(&workload.shape)),
        };
        family.count();
        family
    }

    fn count(&mut self) {
        for (pod, owners) in self.pods {
            for owner in owners.iter().filter(|_| pod.deleting.is_none()) {
                let owner = (Arc::clone(&pod.key.namespace), self.root(pod, owner));
                if !pod.is_terminal() {
                    *self.living.entry(owner).or_default() += 1;
                } else if pod.phase == PodPhase::Succeeded {
                    *self.succeeded.entry(owner).or_default() += 1;
                }
            }
        }
    }

    /// The Deployment behind a ReplicaSet, whether the ReplicaSet is among the manifests or known by its name only.
    fn root(&self, pod: &Pod, owner: &Owned) -> Owned {
        let set = ObjectKey::new(Arc::clone(&pod.key.namespace), owner.name.as_str());
        let by_name = || {
            let hash = pod.shape.labels.get("pod-template-hash")?;
            let name = owner.name.strip_suffix(&**hash)?.strip_suffix('-')?;
            let deployment = ObjectKey::new(Arc::clone(&pod.key.namespace), name);
            self.deployments.contains(&deployment).then_some(deployment)
        };
        match self.parents.get(&set).cloned().or_else(by_name).filter(|_| owner.kind == "ReplicaSet") {
            Some(deployment) => Owned { kind: "Deployment".to_owned(), name: deployment.name.to_string() },
            None => owner.clone(),
        }
    }

    /// The pods that a workload still lacks, named `<name>-<index>`.
    pub(super) fn missing(&mut self, workload: &Workload) -> Vec<Arc<Pod>> {
        if self.parents.contains_key(&workload.key) && workload.kind == WorkloadKind::ReplicaSet {
            return Vec::new();
        }
        if workload.kind == WorkloadKind::Pod {
            return vec![pending(workload.key.clone(), workload)];
        }
        let owner = Owned { kind: workload.kind.as_str().to_owned(), name: workload.key.name.to_string() };
        let owner = (Arc::clone(&workload.key.namespace), owner);
        let count = |of: &BTreeMap<_, u64>| of.get(&owner).copied().unwrap_or(0);
        let at_once = match workload.kind {
            // Pods that have ended well may be there or be swept away; the status of the Job knows of all of them, as far as it is new.
            WorkloadKind::Job { completions, succeeded } => {
                workload.replicas.min(completions.saturating_sub(succeeded.max(count(&self.succeeded))))
            }
            _ => workload.replicas,
        };
        let wanted = at_once.saturating_sub(count(&self.living));
        let mut pods = Vec::new();
        let mut index = 0_u64;
        while (pods.len() as u64) < wanted {
            let name = format!("{}-{index}", workload.key.name);
            let key = ObjectKey::new(Arc::clone(&workload.key.namespace), name);
            if self.names.insert(key.clone()) {
                let numbered = self.numbered && matches!(workload.kind, WorkloadKind::StatefulSet { .. });
                let workload = if numbered { &with_number(workload, &key.name, index) } else { workload };
                pods.push(pending(key, workload));
            }
            index += 1;
        }
        pods
    }
}

/// The labels by which a StatefulSet numbers its pods.
const NUMBERS: [&str; 2] = ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"];

/// Whether a selector in the shape speaks of those labels.
fn tells_numbers(shape: &PodShape) -> bool {
    let wished = shape.preferred_affinity.iter().chain(&shape.preferred_anti_affinity).map(|wish| &wish.term);
    let terms = shape.affinity.iter().chain(&shape.anti_affinity).chain(wished).map(|term| &term.selector);
    let speaks = |selector: &Selector| {
        let keys = selector.labels.keys().chain(selector.expressions.iter().map(|wanted| &wanted.key));
        keys.into_iter().any(|key| NUMBERS.contains(&&**key))
    };
    terms.chain(shape.spreads.iter().map(|spread| &spread.selector)).flatten().any(speaks)
}

/// The workload as that one pod of it sees it.
fn with_number(workload: &Workload, pod: &str, index: u64) -> Workload {
    let mut shape = (*workload.shape).clone();
    let [name, number] = NUMBERS.map(Arc::from);
    shape.labels.insert(name, pod.into());
    shape.labels.insert(number, index.to_string().into());
    Workload { shape: Arc::new(shape), ..workload.clone() }
}

fn pending(key: ObjectKey, workload: &Workload) -> Arc<Pod> {
    let volume_claims = claims_of(&workload.volumes, &key.name);
    let owner = match workload.kind {
        WorkloadKind::Deployment | WorkloadKind::ReplicaSet => Some(Kind::ReplicaSet),
        WorkloadKind::StatefulSet { .. } => Some(Kind::StatefulSet),
        WorkloadKind::Job { .. } | WorkloadKind::Pod => None,
    };
    let owned_by = owner.and_then(|kind| Group::path(kind, &workload.key.namespace, &workload.key.name));
    Arc::new(Pod {
        uid: PodUid::from(key.to_string()),
        key,
        created: Timestamp::UNIX_EPOCH,
        shape: Arc::clone(&workload.shape),
        phase: PodPhase::Pending,
        node: None,
        nominated: None,
        unschedulable: true,
        unjudged: false,
        deleting: None,
        started: None,
        scheduled: None,
        ready: None,
        owned_by,
        volume_claims,
    })
}
