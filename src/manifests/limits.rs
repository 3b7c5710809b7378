//! LimitRanges: what containers have that do not say it, and what the API server does not let pods have.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::definition::plain;
use crate::core::quantity::Quantity;

/// The lists of a pod's containers.
pub(super) const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Amounts in thousandths, by resource; nothing of what is no quantity, which is named elsewhere.
type Amounts<'a> = BTreeMap<&'a str, Option<i64>>;

/// A LimitRange.
#[derive(Clone, Default, Debug)]
pub(super) struct LimitRange {
    /// What containers have that do not say it.
    limits: Map<String, Value>,
    requests: Map<String, Value>,
    /// What is held to, as it is written in `spec.limits`: of each container, and of each pod.
    rules: Vec<Value>,
}

/// What a container or a pod has, and where it says so.
struct Held<'a> {
    path: String,
    requests: Amounts<'a>,
    limits: Amounts<'a>,
}

impl LimitRange {
    /// What `spec.limits` says. The most that containers may have stands for a limit, a default limit for a request, and the least for that.
    pub(super) fn new(items: &Value) -> Self {
        let mut all = Self::default();
        for item in items.as_array().into_iter().flatten() {
            if item["type"] == "Container" {
                let list = |field: &str| item[field].as_object().cloned().unwrap_or_default();
                let limits = filled(list("default"), &list("max"));
                let requests = filled(filled(list("defaultRequest"), &limits), &list("min"));
                all.limits = filled(all.limits, &limits);
                all.requests = filled(all.requests, &requests);
            }
            all.rules.push(item.clone());
        }
        all
    }

    /// Writes its defaults into a container, whose own limits stand for requests that it does not have, before any default does.
    pub(super) fn write(&self, container: &mut Value) {
        let list = |field: &str| container["resources"][field].as_object().cloned().unwrap_or_default();
        let (limits, requests) = (list("limits"), list("requests"));
        let requests = filled(filled(requests, &limits), &self.requests);
        let is_map = |value: &Value| value.is_null() || value.is_object();
        let resources = &mut container["resources"];
        // What is no map is left as it is, to be named as what is wrong.
        if is_map(resources) && is_map(&resources["limits"]) && is_map(&resources["requests"]) {
            resources["limits"] = filled(limits, &self.limits).into();
            resources["requests"] = requests.into();
        }
    }

    /// Why the API server would refuse a pod with this spec, to which all defaults have been written.
    pub(super) fn refusals(&self, spec: &Value, path: &str, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        for rule in &self.rules {
            let held = match rule["type"].as_str() {
                Some("Container") => containers(spec, path),
                Some("Pod") => vec![pod(spec, path)],
                _ => continue,
            };
            all.extend(held.iter().flat_map(|one| one.broken(rule, name)));
        }
        all
    }
}

impl Held<'_> {
    /// What of a rule it breaks.
    fn broken(&self, rule: &Value, name: &str) -> Vec<String> {
        let path = &self.path;
        let whom = rule["type"].as_str().unwrap_or_default();
        let of = |amounts: &Amounts<'_>, resource: &str| amounts.get(resource).copied().flatten();
        let mut all = Vec::new();
        let mut say = |list: &str, resource: &str, what: String| {
            all.push(format!("{path}.{list}[{resource}]: {what} by LimitRange {name}"));
        };
        for (resource, least) in amounts(&rule["min"]) {
            let (Some(least), said) = (least, plain(&rule["min"][resource])) else { continue };
            let (request, limit) = (of(&self.requests, resource), of(&self.limits, resource));
            if request.is_none_or(|request| request < least) {
                say("requests", resource, format!("a {whom} has to have {said} at least"));
            } else if limit.is_some_and(|limit| limit < least) {
                say("limits", resource, format!("a {whom} has to have {said} at least"));
            }
        }
        for (resource, most) in amounts(&rule["max"]) {
            let (Some(most), said) = (most, plain(&rule["max"][resource])) else { continue };
            let (request, limit) = (of(&self.requests, resource), of(&self.limits, resource));
            if limit.is_none_or(|limit| limit > most) {
                say("limits", resource, format!("a {whom} has to have a limit, and that of {said} at most"));
            } else if request.is_some_and(|request| request > most) {
                say("requests", resource, format!("a {whom} may have {said} at most"));
            }
        }
        for (resource, most) in amounts(&rule["maxLimitRequestRatio"]) {
            let (Some(most), said) = (most, plain(&rule["maxLimitRequestRatio"][resource])) else { continue };
            let pair = of(&self.requests, resource).filter(|request| *request > 0).zip(of(&self.limits, resource));
            // The ratio is in thousandths, as all amounts are.
            let is_kept =
                pair.is_some_and(|(request, limit)| i128::from(limit) * 1000 <= i128::from(most) * i128::from(request));
            if !is_kept {
                say(
                    "limits",
                    resource,
                    format!("a {whom} has to have a request, and a limit of {said} times that at most"),
                );
            }
        }
        all
    }
}

fn containers<'a>(spec: &'a Value, path: &str) -> Vec<Held<'a>> {
    let of = |list: &'static str| {
        let all = spec[list].as_array().into_iter().flatten().enumerate();
        all.map(move |(at, one)| Held {
            path: format!("{path}.{list}[{at}].resources"),
            requests: amounts(&one["resources"]["requests"]),
            limits: amounts(&one["resources"]["limits"]),
        })
    };
    CONTAINERS.into_iter().flat_map(of).collect()
}

/// A pod has what its containers have together, and no less than any that comes before them.
fn pod<'a>(spec: &'a Value, path: &str) -> Held<'a> {
    let sum = |field: &str| {
        let mut all = Amounts::new();
        let mut take = |list: &str, is_first: bool, add: fn(i64, i64) -> i64| {
            for one in spec[list].as_array().into_iter().flatten() {
                if (list != "containers" && one["restartPolicy"] != "Always") != is_first {
                    continue;
                }
                for (resource, amount) in amounts(&one["resources"][field]) {
                    let known = all.entry(resource).or_insert(None);
                    *known = known.zip(amount).map(|(known, amount)| add(known, amount)).or(*known).or(amount);
                }
            }
        };
        take("containers", false, i64::saturating_add);
        take("initContainers", false, i64::saturating_add);
        take("initContainers", true, i64::max);
        all
    };
    Held { path: path.to_owned(), requests: sum("requests"), limits: sum("limits") }
}

/// Amounts by what they say, however they are written.
pub(super) fn amounts(list: &Value) -> Amounts<'_> {
    let milli = |amount: &Value| Quantity::parse(&plain(amount)).ok().map(Quantity::milli_up);
    list.as_object().into_iter().flatten().map(|(name, amount)| (name.as_str(), milli(amount))).collect()
}

/// A list with what others have in addition.
fn filled(mut list: Map<String, Value>, others: &Map<String, Value>) -> Map<String, Value> {
    for (name, amount) in others {
        list.entry(name.as_str()).or_insert_with(|| amount.clone());
    }
    list
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
