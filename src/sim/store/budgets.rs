//! PodDisruptionBudgets: how many pods must stay, and whether one more may go.
//!
//! Pods are counted by what is there, not by what their controllers want; a pod that is going still counts as expected, so that a
//! budget is never looser than Kubernetes' own.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::objects::Store;
use crate::core::facts::{Count, Fact, Pod, PodBudget, PodPhase};
use crate::core::ids::ObjectKey;
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
    /// A budget forbids it for now: which one, and why.
    Forbidden(String),
    /// More than one budget protects it, which Kubernetes does not handle.
    Ambiguous,
}

impl Verdict {
    /// Code and `Status` with which the API server refuses an eviction; nothing when the pod may go.
    pub(super) fn refusal(&self) -> Option<(StatusCode, Value)> {
        Some(match self {
            Self::Allowed => return None,
            Self::Forbidden(cause) => (
                StatusCode::TOO_MANY_REQUESTS,
                json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429,
                    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                    "details": { "causes": [{ "reason": "DisruptionBudget", "message": cause }] },
                }),
            ),
            Self::Ambiguous => (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                    "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                }),
            ),
        })
    }
}

impl Store {
    /// Puts a PodDisruptionBudget.
    pub fn apply_budget(&mut self, budget: PodBudget) {
        let budget = Arc::new(budget);
        self.budgets.insert(budget.key.clone(), Arc::clone(&budget));
        self.emit(&Fact::PodBudgetSeen(budget));
    }

    /// Deletes a PodDisruptionBudget.
    pub fn delete_budget(&mut self, key: &ObjectKey) -> bool {
        let there = self.budgets.remove(key).is_some();
        if there {
            self.emit(&Fact::PodBudgetGone(key.clone()));
        }
        there
    }

    /// Whether budgets forbid the eviction of a pod now.
    pub(in crate::sim) fn forbids(&self, pod: &Pod) -> bool {
        self.verdict(pod) != Verdict::Allowed
    }

    /// Whether a budget forbids the eviction of a pod now, and would not if these others that it counts were healthy.
    pub(in crate::sim) fn forbids_for_want_of(&self, pod: &Pod, others: impl Fn(&Pod) -> bool) -> bool {
        let others = |budget: &PodBudget| {
            let counted = self.pods.values().map(|record| &*record.pod).filter(|pod| protects(budget, pod));
            counted.filter(|pod| !pod.is_terminal() && !is_healthy(pod) && others(pod)).count() as u64
        };
        self.forbids(pod) && self.verdict_with(pod, others) == Verdict::Allowed
    }

    /// Notes which budgets have refused the eviction of a pod.
    pub(super) fn budgets_bite(&mut self, pod: &Pod) {
        let protecting = self.budgets.values().filter(|budget| protects(budget, pod));
        self.bitten.extend(protecting.map(|budget| budget.key.to_string()));
    }

    /// Whether budgets let a pod be evicted now.
    pub(super) fn verdict(&self, pod: &Pod) -> Verdict {
        self.verdict_with(pod, |_| 0)
    }

    /// The same with so many more healthy pods than there are.
    fn verdict_with(&self, pod: &Pod, more: impl Fn(&PodBudget) -> u64) -> Verdict {
        if pod.deleting.is_some() || pod.phase != PodPhase::Running {
            return Verdict::Allowed;
        }
        let mut protecting = self.budgets.values().filter(|budget| protects(budget, pod));
        let Some(budget) = protecting.next() else { return Verdict::Allowed };
        if protecting.next().is_some() {
            return Verdict::Ambiguous;
        }
        if budget.spares_unready && pod.ready.is_none() {
            return Verdict::Allowed;
        }
        let (mut expected, mut healthy) = (0, more(budget));
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
            "The disruption budget {} needs {wanted} healthy pods and has {healthy} currently",
            budget.key.name
        ))
    }
}

/// Whether a pod runs and is not going.
pub(super) fn is_healthy(pod: &Pod) -> bool {
    pod.phase == PodPhase::Running && pod.deleting.is_none()
}

/// The API server's own view, independent of joiner's.
fn protects(budget: &PodBudget, pod: &Pod) -> bool {
    budget.key.namespace == pod.key.namespace
        && budget.selector.as_ref().is_some_and(|selector| matching::selects(selector, &pod.shape.labels))
}
