//! YAML that is read, changed and written again without a change to what was not meant.
//!
//! What a plain scalar is depends on who reads it. Talos reads with Go's yaml.v3: `0644` is octal where a number is wanted and the text `0644`
//! where a text is, and the label `1.10` is not `1.1`. So scalars that are not written again as they were read are kept as they were written, behind
//! a mark that [`write()`] takes off.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{NonFiniteFloatPolicy, Spanned};

/// Stands before a plain scalar that is written as it was read: a character for private use.
const AS_WRITTEN: char = '\u{E000}';
/// What [YAML 1.1](https://yaml.org/type/bool.html) calls true. Go's yaml.v3 takes all of it where a boolean is wanted.
const TRUE: [&str; 11] = ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"];
/// And what it calls false.
const FALSE: [&str; 11] = ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"];

/// Reads a document. Errors say where, and show nothing of it: it may hold secrets.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if text.contains(AS_WRITTEN) {
        return Err(format!("has the character U+{:X}, which joiner keeps for itself", u32::from(AS_WRITTEN)));
    }
    let options = serde_saphyr::options! {
        with_snippet: false, strict_booleans: true, non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    let root: Spanned<Node> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|place| format!(" in line {}, column {}", place.line(), place.column()));
        format!("cannot be read{}", place.unwrap_or_default())
    })?;
    Ok(value(root, text))
}

/// Writes a document, without a line break at its end.
pub(super) fn write(document: &Value) -> String {
    let text = serde_saphyr::to_string(document).expect("a JSON value has no type that YAML lacks");
    text.trim_end().replace(AS_WRITTEN, "")
}

/// Whether this is true to a reader who wants a boolean.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::String(text) => TRUE.contains(&text.trim_start_matches(AS_WRITTEN)),
        other => *other == Value::Bool(true),
    }
}

/// What a scalar is to a reader who wants a text.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.trim_start_matches(AS_WRITTEN).to_owned()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A node as it comes out of the reader.
enum Node {
    Map(Vec<(String, Spanned<Self>)>),
    List(Vec<Spanned<Self>>),
    Scalar(Value),
}

/// What is kept of a node.
fn value(node: Spanned<Node>, source: &str) -> Value {
    match node.value {
        Node::Map(fields) => Value::Object(fields.into_iter().map(|(key, node)| (key, value(node, source))).collect()),
        Node::List(items) => Value::Array(items.into_iter().map(|node| value(node, source)).collect()),
        // There are many words for nothing, and they all mean it.
        Node::Scalar(Value::Null) => Value::Null,
        Node::Scalar(read) => {
            let span = node.defined.span();
            let bytes = span.byte_offset().zip(span.byte_len()).and_then(|(from, length)| {
                let from = usize::try_from(from).ok()?;
                source.get(from..from + usize::try_from(length).ok()?)
            });
            match bytes {
                Some(written) if is_ambiguous(written) && write(&read) != written => {
                    Value::String(format!("{AS_WRITTEN}{written}"))
                }
                _ => read,
            }
        }
    }
}

/// Whether somebody may take a plain scalar for something else than a text: a number, a point in time, a boolean.
fn is_ambiguous(written: &str) -> bool {
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "+-._: ".contains(letter);
    let begins = |letter: char| letter.is_ascii_digit() || "+-.".contains(letter);
    let is_value = written.starts_with(begins) && written.chars().all(is_usual);
    is_value || TRUE.contains(&written) || FALSE.contains(&written)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Nodes;

        impl<'de> Visitor<'de> for Nodes {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("YAML")
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Scalar(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Scalar(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Scalar(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Scalar(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Scalar(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Scalar(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Node::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
                let mut all = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    all.push(field);
                }
                Ok(Node::Map(all))
            }
        }

        deserializer.deserialize_any(Nodes)
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
