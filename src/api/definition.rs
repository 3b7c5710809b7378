//! What a definition (CRD) says of an object, found by applying it as the API server does: defaults are filled in, the structure is looked at, and the
//! rules in CEL are run.

use std::collections::BTreeMap;

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use regex::Regex;
use serde_json::Value;

use super::validation::Fault;

/// The schema of a definition, with its patterns and rules compiled.
#[derive(Debug)]
pub struct Definition {
    schema: Value,
    patterns: BTreeMap<String, Regex>,
    rules: CompiledSchema,
}

impl Definition {
    /// The first version of a CustomResourceDefinition. A rule or a pattern that cannot be compiled lets nothing through.
    pub fn of(crd: &Value) -> Self {
        let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let mut patterns = BTreeMap::new();
        compile_patterns(&schema, &mut patterns);
        Self { rules: compile_schema(&schema), patterns, schema }
    }

    /// The object as it is stored: absent fields have their defaults, and so have the fields within those.
    pub fn stored(&self, object: &Value) -> Value {
        let mut object = object.clone();
        fill_in(&self.schema, &mut object);
        object
    }

    /// Why the API server would refuse an object, or what becomes of an old one; nothing when it would keep it.
    pub fn faults(&self, object: &Value, old: Option<&Value>) -> Vec<Fault> {
        let object = self.stored(object);
        let mut look = Look { patterns: &self.patterns, faults: Vec::new(), is_endless: false };
        look.structure(&self.schema, &object, "");
        let Look { mut faults, is_endless, .. } = look;
        // Rules compare entries with each other, and may count on there being no more than there can be.
        if is_endless {
            return faults;
        }
        let has_form = faults.is_empty();
        let broken = Validator::new().validate_compiled(&self.rules, &object, old);
        for error in broken.err().into_iter().flat_map(kube_cel::ValidationErrors::into_vec) {
            // A rule that stumbles over what has the wrong form says nothing that is not said already.
            if has_form || error.kind == ErrorKind::ValidationFailure {
                faults.push(Fault { field: error.field_path, remedy: error.message });
            }
        }
        faults
    }
}

fn compile_patterns(schema: &Value, into: &mut BTreeMap<String, Regex>) {
    if let Some(pattern) = schema["pattern"].as_str()
        && let Ok(regex) = Regex::new(pattern)
    {
        into.insert(pattern.to_owned(), regex);
    }
    let fields = schema["properties"].as_object().into_iter().flat_map(|fields| fields.values());
    for inner in fields.chain([&schema["items"], &schema["additionalProperties"]]).filter(|inner| inner.is_object()) {
        compile_patterns(inner, into);
    }
}

fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (field, of) in schema["properties"].as_object().into_iter().flatten() {
                if let (None, Some(default)) = (fields.get(field), of.get("default")) {
                    fields.insert(field.clone(), default.clone());
                }
                if let Some(inner) = fields.get_mut(field) {
                    fill_in(of, inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(&schema["items"], item)),
        _ => {}
    }
}

/// A look at an object's structure: the part of it that definitions of NodeClasses, NodePools and the like say.
struct Look<'a> {
    patterns: &'a BTreeMap<String, Regex>,
    faults: Vec<Fault>,
    /// Whether some list or map has more entries than it may have.
    is_endless: bool,
}

impl Look<'_> {
    fn add(&mut self, field: &str, remedy: String) {
        self.faults.push(Fault { field: field.to_owned(), remedy });
    }

    fn structure(&mut self, schema: &Value, value: &Value, field: &str) {
        if let Some(wanted) = misfit(schema, value) {
            self.add(field, format!("is {}; write {wanted}", told(value)));
            return;
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
            let allowed: Vec<String> = allowed.iter().map(plain).collect();
            self.add(field, format!("{value} is none of what there is; write {}", allowed.join(", ")));
        }
        match value {
            Value::Number(number) => self.number(schema, number, field),
            Value::String(text) => self.text(schema, text, field),
            Value::Array(items) => {
                self.count(schema, ("minItems", "maxItems"), items.len(), field);
                for (index, item) in items.iter().enumerate() {
                    self.structure(&schema["items"], item, &format!("{field}[{index}]"));
                }
            }
            Value::Object(fields) => {
                self.count(schema, ("minProperties", "maxProperties"), fields.len(), field);
                let within = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
                for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if !fields.contains_key(required) {
                        self.add(&within(required), "is missing; add it".to_owned());
                    }
                }
                for (name, inner) in fields {
                    let of = [&schema["properties"][name.as_str()], &schema["additionalProperties"]];
                    if let Some(of) = of.into_iter().find(|of| of.is_object()) {
                        self.structure(of, inner, &within(name));
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn number(&mut self, schema: &Value, number: &serde_json::Number, field: &str) {
        let Some(value) = number.as_i64() else { return };
        if let Some(bounds) = broken(schema, ("minimum", "maximum"), value) {
            self.add(field, format!("{value} is out of bounds; write {bounds}"));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, field: &str) {
        if let Some(pattern) = schema["pattern"].as_str()
            && !self.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
        {
            self.add(field, format!("{text:?} does not have the form that it needs; write what {pattern} matches"));
        }
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(bounds) = broken(schema, ("minLength", "maxLength"), length) {
            self.add(field, format!("has {length} characters; write {bounds}"));
        }
    }

    fn count(&mut self, schema: &Value, (least, most): (&str, &str), entries: usize, field: &str) {
        let entries = i64::try_from(entries).unwrap_or(i64::MAX);
        if let Some(bounds) = broken(schema, (least, most), entries) {
            self.add(field, format!("has {entries} entries; write {bounds}"));
        }
        self.is_endless |= schema[most].as_i64().is_some_and(|most| entries > most);
    }
}

/// What is to stand in the place of a value that is of the wrong type.
fn misfit(schema: &Value, value: &Value) -> Option<&'static str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return (!value.is_i64() && !value.is_string()).then_some("a number or a text");
    }
    let (fits, wanted) = match schema["type"].as_str()? {
        "object" => (value.is_object(), "a map"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "a text, in quotes where it looks like something else"),
        "integer" => (value.is_i64(), "a whole number, without quotes"),
        "number" => (value.is_number(), "a number, without quotes"),
        "boolean" => (value.is_boolean(), "true or false, without quotes"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

/// What a value is, in words.
fn told(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A scalar as a file has it: a text without its quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The bounds that a schema has under these keys, in words, when a number is not within them.
fn broken(schema: &Value, (least, most): (&str, &str), number: i64) -> Option<String> {
    match (schema[least].as_i64(), schema[most].as_i64()) {
        (Some(least), Some(most)) if !(least..=most).contains(&number) => Some(format!("{least} to {most}")),
        (Some(least), None) if number < least => Some(format!("{least} at least")),
        (None, Some(most)) if number > most => Some(format!("{most} at most")),
        _ => None,
    }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
