//! Groups of pods: Services, ReplicaSets, StatefulSets and ReplicationControllers, of which only the selector is read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::Value;

use crate::core::facts::{Group, Kind, Selector};
use crate::core::labels::Labels;

use super::common;
use super::pod::label_selector;
use super::problems::{Problems, Unreadable};
use super::wire_groups::{ControllerSpec, ServiceSpec};

/// Folds a Service or a ReplicationController into a fact. No selector selects nothing, an empty one every pod of the namespace.
pub fn plain_group(kind: Kind, meta: &ObjectMeta, spec: Option<&ServiceSpec>) -> Result<Group, Unreadable> {
    let selector = spec.and_then(|spec| spec.selector.as_ref());
    let selector = selector.map(|map| Selector { labels: common::shared(Some(map)), expressions: Vec::new() });
    Ok(Group { kind, path: path(kind, meta)?, selector })
}

/// Folds a ReplicaSet or a StatefulSet into a fact.
pub fn controller_group(kind: Kind, meta: &ObjectMeta, spec: Option<&ControllerSpec>) -> Result<Group, Unreadable> {
    let selector = spec.and_then(|spec| spec.selector.as_ref());
    Ok(Group { kind, path: path(kind, meta)?, selector: read(selector) })
}

/// Reads the selector of a manifest: a map for Services and ReplicationControllers, a label selector for the others.
pub fn read_group(kind: Kind, value: &Value) -> Option<Group> {
    let meta = &value["metadata"];
    let namespace = meta["namespace"].as_str().unwrap_or("default");
    let path = Group::path(kind, namespace, meta["name"].as_str()?)?;
    let spec = &value["spec"]["selector"];
    let selector = if matches!(kind, Kind::Service | Kind::ReplicationController) {
        let map: Option<BTreeMap<String, String>> = serde_json::from_value(spec.clone()).ok()?;
        map.map(|map| Selector { labels: common::shared(Some(&map)), expressions: Vec::new() })
    } else {
        let selector: Option<LabelSelector> = serde_json::from_value(spec.clone()).ok()?;
        read(selector.as_ref())
    };
    Some(Group { kind, path, selector })
}

fn path(kind: Kind, meta: &ObjectMeta) -> Result<std::sync::Arc<str>, Unreadable> {
    let name = common::name(kind.as_str(), meta)?;
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    Group::path(kind, namespace, &name).ok_or_else(|| Unreadable {
        kind: kind.as_str().to_owned(),
        name: name.to_string(),
        message: "is no Service and no controller of pods".to_owned(),
    })
}

/// A selector that cannot be understood selects nothing, as kube-scheduler has it.
fn read(selector: Option<&LabelSelector>) -> Option<Selector> {
    let mut problems = Problems::default();
    let read = label_selector("spec.selector", selector, &Labels::new(), None, None, &mut problems);
    read.filter(|_| problems.is_empty())
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
