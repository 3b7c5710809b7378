//! Nulls: what the API server makes of them before it looks at an object. A field that is null is left out; a key of a map, such as a label or an amount,
//! has the zero of its type. Definitions leave that out, too, and their defaults are applied.

use std::borrow::Cow;

use serde_json::Value;

use super::schemas::{self, Part};

/// A manifest of this kind without nulls, but for those in lists, which are wrong.
pub(super) fn settled<'a>(kind: &str, value: &'a Value) -> Cow<'a, Value> {
    if !has_null(value) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    settle(schemas::of(kind).as_ref(), &mut value);
    Cow::Owned(value)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(has_null),
        Value::Object(all) => all.values().any(has_null),
        _ => false,
    }
}

fn settle(part: Option<&Part>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, inner| {
                let field = part.and_then(|part| part.field(key));
                let entry = part.filter(|_| field.is_none()).and_then(Part::values);
                if !inner.is_null() {
                    settle(field.or(entry).as_ref(), inner);
                    return true;
                }
                let zero = entry.as_ref().and_then(Part::zero);
                if let Some(zero) = zero {
                    *inner = zero.into();
                }
                zero.is_some()
            });
        }
        Value::Array(all) => {
            let items = part.and_then(Part::items);
            for inner in all {
                settle(items.as_ref(), inner);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "nulls_tests.rs"]
mod tests;
