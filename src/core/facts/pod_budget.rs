//! PodDisruptionBudgets: how many of an application's pods may be missing by intent.

use crate::core::ids::ObjectKey;

use super::{Pod, Selector};

/// A number of pods, or a share of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// So many pods.
    Pods(u64),
    /// So many in a hundred, rounded up as Kubernetes does.
    Percent(u64),
}

/// A PodDisruptionBudget.
#[derive(Clone, PartialEq, Debug)]
pub struct PodBudget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Which pods it protects; nothing protects none.
    pub selector: Option<Selector>,
    /// `spec.minAvailable`.
    pub min_available: Option<Count>,
    /// `spec.maxUnavailable`.
    pub max_unavailable: Option<Count>,
    /// `spec.unhealthyPodEvictionPolicy` is `AlwaysAllow`: a pod that is not ready may go whatever the budget says.
    pub spares_unready: bool,
}

impl PodBudget {
    /// Whether it protects a pod.
    pub fn protects(&self, pod: &Pod) -> bool {
        self.key.namespace == pod.key.namespace
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.shape.labels))
    }

    /// Whether it lets no pod go, however many are ready.
    pub fn is_closed(&self) -> bool {
        matches!(self.max_unavailable, Some(Count::Pods(0) | Count::Percent(0)))
            || matches!(self.min_available, Some(Count::Percent(100..)))
    }
}
