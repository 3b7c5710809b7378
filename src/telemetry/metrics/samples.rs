//! Figures that are taken when somebody looks, instead of being recorded when they change.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::families::{FAMILIES, Family, Shape};
use super::registry::clean;

/// Collects samples for one reading of `/metrics`.
#[derive(Clone, Debug, Default)]
pub struct Samples(BTreeMap<&'static str, String>);

impl Samples {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample. No two of one family may have the same labels.
    pub(super) fn add<const N: usize>(&mut self, family: &Family<N>, values: &[&str; N], value: f64) {
        self.add_with(family, values, &[], value);
    }

    /// Takes a sample with labels beyond those of the family.
    pub(super) fn add_with<const N: usize>(
        &mut self,
        family: &Family<N>,
        values: &[&str; N],
        more: &[(&str, &str)],
        value: f64,
    ) {
        self.line(family.name, &written(family, values, more), value);
    }

    /// Takes a sample whose labels are already written.
    pub(super) fn line(&mut self, name: &'static str, labels: &str, value: f64) {
        let text = self.0.entry(name).or_default();
        text.push_str(name);
        if !labels.is_empty() {
            text.push('{');
            text.push_str(labels);
            text.push('}');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, " {value}");
    }

    /// Writes all samples, with help and type of each family.
    pub(super) fn write(&self, text: &mut String) {
        for family in FAMILIES {
            let Some(lines) = self.0.get(family.name) else { continue };
            let kind = if family.shape == Shape::Counter { "counter" } else { "gauge" };
            let _ = write!(text, "# HELP {0} {1}\n# TYPE {0} {kind}\n{lines}\n", family.name, family.help);
        }
    }
}

/// Labels as they stand between the braces.
pub(super) fn written<const N: usize>(family: &Family<N>, values: &[&str; N], more: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in family.labels.iter().zip(values).chain(more.iter().map(|(name, value)| (name, value))) {
        write_label(&mut text, name, value);
    }
    text
}

/// Adds one label, after a comma if it is not the first.
pub(super) fn write_label(text: &mut String, name: &str, value: &str) {
    let comma = if text.is_empty() { "" } else { "," };
    let value = clean(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let _ = write!(text, "{comma}{name}=\"{value}\"");
}

/// A label or resource name as part of a metric: what is no letter or digit becomes an underscore.
pub(super) fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
