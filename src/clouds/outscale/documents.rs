//! The documents that a configuration of Talos is made of, and what patches make of them.
//!
//! A configuration is a stream of YAML documents, of which one (with `version: v1alpha1`) is the machine's; the others have a `kind`. It holds the
//! cluster's secrets, which no message shows.

use serde_json::{Map, Value};

use super::yaml;

/// What Talos calls a document by: two that agree in all of it are the same one.
const NAMED_BY: [&str; 3] = ["apiVersion", "kind", "name"];
/// The field with which patches of Talos order something other than a merge.
const ORDER: &str = "$patch";

/// A configuration, document by document.
#[derive(Clone, PartialEq)]
pub(super) struct Documents {
    /// The machine's own.
    pub(super) main: Value,
    /// Those with a kind, in their order.
    pub(super) others: Vec<Value>,
}

impl Documents {
    /// Reads a configuration.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut main = None;
        let mut others = Vec::new();
        for (at, part) in parts(text).iter().enumerate() {
            let wrong = |what: &str| format!("document {}: {what}", at + 1);
            match yaml::read(part).map_err(|error| wrong(&format!("{error}; write YAML")))? {
                Value::Null => {}
                value @ Value::Object(_) if value.get("kind").is_some() => others.push(value),
                value @ Value::Object(_) if value["version"] == "v1alpha1" => {
                    if main.replace(value).is_some() {
                        return Err(wrong("is a second machine configuration; leave one"));
                    }
                }
                _ => return Err(wrong("is no machine configuration; it must have version: v1alpha1")),
            }
        }
        let none = "has no document with version: v1alpha1; store the file worker.yaml of `talosctl gen config`";
        main.map(|main| Self { main, others }).ok_or_else(|| none.to_owned())
    }

    /// Merges a patch in, which may have several documents, as Talos does it: one with a kind goes into the document of the same kind and name, or
    /// becomes a further one; one without is for the machine's own.
    pub(super) fn patch(&mut self, text: &str) -> Result<(), String> {
        let parts = parts(text);
        if parts.is_empty() {
            return Err("is empty; write the fields that are to change, or remove it".to_owned());
        }
        for (at, part) in parts.iter().enumerate() {
            let place = if parts.len() > 1 { format!("document {}: ", at + 1) } else { String::new() };
            self.take(part).map_err(|what| format!("{place}{what}"))?;
        }
        Ok(())
    }

    fn take(&mut self, part: &str) -> Result<(), String> {
        let mut patch = yaml::read(part).map_err(|error| format!("{error}; write YAML or JSON"))?;
        let Some(fields) = patch.as_object_mut() else {
            return Err("is no map; write the fields that are to change".to_owned());
        };
        let has_kind = fields.contains_key("kind");
        if has_kind && !fields.contains_key("apiVersion") {
            return Err("has a kind and no apiVersion; write apiVersion: v1alpha1".to_owned());
        }
        let order = if has_kind { fields.remove(ORDER) } else { None };
        if order.as_ref().is_some_and(|order| order != "delete") || has_order(&patch) {
            return Err(format!(
                "{ORDER} is taken as `{ORDER}: delete` of a whole document with a kind; write null for a field that is to go"
            ));
        }
        if !has_kind {
            merge(&mut self.main, patch);
            return Ok(());
        }
        let there =
            self.others.iter().position(|document| NAMED_BY.iter().all(|key| document.get(key) == patch.get(key)));
        if order.is_none() {
            let mut document = there.map_or(Value::Null, |there| self.others.remove(there));
            merge(&mut document, patch);
            self.others.insert(there.unwrap_or(self.others.len()), document);
        } else {
            let missing = || format!("{ORDER}: there is no {} to delete; correct or remove it", told(&patch));
            self.others.remove(there.ok_or_else(missing)?);
        }
        Ok(())
    }

    /// All of it as one text.
    pub(super) fn written(&self) -> String {
        let documents = std::iter::once(&self.main).chain(&self.others);
        documents.map(yaml::write).collect::<Vec<_>>().join("\n---\n") + "\n"
    }
}

/// How a document with a kind is called in messages.
pub(super) fn told(document: &Value) -> String {
    let words = ["kind", "name"].into_iter().filter_map(|key| document.get(key)?.as_str());
    words.collect::<Vec<_>>().join(" ")
}

/// A JSON merge patch (RFC 7386).
pub(super) fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(fields) = into.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

fn has_order(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| key == ORDER || has_order(value)),
        Value::Array(items) => items.iter().any(has_order),
        _ => false,
    }
}

/// The texts between the lines that part documents, without those that say nothing.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.retain(|part| part.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')));
    parts
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
