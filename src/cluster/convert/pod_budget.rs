//! PodDisruptionBudgets.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::core::facts::{Count, PodBudget};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;

use super::common;
use super::pod::label_selector;
use super::problems::{Problems, Unreadable};
use super::wire;

/// Folds a PodDisruptionBudget into a fact. A selector that cannot be understood protects no pod: joiner only asks whether a budget lets
/// pods go at all, and the API server judges every eviction itself.
pub fn pod_budget(budget: &wire::PodDisruptionBudget) -> Result<PodBudget, Unreadable> {
    let name = common::name("PodDisruptionBudget", &budget.metadata)?;
    let namespace = budget.metadata.namespace.as_deref().unwrap_or("default");
    let spec = budget.spec.as_ref();
    let mut problems = Problems::default();
    let written = spec.and_then(|spec| spec.selector.as_ref());
    let selector = label_selector("spec.selector", written, &Labels::new(), None, None, &mut problems);
    Ok(PodBudget {
        key: ObjectKey::new(namespace, name),
        selector: selector.filter(|_| problems.is_empty()),
        min_available: spec.and_then(|spec| count(spec.min_available.as_ref()?)),
        max_unavailable: spec.and_then(|spec| count(spec.max_unavailable.as_ref()?)),
        spares_unready: spec.is_some_and(|spec| spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow")),
    })
}

fn count(written: &IntOrString) -> Option<Count> {
    match written {
        IntOrString::Int(pods) => u64::try_from(*pods).ok().map(Count::Pods),
        IntOrString::String(text) => text.strip_suffix('%')?.parse().ok().map(Count::Percent),
    }
}

#[cfg(test)]
#[path = "pod_budget_tests.rs"]
mod tests;
