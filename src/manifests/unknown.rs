//! Fields that a kind does not have: slips of the pen, which the API server drops in silence and `kubectl` warns of.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core, node::v1 as node};
use k8s_openapi::api::{policy::v1 as policy, scheduling::v1 as scheduling, storage::v1 as storage};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::admission::is_stored;
use crate::api::crds;

/// Describes a kind.
type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Kinds of Kubernetes that a plan looks into.
const KINDS: [(&str, Describe); 16] = [
    ("Pod", SchemaGenerator::subschema_for::<core::Pod>),
    ("PodTemplate", SchemaGenerator::subschema_for::<core::PodTemplate>),
    ("Deployment", SchemaGenerator::subschema_for::<apps::Deployment>),
    ("ReplicaSet", SchemaGenerator::subschema_for::<apps::ReplicaSet>),
    ("StatefulSet", SchemaGenerator::subschema_for::<apps::StatefulSet>),
    ("DaemonSet", SchemaGenerator::subschema_for::<apps::DaemonSet>),
    ("Job", SchemaGenerator::subschema_for::<batch::Job>),
    ("PodDisruptionBudget", SchemaGenerator::subschema_for::<policy::PodDisruptionBudget>),
    ("PriorityClass", SchemaGenerator::subschema_for::<scheduling::PriorityClass>),
    ("RuntimeClass", SchemaGenerator::subschema_for::<node::RuntimeClass>),
    ("LimitRange", SchemaGenerator::subschema_for::<core::LimitRange>),
    ("Namespace", SchemaGenerator::subschema_for::<core::Namespace>),
    ("Node", SchemaGenerator::subschema_for::<core::Node>),
    ("PersistentVolumeClaim", SchemaGenerator::subschema_for::<core::PersistentVolumeClaim>),
    ("PersistentVolume", SchemaGenerator::subschema_for::<core::PersistentVolume>),
    ("StorageClass", SchemaGenerator::subschema_for::<storage::StorageClass>),
];

/// What these kinds and those of Karpenter look like.
struct Schemas {
    kinds: BTreeMap<String, Value>,
    /// What they have in common, by name.
    parts: Map<String, Value>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::new);

/// What is said of each field that the kind of an object does not have. A cluster's own objects have none, and may have fields of a release to come.
pub(super) fn fields(kind: &str, value: &Value) -> Vec<String> {
    let Some(schema) = SCHEMAS.kinds.get(kind).filter(|_| !is_stored(value)) else { return Vec::new() };
    let mut found = Vec::new();
    SCHEMAS.walk(schema, value, "", &mut found);
    let told = |field: String| {
        format!("{field}: is no field of a {kind}, and counts for nothing; correct its name, or leave it out")
    };
    found.into_iter().map(told).collect()
}

impl Schemas {
    fn new() -> Self {
        let mut generator = SchemaGenerator::default();
        let described = |(kind, describe): (&str, Describe)| (kind.to_owned(), describe(&mut generator).to_value());
        let mut kinds: BTreeMap<String, Value> = KINDS.into_iter().map(described).collect();
        let parts = generator.take_definitions(true);
        for definition in crds::all() {
            let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
            if let (Some(kind), Some(schema)) = (definition["spec"]["names"]["kind"].as_str(), schema) {
                kinds.insert(kind.to_owned(), schema.clone());
            }
        }
        Self { kinds, parts }
    }

    fn walk(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        let mut all = Vec::new();
        self.alternatives(schema, &mut all);
        if all.iter().any(|one| one["x-kubernetes-preserve-unknown-fields"] == true) {
            return;
        }
        for (key, inner) in value.as_object().into_iter().flatten() {
            let named = all.iter().find_map(|one| one["properties"].get(key));
            let any = || all.iter().map(|one| &one["additionalProperties"]).find(|any| any.is_object());
            let field = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match named.or_else(any) {
                Some(schema) => self.walk(schema, inner, &field, found),
                // What has no fields of its own is free.
                None if all.iter().any(|one| one["properties"].is_object()) => found.push(field),
                None => {}
            }
        }
        if let Some(items) = all.iter().map(|one| &one["items"]).find(|items| items.is_object()) {
            for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
                self.walk(items, inner, &format!("{path}[{at}]"), found);
            }
        }
    }

    /// A schema and what it refers to, in whichever way.
    fn alternatives<'a>(&'a self, schema: &'a Value, all: &mut Vec<&'a Value>) {
        all.push(schema);
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        if let Some(part) = name.and_then(|name| self.parts.get(name)) {
            self.alternatives(part, all);
        }
        for list in ["allOf", "anyOf", "oneOf"] {
            schema[list].as_array().into_iter().flatten().for_each(|one| self.alternatives(one, all));
        }
    }
}

#[cfg(test)]
#[path = "unknown_tests.rs"]
mod tests;
