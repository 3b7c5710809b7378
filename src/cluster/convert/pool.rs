//! NodePools.

use serde_json::Value;

use crate::api::common::NodeClassRef;
use crate::api::nodepool::{self as api, NodePoolSpec, NodePoolStatus};
use crate::api::validation::{self, CloudLabels};
use crate::core::facts::{Budget, ConsolidationPolicy, Disruption, Pool, Template};
use crate::core::ids::{PoolName, PoolUid};

use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, Custom};
use super::{amounts, common};

/// Reads a NodePool from a manifest or an answer of the API server. `cloud` says which labels its users may ask for.
pub fn read_pool(value: &Value, cloud: &CloudLabels<'_>) -> Result<Pool, Unreadable> {
    let (wire, _) = lenient("NodePool", value)?;
    pool(&wire, cloud)
}

/// Folds a NodePool into a fact; what cannot be read of it, and what runtime validation finds, goes to `errors`.
pub fn pool(wire: &Custom, cloud: &CloudLabels<'_>) -> Result<Pool, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("NodePool", meta)?;
    let mut problems = Problems::default();
    if wire.spec.is_null() {
        problems.note("spec", "is missing; write at least spec.template.spec with requirements and a nodeClassRef");
    }
    let spec: Option<NodePoolSpec> = problems.part("spec", &wire.spec);
    let is_read = spec.is_some();
    let object = api::NodePool::new(&name, spec.unwrap_or_else(|| unread(&wire.spec)));
    if is_read {
        for fault in validation::nodepool(&object, cloud) {
            problems.note(&fault.field, fault.remedy);
        }
        schema_rules(&object.spec, &mut problems);
    }
    // Without a hash (a duration cannot be read, which is an error of its own) nothing is compared with it.
    let hash = object.hash().map(|hash| hash.to_string()).unwrap_or_default();
    let spec = object.spec;
    let status: NodePoolStatus = problems.part("status", &wire.status).unwrap_or_default();
    let conditions: Vec<wire::Condition> =
        wire.status.get("conditions").and_then(|list| problems.part("status.conditions", list)).unwrap_or_default();
    let template = template(&spec.template, &mut problems);
    let disruption = disruption(&spec.disruption, &mut problems);
    let limits = spec.limits.as_ref().map(common::amounts);
    let limits = amounts::requests("spec.limits", limits.as_ref(), &mut problems);
    Ok(Pool {
        name: PoolName::from(name),
        uid: PoolUid::from(common::uid(meta)),
        generation: meta.generation.unwrap_or(0),
        version: common::version(meta),
        created: common::created(meta),
        deleting: common::time(meta.deletion_timestamp.as_ref()),
        annotations: common::own_annotations(meta),
        weight: spec.weight.unwrap_or(0),
        limits,
        replicas: spec.replicas,
        template,
        disruption,
        hash: if is_read { hash.into() } else { "".into() },
        errors: problems.sentences(),
        status_nodes: wire.status.get("nodes").map(|_| status.nodes),
        status_resources: amounts::capacity(status.resources.as_ref().map(common::amounts).as_ref()),
        class_generation: status.node_class_observed_generation,
        conditions: common::conditions(Some(&conditions), meta),
    })
}

/// What the schema refuses, for objects that never met an API server which has it.
fn schema_rules(spec: &NodePoolSpec, problems: &mut Problems) {
    common::within("spec.weight", spec.weight, 1..=100, problems);
    common::within("spec.replicas", spec.replicas, 0..=i64::MAX, problems);
    for (at, requirement) in spec.template.spec.requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{at}].minValues");
        common::within(&field, requirement.min_values, 1..=50, problems);
    }
    if spec.replicas.is_some() {
        if spec.weight.is_some() {
            problems.note("spec.weight", "has no meaning beside spec.replicas; leave one of them out");
        }
        if let Some(name) = spec.limits.iter().flatten().map(|(name, _)| name).find(|name| *name != "nodes") {
            let remedy = "has no meaning beside spec.replicas; leave it out, and limit nodes only";
            problems.note(&format!("spec.limits.{name}"), remedy);
        }
    }
}

/// The spec of a NodePool that cannot be read: nothing but its NodeClass, if that much is there, so that it is still told whose it is.
fn unread(spec: &Value) -> NodePoolSpec {
    let class = spec.pointer("/template/spec/nodeClassRef").cloned().unwrap_or_default();
    NodePoolSpec {
        template: api::NodeClaimTemplate {
            metadata: api::TemplateMetadata::default(),
            spec: api::NodeClaimTemplateSpec {
                taints: None,
                startup_taints: None,
                requirements: Vec::new(),
                node_class_ref: serde_json::from_value::<NodeClassRef>(class).unwrap_or_default(),
                termination_grace_period: None,
                expire_after: "Never".to_owned(),
            },
        },
        disruption: api::Disruption::default(),
        limits: None,
        weight: None,
        replicas: None,
    }
}

fn template(template: &api::NodeClaimTemplate, problems: &mut Problems) -> Template {
    let spec = &template.spec;
    let root = "spec.template.spec";
    let taints = common::taints(&format!("{root}.taints"), spec.taints.as_ref(), problems);
    let startup_taints = common::taints(&format!("{root}.startupTaints"), spec.startup_taints.as_ref(), problems);
    let requirements = common::requirements(&format!("{root}.requirements"), &spec.requirements, problems);
    let mut note = |error: crate::api::duration::DurationError| {
        problems.note_whole(error);
        None
    };
    let termination_grace = spec.termination_grace_period().unwrap_or_else(&mut note);
    let expire_after = spec.expire_after().unwrap_or_else(&mut note);
    Template {
        labels: common::shared(template.metadata.labels.as_ref()),
        annotations: common::shared(template.metadata.annotations.as_ref()),
        requirements,
        taints,
        startup_taints,
        class: common::class_ref(&spec.node_class_ref),
        termination_grace,
        expire_after,
    }
}

fn disruption(disruption: &api::Disruption, problems: &mut Problems) -> Disruption {
    let consolidate_after = disruption.consolidate_after().unwrap_or_else(|error| {
        problems.note_whole(error);
        None
    });
    let policy = match &disruption.consolidation_policy {
        api::ConsolidationPolicy::WhenEmpty => ConsolidationPolicy::WhenEmpty,
        api::ConsolidationPolicy::WhenEmptyOrUnderutilized => ConsolidationPolicy::WhenEmptyOrUnderutilized,
        api::ConsolidationPolicy::Balanced => ConsolidationPolicy::Balanced,
        api::ConsolidationPolicy::Other(word) => {
            problems.note(
                "spec.disruption.consolidationPolicy",
                format!("{word:?} is no policy; write WhenEmpty, WhenEmptyOrUnderutilized or Balanced"),
            );
            ConsolidationPolicy::WhenEmpty
        }
    };
    let mut budgets = Vec::new();
    for (at, budget) in disruption.budgets.iter().enumerate() {
        let duration = budget.duration().unwrap_or_else(|error| {
            problems.note_whole(error.to_string().replace("budgets[]", &format!("budgets[{at}]")));
            None
        });
        budgets.push(Budget {
            nodes: budget.nodes.as_str().into(),
            reasons: budget.reasons.as_ref().map(|all| all.iter().map(|reason| reason.as_str().into()).collect()),
            schedule: budget.schedule.as_deref().map(Into::into),
            duration,
        });
    }
    Disruption { consolidate_after, policy, budgets }
}
