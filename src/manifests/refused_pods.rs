//! What the API server would not keep in the spec of a pod, as far as it is not noticed where pods are read. It is for files only: what a cluster
//! has, its API server has kept.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use super::refused_containers;
use crate::api::validation::{check_label_value, check_qualified_name};
use crate::cluster::convert::wire::PodSpec;

/// Where terms stand, required and preferred.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The list of keys to match by.
const MATCHING: &str = "matchLabelKeys";

/// What is wrong with the spec of a pod with these labels, `path` being its own. `has_merged` says that keys to match by stand in the selectors too,
/// where the API server writes them.
pub(super) fn faults(path: &str, spec: &Value, labels: &Value, has_merged: bool) -> Vec<String> {
    // What has another form is noticed where it is read.
    let Ok(spec) = PodSpec::deserialize(spec) else { return Vec::new() };
    let mut all = Faults { found: Vec::new(), labels, has_merged };
    if spec.containers.as_ref().is_none_or(Vec::is_empty) {
        all.add(&format!("{path}.containers"), "is empty; write a container");
    }
    all.found.extend(refused_containers::faults(path, &spec));
    for (at, toleration) in spec.tolerations.iter().flatten().enumerate() {
        all.toleration(&format!("{path}.tolerations[{at}]"), toleration);
    }
    all.spreads(&format!("{path}.topologySpreadConstraints"), &spec);
    let affinity = spec.affinity.unwrap_or_default();
    if let Some(node) = &affinity.node_affinity {
        all.node(&format!("{path}.affinity.nodeAffinity"), node);
    }
    let (near, apart) = (affinity.pod_affinity.unwrap_or_default(), affinity.pod_anti_affinity.unwrap_or_default());
    let lists = [
        ("podAffinity", REQUIRED, near.required_during_scheduling_ignored_during_execution),
        ("podAntiAffinity", REQUIRED, apart.required_during_scheduling_ignored_during_execution),
    ];
    for (kind, list, terms) in lists {
        for (at, term) in terms.into_iter().flatten().enumerate() {
            all.pods(&format!("{path}.affinity.{kind}.{list}[{at}]"), &term);
        }
    }
    let lists = [
        ("podAffinity", near.preferred_during_scheduling_ignored_during_execution),
        ("podAntiAffinity", apart.preferred_during_scheduling_ignored_during_execution),
    ];
    for (kind, terms) in lists {
        for (at, wish) in terms.into_iter().flatten().enumerate() {
            let field = format!("{path}.affinity.{kind}.{PREFERRED}[{at}].podAffinityTerm");
            all.pods(&field, &wish.pod_affinity_term);
        }
    }
    all.found
}

struct Faults<'a> {
    found: Vec<String>,
    labels: &'a Value,
    has_merged: bool,
}

impl Faults<'_> {
    fn add(&mut self, field: &str, problem: impl std::fmt::Display) {
        self.found.push(format!("{field}: {problem}"));
    }

    fn check(&mut self, field: &str, verdict: Result<(), String>) {
        if let Err(remedy) = verdict {
            self.add(field, remedy);
        }
    }

    fn toleration(&mut self, field: &str, one: &Toleration) {
        let filled = |text: &Option<String>| text.as_ref().filter(|text| !text.is_empty()).cloned();
        let (key, value, effect) = (filled(&one.key), filled(&one.value), filled(&one.effect));
        let exists = one.operator.as_deref() == Some("Exists");
        match &key {
            Some(key) => self.check(&format!("{field}.key"), check_qualified_name(key)),
            None if !exists => {
                self.add(
                    &format!("{field}.operator"),
                    "has to be Exists where there is no key; write a key, or Exists",
                );
            }
            None => {}
        }
        // Gt and Lt have numbers.
        let verdict = |value: &String| match one.operator.as_deref() {
            Some("Exists") => Err("has to be left out beside operator Exists; remove it, or write Equal".to_owned()),
            None | Some("" | "Equal") => check_label_value(value),
            Some(_) => Ok(()),
        };
        self.check(&format!("{field}.value"), value.as_ref().map_or(Ok(()), verdict));
        if one.toleration_seconds.is_some() && effect.as_deref() != Some("NoExecute") {
            self.add(
                &format!("{field}.effect"),
                "has to be NoExecute beside tolerationSeconds; write it, or leave those out",
            );
        }
    }

    fn spreads(&mut self, list: &str, spec: &PodSpec) {
        let mut seen = BTreeSet::new();
        for (at, one) in spec.topology_spread_constraints.iter().flatten().enumerate() {
            let field = format!("{list}[{at}]");
            if !one.topology_key.is_empty() {
                self.check(&format!("{field}.topologyKey"), check_qualified_name(&one.topology_key));
            }
            if !seen.insert((&one.topology_key, &one.when_unsatisfiable)) {
                self.add(
                    &field,
                    "has the topologyKey and whenUnsatisfiable of another constraint; leave one of them out",
                );
            }
            if one.min_domains.is_some() && one.when_unsatisfiable == "ScheduleAnyway" {
                self.add(&format!("{field}.minDomains"), "is for DoNotSchedule only; leave it out, or write that");
            }
            let keys = one.match_label_keys.as_deref().unwrap_or_default();
            self.selector(&field, "labelSelector", one.label_selector.as_ref());
            self.keys(&field, one.label_selector.as_ref(), MATCHING, keys);
        }
    }

    fn pods(&mut self, field: &str, term: &PodAffinityTerm) {
        if !term.topology_key.is_empty() {
            self.check(&format!("{field}.topologyKey"), check_qualified_name(&term.topology_key));
        }
        self.selector(field, "labelSelector", term.label_selector.as_ref());
        self.selector(field, "namespaceSelector", term.namespace_selector.as_ref());
        let matching = term.match_label_keys.as_deref().unwrap_or_default();
        let mismatching = term.mismatch_label_keys.as_deref().unwrap_or_default();
        self.keys(field, term.label_selector.as_ref(), MATCHING, matching);
        self.keys(field, term.label_selector.as_ref(), "mismatchLabelKeys", mismatching);
        if let Some(both) = matching.iter().find(|key| mismatching.contains(key)) {
            self.add(
                &format!("{field}.matchLabelKeys"),
                format!("{both} is among mismatchLabelKeys too; leave one of them out"),
            );
        }
    }

    /// Keys to match by. For each that the pod has as a label, the API server adds a line to the selector, in which there may be no other: of those
    /// to differ by, it lets several be.
    fn keys(&mut self, field: &str, selector: Option<&LabelSelector>, list: &str, keys: &[String]) {
        if !keys.is_empty() && selector.is_none() {
            self.add(&format!("{field}.{list}"), "needs a labelSelector beside it; write one");
        }
        let labels = selector.and_then(|selector| selector.match_labels.as_ref());
        let lines = selector.and_then(|selector| selector.match_expressions.as_ref());
        for (at, key) in keys.iter().enumerate() {
            let here = format!("{field}.{list}[{at}]");
            self.check(&here, check_qualified_name(key));
            let is_said = labels.is_some_and(|labels| labels.contains_key(key))
                || lines.is_some_and(|lines| lines.iter().any(|line| line.key == *key));
            if is_said && list == MATCHING && !self.has_merged && !self.labels[key].is_null() {
                self.add(&here, format!("{key} is in the labelSelector too; leave one of them out"));
            }
        }
    }

    fn selector(&mut self, field: &str, name: &str, selector: Option<&LabelSelector>) {
        for (key, value) in selector.and_then(|selector| selector.match_labels.as_ref()).into_iter().flatten() {
            let verdict = check_qualified_name(key).and_then(|()| check_label_value(value));
            self.check(&format!("{field}.{name}.matchLabels[{key}]"), verdict);
        }
        let lines = selector.and_then(|selector| selector.match_expressions.as_ref());
        for (at, line) in lines.into_iter().flatten().enumerate() {
            self.check(&format!("{field}.{name}.matchExpressions[{at}].key"), check_qualified_name(&line.key));
        }
    }

    fn node(&mut self, field: &str, affinity: &NodeAffinity) {
        if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
            for (at, term) in required.node_selector_terms.iter().enumerate() {
                self.term(&format!("{field}.{REQUIRED}.nodeSelectorTerms[{at}]"), term);
            }
        }
        let wishes = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (at, wish) in wishes.enumerate() {
            self.term(&format!("{field}.{PREFERRED}[{at}].preference"), &wish.preference);
        }
    }

    fn term(&mut self, field: &str, term: &NodeSelectorTerm) {
        for (at, line) in term.match_expressions.iter().flatten().enumerate() {
            let field = format!("{field}.matchExpressions[{at}]");
            self.check(&format!("{field}.key"), check_qualified_name(&line.key));
            if let Some(problem) = values(line) {
                self.add(&format!("{field}.values"), problem);
            }
        }
    }
}

/// What is wrong with the values of a requirement on nodes, by its operator.
fn values(line: &NodeSelectorRequirement) -> Option<&'static str> {
    let values = line.values.as_deref().unwrap_or_default();
    match line.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Some("is empty; name a value, or use Exists or DoesNotExist"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            Some("has to be empty beside this operator; remove it, or use In or NotIn")
        }
        "Gt" | "Lt" if !matches!(values, [one] if one.parse::<i64>().is_ok()) => {
            Some("has to be one whole number beside this operator; write that")
        }
        _ => None,
    }
}
