//! PodDisruptionBudgets: how many pods must stay, and whether one more may go.

use super::objects::Store;
use crate::core::facts::{Pod, PodPhase};
use crate::core::ids::ObjectKey;
use crate::manifests::{Budget, Count};
use crate::sim::matching;

impl Count {
    fn of(self, total: u64) -> u64 {
        match self {
            Self::Pods(pods) => pods,
            Self::Percent(percent) => (total * percent).div_ceil(100),
        }
    }
}

/// What the API server says to an eviction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The pod may go.
    Allowed,
    /// A budget forbids it for now.
    Forbidden(String),
    /// More than one budget protects it, which Kubernetes does not handle.
    Ambiguous,
}

impl Store {
    /// Puts a PodDisruptionBudget.
    pub fn apply_budget(&mut self, budget: Budget) {
        self.budgets.insert(budget.key.clone(), budget);
    }

    /// Deletes a PodDisruptionBudget.
    pub fn delete_budget(&mut self, key: &ObjectKey) -> bool {
        self.budgets.remove(key).is_some()
    }

    /// Whether budgets forbid the eviction of a pod now.
    pub(in crate::sim) fn forbids(&self, pod: &Pod) -> bool {
        self.verdict(pod) != Verdict::Allowed
    }

    /// Whether budgets let a pod be evicted now.
    pub(super) fn verdict(&self, pod: &Pod) -> Verdict {
        if pod.deleting.is_some() || pod.phase != PodPhase::Running {
            return Verdict::Allowed;
        }
        let mut protecting = self.budgets.values().filter(|budget| budget.protects(pod));
        let Some(budget) = protecting.next() else { return Verdict::Allowed };
        if protecting.next().is_some() {
            return Verdict::Ambiguous;
        }
        let (mut expected, mut healthy) = (0, 0);
        for (shape, tally) in &self.shapes {
            if shape.namespace == budget.key.namespace
                && budget.selector.as_ref().is_some_and(|by| matching::selects(by, &shape.labels))
            {
                expected += tally.living;
                healthy += tally.healthy;
            }
        }
        let wanted = match (budget.min_available, budget.max_unavailable) {
            (Some(least), _) => least.of(expected),
            (None, Some(most)) => expected.saturating_sub(most.of(expected)),
            (None, None) => 0,
        };
        if healthy > wanted {
            return Verdict::Allowed;
        }
        Verdict::Forbidden(format!(
            "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget {} needs {wanted} healthy pods and \
             has {healthy} currently",
            budget.key.name
        ))
    }
}

impl Budget {
    fn protects(&self, pod: &Pod) -> bool {
        self.key.namespace == pod.key.namespace
            && self.selector.as_ref().is_some_and(|selector| matching::selects(selector, &pod.shape.labels))
    }
}
