//! DaemonSets.

use serde_json::Value;

use crate::core::facts::{DaemonSet, Owner, tolerate_as_daemon};
use crate::core::ids::ObjectKey;

use super::ShapeStore;
use super::common;
use super::pod::{self, Fields};
use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, PodSpec};

/// Reads a DaemonSet from a manifest or an answer of the API server.
pub fn read_daemon(value: &Value, shapes: &ShapeStore) -> Result<DaemonSet, Unreadable> {
    let (wire, error) = lenient("DaemonSet", value)?;
    convert(&wire, error, shapes)
}

/// Folds a DaemonSet into a fact.
pub fn daemon(wire: &wire::DaemonSet, shapes: &ShapeStore) -> Result<DaemonSet, Unreadable> {
    convert(wire, None, shapes)
}

fn convert(wire: &wire::DaemonSet, error: Option<String>, shapes: &ShapeStore) -> Result<DaemonSet, Unreadable> {
    let name = common::name("DaemonSet", &wire.metadata)?;
    let namespace = wire.metadata.namespace.as_deref().unwrap_or("default");
    let mut problems = Problems::under("spec.template.");
    let template = wire.spec.as_ref().and_then(|spec| spec.template.as_ref());
    if let Some(error) = error {
        problems.note_whole(error);
    } else if template.and_then(|t| t.spec.as_ref()).is_none() {
        problems.note("spec", "is missing; write the pods' containers there");
    }
    let mut meta = template.map(|t| t.metadata.clone()).unwrap_or_default();
    meta.namespace = Some(namespace.to_owned());
    let empty = PodSpec::default();
    let spec = template.and_then(|t| t.spec.as_ref()).unwrap_or(&empty);
    let mut shape = pod::shape(&meta, spec, None, Owner::DaemonSet, Fields::Meant, problems);
    tolerate_as_daemon(&mut shape.tolerations, spec.host_network.unwrap_or(false));
    Ok(DaemonSet { key: ObjectKey::new(namespace, name), shape: shapes.share(shape) })
}
