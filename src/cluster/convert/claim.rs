//! NodeClaims as they are read.

use std::sync::Arc;

use serde_json::Value;

use crate::api::nodeclaim::{NodeClaimSpec, NodeClaimStatus};
use crate::core::facts::{Broken, Claim};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, PoolUid, ProviderId};

use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, Custom};
use super::{amounts, common};

/// Reads a NodeClaim from a manifest or an answer of the API server.
pub fn read_claim(value: &Value) -> Result<Claim, Unreadable> {
    let (wire, _) = lenient("NodeClaim", value)?;
    claim(&wire)
}

/// Folds a NodeClaim into a fact; what cannot be read of its spec or status goes to `broken`.
pub fn claim(wire: &Custom) -> Result<Claim, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("NodeClaim", meta)?;
    let mut problems = Problems::default();
    if wire.spec.is_null() {
        problems.note("spec", "is missing; delete the NodeClaim to have another made");
    }
    let spec: NodeClaimSpec = problems.part("spec", &wire.spec).unwrap_or_default();
    let status: NodeClaimStatus = problems.part("status", &wire.status).unwrap_or_default();
    let list = wire.status.get("conditions").filter(|list| !list.is_null());
    let conditions: Option<Vec<wire::Condition>> = list.and_then(|list| problems.part("status.conditions", list));
    let lost = list.is_some() && conditions.is_none();
    let taints = common::taints("spec.taints", Some(&spec.taints), &mut problems);
    let startup_taints = common::taints("spec.startupTaints", Some(&spec.startup_taints), &mut problems);
    let requirements = common::requirements("spec.requirements", &spec.requirements, &mut problems);
    let requests =
        amounts::requests("spec.resources.requests", Some(&common::amounts(&spec.resources.requests)), &mut problems);
    let mut note = |error: crate::api::duration::DurationError| {
        problems.note_whole(error);
        None
    };
    let termination_grace = spec.termination_grace_period().unwrap_or_else(&mut note);
    let expire_after = spec.expire_after().unwrap_or_else(&mut note);
    Ok(Claim {
        name: ClaimName::from(name),
        uid: ClaimUid::from(common::uid(meta)),
        generation: meta.generation.unwrap_or(0),
        version: common::version(meta),
        created: common::created(meta),
        deleting: common::time(meta.deletion_timestamp.as_ref()),
        labels: common::shared(meta.labels.as_ref()),
        annotations: common::shared(meta.annotations.as_ref()),
        finalizers: common::finalizers(meta),
        owner_pool: meta
            .owner_references
            .iter()
            .flatten()
            .find(|r| r.kind == "NodePool" && r.api_version.starts_with("karpenter.sh/"))
            .map(|r| PoolUid::from(r.uid.as_str())),
        requirements,
        requests,
        taints,
        startup_taints,
        class: common::class_ref(&spec.node_class_ref),
        termination_grace,
        expire_after,
        provider_id: text(status.provider_id.as_deref()).map(ProviderId::from),
        node: text(status.node_name.as_deref()).map(NodeName::from),
        image: text(status.image_id.as_deref()),
        capacity: amounts::capacity(Some(&common::amounts(&status.capacity))),
        allocatable: amounts::capacity(Some(&common::amounts(&status.allocatable))),
        last_pod_event: common::time(status.last_pod_event_time.as_ref()),
        conditions: common::conditions(conditions.as_ref(), meta),
        broken: problems.sentence().map(|problem| Broken { problem, conditions: lost }),
    })
}

fn text(text: Option<&str>) -> Option<Arc<str>> {
    text.filter(|text| !text.is_empty()).map(Arc::from)
}
