//! Objects that keep pods, as they are written.

use std::sync::Arc;
use std::time::Duration;

use super::volumes::VolumeSource;
use crate::core::buffers::placeholder_shape;
use crate::core::facts::{PodShape, Scalable, ScalableKind};
use crate::core::ids::ObjectKey;

/// What kind of object keeps the pods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WorkloadKind {
    /// Pods with generated names; a changed template is rolled out, a quarter at a time.
    Deployment,
    /// Pods with generated names; a changed template is for new pods only.
    ReplicaSet,
    /// Numbered pods; a replacement waits until its namesake is gone.
    StatefulSet {
        /// Whether each pod waits until those before it run (`podManagementPolicy: OrderedReady`).
        ordered: bool,
    },
    /// Pods that end by themselves.
    Job {
        /// How many are to end well.
        completions: u64,
        /// How many have, as its status says.
        succeeded: u64,
    },
    /// A pod without an owner, which nobody replaces.
    Pod,
}

impl WorkloadKind {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet { .. } => "StatefulSet",
            Self::Job { .. } => "Job",
            Self::Pod => "Pod",
        }
    }

    /// API version and kind of the object that owns the pods.
    pub(crate) fn pod_owner(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Deployment | Self::ReplicaSet => Some(("apps/v1", "ReplicaSet")),
            Self::StatefulSet { .. } => Some(("apps/v1", "StatefulSet")),
            Self::Job { .. } => Some(("batch/v1", "Job")),
            Self::Pod => None,
        }
    }
}

/// Something that keeps pods.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// What kind.
    pub kind: WorkloadKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// How many pods it wants (for a Job: at a time).
    pub replicas: u64,
    /// What its pods look like.
    pub shape: Arc<PodShape>,
    /// After how long its pods end by themselves.
    pub runs_for: Option<Duration>,
    /// Volumes of its pods, as far as there are claims behind them.
    pub volumes: Vec<VolumeSource>,
}

impl Workload {
    /// What a CapacityBuffer that follows it sees; nothing where none can.
    pub fn scalable(&self) -> Option<Scalable> {
        let kind = match self.kind {
            WorkloadKind::Deployment => ScalableKind::Deployment,
            WorkloadKind::StatefulSet { .. } => ScalableKind::StatefulSet,
            WorkloadKind::ReplicaSet => ScalableKind::ReplicaSet,
            WorkloadKind::Job { .. } | WorkloadKind::Pod => return None,
        };
        let replicas = i64::try_from(self.replicas).unwrap_or(i64::MAX);
        Some(Scalable { kind, key: self.key.clone(), replicas, shape: Arc::new(placeholder_shape(&self.shape)) })
    }
}
