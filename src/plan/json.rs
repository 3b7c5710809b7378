//! The plan for programs. The names of the fields are a contract; they do not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::answer::Answer;
use crate::core::ids::{ClaimName, InstanceTypeName, NodeName};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    node_claims: Vec<Claim<'a>>,
    existing: Vec<Existing<'a>>,
    unschedulable: Vec<Unschedulable>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notices: &'a [String],
    /// USD per hour.
    price: f64,
    lower_bound: f64,
    seconds: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Claim<'a> {
    name: &'a str,
    node_pool: &'a str,
    instance_types: Vec<&'a str>,
    zone: Vec<String>,
    capacity_type: Vec<String>,
    price: f64,
    pods: Vec<String>,
    labels: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Existing<'a> {
    node: &'a str,
    pods: Vec<String>,
}

#[derive(Serialize)]
struct Unschedulable {
    pod: String,
    reasons: Vec<String>,
}

/// The answer as JSON, on one line for each field of an object.
pub fn json(answer: &Answer) -> Result<String, serde_json::Error> {
    let names = |pods: &[Arc<crate::core::facts::Pod>]| {
        let mut names: Vec<String> = pods.iter().map(|pod| pod.key.to_string()).collect();
        names.sort();
        names
    };
    let texts = |all: &[Arc<str>]| all.iter().map(ToString::to_string).collect();
    let node_claims = answer.plan.claims.iter().map(|claim| {
        let (zone, capacity_type) = answer.places(claim);
        Claim {
            name: claim.draft.name.as_str(),
            node_pool: claim.draft.pool.as_str(),
            instance_types: claim.instance_types.iter().map(InstanceTypeName::as_str).collect(),
            zone: texts(&zone),
            capacity_type: texts(&capacity_type),
            price: claim.price,
            pods: names(&claim.pods),
            labels: answer
                .chosen_labels(claim)
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
        }
    });
    let existing = answer.plan.existing.iter().map(|placed| Existing {
        node: answer
            .registered(placed)
            .map(NodeName::as_str)
            .or_else(|| placed.claim.as_ref().map(ClaimName::as_str))
            .unwrap_or_default(),
        pods: names(&placed.pods),
    });
    let unschedulable =
        answer.unplaced().into_iter().map(|(pod, reasons)| Unschedulable { pod: pod.to_string(), reasons });
    serde_json::to_string_pretty(&Written {
        node_claims: node_claims.collect(),
        existing: existing.collect(),
        unschedulable: unschedulable.collect(),
        notices: &answer.input.notices,
        price: answer.plan.price,
        lower_bound: answer.lower_bound,
        seconds: answer.seconds,
    })
}
