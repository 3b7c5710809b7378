//! What the solver is asked: a snapshot, what can be bought, and the pods that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::mounts::Mounts;
use super::pods::{Pods, left_to, waits};
use crate::clouds::catalog::KWOK_LABEL_KEYS;
use crate::core::buffers::{self, Resolution};
use crate::core::conditions::Conditions;
use crate::core::facts::{
    Catalog, Fact, Fold, InstanceType, Judgement, Kind, Pod, Pool, Snapshot, Status, Verdict, VolumeClaim,
    find_condition,
};
use crate::core::ids::{ClassRef, ObjectKey, PodUid};
use crate::core::{leaving, overlays, pools};
use crate::manifests::{Gathered, Object, Secret};

/// Kinds that are accepted and change nothing in a plan yet, and what to know of them.
const WITHOUT_EFFECT: [(&str, &str); 1] = [("ResourceClaim", "devices are not allocated")];

/// Kinds that count by what is said of pods for their sake: which belong together, and what admission writes into them.
const OF_PODS: [&str; 3] = ["Service", "LimitRange", "RuntimeClass"];

/// Optional features of a plan, off unless somebody turns them on (Karpenter's feature gates of these names).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// NodeOverlays change prices and capacity of instance types.
    pub node_overlay: bool,
    /// CapacityBuffers keep room for pods to come.
    pub capacity_buffer: bool,
}

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
    /// Keys of the cloud that sells the machines that count as well-known.
    pub label_keys: Vec<&'static str>,
    /// Secrets of files, which a cloud may be told its keys by.
    pub secrets: Vec<Secret>,
    /// Whether NodeOverlays count.
    overlaid: bool,
}

impl Input {
    /// Says what is sold to NodePools of a NodeClass, in place of the list that all share.
    pub fn sell(&mut self, class: &ClassRef, types: &Arc<Vec<Arc<InstanceType>>>) {
        for pool in self.snapshot.pools.values().filter(|pool| pool.template.class == *class) {
            self.catalog.pools.insert(pool.name.clone(), Arc::clone(types));
        }
        self.catalog.classes.insert(class.clone(), Arc::clone(types));
    }

    /// Says that nothing can be bought for a NodePool, and why.
    pub fn refuse(&mut self, pool: &Pool, why: &str) {
        self.notices.push(format!("NodePool {}: {why}", pool.name));
        self.snapshot.pools.insert(pool.name.clone(), Arc::new(pools::refused(pool, why)));
    }

    /// Puts NodeOverlays, where they count, to what is sold now. Called once everything has been sold: one that speaks of two lists and conflicts
    /// with another in one of them holds in neither.
    pub fn overlay(&mut self) {
        if !self.overlaid {
            return;
        }
        let outdated = conflicts(&self.catalog);
        self.notices.retain(|notice| !outdated.contains(notice));
        self.catalog.overlays.clear();
        self.catalog.overlaid.clear();
        overlays::apply(&mut self.catalog, &self.snapshot);
        self.notices.extend(conflicts(&self.catalog));
    }
}

/// NodeOverlays that are not applied. What is wrong in a file has been said already.
fn conflicts(catalog: &Catalog) -> Vec<String> {
    let told = |(name, judgement): (&Arc<str>, &Judgement)| match &judgement.verdict {
        Verdict::Applied | Verdict::Invalid(_) => None,
        Verdict::Conflict(why) => Some(format!("NodeOverlay {name}: is not applied: {why}")),
    };
    catalog.overlays.iter().filter_map(told).collect()
}

/// Objects of files: pods that wait, those that workloads lack, and those that are about to lose their node at that time. NodePools of which
/// nobody has said that they are not ready are ready.
pub fn from_manifests(gathered: Gathered, types: Vec<InstanceType>, features: Features, now: Timestamp) -> Input {
    let mut fold = Fold::default();
    let mut input = Input::default();
    let (mut pods, mut mounts) = (Pods::default(), Mounts::new(gathered.unread));
    let mut idle: BTreeMap<String, usize> = BTreeMap::new();
    input.notices.extend(gathered.empty.iter().chain(&gathered.troubles).map(ToString::to_string));
    for placed in gathered.objects {
        let found = placed.found;
        if let Some(group) = found.group {
            fold.fold(Fact::GroupSeen(Arc::new(group)));
        }
        match found.object {
            Object::Pool(pool) => fold.fold(Fact::PoolSeen(Arc::new(ready(*pool)))),
            Object::Class(class) => fold.fold(Fact::ClassSeen(Arc::new(class))),
            Object::Claim(claim) => fold.fold(Fact::ClaimSeen(Arc::new(*claim))),
            Object::Node(node) => fold.fold(Fact::NodeSeen(Arc::new(*node))),
            Object::Daemon(daemon) => fold.fold(Fact::DaemonSeen(Arc::new(daemon))),
            Object::Namespace(name, labels) => fold.fold(Fact::NamespaceSeen(name, Arc::new(labels))),
            Object::VolumeClaim(claim) => {
                mounts.see(&claim.key, found.owners);
                fold.fold(Fact::VolumeClaimSeen(Arc::new(claim)));
            }
            Object::Volume(volume) => fold.fold(Fact::VolumeSeen(Arc::new(volume))),
            Object::StorageClass(class) => fold.fold(Fact::StorageClassSeen(Arc::new(class))),
            Object::CsiNode(node) => fold.fold(Fact::CsiNodeSeen(Arc::new(node))),
            Object::Overlay(overlay) => fold.fold(Fact::OverlaySeen(Arc::new(*overlay))),
            Object::Buffer(buffer) => fold.fold(Fact::BufferSeen(Arc::new(*buffer))),
            Object::Template(template) => fold.fold(Fact::TemplateSeen(Arc::new(template))),
            Object::Attachment(one) => fold.fold(Fact::AttachmentSeen(Arc::new(one))),
            Object::Pod { pod, volumes, .. } => pods.pod(*pod, volumes, found.owners, &found.gates, found.unread),
            Object::Workload(workload) => {
                if let Some(scalable) = workload.scalable() {
                    fold.fold(Fact::ScalableSeen(Arc::new(scalable)));
                }
                pods.workload(workload, found.owners, found.gates);
            }
            Object::Irrelevant(kind) => *idle.entry(kind).or_default() += 1,
            Object::Budget(budget) => fold.fold(Fact::PodBudgetSeen(Arc::new(budget))),
            Object::Secret(secret) => input.secrets.push(secret),
            // Priorities stand in the pods.
            // What is allocated of devices no plan says: pods with such claims are refused.
            Object::Priority(..) | Object::Slice(_) => {}
        }
    }
    let rest = pods.tell(mounts, &mut fold);
    bind(&mut fold);
    // The files hold all budgets that there are.
    fold.fold(Fact::Relisted(Kind::PodBudget));
    input.set_aside = rest.set_aside;
    input.notices.extend(rest.notices);
    input.snapshot = fold.snapshot().clone();
    input.notices.extend(without_effect(&idle));
    complete(input, types, features, &rest.replaced, now)
}

/// A claim in a file that names its volume, which is in a file, too, is bound within seconds of their being applied: no cluster has written so into it.
fn bind(fold: &mut Fold) {
    let snapshot = fold.snapshot();
    let named = snapshot.volume_claims.values().filter(|claim| !claim.bound && !claim.lost);
    let there = named.filter(|claim| claim.volume.as_ref().is_some_and(|name| snapshot.volumes.contains_key(name)));
    let bound: Vec<_> = there.map(|claim| VolumeClaim { bound: true, ..VolumeClaim::clone(claim) }).collect();
    for claim in bound {
        fold.fold(Fact::VolumeClaimSeen(Arc::new(claim)));
    }
}

/// Why a pod of a cluster is not planned although it has no place, as far as can be seen.
fn ahead(pod: &Pod) -> String {
    match &pod.shape.scheduler {
        Some(scheduler) if pod.unjudged => left_to(scheduler),
        _ => "kube-scheduler does not look for a place for the pod, as a rule because of scheduling gates (see its spec.schedulingGates and its condition PodScheduled); it is planned once they are removed".to_owned(),
    }
}

/// What a cluster was seen to hold at that time; pending are the pods for which kube-scheduler found no place, those that it has not looked at,
/// and those that are about to lose their node. NodePools that nobody has judged yet, because no joiner runs there, are ready.
pub fn from_snapshot(mut snapshot: Snapshot, types: Vec<InstanceType>, features: Features, now: Timestamp) -> Input {
    snapshot.pools =
        snapshot.pools.iter().map(|(name, pool)| (name.clone(), Arc::new(ready((**pool).clone())))).collect();
    let is_aside = |pod: &&Arc<Pod>| waits(pod) && snapshot.arrival(&pod.uid).is_none();
    let mut set_aside: Vec<(ObjectKey, String)> =
        snapshot.pods.values().filter(is_aside).map(|pod| (pod.key.clone(), ahead(pod))).collect();
    set_aside.sort();
    complete(Input { snapshot, set_aside, ..Input::default() }, types, features, &BTreeSet::new(), now)
}

/// Of the pods that are about to lose their nodes, those in `replaced` are not planned: others are in their place.
fn complete(
    mut input: Input,
    types: Vec<InstanceType>,
    features: Features,
    replaced: &BTreeSet<PodUid>,
    now: Timestamp,
) -> Input {
    input.label_keys = KWOK_LABEL_KEYS.to_vec();
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
    let waiting = snapshot.pending.keys().chain(snapshot.undecided.keys());
    input.pods = waiting.filter_map(|uid| snapshot.pods.get(uid).cloned()).collect();
    input.pods.sort_by(|a, b| a.key.cmp(&b.key));
    let mut leavers = leaving::leavers(snapshot, now);
    leavers.retain(|pod| !replaced.contains(&pod.uid));
    if !leavers.is_empty() {
        input.notices.push(format!("{} pods are about to lose their nodes, and are planned along", leavers.len()));
        input.pods.extend(leavers);
    }
    add_features(&mut input, features);
    input
}

/// NodeOverlays and CapacityBuffers, and what to know of those that change nothing.
fn add_features(input: &mut Input, features: Features) {
    let off = |kind, name: &dyn std::fmt::Display| {
        format!("{kind} {name}: has no effect, the feature is off; add --feature-gates {kind}=true")
    };
    if features.node_overlay {
        input.overlaid = true;
        input.overlay();
    } else {
        input.notices.extend(input.snapshot.overlays.keys().map(|name| off("NodeOverlay", name)));
    }
    if !features.capacity_buffer {
        input.notices.extend(input.snapshot.buffers.keys().map(|key| off("CapacityBuffer", key)));
        return;
    }
    input.pods.extend(buffers::placeholders(&input.snapshot).pods);
    for buffer in input.snapshot.buffers.values().filter(|buffer| buffer.errors.is_empty()) {
        if let Resolution::NotReady { message, .. } = buffers::resolve(&input.snapshot, buffer) {
            input.notices.push(format!("CapacityBuffer {}: keeps no room: {message}", buffer.key));
        }
    }
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

/// What to know of kinds that change nothing: why, or how many objects of each were left out, so that a misspelt kind is seen.
fn without_effect(kinds: &BTreeMap<String, usize>) -> Vec<String> {
    let known = WITHOUT_EFFECT.into_iter().filter(|(kind, _)| kinds.contains_key(*kind));
    let mut all: Vec<String> = known.map(|(kind, why)| format!("{kind}: has no effect yet: {why}")).collect();
    let is_known = |kind: &str| OF_PODS.contains(&kind) || WITHOUT_EFFECT.iter().any(|(known, _)| *known == kind);
    let rest = kinds.iter().filter(|(kind, _)| !is_known(kind));
    let rest: Vec<String> = rest.map(|(kind, count)| format!("{kind} ({count})")).collect();
    if !rest.is_empty() {
        let rest = rest.join(", ");
        all.push(format!(
            "left out, as a plan does not depend on such objects: {rest}; correct kind where another was meant"
        ));
    }
    all
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
