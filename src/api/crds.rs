//! The CustomResourceDefinitions of all our kinds, ready to be applied.
//!
//! The schemas come from the types. What the derives cannot say, or say in Rust's way rather than in the API
//! server's, is put right here and nowhere else.

use std::fmt::Write as _;

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::api::capacitybuffer::CapacityBuffer;
use crate::api::classes::kwok::KwokNodeClass;
use crate::api::classes::outscale::OutscaleNodeClass;
use crate::api::nodeclaim::NodeClaim;
use crate::api::nodeoverlay::NodeOverlay;
use crate::api::nodepool::NodePool;

/// The definitions of all our kinds, always in the same order.
pub fn all() -> Vec<Value> {
    vec![
        definition::<NodePool>(),
        definition::<NodeClaim>(),
        definition::<NodeOverlay>(),
        definition::<CapacityBuffer>(),
        definition::<KwokNodeClass>(),
        definition::<OutscaleNodeClass>(),
    ]
}

/// All definitions as one YAML stream, as `kubectl apply --server-side -f -` takes it.
pub fn yaml() -> String {
    let mut stream = String::new();
    for definition in all() {
        let text = serde_saphyr::to_string(&definition).expect("a JSON value has no type that YAML lacks");
        writeln!(stream, "---\n{}", text.trim_end()).expect("a String takes all text");
    }
    stream
}

/// One definition, in the shape that the API server stores.
pub fn definition<K: CustomResourceExt>() -> Value {
    let mut crd = serde_json::to_value(K::crd()).expect("a definition has text keys only");
    if let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        let list_kind = format!("{}List", names.get("kind").and_then(Value::as_str).unwrap_or_default());
        names.insert("listKind".into(), Value::String(list_kind));
    }
    for version in crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(root) = version.pointer_mut("/schema/openAPIV3Schema").and_then(Value::as_object_mut) {
            tidy(root);
            add_type_meta(root);
        }
    }
    crd.sort_all_objects();
    crd
}

/// Names the fields that every object has; the derive leaves them to the API server.
fn add_type_meta(root: &mut Map<String, Value>) {
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let api_version =
            json!({ "type": "string", "description": "The group and version this object is written in." });
        properties.insert("apiVersion".into(), api_version);
        properties.insert("kind".into(), json!({ "type": "string", "description": "The kind of this object." }));
        properties.insert("metadata".into(), json!({ "type": "object" }));
    }
}

/// Puts one schema, and all schemas in it, into Kubernetes' way of saying things.
fn tidy(schema: &mut Map<String, Value>) {
    // An absent field and a null are the same to serde, and only the first is to be admitted.
    schema.remove("nullable");
    // The name of a Rust type is nobody's business.
    schema.remove("title");
    // Rust's unsigned integers are no formats that the API server knows: it warns of each, and takes no notice of it.
    if let Some(format) = schema.get_mut("format") {
        match format.as_str() {
            Some("uint8" | "uint16") => *format = "int32".into(),
            Some("uint" | "uint32" | "uint64") => *format = "int64".into(),
            _ => {}
        }
    }
    for bound in ["minimum", "maximum"] {
        if let Some(number) = schema.get(bound).and_then(whole_number) {
            schema.insert(bound.into(), number);
        }
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        schema.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner).and_then(Value::as_object_mut) {
            tidy(inner);
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            tidy(property);
        }
    }
}

/// A bound as an integer, where it is one; k8s-openapi carries all bounds as floating point.
fn whole_number(bound: &Value) -> Option<Value> {
    let number = bound.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "compared with the original right after")]
    let whole = number as i64;
    (whole as f64).to_bits().eq(&number.to_bits()).then(|| whole.into())
}
