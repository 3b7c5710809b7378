//! The published specification, as far as it says what requests and answers look like.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shared::shared;

/// The specification.
pub(crate) struct Spec {
    schemas: Map<String, Value>,
    actions: BTreeMap<String, Described>,
}

/// An action in the specification.
pub(crate) struct Described {
    request: Value,
    answer: Value,
    /// Whether it needs keys.
    pub(crate) is_signed: bool,
    /// Answers that the specification shows.
    pub(crate) examples: Vec<Value>,
}

impl Spec {
    /// Reads the specification, if it is there.
    pub(crate) fn load() -> Option<Self> {
        let text = std::fs::read_to_string(shared("specs/outscale.yaml")?).unwrap();
        let spec: Value = serde_saphyr::from_str(&text).unwrap();
        let schemas = spec["components"]["schemas"].as_object().unwrap().clone();
        let body = |of: &Value| of["content"]["application/json"]["schema"].clone();
        let describe = |(path, item): (&String, &Value)| {
            let post = item.get("post")?;
            let answer = &post["responses"]["200"];
            let examples = answer["content"]["application/json"]["examples"].as_object();
            let described = Described {
                request: body(&post["requestBody"]),
                answer: body(answer),
                is_signed: post.get("security").is_none_or(|needed| !needed.as_array().unwrap().is_empty()),
                examples: examples.into_iter().flat_map(|all| all.values().map(|one| one["value"].clone())).collect(),
            };
            Some((path.trim_start_matches('/').to_owned(), described))
        };
        let actions = spec["paths"].as_object().unwrap().iter().filter_map(describe).collect();
        Some(Self { schemas, actions })
    }

    /// An action.
    pub(crate) fn action(&self, name: &str) -> &Described {
        self.actions.get(name).unwrap_or_else(|| panic!("the specification has no action {name}"))
    }

    /// What is wrong with a request.
    pub(crate) fn request(&self, action: &str, body: &Value) -> Vec<String> {
        self.check(&self.action(action).request, body, &format!("{action} request"))
    }

    /// What is wrong with an answer.
    pub(crate) fn answer(&self, action: &str, status: u16, body: &Value) -> Vec<String> {
        if status == 200 {
            return self.check(&self.action(action).answer, body, &format!("{action} answer"));
        }
        self.check(&self.schemas["ErrorResponse"], body, &format!("{action} refusal"))
    }

    fn check(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        self.walk(schema, value, place, &mut wrong);
        wrong
    }

    fn walk(&self, schema: &Value, value: &Value, place: &str, wrong: &mut Vec<String>) {
        let schema = schema.as_object().unwrap();
        if let Some(reference) = schema.get("$ref") {
            let name = reference.as_str().unwrap().rsplit('/').next().unwrap();
            return self.walk(&self.schemas[name], value, place, wrong);
        }
        if let Some(Value::Array(choices)) = schema.get("oneOf") {
            if !choices.iter().any(|choice| self.check(choice, value, place).is_empty()) {
                wrong.push(format!("{place}: {value} is none of the choices"));
            }
            return;
        }
        for keyword in schema.keys() {
            let known = [
                "type",
                "properties",
                "required",
                "items",
                "enum",
                "additionalProperties",
                "format",
                "default",
                "description",
                "example",
                "nullable",
                "maxLength",
            ];
            assert!(known.contains(&keyword.as_str()), "{place}: the test does not know the keyword {keyword}");
        }
        if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
            return;
        }
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && !allowed.contains(value)
        {
            wrong.push(format!("{place}: {value} is none of {allowed:?}"));
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") | None => self.object(schema, value, place, wrong),
            Some("array") => match value.as_array() {
                Some(items) => {
                    for (at, item) in items.iter().enumerate() {
                        self.walk(&schema["items"], item, &format!("{place}[{at}]"), wrong);
                    }
                }
                None => wrong.push(format!("{place}: {value} is no list")),
            },
            Some("string") => string(schema, value, place, wrong),
            Some("integer") if value.is_i64() || value.is_u64() => {}
            Some("number") if value.is_number() => {}
            Some("boolean") if value.is_boolean() => {}
            Some(kind) => wrong.push(format!("{place}: {value} is no {kind}")),
        }
    }

    fn object(&self, schema: &Map<String, Value>, value: &Value, place: &str, wrong: &mut Vec<String>) {
        let Some(fields) = value.as_object() else {
            wrong.push(format!("{place}: {value} is no object"));
            return;
        };
        let none = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (name, field) in fields {
            match known.get(name) {
                Some(schema) => self.walk(schema, field, &format!("{place}.{name}"), wrong),
                None => wrong.push(format!("{place}: there is no field {name}")),
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                wrong.push(format!("{place}: {name} is missing"));
            }
        }
    }
}

fn string(schema: &Map<String, Value>, value: &Value, place: &str, wrong: &mut Vec<String>) {
    let Some(text) = value.as_str() else {
        wrong.push(format!("{place}: {value} is no string"));
        return;
    };
    let fits = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("date") => text.parse::<jiff::civil::Date>().is_ok(),
        Some("byte") => {
            text.len().is_multiple_of(4)
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        }
        Some(other) => panic!("{place}: the test does not know the format {other}"),
        None => true,
    };
    if !fits {
        wrong.push(format!("{place}: {text:?} is not in the format {}", schema["format"]));
    }
}
