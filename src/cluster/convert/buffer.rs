//! CapacityBuffers, and what says how large their chunks are: PodTemplates and workloads.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::api::capacitybuffer::{CapacityBufferSpec, CapacityBufferStatus};
use crate::core::buffers::placeholder_shape;
use crate::core::facts::{Buffer, BufferStatus, Owner, PodShape, PodTemplate, Scalable, ScalableKind, Source};
use crate::core::ids::ObjectKey;

use super::ShapeStore;
use super::pod::Fields;
use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, Custom, PodSpec};
use super::{amounts, common, pod};

/// Reads a CapacityBuffer from a manifest or an answer of the API server.
pub fn read_buffer(value: &Value) -> Result<Buffer, Unreadable> {
    let (wire, _) = lenient("CapacityBuffer", value)?;
    buffer(&wire)
}

/// Folds a CapacityBuffer into a fact; what cannot be read of it goes to `errors`.
pub fn buffer(wire: &Custom) -> Result<Buffer, Unreadable> {
    let meta = &wire.metadata;
    let key = key("CapacityBuffer", meta)?;
    let mut problems = Problems::default();
    if wire.spec.is_null() {
        problems.note("spec", "is missing; write spec.podTemplateRef or spec.scalableRef");
    }
    let spec: Option<CapacityBufferSpec> = problems.part("spec", &wire.spec);
    let status: CapacityBufferStatus = problems.part("status", &wire.status).unwrap_or_default();
    let conditions: Vec<wire::Condition> =
        wire.status.get("conditions").and_then(|list| problems.part("status.conditions", list)).unwrap_or_default();
    let mut limits = None;
    if let Some(spec) = &spec {
        if spec.pod_template_ref.is_some() && spec.scalable_ref.is_some() {
            problems.note("spec.podTemplateRef", "stands beside spec.scalableRef; leave one of them out");
        }
        let numbers = [("spec.replicas", spec.replicas), ("spec.percentage", spec.percentage)];
        for (field, number) in numbers.into_iter().filter(|(_, number)| number.is_some_and(i32::is_negative)) {
            problems.note(field, format!("{} is negative; write zero or more", number.unwrap_or_default()));
        }
        let written = spec.limits.as_ref().map(common::amounts);
        limits = written.map(|written| amounts::requests("spec.limits", Some(&written), &mut problems));
    }
    Ok(Buffer {
        key,
        uid: common::uid(meta),
        generation: meta.generation.unwrap_or(0),
        version: common::version(meta),
        strategy: spec.as_ref().map_or("", |spec| &spec.provisioning_strategy).into(),
        source: spec.as_ref().and_then(source),
        replicas: spec.as_ref().and_then(|spec| spec.replicas).map(i64::from),
        percentage: spec.as_ref().and_then(|spec| spec.percentage).map(i64::from),
        limits,
        errors: problems.sentences(),
        status: BufferStatus {
            strategy: status.provisioning_strategy.map(Arc::from),
            template: status.pod_template_ref.map(|template| template.name.into()),
            template_generation: status.pod_template_generation,
            replicas: status.replicas.map(i64::from),
        },
        conditions: common::conditions(Some(&conditions), meta),
    })
}

fn source(spec: &CapacityBufferSpec) -> Option<Source> {
    if let Some(template) = &spec.pod_template_ref {
        return Some(Source::Template(template.name.as_str().into()));
    }
    let scalable = spec.scalable_ref.as_ref()?;
    // An empty group counts as `apps`, as Karpenter has it.
    let group = scalable.api_group.as_deref().filter(|group| !group.is_empty()).unwrap_or("apps");
    let known = ScalableKind::ALL.into_iter().find(|kind| group == "apps" && kind.as_str() == scalable.kind);
    let kind = known.ok_or_else(|| format!("{group}/{}", scalable.kind).into());
    Some(Source::Scalable(kind, scalable.name.as_str().into()))
}

/// Reads a PodTemplate from a manifest or an answer of the API server.
pub fn read_template(value: &Value, shapes: &ShapeStore) -> Result<PodTemplate, Unreadable> {
    let (wire, error) = lenient("PodTemplate", value)?;
    convert_template(&wire, error, shapes)
}

/// Folds a PodTemplate into a fact.
pub fn template(wire: &wire::PodTemplateObject, shapes: &ShapeStore) -> Result<PodTemplate, Unreadable> {
    convert_template(wire, None, shapes)
}

fn convert_template(
    wire: &wire::PodTemplateObject,
    error: Option<String>,
    shapes: &ShapeStore,
) -> Result<PodTemplate, Unreadable> {
    let key = key("PodTemplate", &wire.metadata)?;
    let mut problems = Problems::under("template.");
    if let Some(error) = error {
        problems.note_whole(error);
    }
    let shape = shape(wire.template.as_ref(), &key, problems, shapes);
    Ok(PodTemplate { key, generation: wire.metadata.generation.unwrap_or(0), shape })
}

/// Folds a workload into a fact.
pub fn scalable(kind: ScalableKind, wire: &Custom, shapes: &ShapeStore) -> Result<Scalable, Unreadable> {
    let key = key(kind.as_str(), &wire.metadata)?;
    let mut problems = Problems::default();
    let spec: wire::ScalableSpec = problems.part("spec", &wire.spec).unwrap_or_default();
    let mut of_template = Problems::under("spec.template.");
    if let Some(problem) = problems.sentence() {
        of_template.note_whole(problem);
    }
    let shape = shape(spec.template.as_ref(), &key, of_template, shapes);
    Ok(Scalable { kind, key, replicas: spec.replicas.unwrap_or(1), shape })
}

fn key(kind: &str, meta: &ObjectMeta) -> Result<ObjectKey, Unreadable> {
    Ok(ObjectKey::new(meta.namespace.as_deref().unwrap_or("default"), common::name(kind, meta)?))
}

fn shape(
    template: Option<&wire::PodTemplate>,
    key: &ObjectKey,
    mut problems: Problems,
    shapes: &ShapeStore,
) -> Arc<PodShape> {
    if template.and_then(|template| template.spec.as_ref()).is_none() {
        problems.note("spec", "is missing; write the pods' containers there");
    }
    let mut meta = template.map(|template| template.metadata.clone()).unwrap_or_default();
    meta.namespace = Some(key.namespace.to_string());
    let empty = PodSpec::default();
    let spec = template.and_then(|template| template.spec.as_ref()).unwrap_or(&empty);
    let shape = pod::shape(&meta, spec, None, Owner::Controller, Fields::Refused, problems);
    shapes.share(placeholder_shape(&shape))
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
