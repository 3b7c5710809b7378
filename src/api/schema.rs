//! Fragments of OpenAPI schema that a derive cannot say: patterns, CEL rules, list types, condition items.
//!
//! Patterns and rules are those of Karpenter 1.15, because they decide what a cluster admits; the messages
//! are our own.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::api::common::{NodeClassRef, Requirement};

/// A label or taint key: an optional DNS subdomain and a slash, then a name.
pub(super) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// A label's value, which may be empty.
pub(super) const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// A Kubernetes quantity.
pub(super) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// Groups of hours, minutes and seconds.
pub(super) const DURATION: &str = r"^([0-9]+(s|m|h))+$";
/// Groups of hours, minutes and seconds, or `Never`.
pub(super) const NILLABLE_DURATION: &str = r"^(([0-9]+(s|m|h))+|Never)$";
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const REASON_OR_NOTHING: &str = r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$";

/// One entry of `x-kubernetes-validations`.
pub(super) fn rule(message: &str, expression: &str) -> Value {
    json!({ "message": message, "rule": expression })
}

/// The rules of a text that must not be empty.
pub(super) fn not_empty(field: &str) -> Value {
    json!([rule(&format!("{field} must not be empty"), "self != ''")])
}

/// A point in time.
pub(super) fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// The values of a requirement.
///
/// Length and pattern sit on the list, where they say nothing about its items: so does Karpenter's schema, and
/// a stricter one would refuse what clusters hold. `validation.rs` judges the items.
pub(super) fn requirement_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string" },
        "maxLength": 63,
        "pattern": LABEL_VALUE,
        "x-kubernetes-list-type": "atomic",
    })
}

/// An integer from 1 to 50, of no particular width.
pub(super) fn min_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": 50 })
}

/// The requirements of a NodePool's template.
pub(super) fn nodepool_requirements(generator: &mut SchemaGenerator) -> Schema {
    let mut keys = requirement_key_rules();
    keys.insert(
        1,
        rule("label karpenter.sh/nodepool is set by the NodePool itself", r#"self != "karpenter.sh/nodepool""#),
    );
    requirements(generator, &keys, &[in_has_values(), bound_is_one_integer(), enough_values_for_min()])
}

/// The requirements of a NodeClaim.
pub(super) fn nodeclaim_requirements(generator: &mut SchemaGenerator) -> Schema {
    requirements(
        generator,
        &requirement_key_rules(),
        &[in_has_values(), bound_is_one_integer(), enough_values_for_min()],
    )
}

/// The requirements of a NodeOverlay, which know no `minValues`.
pub(super) fn nodeoverlay_requirements(generator: &mut SchemaGenerator) -> Schema {
    let not_in = rule(
        "operator 'NotIn' needs at least one value",
        "self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)",
    );
    let mut list =
        requirements(generator, &requirement_key_rules(), &[not_in, in_has_values(), bound_is_one_integer()]);
    if let Some(properties) = list.pointer_mut("/items/properties").and_then(Value::as_object_mut) {
        properties.remove("minValues");
    }
    list
}

fn requirements(generator: &mut SchemaGenerator, key_rules: &[Value], list_rules: &[Value]) -> Schema {
    let mut item = Requirement::json_schema(generator);
    if let Some(key) = item.pointer_mut("/properties/key").and_then(Value::as_object_mut) {
        key.insert("x-kubernetes-validations".into(), json!(key_rules));
    }
    json_schema!({
        "type": "array",
        "items": item,
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": list_rules,
    })
}

fn requirement_key_rules() -> Vec<Value> {
    vec![
        rule(
            "labels of the domain karpenter.sh are reserved, except karpenter.sh/capacity-type",
            r#"self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !self.find("^([^/]+)").endsWith("karpenter.sh")"#,
        ),
        rule("label kubernetes.io/hostname is set by the node itself", r#"self != "kubernetes.io/hostname""#),
    ]
}

fn in_has_values() -> Value {
    rule("operator 'In' needs at least one value", "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)")
}

fn bound_is_one_integer() -> Value {
    rule(
        "operators 'Gt', 'Lt', 'Gte' and 'Lte' need exactly one value, an integer of at least 0",
        "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
    )
}

fn enough_values_for_min() -> Value {
    rule(
        "operator 'In' with 'minValues' needs at least that many values",
        "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
    )
}

/// The labels of a NodePool's template.
pub(super) fn template_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [
            rule(
                "labels of the domain karpenter.sh are reserved, except karpenter.sh/capacity-type",
                r#"self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !x.find("^([^/]+)").endsWith("karpenter.sh"))"#,
            ),
            rule(
                "label karpenter.sh/nodepool is set by the NodePool itself",
                r#"self.all(x, x != "karpenter.sh/nodepool")"#,
            ),
            rule(
                "label kubernetes.io/hostname is set by the node itself",
                r#"self.all(x, x != "kubernetes.io/hostname")"#,
            ),
        ],
    })
}

/// The class reference of a NodePool, whose group and kind never change.
pub(super) fn nodepool_class_ref(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = NodeClassRef::json_schema(generator);
    schema.insert(
        "x-kubernetes-validations".into(),
        json!([
            rule("nodeClassRef.group cannot change; make another NodePool", "self.group == oldSelf.group"),
            rule("nodeClassRef.kind cannot change; make another NodePool", "self.kind == oldSelf.kind"),
        ]),
    );
    schema
}

/// The conditions of most kinds: Kubernetes' own condition, one of each type.
pub(super) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut list = unkeyed_conditions(generator);
    list.insert("x-kubernetes-list-type".into(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
    list
}

/// The conditions of a NodeClaim: reason and message may be missing, as in objects written long ago.
pub(super) fn nodeclaim_conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut list = conditions(generator);
    if let Some(item) = list.get_mut("items").and_then(Value::as_object_mut) {
        item.insert("required".into(), json!(["lastTransitionTime", "status", "type"]));
    }
    if let Some(reason) = list.pointer_mut("/items/properties/reason").and_then(Value::as_object_mut) {
        reason.remove("minLength");
        reason.insert("pattern".into(), json!(REASON_OR_NOTHING));
    }
    list
}

/// The conditions of a KWOKNodeClass: a plain list.
pub(super) fn unkeyed_conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "One thing that holds, does not hold, or is not known yet.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "message": { "type": "string", "maxLength": 32768, "description": "Why, for a person." },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation this was judged on.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": REASON,
                    "description": "Why, in one CamelCase word.",
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds.",
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": CONDITION_TYPE,
                    "description": "What is said to hold.",
                },
            },
        },
    })
}
