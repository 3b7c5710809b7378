//! Drafts and parts of patches as JSON.

use serde_json::{Value, json};

use crate::core::facts::{ClaimDraft, Condition, Taint};
use crate::core::requirements::Requirement;
use crate::core::time::{manifest_duration, rfc3339};

use super::amounts::written;

/// The NodeClaim that a draft stands for: owned by its NodePool, so that deleting the pool deletes it.
pub fn claim_object(draft: &ClaimDraft) -> Value {
    let mut spec = json!({
        "requirements": draft.requirements.iter().map(requirement).collect::<Vec<_>>(),
        "nodeClassRef": { "group": &*draft.class.group, "kind": &*draft.class.kind, "name": &*draft.class.name },
        "expireAfter": draft.expire_after.map_or_else(|| "Never".to_owned(), manifest_duration),
    });
    if !draft.requests.is_empty() {
        spec["resources"] = json!({ "requests": written(&draft.requests) });
    }
    for (field, taints) in [("taints", &draft.taints), ("startupTaints", &draft.startup_taints)] {
        if !taints.is_empty() {
            spec[field] = taints.iter().map(taint_object).collect();
        }
    }
    if let Some(grace) = draft.termination_grace {
        spec["terminationGracePeriod"] = manifest_duration(grace).into();
    }
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": draft.name.as_str(),
            "labels": text(&draft.labels),
            "annotations": text(&draft.annotations),
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "name": draft.pool.as_str(),
                "uid": draft.pool_uid.as_str(),
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

fn requirement(requirement: &Requirement) -> Value {
    let mut value = json!({ "key": &*requirement.key, "operator": requirement.operator.as_str() });
    if !requirement.values.is_empty() {
        value["values"] = requirement.values.iter().map(|v| Value::from(&**v)).collect();
    }
    if let Some(least) = requirement.min_values {
        value["minValues"] = least.into();
    }
    value
}

/// A taint as objects carry it; the schemas refuse an empty value, so it is left out.
pub fn taint_object(taint: &Taint) -> Value {
    let mut value = json!({ "key": &*taint.key, "effect": taint.effect.as_str() });
    if !taint.value.is_empty() {
        value["value"] = Value::from(&*taint.value);
    }
    value
}

/// A condition as objects carry it; times have a resolution of one second.
pub fn condition_object(condition: &Condition) -> Value {
    json!({
        "type": &*condition.kind,
        "status": condition.status.as_str(),
        "reason": &*condition.reason,
        "message": &*condition.message,
        "lastTransitionTime": rfc3339(condition.since),
        "observedGeneration": condition.generation,
    })
}

/// A map of labels or annotations.
pub(crate) fn text(labels: &crate::core::labels::Labels) -> Value {
    labels.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect::<serde_json::Map<_, _>>().into()
}
