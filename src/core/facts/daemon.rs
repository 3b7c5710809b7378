//! DaemonSets: pods that every fitting node will carry, known before the node exists.

use std::sync::Arc;

use crate::core::ids::ObjectKey;

use super::PodShape;

/// A DaemonSet and the shape of its pods, as its template gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What each of its pods looks like.
    pub shape: Arc<PodShape>,
}

impl DaemonSet {
    /// Whether room is kept for its pods. Not for those that ask for devices: joiner cannot tell on which nodes there will be any (Karpenter's
    /// `--ignore-dra-requests`).
    pub fn is_expected(&self) -> bool {
        !self.shape.dynamic_resources
    }
}
