//! What the solver is asked: a snapshot, what can be bought, and the pods that wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expand::{Family, Owners};
use crate::core::conditions::Conditions;
use crate::core::facts::{
    Catalog, Fact, Fold, InstanceType, Owner, Pod, Pool, Snapshot, Status, VolumeClaim, find_condition,
};
use crate::core::ids::{ClassRef, ObjectKey, PodUid};
use crate::manifests::{Gathered, Object, Owned, Workload};

/// Kinds that are accepted and change nothing in a plan yet, and what to know of them.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("NodeOverlay", "prices and capacity are those of the catalogue"),
    ("CapacityBuffer", "no room is kept free for it"),
    ("ResourceClaim", "devices are not allocated"),
];

/// A question to the solver.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The cluster.
    pub snapshot: Snapshot,
    /// What can be bought.
    pub catalog: Catalog,
    /// Pods that wait for a place, by namespace and name.
    pub pods: Vec<Arc<Pod>>,
    /// Pods that wait for something else, and for what.
    pub set_aside: Vec<(ObjectKey, String)>,
    /// What the user ought to know, one sentence each.
    pub notices: Vec<String>,
}

impl Input {
    /// Says what is sold to NodePools of a NodeClass, in place of the list that all share.
    pub fn sell(&mut self, class: &ClassRef, types: &Arc<Vec<Arc<InstanceType>>>) {
        for pool in self.snapshot.pools.values().filter(|pool| pool.template.class == *class) {
            self.catalog.pools.insert(pool.name.clone(), Arc::clone(types));
        }
        self.catalog.classes.insert(class.clone(), Arc::clone(types));
    }
}

/// Objects of files. NodePools of which nobody has said that they are not ready are ready.
pub fn from_manifests(gathered: Gathered, types: Vec<InstanceType>) -> Input {
    let mut fold = Fold::default();
    let mut input = Input::default();
    let mut pods: Owners = Vec::new();
    let mut gated: Vec<(ObjectKey, Vec<String>)> = Vec::new();
    let mut workloads: Vec<(Workload, Vec<Owned>)> = Vec::new();
    let mut claims: Vec<VolumeClaim> = Vec::new();
    let mut idle: BTreeSet<String> = BTreeSet::new();
    let mut uids: BTreeSet<PodUid> = BTreeSet::new();
    for placed in gathered.objects {
        let found = placed.found;
        match found.object {
            Object::Pool(pool) => fold.fold(Fact::PoolSeen(Arc::new(ready(*pool)))),
            Object::Class(class) => fold.fold(Fact::ClassSeen(Arc::new(class))),
            Object::Claim(claim) => fold.fold(Fact::ClaimSeen(Arc::new(*claim))),
            Object::Node(node) => fold.fold(Fact::NodeSeen(Arc::new(*node))),
            Object::Daemon(daemon) => fold.fold(Fact::DaemonSeen(Arc::new(daemon))),
            Object::Namespace(name, labels) => fold.fold(Fact::NamespaceSeen(name, Arc::new(labels))),
            Object::VolumeClaim(claim) => fold.fold(Fact::VolumeClaimSeen(Arc::new(claim))),
            Object::Volume(volume) => fold.fold(Fact::VolumeSeen(Arc::new(volume))),
            Object::StorageClass(class) => fold.fold(Fact::StorageClassSeen(Arc::new(class))),
            Object::CsiNode(node) => fold.fold(Fact::CsiNodeSeen(Arc::new(node))),
            Object::Attachment(one) => fold.fold(Fact::AttachmentSeen(Arc::new(one))),
            Object::Pod { mut pod, volumes, .. } => {
                // A pod that no API server has seen has no UID, and copied ones share theirs.
                if pod.uid.as_str() == &*pod.key.name || !uids.insert(pod.uid.clone()) {
                    pod.uid = PodUid::from(pod.key.to_string());
                }
                let waits = pod.node.is_none()
                    && pod.deleting.is_none()
                    && !pod.is_terminal()
                    && !matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node);
                pod.unschedulable = waits && found.gates.is_empty();
                if waits && !found.gates.is_empty() {
                    gated.push((pod.key.clone(), found.gates));
                }
                if waits {
                    claims.extend(volumes.iter().filter_map(|volume| volume.made_for(&pod.key)));
                }
                pods.push((Arc::new(*pod), found.owners));
            }
            Object::Workload(workload) => workloads.push((workload, found.owners)),
            Object::Irrelevant(kind) => drop(idle.insert(kind)),
            // Nothing is evicted by a plan, and priorities stand in the pods.
            Object::Budget(_) | Object::Priority(..) => {}
        }
    }
    let family = Family::new(&pods, &workloads);
    let mut made: Vec<Arc<Pod>> = Vec::new();
    for (workload, _) in &workloads {
        let missing = family.missing(workload);
        let volumes = || workload.volumes.iter();
        claims.extend(missing.iter().flat_map(|pod| volumes().filter_map(|volume| volume.made_for(&pod.key))));
        made.extend(missing);
    }
    for claim in claims {
        if !fold.snapshot().volume_claims.contains_key(&claim.key) {
            fold.fold(Fact::VolumeClaimSeen(Arc::new(claim)));
        }
    }
    // The solver takes pods as they came: here, whatever the order of the files, by name.
    let mut all: Vec<&Arc<Pod>> = pods.iter().map(|(pod, _)| pod).chain(&made).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    for pod in all {
        fold.fold(Fact::PodSeen(Arc::clone(pod)));
    }
    input.set_aside = gated
        .into_iter()
        .map(|(key, gates)| {
            (key, format!("the pod has scheduling gates ({}); it is planned once they are removed", gates.join(", ")))
        })
        .collect();
    input.snapshot = fold.snapshot().clone();
    input.notices.extend(without_effect(&idle));
    complete(input, types)
}

/// What a cluster was seen to hold; pending are the pods for which kube-scheduler found no place. NodePools that nobody has judged yet,
/// because no joiner runs there, are ready.
pub fn from_snapshot(mut snapshot: Snapshot, types: Vec<InstanceType>) -> Input {
    snapshot.pools =
        snapshot.pools.iter().map(|(name, pool)| (name.clone(), Arc::new(ready((**pool).clone())))).collect();
    complete(Input { snapshot, ..Input::default() }, types)
}

fn complete(mut input: Input, types: Vec<InstanceType>) -> Input {
    let list: Arc<Vec<Arc<InstanceType>>> = Arc::new(types.into_iter().map(Arc::new).collect());
    for pool in input.snapshot.pools.values() {
        input.catalog.pools.insert(pool.name.clone(), Arc::clone(&list));
        input.catalog.classes.insert(pool.template.class.clone(), Arc::clone(&list));
        if pool.replicas.is_some() {
            let name = &pool.name;
            input
                .notices
                .push(format!("NodePool {name}: is static (spec.replicas); pods are not planned on new nodes of it"));
        }
    }
    let snapshot = &input.snapshot;
    let lost = snapshot.bound.iter().filter(|(node, _)| !snapshot.nodes.contains_key(*node));
    let lost: Vec<String> = lost
        .map(|(node, pods)| format!("Node {node}: is not there, but {} pods are bound to it; add it", pods.len()))
        .collect();
    input.notices.extend(lost);
    input.pods = snapshot.pending.keys().filter_map(|uid| snapshot.pods.get(uid).cloned()).collect();
    input.pods.sort_by(|a, b| a.key.cmp(&b.key));
    input
}

/// The API server's judgement, which files do not carry.
fn ready(mut pool: Pool) -> Pool {
    let judged = find_condition(&pool.conditions, "Ready");
    let refused = judged.is_some_and(|ready| ready.status == Status::False && ready.generation == pool.generation);
    if !refused && pool.errors.is_empty() {
        let mut conditions = Conditions::of(&[], &[], pool.generation, pool.created, pool.created);
        conditions.set_true("Ready");
        pool.conditions = conditions.finish();
    }
    pool
}

fn without_effect(kinds: &BTreeSet<String>) -> impl Iterator<Item = String> {
    let known = WITHOUT_EFFECT.into_iter().filter(|(kind, _)| kinds.contains(*kind));
    known.map(|(kind, why)| format!("{kind}: has no effect yet: {why}"))
}
