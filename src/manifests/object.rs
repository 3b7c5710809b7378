//! What a manifest becomes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::volumes::VolumeSource;
use super::workload::{Workload, WorkloadKind};
use crate::core::facts::{
    Buffer, Claim, CsiNode, DaemonSet, DeviceSlice, Group, Node, NodeClass, Overlay, Owner, Pod, PodBudget, PodShape,
    PodTemplate, Pool, StorageClass, Volume, VolumeAttachment, VolumeClaim,
};
use crate::core::labels::Labels;

/// A manifest that cannot be used as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct Invalid {
    /// Kind, namespace and name, as far as they are known.
    pub object: String,
    /// Field, what is wrong, and the remedy.
    pub problem: String,
}

/// An object to put into a cluster.
#[derive(Clone, Debug)]
pub enum Object {
    /// A NodePool.
    Pool(Box<Pool>),
    /// A NodeClass.
    Class(NodeClass),
    /// A NodeClaim of its own.
    Claim(Box<Claim>),
    /// A Node.
    Node(Box<Node>),
    /// A DaemonSet.
    Daemon(DaemonSet),
    /// A namespace and its labels.
    Namespace(Arc<str>, Labels),
    /// A PodDisruptionBudget.
    Budget(PodBudget),
    /// A PriorityClass and its value.
    Priority(String, i64),
    /// A PersistentVolumeClaim.
    VolumeClaim(VolumeClaim),
    /// A PersistentVolume.
    Volume(Volume),
    /// A StorageClass.
    StorageClass(StorageClass),
    /// A CSINode.
    CsiNode(CsiNode),
    /// A VolumeAttachment.
    Attachment(VolumeAttachment),
    /// A ResourceSlice.
    Slice(DeviceSlice),
    /// A NodeOverlay.
    Overlay(Box<Overlay>),
    /// A CapacityBuffer.
    Buffer(Box<Buffer>),
    /// A PodTemplate.
    Template(PodTemplate),
    /// A pod by itself.
    Pod {
        /// The pod.
        pod: Box<Pod>,
        /// After how long its containers end by themselves.
        runs_for: Option<Duration>,
        /// Its volumes, as far as there are claims behind them.
        volumes: Vec<VolumeSource>,
    },
    /// Something that keeps pods.
    Workload(Workload),
    /// A Secret.
    Secret(Secret),
    /// A kind without which the world is the same.
    Irrelevant(String),
}

/// A Secret. What it holds is not shown.
#[derive(Clone)]
pub struct Secret {
    /// Name.
    pub name: String,
    /// What it holds.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The owner of an object, by kind and name (of the same namespace).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owned {
    /// Kind, such as ReplicaSet.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// An object, and what a reader may want to know of its manifest beside it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The object, as far as it could be read.
    pub object: Object,
    /// `metadata.ownerReferences`.
    pub owners: Vec<Owned>,
    /// `spec.schedulingGates` of a pod or of a template: while there are any, no scheduler looks at the pods.
    pub gates: Vec<String>,
    /// Whether it is a pod on a node, and not all that it requests there could be read.
    pub unread: bool,
    /// Which pods belong together because of it: of a Service or a controller. A Deployment stands for its ReplicaSet.
    pub group: Option<Group>,
    /// What is wrong with it all the same.
    pub problems: Vec<Invalid>,
}

impl Found {
    /// An object with nothing beside it.
    pub(super) fn bare(object: Object) -> Self {
        Self { object, owners: Vec::new(), gates: Vec::new(), unread: false, group: None, problems: Vec::new() }
    }
}

impl Object {
    /// A lone pod as something that keeps itself; every other object as it is.
    #[must_use]
    pub fn kept(self) -> Self {
        let Self::Pod { pod, runs_for, volumes } = self else { return self };
        let shape = if pod.shape.owner == Owner::Nobody {
            Arc::clone(&pod.shape)
        } else {
            Arc::new(PodShape { owner: Owner::Nobody, ..(*pod.shape).clone() })
        };
        Self::Workload(Workload { kind: WorkloadKind::Pod, key: pod.key, replicas: 1, shape, runs_for, volumes })
    }
}
