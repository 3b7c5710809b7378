//! Our CustomResourceDefinitions against Karpenter 1.15's: the same, field by field and rule by rule.
//!
//! Texts for people (descriptions, and the messages of rules) are our own and not compared, but where the
//! original has a message, ours must have one too. The table [`INTENDED`] names every other difference.

#[path = "common/shared.rs"]
mod shared;

use std::collections::{BTreeMap, BTreeSet};

use joiner::api::crds;
use serde_json::Value;

use shared::shared;

/// A difference that is meant: definition, path, and why.
type Difference = (&'static str, &'static str, &'static str);

/// Where our definitions differ on purpose.
const INTENDED: &[Difference] = &[];

/// Our definitions in their order, and the files that hold Karpenter's.
const FILES: &[(&str, &str)] = &[
    ("nodepools.karpenter.sh", "karpenter.sh_nodepools.yaml"),
    ("nodeclaims.karpenter.sh", "karpenter.sh_nodeclaims.yaml"),
    ("nodeoverlays.karpenter.sh", "karpenter.sh_nodeoverlays.yaml"),
    ("capacitybuffers.autoscaling.x-k8s.io", "autoscaling.x-k8s.io_capacitybuffers.yaml"),
    ("kwoknodeclasses.karpenter.kwok.sh", "karpenter.kwok.sh_kwoknodeclasses.yaml"),
];

/// Definitions that are ours alone.
const OWN: [&str; 1] = ["outscalenodeclasses.karpenter.outscale.com"];

fn name(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().expect("every definition has a name")
}

/// All leaves of a tree by their paths, without what is not compared.
fn leaves(tree: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    walk(tree, "", &mut found);
    found
}

fn walk(tree: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    match tree {
        Value::Object(object) => {
            if object.is_empty() {
                found.insert(path.to_owned(), "{}".into());
            }
            for (key, value) in object {
                let path = format!("{path}.{key}");
                match (key.as_str(), value) {
                    // A text for people; a field of that name is an object.
                    ("description", Value::String(_)) => {}
                    ("annotations", Value::Object(by_generator)) if path == ".metadata.annotations" => {
                        assert!(by_generator.keys().all(|key| key.starts_with("controller-gen.")), "{by_generator:?}");
                    }
                    ("x-kubernetes-validations", Value::Array(rules)) => rules.iter().for_each(|rule| {
                        walk_rule(rule, &path, found);
                    }),
                    // Sets, whatever their order.
                    ("required" | "categories" | "shortNames", Value::Array(items)) => items.iter().for_each(|item| {
                        found.insert(format!("{path}[{item}]"), "listed".into());
                    }),
                    _ => walk(value, &path, found),
                }
            }
        }
        Value::Array(items) => {
            found.insert(path.to_owned(), format!("{} items", items.len()));
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), found);
            }
        }
        leaf => {
            found.insert(path.to_owned(), leaf.to_string());
        }
    }
}

fn walk_rule(rule: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    let path = format!("{path}[{}]", rule["rule"]);
    let has_message = rule["message"].as_str().is_some_and(|message| !message.is_empty());
    found.insert(format!("{path}.message"), if has_message { "some text" } else { "none" }.into());
    for (key, value) in rule.as_object().expect("a rule is an object") {
        if key != "message" && key != "rule" {
            walk(value, &format!("{path}.{key}"), found);
        }
    }
}

/// The paths where two trees differ, with both values.
fn differences(ours: &Value, theirs: &Value) -> BTreeMap<String, String> {
    let (ours, theirs) = (leaves(ours), leaves(theirs));
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let absent = "absent".to_owned();
    paths
        .into_iter()
        .map(|path| (path, ours.get(path).unwrap_or(&absent), theirs.get(path).unwrap_or(&absent)))
        .filter(|(_, ours, theirs)| ours != theirs)
        .map(|(path, ours, theirs)| (path.clone(), format!("ours {ours}, Karpenter's {theirs}")))
        .collect()
}

#[test]
fn definitions_equal_karpenters() {
    let Some(directory) = shared("karpenter/crds") else { return };
    let mut unlisted = Vec::new();
    let mut stale: BTreeSet<Difference> = INTENDED.iter().copied().collect();
    for (ours, (_, file)) in crds::all().iter().zip(FILES) {
        let text = std::fs::read_to_string(directory.join(file)).unwrap();
        let theirs: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(name(ours), name(&theirs));
        assert!(leaves(&theirs).len() > 50, "{file} holds next to nothing");
        for (path, values) in differences(ours, &theirs) {
            let intended = INTENDED.iter().find(|(object, listed, _)| *object == name(ours) && *listed == path);
            match intended {
                Some(difference) => drop(stale.remove(difference)),
                None => unlisted.push(format!("{} {path}: {values}", name(ours))),
            }
        }
    }
    assert!(unlisted.is_empty(), "differences that nobody meant:\n{}", unlisted.join("\n"));
    assert!(stale.is_empty(), "listed as intended, and no longer there:\n{stale:#?}");
}

#[test]
fn the_comparison_sees_what_changes() {
    let original = crds::all().remove(0);
    assert!(differences(&original, &original).is_empty());
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let changes: &[(&str, Value)] = &[
        ("/spec/properties/weight/maximum", 101.into()),
        ("/spec/required", Value::Array(vec![])),
        ("/spec/x-kubernetes-validations/0/rule", "true".into()),
        ("/spec/x-kubernetes-validations/0/message", "".into()),
        ("/spec/properties/disruption/default/consolidateAfter", "1s".into()),
        ("/spec/properties/template/properties/metadata/properties/labels/x-kubernetes-map-type", "granular".into()),
        ("/status/properties/conditions/x-kubernetes-list-map-keys/0", "status".into()),
    ];
    for (path, value) in changes {
        let mut changed = original.clone();
        *changed.pointer_mut(&format!("{schema}{path}")).expect(path) = value.clone();
        assert!(!differences(&changed, &original).is_empty(), "{path}");
    }
    let mut changed = original.clone();
    changed["spec"]["versions"][0]["additionalPrinterColumns"][1]["priority"] = 1.into();
    assert_eq!(differences(&changed, &original).len(), 1);
}

#[test]
fn yaml_holds_all_definitions_in_order() {
    let text = crds::yaml();
    let parsed: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(parsed, crds::all());
    let names: Vec<_> = FILES.iter().map(|(name, _)| *name).chain(OWN).collect();
    assert_eq!(parsed.iter().map(name).collect::<Vec<_>>(), names);
    assert_eq!(text, crds::yaml());
}

/// Formats that the API server knows (those of OpenAPI v3 for numbers and dates, and of `k8s.io/apiextensions-apiserver`, `pkg/apiserver/validation/formats.go`).
/// Of others `kubectl apply` warns, and nothing is checked.
const FORMATS: [&str; 29] = [
    "int32",
    "int64",
    "float",
    "double",
    "date-time",
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

/// Every format in a schema, with where it stands. A field of the name `format` is an object, and no format.
fn formats(tree: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    if let Some(format) = tree["format"].as_str() {
        found.insert(path.to_owned(), format.to_owned());
    }
    let inner = tree.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value));
    let listed = tree.as_array().into_iter().flatten().enumerate().map(|(at, value)| (at.to_string(), value));
    for (key, value) in inner.chain(listed) {
        formats(value, &format!("{path}.{key}"), found);
    }
}

#[test]
fn kubernetes_knows_every_format() {
    for definition in crds::all() {
        let mut found = BTreeMap::new();
        formats(&definition["spec"]["versions"], name(&definition), &mut found);
        assert!(!found.is_empty(), "{} has dates at least", name(&definition));
        found.retain(|_, format| !FORMATS.contains(&format.as_str()));
        assert!(found.is_empty(), "kubectl warns of {found:#?}");
    }
}

/// A field as somebody adds it who does not think of formats.
#[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Careless", doc = "Careless.")]
struct CarelessSpec {
    bytes: u8,
    numbers: Vec<u32>,
    size: Option<usize>,
    many: BTreeMap<String, u64>,
}

#[test]
fn unsigned_numbers_are_put_into_formats_that_kubernetes_knows() {
    let mut found = BTreeMap::new();
    formats(&crds::definition::<Careless>()["spec"]["versions"], "", &mut found);
    let own: Vec<&str> =
        found.iter().filter(|(path, _)| path.contains(".spec.")).map(|(_, format)| format.as_str()).collect();
    assert_eq!(own, ["int32", "int64", "int64", "int64"], "{found:#?}");
}

#[test]
fn every_field_and_rule_is_explained() {
    for definition in crds::all() {
        let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        explained(root, name(&definition));
    }
}

fn explained(schema: &Value, path: &str) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        assert!(rule["message"].as_str().is_some_and(|message| !message.is_empty()), "{path}: {rule}");
    }
    for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{field}");
        let metadata = field == "metadata" && inner.as_object().is_some_and(|inner| inner.len() == 1);
        assert!(metadata || inner["description"].as_str().is_some_and(|text| !text.is_empty()), "{path} says nothing");
        explained(inner, &path);
    }
    if schema["items"].is_object() {
        explained(&schema["items"], &format!("{path}[]"));
    }
}
