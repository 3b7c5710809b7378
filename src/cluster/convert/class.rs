//! NodeClasses: metadata and conditions are read here, the rest by the cloud that the class belongs to.

use std::any::Any;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::facts::{Condition, NodeClass, Status};
use crate::core::ids::ClassRef;

use super::common;
use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, Custom};

/// Reason of the `Ready` condition of a NodeClass that cannot be read, or that the API server would not keep.
pub const UNREADABLE: &str = "Unreadable";

/// What a cloud opens: its typed class, behind a pointer that only it can see through.
type Body = Arc<dyn Any + Send + Sync>;

/// A kind of NodeClass, and how its objects become what the cloud opens.
#[derive(Clone, Debug)]
pub struct ClassKind {
    /// API group.
    pub group: &'static str,
    /// Version that is read.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name.
    pub plural: &'static str,
    /// Plural name with `/status`, where joiner works the status out.
    pub status: Option<&'static str>,
    /// Reads the whole object.
    read: fn(&Value) -> Result<Body, String>,
}

impl ClassKind {
    /// Whether a NodeClass is of this kind, whatever its version.
    pub fn is(&self, class: &ClassRef) -> bool {
        class.is_of((self.group, self.kind))
    }

    /// A kind whose objects are read as `T`.
    pub fn of<T: DeserializeOwned + Send + Sync + 'static>(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, status: None, read: read_as::<T> }
    }

    /// The same kind, whose status joiner works out. `status` is its plural name with `/status`.
    #[must_use]
    pub fn with_status(self, status: &'static str) -> Self {
        Self { status: Some(status), ..self }
    }

    /// The kind as the API library wants it.
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// The reference to the object of this kind and a name.
    pub fn reference(&self, name: impl Into<Arc<str>>) -> ClassRef {
        ClassRef { group: self.group.into(), kind: self.kind.into(), name: name.into() }
    }
}

fn read_as<T: DeserializeOwned + Send + Sync + 'static>(value: &Value) -> Result<Body, String> {
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(value) {
        Ok(body) => return Ok(Arc::new(body)),
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    // The path of an error is lost in flattened types, so it is found by leaving out one field after the other, unless one is missing.
    let is_culprit = |field: &&String| {
        let mut without = value.clone();
        without["spec"].as_object_mut().is_some_and(|spec| spec.remove(*field).is_some())
            && T::deserialize(&without).is_ok()
    };
    let culprit = value["spec"].as_object().and_then(|spec| spec.keys().find(is_culprit));
    let field = culprit.map_or(path, |field| format!("spec.{field}"));
    Err(format!("{field}: {error}; write what the API reference says for this field"))
}

/// Has the conditions of a NodeClass say that it cannot be used and why, whatever they said; since when, and of which generation.
pub fn condemn(conditions: &mut Vec<Condition>, message: Arc<str>, (since, generation): (Timestamp, i64)) {
    conditions.retain(|condition| &*condition.kind != "Ready");
    conditions.push(Condition {
        kind: "Ready".into(),
        status: Status::False,
        reason: UNREADABLE.into(),
        message,
        since,
        generation,
    });
}

/// Reads a NodeClass from a manifest or an answer of the API server.
pub fn read_class(value: &Value, kind: &ClassKind) -> Result<NodeClass, Unreadable> {
    let (wire, _) = lenient(kind.kind, value)?;
    class(&wire, kind)
}

/// Folds a NodeClass into a fact. One that cannot be read is not Ready, whatever its status says, and the condition says why.
pub fn class(wire: &Custom, kind: &ClassKind) -> Result<NodeClass, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name(kind.kind, meta)?;
    let mut problems = Problems::default();
    let conditions: Vec<wire::Condition> =
        wire.status.get("conditions").and_then(|list| problems.part("status.conditions", list)).unwrap_or_default();
    let mut conditions = common::conditions(Some(&conditions), meta);
    let mut whole = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": meta,
    });
    for (field, part) in [("spec", &wire.spec), ("status", &wire.status)] {
        if !part.is_null() {
            whole[field] = part.clone();
        }
    }
    let body = (kind.read)(&whole).unwrap_or_else(|error| {
        problems.note_whole(error);
        Arc::new(())
    });
    let generation = meta.generation.unwrap_or(0);
    if let Some(message) = problems.sentence() {
        condemn(&mut conditions, message, (common::created(meta), generation));
    }
    Ok(NodeClass {
        reference: kind.reference(name),
        generation,
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        version: meta.resource_version.as_deref().unwrap_or_default().into(),
        finalizers: meta.finalizers.iter().flatten().map(|finalizer| finalizer.as_str().into()).collect(),
        deleting: common::time(meta.deletion_timestamp.as_ref()),
        conditions,
        body,
    })
}
