//! Text taken apart into documents: YAML streams, JSON values one after another. One that cannot be read does not spoil its neighbours.

use serde_json::Value;

/// A document of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    /// Which of the file's documents, from 1; empty ones count.
    pub number: usize,
    /// Its content, or why it has none.
    pub content: Result<Value, String>,
}

/// The documents of a text, empty ones left out.
pub fn documents(text: &str) -> Vec<Document> {
    let text = text.trim_start_matches('\u{feff}');
    let (values, error) = if text.trim_start().starts_with(['{', '[']) { json(text) } else { (Vec::new(), None) };
    if !values.is_empty() && error.is_none() {
        return numbered(values.into_iter().map(Ok));
    }
    // YAML's own flow style looks alike; what JSON does not accept is tried as YAML.
    let documents = yaml_stream(text);
    // A stream of JSON of which only the end is broken is not YAML either.
    match error.filter(|_| !values.is_empty() && documents.iter().all(|document| document.content.is_err())) {
        Some(error) => numbered(values.into_iter().map(Ok).chain([Err(error)])),
        None => documents,
    }
}

fn numbered(all: impl Iterator<Item = Result<Value, String>>) -> Vec<Document> {
    all.enumerate().map(|(at, content)| Document { number: at + 1, content }).collect()
}

fn yaml_stream(text: &str) -> Vec<Document> {
    let parts = parts(text).into_iter().enumerate().filter(|(_, part)| !is_empty(part));
    let documents = parts.map(|(at, part)| Document { number: at + 1, content: yaml(&part) });
    documents.filter(|document| document.content != Ok(Value::Null)).collect()
}

/// The values of a JSON stream as far as it can be read, and why it ends there.
fn json(text: &str) -> (Vec<Value>, Option<String>) {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(value) => values.push(value),
            Err(error) => return (values, Some(error.to_string())),
        }
    }
    (values, None)
}

/// A YAML stream cut at its markers: `---` at the beginning of a line is one wherever it stands.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        let rest = line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        let ends = line.trim_end() == "...";
        if let Some(rest) = rest {
            // A marker at the very beginning opens the first document.
            if parts.len() > 1 || !parts.iter().all(|part| is_empty(part)) {
                parts.push(String::new());
            } else {
                parts = vec![String::new()];
            }
            append(&mut parts, rest);
        } else if !ends && !line.starts_with('%') {
            append(&mut parts, line);
        }
    }
    parts
}

fn append(parts: &mut [String], line: &str) {
    if let Some(last) = parts.last_mut() {
        last.push_str(line);
        last.push('\n');
    }
}

fn is_empty(part: &str) -> bool {
    part.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn yaml(part: &str) -> Result<Value, String> {
    // `n` is a name here, as it is for kubectl. The limits guard servers against strangers. These files are the user's own, and lists of 100,000 pods are among them.
    let options = serde_saphyr::options! { budget: None, with_snippet: false, strict_booleans: true };
    // What the library can be told to let pass, a user of joiner cannot.
    let plain = |error: String| {
        error
            .replace(", set DuplicateKeyPolicy in Options if acceptable", "")
            .replace(" rejected by the configured policy", "")
    };
    serde_saphyr::from_str_with_options(part, options).map_err(|error| plain(error.to_string()))
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
