//! Fields that a kind does not have: slips of the pen, which the API server drops in silence and `kubectl` warns of.

use serde_json::Value;

use super::admission::is_stored;
use super::schemas::{self, Part};

/// What is said of each field that the kind of an object does not have. A cluster's own objects have none, and may have fields of a release to come.
pub(super) fn fields(kind: &str, value: &Value) -> Vec<String> {
    let Some(part) = schemas::of(kind).filter(|_| !is_stored(value)) else { return Vec::new() };
    let mut found = Vec::new();
    walk(&part, value, "", &mut found);
    let told = |field: String| {
        format!("{field}: is no field of a {kind}, and counts for nothing; correct its name, or leave it out")
    };
    found.into_iter().map(told).collect()
}

fn walk(part: &Part, value: &Value, path: &str, found: &mut Vec<String>) {
    if part.keeps_all() {
        return;
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        let field = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match part.field(key).or_else(|| part.values()) {
            Some(part) => walk(&part, inner, &field, found),
            None if part.has_fields() => found.push(field),
            None => {}
        }
    }
    if let (Some(items), Some(all)) = (part.items(), value.as_array()) {
        for (at, inner) in all.iter().enumerate() {
            walk(&items, inner, &format!("{path}[{at}]"), found);
        }
    }
}

#[cfg(test)]
#[path = "unknown_tests.rs"]
mod tests;
