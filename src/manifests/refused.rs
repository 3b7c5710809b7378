//! What the API server would not keep: names and labels of objects, scheduling gates, and selectors that miss the pods of their own template. What is wrong with the
//! pods themselves is next door, in `refused_pods`; what a plan could not go on with anyway is noticed where it is read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::admission::{is_stored, pods_at};
use super::{refused_pods, selector};
use crate::api::validation::{check_label_value, check_qualified_name, is_subdomain};
use crate::core::labels::Labels;

/// The longest name of an object, and the longest name of a namespace (Kubernetes' limits, those of DNS).
const LONGEST_NAME: usize = 253;
pub(super) const LONGEST_LABEL: usize = 63;

/// Kinds without pods whose names are DNS names. Those of some others are not.
const NAMED: [&str; 14] = [
    "CSINode",
    "CapacityBuffer",
    "KWOKNodeClass",
    "LimitRange",
    "Namespace",
    "Node",
    "NodeClaim",
    "NodeOverlay",
    "NodePool",
    "OutscaleNodeClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "StorageClass",
];

/// Why the API server would not keep an object, or none of the pods of its template; each with the field and the remedy.
pub(super) fn faults(kind: &str, value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
    let longest = if kind == "Namespace" { LONGEST_LABEL } else { LONGEST_NAME };
    if pods_at(kind).is_some() || NAMED.contains(&kind) {
        all.extend(named("metadata.name", text("name"), longest));
        all.extend(named("metadata.namespace", text("namespace"), LONGEST_LABEL));
    }
    let Some(at) = pods_at(kind) else { return all };
    all.extend(labels("metadata.labels", &value["metadata"]["labels"]));
    let template = value.pointer(at).unwrap_or(&Value::Null);
    let path = at.trim_start_matches('/').replace('/', ".");
    let within = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
    if !path.is_empty() {
        all.extend(labels(&within("metadata.labels"), &template["metadata"]["labels"]));
        all.extend(missed(kind, value, &template["metadata"]["labels"]));
    }
    // The API server writes keys to match by into the selectors of the pods that it keeps.
    let has_merged = kind == "Pod" && is_stored(value);
    let labels = &template["metadata"]["labels"];
    all.extend(gates(&within("spec.schedulingGates"), &template["spec"]["schedulingGates"]));
    all.extend(refused_pods::faults(&within("spec"), &template["spec"], labels, has_merged));
    all
}

/// What is wrong with the name of an object or, where it may have so many characters only, of a namespace, a container or a volume.
pub(super) fn named(field: &str, name: &str, longest: usize) -> Option<String> {
    if name.is_empty() {
        // Without a name there is no object, and that is said.
        return None;
    }
    let dots = longest == LONGEST_NAME;
    if name.len() > longest {
        return Some(format!("{field}: has {} characters; write {longest} at most", name.len()));
    }
    let is_name = is_subdomain(name) && (dots || !name.contains('.'));
    let allowed = if dots { "'-' and '.'" } else { "and '-'" };
    (!is_name).then(|| {
        format!(
            "{field}: {name:?} is not a DNS name; write lower-case letters, digits, {allowed}, with a letter or a digit first and last"
        )
    })
}

/// What is wrong with labels.
fn labels(field: &str, labels: &Value) -> Vec<String> {
    let of = |(key, value): (&String, &Value)| {
        let key_fault = check_qualified_name(key).err();
        key_fault.or_else(|| check_label_value(value.as_str()?).err()).map(|remedy| format!("{field}[{key}]: {remedy}"))
    };
    labels.as_object().into_iter().flatten().filter_map(of).collect()
}

/// What is wrong with scheduling gates.
fn gates(field: &str, written: &Value) -> Vec<String> {
    if written.is_null() {
        return Vec::new();
    }
    let Some(gates) = written.as_array() else {
        return vec![format!("{field}: is no list; write a list of names, such as [{{name: example.com/wait}}]")];
    };
    let mut seen = BTreeSet::new();
    let of = |(at, gate): (usize, &Value)| match gate["name"].as_str().filter(|name| !name.is_empty()) {
        None => Some(format!("{field}[{at}].name: is missing; write the name of the gate, or leave the gate out")),
        Some(name) if !seen.insert(name.to_owned()) => {
            Some(format!("{field}[{at}].name: {name} is there already; leave one of them out"))
        }
        Some(name) => check_qualified_name(name).err().map(|remedy| format!("{field}[{at}].name: {remedy}")),
    };
    gates.iter().enumerate().filter_map(of).collect()
}

/// A selector that does not mean the pods of its own template.
fn missed(kind: &str, value: &Value, labels: &Value) -> Option<String> {
    let written = &value["spec"]["selector"];
    if !written.is_object() || kind == "PodTemplate" {
        return None;
    }
    let selector = match selector::read("spec.selector", written) {
        Ok(selector) => selector?,
        Err(problem) => return Some(problem),
    };
    if selector.labels.is_empty() && selector.expressions.is_empty() && kind != "Job" {
        return Some("spec.selector: is empty; write the labels of the template".to_owned());
    }
    let text = |(key, value): (&String, &Value)| Some((key.as_str().into(), value.as_str()?.into()));
    let labels: Labels = labels.as_object().into_iter().flatten().filter_map(text).collect();
    (!selector.matches(&labels)).then(|| {
        "spec.selector: does not match spec.template.metadata.labels; write the same labels in both".to_owned()
    })
}

#[cfg(test)]
#[path = "refused_tests.rs"]
mod tests;
