//! CapacityBuffers as they were last seen, and what their placeholder pods are made from.

use std::sync::Arc;

use crate::core::ids::ObjectKey;
use crate::core::resources::Resources;

use super::{Condition, PodShape};

/// A CapacityBuffer object.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`.
    pub version: Arc<str>,
    /// `spec.provisioningStrategy`.
    pub strategy: Arc<str>,
    /// Whose pods say how large a chunk is; nothing when the object names neither or both.
    pub source: Option<Source>,
    /// `spec.replicas`.
    pub replicas: Option<i64>,
    /// `spec.percentage`.
    pub percentage: Option<i64>,
    /// `spec.limits`.
    pub limits: Option<Resources>,
    /// What of the object could not be understood, field and remedy, one sentence each.
    pub errors: Vec<Arc<str>>,
    /// Its status.
    pub status: BufferStatus,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// What says how large a chunk of a CapacityBuffer is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A PodTemplate of the buffer's namespace, by name.
    Template(Arc<str>),
    /// A workload of the buffer's namespace: its kind (as written, `group/kind`, when it is none that is known) and name.
    Scalable(Result<ScalableKind, Arc<str>>, Arc<str>),
}

/// `status` of a CapacityBuffer, but for its conditions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BufferStatus {
    /// `status.provisioningStrategy`.
    pub strategy: Option<Arc<str>>,
    /// `status.podTemplateRef.name`.
    pub template: Option<Arc<str>>,
    /// `status.podTemplateGeneration`.
    pub template_generation: Option<i64>,
    /// `status.replicas`.
    pub replicas: Option<i64>,
}

/// A PodTemplate object.
#[derive(Clone, PartialEq, Debug)]
pub struct PodTemplate {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.generation`.
    pub generation: i64,
    /// What placeholders made from it look like.
    pub shape: Arc<PodShape>,
}

/// A kind of workload that a CapacityBuffer may follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ScalableKind {
    /// Deployments.
    Deployment,
    /// StatefulSets.
    StatefulSet,
    /// ReplicaSets.
    ReplicaSet,
}

impl ScalableKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::ReplicaSet];

    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
        }
    }
}

/// A workload that a CapacityBuffer may follow.
#[derive(Clone, PartialEq, Debug)]
pub struct Scalable {
    /// Its kind.
    pub kind: ScalableKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.replicas`; 1 when absent.
    pub replicas: i64,
    /// What placeholders made from its template look like.
    pub shape: Arc<PodShape>,
}
