//! What the kinds look like that a plan looks into, as the API server has it: those of Kubernetes by its API library, Karpenter's by their definitions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core, node::v1 as node};
use k8s_openapi::api::{policy::v1 as policy, scheduling::v1 as scheduling, storage::v1 as storage};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::api::crds;

/// Describes a kind.
type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Kinds of Kubernetes.
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

/// A kind or a part of one. It may be described in several pieces.
pub(super) struct Part {
    pieces: Vec<&'static Value>,
    origin: Origin,
}

/// Who says what a kind looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Kubernetes,
    Definition,
}

struct Schemas {
    kinds: BTreeMap<String, (Origin, Value)>,
    /// What they have in common, by name.
    parts: Map<String, Value>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::new);

/// What a kind looks like, if that is known.
pub(super) fn of(kind: &str) -> Option<Part> {
    SCHEMAS.kinds.get(kind).map(|(origin, schema)| Part::of(schema, *origin))
}

impl Part {
    fn of(schema: &'static Value, origin: Origin) -> Self {
        let mut pieces = Vec::new();
        SCHEMAS.alternatives(schema, &mut pieces);
        Self { pieces, origin }
    }

    fn within(&self, schema: &'static Value) -> Self {
        Self::of(schema, self.origin)
    }

    /// The field of this name, if there is one.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        self.pieces.iter().find_map(|one| one["properties"].get(name)).map(|schema| self.within(schema))
    }

    /// What is behind every key, of a map.
    pub(super) fn values(&self) -> Option<Self> {
        let mut all = self.pieces.iter().map(|one| &one["additionalProperties"]);
        all.find(|any| any.is_object()).map(|schema| self.within(schema))
    }

    /// What a list holds.
    pub(super) fn items(&self) -> Option<Self> {
        let mut all = self.pieces.iter().map(|one| &one["items"]);
        all.find(|items| items.is_object()).map(|schema| self.within(schema))
    }

    /// Whether it has fields of its own. What has none is free.
    pub(super) fn has_fields(&self) -> bool {
        self.pieces.iter().any(|one| one["properties"].is_object())
    }

    /// Whether fields are kept that it does not have.
    pub(super) fn keeps_all(&self) -> bool {
        self.pieces.iter().any(|one| one["x-kubernetes-preserve-unknown-fields"] == true)
    }

    /// What a null behind a key is read as; nothing where the key is left out.
    pub(super) fn zero(&self) -> Option<&'static str> {
        let is_quantity = |one: &&Value| one["$ref"].as_str().is_some_and(|path| path.ends_with(".Quantity"));
        if self.origin == Origin::Definition {
            None
        } else if self.pieces.iter().any(is_quantity) {
            Some("0")
        } else {
            self.pieces.iter().any(|one| one["type"] == "string").then_some("")
        }
    }
}

impl Schemas {
    fn new() -> Self {
        let mut generator = SchemaGenerator::default();
        let described = |(kind, describe): (&str, Describe)| {
            (kind.to_owned(), (Origin::Kubernetes, describe(&mut generator).to_value()))
        };
        let mut kinds: BTreeMap<String, (Origin, Value)> = KINDS.into_iter().map(described).collect();
        let parts = generator.take_definitions(true);
        for definition in crds::all() {
            let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
            if let (Some(kind), Some(schema)) = (definition["spec"]["names"]["kind"].as_str(), schema) {
                kinds.insert(kind.to_owned(), (Origin::Definition, schema.clone()));
            }
        }
        Self { kinds, parts }
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
