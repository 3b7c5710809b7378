//! The word in which the cluster reports: one observation, parsed.

use std::sync::Arc;

use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, ObjectKey, PodUid, PoolName};
use crate::core::labels::Labels;

use super::{
    Buffer, Claim, CsiNode, DaemonSet, Group, Node, NodeClass, Overlay, Pod, PodBudget, PodTemplate, Pool, Scalable,
    ScalableKind, StorageClass, Volume, VolumeAttachment, VolumeClaim,
};

/// The kinds of object that joiner watches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// NodeClaims.
    NodeClaim,
    /// NodePools.
    NodePool,
    /// NodeClasses of the chosen cloud.
    NodeClass,
    /// DaemonSets.
    DaemonSet,
    /// Namespaces.
    Namespace,
    /// PersistentVolumeClaims.
    VolumeClaim,
    /// PersistentVolumes.
    Volume,
    /// StorageClasses.
    StorageClass,
    /// CSINodes.
    CsiNode,
    /// VolumeAttachments.
    VolumeAttachment,
    /// Services; nothing is listed of them and of the controllers unless default spread constraints ask for them.
    Service,
    /// ReplicationControllers.
    ReplicationController,
    /// ReplicaSets.
    ReplicaSet,
    /// StatefulSets.
    StatefulSet,
    /// NodeOverlays; nothing is listed of them unless the feature is on.
    NodeOverlay,
    /// CapacityBuffers; nothing is listed of them and of what they are made from unless the feature is on.
    CapacityBuffer,
    /// PodTemplates.
    PodTemplate,
    /// Workloads that CapacityBuffers may follow. A watch of its own: few clusters have both features on, and each reads something else of
    /// these objects.
    Scalable(ScalableKind),
    /// PodDisruptionBudgets.
    PodBudget,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 23] = [
        Self::Pod,
        Self::Node,
        Self::NodeClaim,
        Self::NodePool,
        Self::NodeClass,
        Self::DaemonSet,
        Self::Namespace,
        Self::VolumeClaim,
        Self::Volume,
        Self::StorageClass,
        Self::CsiNode,
        Self::VolumeAttachment,
        Self::Service,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::NodeOverlay,
        Self::CapacityBuffer,
        Self::PodTemplate,
        Self::Scalable(ScalableKind::Deployment),
        Self::Scalable(ScalableKind::StatefulSet),
        Self::Scalable(ScalableKind::ReplicaSet),
        Self::PodBudget,
    ];

    /// Those that say which pods belong together.
    pub const GROUPS: [Self; 4] = [Self::Service, Self::ReplicationController, Self::ReplicaSet, Self::StatefulSet];

    /// What no plan can be made without: nodes that are there are looked after all the same.
    pub const FOR_PLANS: [Self; 4] = [Self::NodePool, Self::NodeClass, Self::DaemonSet, Self::Namespace];

    /// Whether joiner can work without seeing any of it. Without those [for plans](Self::FOR_PLANS) nothing is bought; without others pods with volumes
    /// wait, pods that nobody groups have no default spread constraints, pods of nodes that go get new ones when they have left, optional features do
    /// nothing, and all others go on.
    pub fn is_dispensable(self) -> bool {
        !matches!(self, Self::Pod | Self::Node | Self::NodeClaim)
    }

    /// The plural that people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pods",
            Self::Node => "Nodes",
            Self::NodeClaim => "NodeClaims",
            Self::NodePool => "NodePools",
            Self::NodeClass => "NodeClasses",
            Self::DaemonSet => "DaemonSets",
            Self::Namespace => "Namespaces",
            Self::VolumeClaim => "PersistentVolumeClaims",
            Self::Volume => "PersistentVolumes",
            Self::StorageClass => "StorageClasses",
            Self::CsiNode => "CSINodes",
            Self::VolumeAttachment => "VolumeAttachments",
            Self::Service => "Services",
            Self::ReplicationController => "ReplicationControllers",
            Self::ReplicaSet | Self::Scalable(ScalableKind::ReplicaSet) => "ReplicaSets",
            Self::StatefulSet | Self::Scalable(ScalableKind::StatefulSet) => "StatefulSets",
            Self::NodeOverlay => "NodeOverlays",
            Self::CapacityBuffer => "CapacityBuffers",
            Self::PodTemplate => "PodTemplates",
            Self::Scalable(ScalableKind::Deployment) => "Deployments",
            Self::PodBudget => "PodDisruptionBudgets",
        }
    }
}

/// Something that was observed. Idempotent: the latest about an object replaces what was known of it.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A pod is as given.
    PodSeen(Arc<Pod>),
    /// A pod is no more.
    PodGone(PodUid),
    /// A node is as given.
    NodeSeen(Arc<Node>),
    /// A node is no more.
    NodeGone(NodeName),
    /// A NodeClaim is as given.
    ClaimSeen(Arc<Claim>),
    /// A NodeClaim is no more, and never will be again: another of its name has another UID.
    ClaimGone(ClaimName, ClaimUid),
    /// A NodePool is as given.
    PoolSeen(Arc<Pool>),
    /// A NodePool is no more.
    PoolGone(PoolName),
    /// A NodeClass is as given.
    ClassSeen(Arc<NodeClass>),
    /// A NodeClass is no more.
    ClassGone(ClassRef),
    /// A DaemonSet is as given.
    DaemonSeen(Arc<DaemonSet>),
    /// A DaemonSet is no more.
    DaemonGone(ObjectKey),
    /// A namespace has these labels.
    NamespaceSeen(Arc<str>, Arc<Labels>),
    /// A namespace is no more.
    NamespaceGone(Arc<str>),
    /// A PersistentVolumeClaim is as given.
    VolumeClaimSeen(Arc<VolumeClaim>),
    /// A PersistentVolumeClaim is no more.
    VolumeClaimGone(ObjectKey),
    /// A PersistentVolume is as given.
    VolumeSeen(Arc<Volume>),
    /// A PersistentVolume is no more.
    VolumeGone(Arc<str>),
    /// A StorageClass is as given.
    StorageClassSeen(Arc<StorageClass>),
    /// A StorageClass is no more.
    StorageClassGone(Arc<str>),
    /// A CSINode is as given.
    CsiNodeSeen(Arc<CsiNode>),
    /// A CSINode is no more.
    CsiNodeGone(NodeName),
    /// A VolumeAttachment is as given.
    AttachmentSeen(Arc<VolumeAttachment>),
    /// A VolumeAttachment is no more.
    AttachmentGone(Arc<str>),
    /// A group of pods is as given.
    GroupSeen(Arc<Group>),
    /// A group of pods is no more.
    GroupGone(Arc<str>),
    /// A NodeOverlay is as given.
    OverlaySeen(Arc<Overlay>),
    /// A NodeOverlay is no more.
    OverlayGone(Arc<str>),
    /// A CapacityBuffer is as given.
    BufferSeen(Arc<Buffer>),
    /// A CapacityBuffer is no more.
    BufferGone(ObjectKey),
    /// A PodTemplate is as given.
    TemplateSeen(Arc<PodTemplate>),
    /// A PodTemplate is no more.
    TemplateGone(ObjectKey),
    /// A workload that CapacityBuffers may follow is as given.
    ScalableSeen(Arc<Scalable>),
    /// A workload that CapacityBuffers may follow is no more.
    ScalableGone(ScalableKind, ObjectKey),
    /// A PodDisruptionBudget is as given.
    PodBudgetSeen(Arc<PodBudget>),
    /// A PodDisruptionBudget is no more.
    PodBudgetGone(ObjectKey),
    /// joiner may not look at this kind.
    Withheld(Kind),
    /// A watch starts over (first list, or after a gap): what is not seen again before [`Fact::Relisted`] is gone.
    Relisting(Kind),
    /// A watch has now reported everything there is of a kind.
    Relisted(Kind),
}
