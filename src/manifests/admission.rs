//! What the API server writes into the pods of manifests before it keeps them: priorities, what RuntimeClasses add, and defaults of LimitRanges
//! (`limits`), which it also holds them to.
//!
//! A pod that has been through it (it has a `metadata.uid`) is as it is. Templates are not written to in a cluster either, and their pods are:
//! so the template of a file stands for its pods.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::limits::{CONTAINERS, LimitRange, amounts};
use super::nulls;

/// The objects of which the API server's admission writes something into pods.
#[derive(Clone, Default, Debug)]
pub struct Admission {
    /// Values of PriorityClasses by name.
    priorities: BTreeMap<String, i64>,
    /// RuntimeClasses by name.
    runtimes: BTreeMap<String, Value>,
    /// LimitRanges by namespace and name.
    limits: BTreeMap<(String, String), LimitRange>,
}

/// A manifest as it would be kept.
pub(super) struct Admitted {
    pub(super) value: Value,
    /// What is not known, and leaves the pods as they are.
    pub(super) notices: Vec<String>,
    /// Why its pods would be refused.
    pub(super) refusals: Vec<String>,
}

/// Where the template of an object's pods is, or a pod itself, as a JSON pointer; nothing for kinds without pods.
pub(super) fn pods_at(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some(""),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" => Some("/spec/template"),
        "PodTemplate" => Some("/template"),
        _ => None,
    }
}

/// Whether an API server has kept the object.
pub(super) fn is_stored(value: &Value) -> bool {
    value["metadata"]["uid"].is_string()
}

fn text<'a>(value: &'a Value, absent: &'a str) -> &'a str {
    value.as_str().unwrap_or(absent)
}

impl Admission {
    /// Takes note of a PriorityClass, a RuntimeClass or a LimitRange, also in a list; other objects change nothing.
    pub fn hear(&mut self, value: &Value) {
        value["items"].as_array().into_iter().flatten().for_each(|item| self.hear(item));
        let value = &*nulls::settled(text(&value["kind"], ""), value);
        let name = text(&value["metadata"]["name"], "").to_owned();
        match text(&value["kind"], "") {
            "PriorityClass" => self.priorities.extend(value["value"].as_i64().map(|number| (name, number))),
            "RuntimeClass" => drop(self.runtimes.insert(name, value.clone())),
            "LimitRange" => {
                let namespace = text(&value["metadata"]["namespace"], "default").to_owned();
                self.limits.insert((namespace, name), LimitRange::new(&value["spec"]["limits"]));
            }
            _ => {}
        }
    }

    /// The manifest of an object of a kind with pods as the API server would keep the pods; nothing for other kinds.
    pub(super) fn admit(&self, kind: &str, value: &Value) -> Option<Admitted> {
        let at = pods_at(kind).filter(|_| kind != "PodTemplate")?;
        let mut all = Admitted { value: value.clone(), notices: Vec::new(), refusals: Vec::new() };
        let path = format!("{at}/spec").trim_start_matches('/').replace('/', ".");
        let Some(spec) = all.value.pointer_mut(&format!("{at}/spec")).filter(|spec| spec.is_object()) else {
            return Some(all);
        };
        all.notices.extend(self.prioritize(spec, &path));
        if kind == "Pod" && is_stored(value) {
            return Some(all);
        }
        if let Some(name) = spec["runtimeClassName"].as_str().map(str::to_owned) {
            match self.runtimes.get(&name) {
                Some(runtime) => all.refusals.extend(run_as(spec, &path, &name, runtime).err()),
                None => all.notices.push(format!(
                    "{path}.runtimeClassName: RuntimeClass {name} is not in the files, so that its overhead, nodeSelector and tolerations do not count; add it"
                )),
            }
        }
        let namespace = text(&value["metadata"]["namespace"], "default");
        let ranges = || self.limits.iter().filter(|((of, _), _)| of == namespace);
        for (_, range) in ranges() {
            for list in CONTAINERS {
                let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
                containers.filter(|container| container.is_object()).for_each(|one| range.write(one));
            }
        }
        all.refusals.extend(ranges().flat_map(|((_, name), range)| range.refusals(spec, &path, name)));
        Some(all)
    }

    /// Writes the value of a pod's PriorityClass. What there is to say of it is returned.
    fn prioritize(&self, spec: &mut Value, path: &str) -> Option<String> {
        let name = spec["priorityClassName"].as_str().filter(|_| spec["priority"].is_null())?;
        let value = match name {
            "system-cluster-critical" => Some(2_000_000_000),
            "system-node-critical" => Some(2_000_001_000),
            other => self.priorities.get(other).copied(),
        };
        let unknown = format!("{path}.priorityClassName: there is no PriorityClass {name}; apply it before");
        spec["priority"] = json!(value.unwrap_or(0));
        value.is_none().then_some(unknown)
    }
}

/// Writes what a RuntimeClass says: the overhead, and where its pods can run. The error says why the API server would refuse the pod.
fn run_as(spec: &mut Value, path: &str, name: &str, runtime: &Value) -> Result<(), String> {
    let overhead = &runtime["overhead"]["podFixed"];
    let own = &spec["overhead"];
    if own.is_object() && amounts(own) != amounts(overhead) {
        return Err(format!("{path}.overhead: is not that of RuntimeClass {name}; leave it out"));
    }
    if overhead.is_object() {
        spec["overhead"] = overhead.clone();
    }
    for (key, value) in runtime["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let own = &spec["nodeSelector"][key];
        if !own.is_null() && own != value {
            return Err(format!(
                "{path}.nodeSelector[{key}]: is {own}, and RuntimeClass {name} has {value}; leave it out, or name another class"
            ));
        }
        if spec["nodeSelector"].is_null() || spec["nodeSelector"].is_object() {
            spec["nodeSelector"][key] = value.clone();
        }
    }
    let tolerations = runtime["scheduling"]["tolerations"].as_array().cloned().unwrap_or_default();
    if !tolerations.is_empty() && spec["tolerations"].is_null() {
        spec["tolerations"] = json!([]);
    }
    if let Some(own) = spec["tolerations"].as_array_mut() {
        own.extend(tolerations.into_iter().filter(|one| !own.contains(one)).collect::<Vec<_>>());
    }
    Ok(())
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
