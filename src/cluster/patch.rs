//! Patches as JSON.

use std::iter;

use serde_json::{Map, Value, json};

use crate::core::facts::OwnerClaim;
use crate::core::labels::Labels;
use crate::core::time::rfc3339;

use super::convert::{condition_object, taint_object, written};
use super::request::{MERGE, STRATEGIC};
use super::{
    BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Error, NodePatch,
    OverlayStatusPatch, PoolPatch, PoolStatusPatch,
};

/// Metadata of a patch: only what changes.
struct Metadata(Map<String, Value>);

impl Metadata {
    fn new(version: Option<&std::sync::Arc<str>>) -> Self {
        let mut fields = Map::new();
        if let Some(version) = version {
            fields.insert("resourceVersion".to_owned(), Value::from(&**version));
        }
        Self(fields)
    }

    fn texts(self, field: &str, texts: &Labels) -> Self {
        self.texts_without(field, texts, &[])
    }

    fn texts_without(mut self, field: &str, texts: &Labels, without: &[std::sync::Arc<str>]) -> Self {
        if !texts.is_empty() || !without.is_empty() {
            let gone = without.iter().map(|key| (key.to_string(), Value::Null));
            let texts: Map<_, _> = gone.chain(texts.iter().map(|(k, v)| (k.to_string(), Value::from(&**v)))).collect();
            self.0.insert(field.to_owned(), texts.into());
        }
        self
    }

    fn finalizers(mut self, names: Option<&Vec<std::sync::Arc<str>>>) -> Self {
        if let Some(names) = names {
            self.0.insert("finalizers".to_owned(), names.iter().map(|name| Value::from(&**name)).collect());
        }
        self
    }

    fn into_patch(self) -> Map<String, Value> {
        Map::from_iter([("metadata".to_owned(), self.0.into())])
    }
}

/// A list is replaced as a whole, which without a version would undo what others have written to it.
fn guarded(object: &str, has_lists: bool, has_version: bool) -> Result<(), Error> {
    if has_lists && !has_version {
        return Err(Error::Invalid {
            object: object.to_owned(),
            message: "a patch of finalizers, taints or owners needs the resourceVersion that it was made from"
                .to_owned(),
        });
    }
    Ok(())
}

/// A change of a NodeClaim's metadata.
pub(super) fn claim(object: &str, patch: &ClaimPatch) -> Result<Value, Error> {
    guarded(object, patch.finalizers.is_some(), patch.version.is_some())?;
    let metadata = Metadata::new(patch.version.as_ref())
        .texts("labels", &patch.labels)
        .texts_without("annotations", &patch.annotations, &patch.without_annotations)
        .finalizers(patch.finalizers.as_ref());
    Ok(metadata.into_patch().into())
}

/// A change of a NodeClass' metadata.
pub(super) fn class(patch: &ClassPatch) -> Value {
    Metadata::new(Some(&patch.version)).finalizers(Some(&patch.finalizers)).into_patch().into()
}

/// A change of a NodeClaim's status.
pub(super) fn claim_status(patch: &ClaimStatusPatch) -> Value {
    let mut status = Map::new();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(field.to_owned(), value);
        }
    };
    set("providerID", patch.provider_id.as_ref().map(|id| id.as_str().into()));
    set("nodeName", patch.node.as_ref().map(|name| name.as_str().into()));
    set("imageID", patch.image.as_ref().map(|image| Value::from(&**image)));
    set("capacity", patch.capacity.as_ref().map(|amounts| json!(written(amounts))));
    set("allocatable", patch.allocatable.as_ref().map(|amounts| json!(written(amounts))));
    set("lastPodEventTime", patch.last_pod_event.map(|time| rfc3339(time).into()));
    set("conditions", patch.conditions.as_ref().map(|all| all.iter().map(condition_object).collect()));
    with_status(patch.version.as_ref(), status)
}

/// A change of a Node's metadata and taints, and the kind of patch it is.
///
/// An owner is added, and others are taken off, with a strategic merge patch, which merges owners by UID, so that the list need not be read first. In it, taints
/// are replaced as a whole (their list has no merge key); finalizers can only be added, which is all that happens when a NodeClaim takes
/// its Node over.
pub(super) fn node(object: &str, patch: &NodePatch) -> Result<(&'static str, Value), Error> {
    let has_lists = patch.finalizers.is_some() || patch.taints.is_some() || patch.owner.is_some();
    guarded(object, has_lists, patch.version.is_some())?;
    let mut metadata = Metadata::new(patch.version.as_ref())
        .texts_without("labels", &patch.labels, &patch.without_labels)
        .texts_without("annotations", &patch.annotations, &patch.without_annotations)
        .finalizers(patch.finalizers.as_ref());
    if let Some(OwnerClaim { name, uid }) = &patch.owner {
        let new = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "name": name.as_str(),
            "uid": uid.as_str(),
            "blockOwnerDeletion": true,
        });
        let gone = patch.disowned.iter().map(|gone| json!({ "$patch": "delete", "uid": gone.uid.as_str() }));
        metadata.0.insert("ownerReferences".to_owned(), iter::once(new).chain(gone).collect());
    }
    let mut body = metadata.into_patch();
    if let Some(taints) = &patch.taints {
        let taints: Vec<Value> = taints.iter().map(taint_object).collect();
        body.insert("spec".to_owned(), json!({ "taints": taints }));
    }
    Ok((if patch.owner.is_some() { STRATEGIC } else { MERGE }, body.into()))
}

/// A change of a NodePool's annotations.
pub(super) fn pool(patch: &PoolPatch) -> Value {
    Metadata::new(None).texts("annotations", &patch.annotations).into_patch().into()
}

/// A change of a NodePool's status.
pub(super) fn pool_status(patch: &PoolStatusPatch) -> Value {
    let mut status = Map::new();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(field.to_owned(), value);
        }
    };
    set("nodes", patch.nodes.map(Value::from));
    let gone = patch.without_resources.iter().map(|name| (name.as_str().to_owned(), Value::Null));
    let resources: Map<String, Value> =
        patch.resources.iter().flat_map(written).map(|(name, amount)| (name, amount.into())).chain(gone).collect();
    set("resources", (!resources.is_empty()).then(|| resources.into()));
    set("nodeClassObservedGeneration", patch.class_generation.map(Value::from));
    set("conditions", patch.conditions.as_ref().map(|all| all.iter().map(condition_object).collect()));
    with_status(patch.version.as_ref(), status)
}

/// A change of a NodeClass' status.
pub(super) fn class_status(object: &str, patch: &ClassStatusPatch) -> Result<Value, Error> {
    let mut status = Map::new();
    if let Some(details) = &patch.details {
        status = serde_json::from_str(details).map_err(|error| Error::Invalid {
            object: object.to_owned(),
            message: format!("the cloud's status is no JSON object ({error}); this is a defect of joiner"),
        })?;
    }
    if let Some(conditions) = &patch.conditions {
        status.insert("conditions".to_owned(), conditions.iter().map(condition_object).collect());
    }
    Ok(with_status(None, status))
}

/// A change of a NodeOverlay's status.
pub(super) fn overlay_status(patch: &OverlayStatusPatch) -> Value {
    let conditions = patch.conditions.iter().map(condition_object).collect();
    with_status(patch.version.as_ref(), Map::from_iter([("conditions".to_owned(), conditions)]))
}

/// A change of a CapacityBuffer's status: what is nothing is removed.
pub(super) fn buffer_status(patch: &BufferStatusPatch) -> Value {
    let status = &patch.status;
    let fields = [
        ("provisioningStrategy", json!(status.strategy.as_deref())),
        ("podTemplateRef", status.template.as_ref().map_or(Value::Null, |name| json!({ "name": &**name }))),
        ("podTemplateGeneration", json!(status.template_generation)),
        ("replicas", json!(status.replicas)),
        ("conditions", patch.conditions.iter().map(condition_object).collect()),
    ];
    with_status(patch.version.as_ref(), fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect())
}

fn with_status(version: Option<&std::sync::Arc<str>>, status: Map<String, Value>) -> Value {
    let metadata = Metadata::new(version);
    let mut body = if metadata.0.is_empty() { Map::new() } else { metadata.into_patch() };
    body.insert("status".to_owned(), status.into());
    body.into()
}
