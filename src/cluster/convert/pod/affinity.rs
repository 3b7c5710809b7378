//! Affinity, topology spread and tolerations of pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{self as k8s, PodAffinityTerm};

use crate::core::facts::{
    AffinityTerm, Effect, NodeAffinity, PolicyHonor, Selector, Toleration, TolerationOperator, TopologySpread, Weighted,
};
use crate::core::labels::{Labels, normalized};

use super::selector::{Fields, check_term, label_selector, node_term};
use crate::cluster::convert::problems::Problems;

/// What every term of a pod's constraints is read against.
pub(super) struct Own<'a> {
    /// The pod's namespace.
    pub(super) namespace: &'a Arc<str>,
    /// The pod's labels.
    pub(super) labels: &'a Labels,
    /// What its node affinity may say of fields of a node.
    pub(super) fields: Fields,
}

/// `spec.affinity.nodeAffinity`.
pub(super) fn node(affinity: Option<&k8s::NodeAffinity>, own: &Own<'_>, problems: &mut Problems) -> NodeAffinity {
    let Some(affinity) = affinity else { return NodeAffinity::default() };
    let root = "spec.affinity.nodeAffinity";
    let mut all = NodeAffinity::default();
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let field = format!("{root}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        let has_fields = |term: &k8s::NodeSelectorTerm| term.match_fields.as_ref().is_some_and(|all| !all.is_empty());
        let has_field_term = required.node_selector_terms.iter().any(has_fields);
        let names_no_node = |term: &k8s::NodeSelectorTerm| {
            !has_fields(term) && term.match_expressions.iter().flatten().next().is_some()
        };
        // Beside an alternative by which nodes can be chosen, one that names nodes is good for those.
        let fields = match own.fields {
            Fields::Refused if required.node_selector_terms.iter().any(names_no_node) => Fields::Meant,
            fields => fields,
        };
        for (at, term) in required.node_selector_terms.iter().enumerate() {
            let requirements = node_term(&format!("{field}[{at}]"), term, fields, problems);
            check_term(&format!("{field}[{at}]"), term, problems);
            // A term that says nothing matches no node, and so adds nothing to the alternatives.
            if !requirements.is_empty() {
                all.required.push(requirements);
            }
        }
        if all.required.is_empty() && !has_field_term {
            problems.note(&field, "matches no node; give a term with matchExpressions or remove the affinity");
        }
    }
    let field = format!("{root}.preferredDuringSchedulingIgnoredDuringExecution");
    for (at, term) in affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten().enumerate() {
        check_weight(&format!("{field}[{at}]"), term.weight, problems);
        let requirements = node_term(&format!("{field}[{at}].preference"), &term.preference, Fields::Ignored, problems);
        if !requirements.is_empty() {
            all.preferred.push(Weighted { weight: term.weight, term: requirements });
        }
    }
    all
}

/// The weight of a wish, as the API server takes it.
fn check_weight(field: &str, weight: i32, problems: &mut Problems) {
    if !(1..=100).contains(&weight) {
        problems.note(&format!("{field}.weight"), format!("{weight} is not from 1 to 100; write such a number"));
    }
}

/// Required terms of pod affinity or anti-affinity; `field` is the path of the list.
pub(super) fn terms(
    field: &str,
    terms: Option<&Vec<PodAffinityTerm>>,
    own: &Own<'_>,
    problems: &mut Problems,
) -> Vec<AffinityTerm> {
    terms
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, term)| pod_term(&format!("{field}[{at}]"), term, own, problems))
        .collect()
}

/// Preferred terms of pod affinity or anti-affinity; `field` is the path of the list.
pub(super) fn weighted(
    field: &str,
    terms: Option<&Vec<k8s::WeightedPodAffinityTerm>>,
    own: &Own<'_>,
    problems: &mut Problems,
) -> Vec<Weighted<AffinityTerm>> {
    terms
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, weighted)| {
            let here = format!("{field}[{at}]");
            check_weight(&here, weighted.weight, problems);
            let term = pod_term(&format!("{here}.podAffinityTerm"), &weighted.pod_affinity_term, own, problems);
            Weighted { weight: weighted.weight, term }
        })
        .collect()
}

fn pod_term(field: &str, term: &PodAffinityTerm, own: &Own<'_>, problems: &mut Problems) -> AffinityTerm {
    let mut namespaces: Vec<Arc<str>> = term.namespaces.iter().flatten().map(|name| name.as_str().into()).collect();
    if namespaces.is_empty() && term.namespace_selector.is_none() {
        namespaces.push(Arc::clone(own.namespace));
    }
    if term.topology_key.is_empty() {
        problems.note(&format!("{field}.topologyKey"), "is empty; name a node label");
    }
    AffinityTerm {
        key: normalized(&term.topology_key).into(),
        selector: label_selector(
            &format!("{field}.labelSelector"),
            term.label_selector.as_ref(),
            own.labels,
            term.match_label_keys.as_ref(),
            term.mismatch_label_keys.as_ref(),
            problems,
        ),
        namespaces,
        namespace_selector: label_selector(
            &format!("{field}.namespaceSelector"),
            term.namespace_selector.as_ref(),
            own.labels,
            None,
            None,
            problems,
        ),
    }
}

/// `spec.topologySpreadConstraints`.
pub(super) fn spreads(
    constraints: Option<&Vec<k8s::TopologySpreadConstraint>>,
    own: &Own<'_>,
    problems: &mut Problems,
) -> Vec<TopologySpread> {
    let mut all = Vec::new();
    for (at, constraint) in constraints.into_iter().flatten().enumerate() {
        let field = format!("spec.topologySpreadConstraints[{at}]");
        let required = match constraint.when_unsatisfiable.as_str() {
            "DoNotSchedule" => true,
            "ScheduleAnyway" => false,
            other => {
                problems.note(
                    &format!("{field}.whenUnsatisfiable"),
                    format!("{other:?} is neither DoNotSchedule nor ScheduleAnyway; write one of them"),
                );
                true
            }
        };
        let mut policy = |name: &str, text: Option<&String>, default| match text.map(String::as_str) {
            None | Some("") => default,
            Some("Honor") => PolicyHonor::Honor,
            Some("Ignore") => PolicyHonor::Ignore,
            Some(other) => {
                problems.note(
                    &format!("{field}.{name}"),
                    format!("{other:?} is neither Honor nor Ignore; write one of them"),
                );
                default
            }
        };
        let node_affinity_policy =
            policy("nodeAffinityPolicy", constraint.node_affinity_policy.as_ref(), PolicyHonor::Honor);
        let node_taints_policy =
            policy("nodeTaintsPolicy", constraint.node_taints_policy.as_ref(), PolicyHonor::Ignore);
        if constraint.topology_key.is_empty() {
            problems.note(&format!("{field}.topologyKey"), "is empty; name a node label");
        }
        if constraint.max_skew < 1 {
            let skew = constraint.max_skew;
            problems
                .note(&format!("{field}.maxSkew"), format!("{skew} is not above zero; write a whole number from 1"));
        }
        if let Some(least) = constraint.min_domains.filter(|least| *least < 1) {
            problems.note(
                &format!("{field}.minDomains"),
                format!("{least} is not above zero; write a whole number from 1"),
            );
        }
        let selector = label_selector(
            &format!("{field}.labelSelector"),
            constraint.label_selector.as_ref(),
            own.labels,
            constraint.match_label_keys.as_ref(),
            None,
            problems,
        );
        all.push(TopologySpread {
            key: normalized(&constraint.topology_key).into(),
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            required,
            // kube-scheduler counts no pods for a selector that asks for nothing (`countPodsMatchSelector`).
            selector: selector.filter(|selector| *selector != Selector::default()),
            node_affinity_policy,
            node_taints_policy,
        });
    }
    all
}

/// `spec.tolerations`.
pub(super) fn tolerations(tolerations: Option<&Vec<k8s::Toleration>>, problems: &mut Problems) -> Vec<Toleration> {
    let mut all = Vec::new();
    for (at, toleration) in tolerations.into_iter().flatten().enumerate() {
        let field = format!("spec.tolerations[{at}]");
        let operator = match toleration.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some("Gt") => TolerationOperator::Gt,
            Some("Lt") => TolerationOperator::Lt,
            Some(other) => {
                problems.note(
                    &format!("{field}.operator"),
                    format!("{other:?} is no operator; write Equal, Exists, Gt or Lt"),
                );
                continue;
            }
        };
        let effect = match toleration.effect.as_deref() {
            None | Some("") => None,
            Some(word) => {
                let Some(effect) = Effect::parse(word) else {
                    problems.note(
                        &format!("{field}.effect"),
                        format!("{word:?} is no effect; write NoSchedule, PreferNoSchedule or NoExecute"),
                    );
                    continue;
                };
                Some(effect)
            }
        };
        all.push(Toleration {
            key: toleration.key.as_deref().unwrap_or_default().into(),
            operator,
            value: toleration.value.as_deref().unwrap_or_default().into(),
            effect,
            seconds: toleration.toleration_seconds,
        });
    }
    all
}
