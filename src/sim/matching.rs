//! How Kubernetes itself compares labels, selectors, taints and ports: the stand-ins' view, independent of the solver's.

use std::sync::Arc;

use crate::core::facts::{AffinityTerm, Effect, HostPort, PodShape, Selector, Taint, Toleration};
use crate::core::labels::Labels;
use crate::core::requirements::{Operator, Requirement};

/// Whether one requirement holds for a set of labels.
pub(super) fn holds(requirement: &Requirement, labels: &Labels) -> bool {
    let value = labels.get(&requirement.key);
    let listed = |value: &Arc<str>| requirement.values.contains(value);
    let numbers = || {
        let bound = requirement.values.first()?.parse::<i64>().ok()?;
        Some((value?.parse::<i64>().ok()?, bound))
    };
    match requirement.operator {
        Operator::In => value.is_some_and(listed),
        Operator::NotIn => !value.is_some_and(listed),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => numbers().is_some_and(|(value, bound)| value > bound),
        Operator::Lt => numbers().is_some_and(|(value, bound)| value < bound),
        Operator::Gte => numbers().is_some_and(|(value, bound)| value >= bound),
        Operator::Lte => numbers().is_some_and(|(value, bound)| value <= bound),
    }
}

/// Whether a selector selects a set of labels; an empty selector selects all.
pub(super) fn selects(selector: &Selector, labels: &Labels) -> bool {
    selector.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.expressions.iter().all(|expression| holds(expression, labels))
}

/// Whether a term of pod (anti-)affinity means pods of a shape, given the labels of the shape's namespace.
pub(super) fn means(term: &AffinityTerm, shape: &PodShape, namespace: Option<&Labels>) -> bool {
    let selected = term.selector.as_ref().is_some_and(|selector| selects(selector, &shape.labels));
    let nowhere = Labels::new();
    selected
        && (term.namespaces.contains(&shape.namespace)
            || term.namespace_selector.as_ref().is_some_and(|by| selects(by, namespace.unwrap_or(&nowhere))))
}

/// Whether a node's labels meet a pod's node selector and required node affinity.
pub(super) fn attracted(shape: &PodShape, labels: &Labels) -> bool {
    let terms = &shape.node_affinity.required;
    shape.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        && (terms.is_empty() || terms.iter().any(|term| !term.is_empty() && term.iter().all(|r| holds(r, labels))))
}

/// Whether every taint that keeps pods away is tolerated.
pub(super) fn tolerates(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    taints
        .iter()
        .filter(|taint| taint.effect != Effect::PreferNoSchedule)
        .all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

/// Whether two containers want the same port of a node.
pub(super) fn collide(one: &HostPort, other: &HostPort) -> bool {
    let anywhere = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
    one.port == other.port
        && one.protocol == other.protocol
        && (one.ip == other.ip || anywhere(&one.ip) || anywhere(&other.ip))
}
