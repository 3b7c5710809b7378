//! All that a decision may look at: an immutable picture of the cluster that is cheap to copy and shares its structure.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClassRef, NodeName, ObjectKey, PodUid, PoolName, ProviderId};
use crate::core::labels::Labels;

use super::{
    Buffer, Claim, CsiNode, DaemonSet, Departed, Group, Kind, Node, NodeClass, Overlay, Pod, PodBudget, PodTemplate,
    Pool, Scalable, ScalableKind, StorageClass, Volume, VolumeAttachment, VolumeClaim,
};

/// A picture of the cluster. Copying it copies a few pointers; maps are ordered, so that walking them is deterministic.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Rises with every fact.
    pub epoch: u64,
    /// Pods by UID.
    pub pods: OrdMap<PodUid, Arc<Pod>>,
    /// UIDs of the pods bound to each node.
    pub bound: OrdMap<NodeName, OrdSet<PodUid>>,
    /// UIDs of the pods that a new node could help, and the epoch in which each was first seen: creation times know whole seconds only.
    pub pending: OrdMap<PodUid, u64>,
    /// How often the nomination of a pending pod was taken away: kube-scheduler does so when it tries a pod before its turn.
    pub denominated: OrdMap<PodUid, u32>,
    /// UIDs of the pods that kube-scheduler has not looked at: any moment they may need a node too. The epoch is as in `pending`.
    pub undecided: OrdMap<PodUid, u64>,
    /// When kube-scheduler last weighed nodes in vain for pods that wait, as an epoch: it tries them again in that order, among those that it has
    /// not looked at.
    pub weighed: OrdMap<PodUid, u64>,
    /// Nodes by name.
    pub nodes: OrdMap<NodeName, Arc<Node>>,
    /// Names of the nodes that carry each provider ID: more than one is a fault that somebody must see.
    pub nodes_of: OrdMap<ProviderId, OrdSet<NodeName>>,
    /// Names of the nodes that name each NodeClaim as an owner, whether it is there or not.
    pub owned: OrdMap<ClaimName, OrdSet<NodeName>>,
    /// NodeClaims by name.
    pub claims: OrdMap<ClaimName, Arc<Claim>>,
    /// NodePools by name.
    pub pools: OrdMap<PoolName, Arc<Pool>>,
    /// NodeClasses.
    pub classes: OrdMap<ClassRef, Arc<NodeClass>>,
    /// DaemonSets.
    pub daemons: OrdMap<ObjectKey, Arc<DaemonSet>>,
    /// Labels of namespaces.
    pub namespaces: OrdMap<Arc<str>, Arc<Labels>>,
    /// For which NodeClaim each pod was planned, as long as that is not outdated.
    pub planned: OrdMap<PodUid, ClaimName>,
    /// The same the other way round: the pods planned for each NodeClaim.
    pub planned_for: OrdMap<ClaimName, OrdSet<PodUid>>,
    /// The epoch in which places of the plan were last given or taken away, but for those that pods which equal each other exchanged, or have come to.
    pub replanned: u64,
    /// PersistentVolumeClaims.
    pub volume_claims: OrdMap<ObjectKey, Arc<VolumeClaim>>,
    /// PersistentVolumes by name.
    pub volumes: OrdMap<Arc<str>, Arc<Volume>>,
    /// StorageClasses by name.
    pub storage_classes: OrdMap<Arc<str>, Arc<StorageClass>>,
    /// CSINodes by node.
    pub csi_nodes: OrdMap<NodeName, Arc<CsiNode>>,
    /// VolumeAttachments by name.
    pub attachments: OrdMap<Arc<str>, Arc<VolumeAttachment>>,
    /// Names of the VolumeAttachments of each node.
    pub attached: OrdMap<NodeName, OrdSet<Arc<str>>>,
    /// When a pod (of no DaemonSet) was last bound to each node, ended there, or began to end there. Whole seconds.
    pub pod_events: OrdMap<NodeName, Timestamp>,
    /// NodeClaims that have gone, and are not brought back by what shows an earlier time.
    pub departed: Departed,
    /// Services and controllers by path (see [`Group`]); only where default spread constraints ask for them.
    pub groups: OrdMap<Arc<str>, Arc<Group>>,
    /// NodeOverlays by name.
    pub overlays: OrdMap<Arc<str>, Arc<Overlay>>,
    /// CapacityBuffers.
    pub buffers: OrdMap<ObjectKey, Arc<Buffer>>,
    /// PodTemplates.
    pub templates: OrdMap<ObjectKey, Arc<PodTemplate>>,
    /// Workloads that CapacityBuffers may follow.
    pub scalables: OrdMap<(ScalableKind, ObjectKey), Arc<Scalable>>,
    /// PodDisruptionBudgets.
    pub pod_budgets: OrdMap<ObjectKey, Arc<PodBudget>>,
    /// Kinds of which everything has been reported at least once.
    pub listed: OrdSet<Kind>,
    /// Kinds that joiner may not look at, as far as it has tried.
    pub withheld: OrdSet<Kind>,
}

impl Snapshot {
    /// Whether every kind has been listed once, so that absence means something. A kind that can be done without and that joiner may not
    /// look at is not waited for.
    pub fn is_complete(&self) -> bool {
        let known = |kind: &Kind| self.listed.contains(kind) || kind.is_dispensable() && self.withheld.contains(kind);
        Kind::ALL.iter().all(known)
    }

    /// Kinds without which no plan can be made, and which joiner may not look at.
    pub fn withheld_from_plans(&self) -> Vec<Kind> {
        Kind::FOR_PLANS.into_iter().filter(|kind| self.withheld.contains(kind)).collect()
    }

    /// When a waiting pod was first seen, as an epoch.
    pub fn arrival(&self, uid: &PodUid) -> Option<u64> {
        self.pending.get(uid).or_else(|| self.undecided.get(uid)).copied()
    }

    /// VolumeAttachments of a node.
    pub fn attachments_of<'a>(&'a self, node: &NodeName) -> impl Iterator<Item = &'a Arc<VolumeAttachment>> {
        self.attached.get(node).into_iter().flatten().filter_map(|name| self.attachments.get(name))
    }

    /// The PersistentVolumes that a pod's claims are bound to, as far as they are.
    pub fn volumes_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<str>> {
        let key = |name: &Arc<str>| ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
        pod.volume_claims.iter().filter_map(move |name| self.volume_claims.get(&key(name))?.volume.as_ref())
    }

    /// The class of a claim that names none: the youngest of those that are marked as default.
    pub fn default_storage_class(&self) -> Option<&Arc<StorageClass>> {
        let defaults = self.storage_classes.values().filter(|class| class.is_default);
        defaults.max_by(|a, b| a.created.cmp(&b.created).then_with(|| b.name.cmp(&a.name)))
    }

    /// The class of a claim: the one that it names, or the default.
    pub fn storage_class_of(&self, claim: &VolumeClaim) -> Option<&Arc<StorageClass>> {
        claim.class.as_ref().map_or_else(|| self.default_storage_class(), |name| self.storage_classes.get(name))
    }

    /// Pods bound to a node.
    pub fn pods_on<'a>(&'a self, node: &NodeName) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.bound.get(node).into_iter().flatten().filter_map(|uid| self.pods.get(uid))
    }

    /// The Nodes that carry a provider ID: one, unless something is wrong.
    pub fn nodes_with<'a>(&'a self, id: &ProviderId) -> impl Iterator<Item = &'a Arc<Node>> {
        self.nodes_of.get(id).into_iter().flatten().filter_map(|name| self.nodes.get(name))
    }

    /// The nodes that name this NodeClaim as an owner.
    pub fn nodes_owned_by<'a, 'b>(&'a self, claim: &'b Claim) -> impl Iterator<Item = &'a Arc<Node>> + use<'a, 'b> {
        let named = self.owned.get(&claim.name).into_iter().flatten().filter_map(|name| self.nodes.get(name));
        named.filter(move |node| node.is_owned_by(claim))
    }

    /// The NodeClaims that own a Node and are there.
    pub fn owners_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Arc<Claim>> {
        node.owner_claims.iter().filter_map(|owner| self.claims.get(&owner.name).filter(|claim| owner.is(claim)))
    }

    /// The node of a NodeClaim, when exactly one carries its provider ID.
    pub fn node_of(&self, claim: &Claim) -> Option<&Arc<Node>> {
        let names = self.nodes_of.get(claim.provider_id.as_ref()?)?;
        if names.len() == 1 { names.get_min().and_then(|name| self.nodes.get(name)) } else { None }
    }
}
