//! Label selectors in PodDisruptionBudgets.

use std::sync::Arc;

use serde_json::Value;

use crate::core::facts::Selector;
use crate::core::requirements::{Operator, Requirement};

/// Reads a label selector; the error names the field and the remedy.
pub(super) fn read(field: &str, value: &Value) -> Result<Option<Selector>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let mut selector = Selector::default();
    for (key, label) in value["matchLabels"].as_object().into_iter().flatten() {
        let text =
            label.as_str().ok_or_else(|| format!("{field}.matchLabels.{key}: {label} is not a text; quote it"))?;
        selector.labels.insert(key.as_str().into(), text.into());
    }
    for (at, expression) in value["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let here = format!("{field}.matchExpressions[{at}]");
        let key = expression["key"].as_str().ok_or_else(|| format!("{here}.key: is missing; name a label"))?;
        let word = expression["operator"].as_str().unwrap_or_default();
        let operator =
            Operator::parse(word).filter(|_| matches!(word, "In" | "NotIn" | "Exists" | "DoesNotExist")).ok_or_else(
                || format!("{here}.operator: {word:?} is no operator; write In, NotIn, Exists or DoesNotExist"),
            )?;
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        selector.expressions.push(Requirement::new(key, operator, values.map(Arc::<str>::from)));
    }
    Ok(Some(selector))
}
