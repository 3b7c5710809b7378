//! What was wrong with an object, field by field.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// An object of which not even the name could be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} {name}: {message}")]
pub struct Unreadable {
    /// Kind of the object.
    pub kind: String,
    /// As much of its name as is known.
    pub name: String,
    /// Field, what is wrong with it, and the remedy.
    pub message: String,
}

/// Problems found while an object is read; the object is reported with them.
#[derive(Default)]
pub(super) struct Problems {
    root: &'static str,
    found: Vec<String>,
}

impl Problems {
    /// No problems yet, of a part of an object whose path is `root` (with a dot at its end).
    pub(super) fn under(root: &'static str) -> Self {
        Self { root, found: Vec::new() }
    }

    /// Notes a problem: `field` as a path from the object's root, then what is wrong and what to write instead.
    pub(super) fn note(&mut self, field: &str, problem: impl std::fmt::Display) {
        self.note_whole(format!("{}{field}: {problem}", self.root));
    }

    /// Notes a problem that already names its field. The first problem of a field stands for all of them.
    pub(super) fn note_whole(&mut self, problem: impl std::fmt::Display) {
        let problem = problem.to_string();
        let field = problem.split(": ").next().unwrap_or_default();
        if !self.found.iter().any(|other| other.split(": ").next() == Some(field)) {
            self.found.push(problem);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them in one sentence, or nothing.
    pub(super) fn sentence(self) -> Option<Arc<str>> {
        (!self.found.is_empty()).then(|| self.found.join("; ").into())
    }

    /// Each of them as a sentence.
    pub(super) fn sentences(self) -> Vec<Arc<str>> {
        self.found.into_iter().map(Arc::from).collect()
    }

    /// Reads a part of an object; what cannot be read is noted with its path below `root` and left out.
    pub(super) fn part<T: DeserializeOwned>(&mut self, root: &str, value: &Value) -> Option<T> {
        if value.is_null() {
            return None;
        }
        match serde_path_to_error::deserialize(value) {
            Ok(part) => Some(part),
            Err(error) => {
                let path = error.path().to_string();
                let field = if path == "." { root.to_owned() } else { format!("{root}.{path}") };
                self.note(&field, format!("{}; write what the API reference says for this field", error.inner()));
                None
            }
        }
    }
}

/// Reads an object. A part (`spec`, `status`) that has the wrong form is left out, and its error returned; without readable metadata
/// there is nothing.
pub(super) fn lenient<T: DeserializeOwned>(kind: &str, value: &Value) -> Result<(T, Option<String>), Unreadable> {
    let error = match serde_path_to_error::deserialize(value) {
        Ok(whole) => return Ok((whole, None)),
        Err(error) => error,
    };
    let path = error.path().to_string();
    let message = format!("{path}: {}; write what the API reference says for this field", error.inner());
    let part = path.split(['.', '[']).next().unwrap_or_default();
    let mut rest = value.clone();
    let removed = rest.as_object_mut().filter(|_| part != "metadata").and_then(|fields| fields.remove(part));
    if removed.is_none() {
        return Err(Unreadable { kind: kind.to_owned(), name: name_of(value), message });
    }
    let (whole, next) = lenient(kind, &rest)?;
    Ok((whole, Some(next.map_or_else(|| message.clone(), |next| format!("{message}; {next}")))))
}

/// Reads an object whose fact has no place for problems: half of a volume would send pods to nodes that it cannot reach.
pub(super) fn strict<T: DeserializeOwned>(kind: &str, value: &Value) -> Result<T, Unreadable> {
    match lenient(kind, value)? {
        (wire, None) => Ok(wire),
        (_, Some(message)) => Err(Unreadable { kind: kind.to_owned(), name: name_of(value), message }),
    }
}

/// The name of an object that could not be read, as far as there is one.
pub(super) fn name_of(value: &Value) -> String {
    let text = |field| value.pointer(field).and_then(Value::as_str);
    match (text("/metadata/namespace"), text("/metadata/name")) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (None, Some(name)) => name.to_owned(),
        _ => "without a name".to_owned(),
    }
}
