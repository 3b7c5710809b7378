//! PodDisruptionBudgets as they are written.

use crate::core::facts::Selector;
use crate::core::ids::ObjectKey;

/// A number of pods, or a share of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// So many pods.
    Pods(u64),
    /// So many in a hundred, rounded up as Kubernetes does.
    Percent(u64),
}

/// A PodDisruptionBudget, as far as evictions depend on it.
///
/// Pods are counted by what is there, not by what their controllers want; a pod that is going still counts as expected, so that a
/// budget is never looser than Kubernetes' own.
#[derive(Clone, PartialEq, Debug)]
pub struct Budget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Which pods it protects; nothing protects none.
    pub selector: Option<Selector>,
    /// `spec.minAvailable`.
    pub min_available: Option<Count>,
    /// `spec.maxUnavailable`.
    pub max_unavailable: Option<Count>,
}
