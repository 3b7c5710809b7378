//! Durations as manifests write them: groups of hours, minutes and seconds, or `Never`.

use std::fmt;
use std::time::Duration;

/// The longest duration that Go, and so Karpenter, can hold: `i64::MAX` nanoseconds, about 292 years.
const LONGEST: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// A duration that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    /// The path of the field, from the object's root.
    pub field: String,
    /// What the field holds.
    pub text: String,
    /// Whether the field may say `Never`.
    pub never_allowed: bool,
}

impl DurationError {
    /// What is wrong and how to put it right, without the field.
    pub fn remedy(&self) -> String {
        let never = if self.never_allowed { ", or Never" } else { "" };
        format!(
            "{:?} is not a duration; write whole hours, minutes and seconds of at most 292 years, such as 720h or 1h30m{never}",
            self.text
        )
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.remedy())
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration such as `1h30m`.
///
/// Exactly what the schemas admit: one or more groups of digits and a unit (`h`, `m`, `s`), in any order, which
/// add up. A bare `0` is refused like any other number without a unit.
pub fn parse(field: &str, text: &str) -> Result<Duration, DurationError> {
    groups(text).ok_or_else(|| DurationError { field: field.to_owned(), text: text.to_owned(), never_allowed: false })
}

/// Reads a duration or `Never`, which is `None`.
pub fn parse_nillable(field: &str, text: &str) -> Result<Option<Duration>, DurationError> {
    if text == "Never" {
        return Ok(None);
    }
    parse(field, text).map(Some).map_err(|error| DurationError { never_allowed: true, ..error })
}

/// Reads a duration that may be absent.
pub fn parse_optional(field: &str, text: Option<&str>) -> Result<Option<Duration>, DurationError> {
    text.map(|text| parse(field, text)).transpose()
}

fn groups(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    let mut count: Option<u64> = None;
    for byte in text.bytes() {
        if byte.is_ascii_digit() {
            count = Some(count.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(byte - b'0'))?);
            continue;
        }
        let unit: u64 = match byte {
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        let seconds = count.take()?.checked_mul(unit)?;
        total = total.checked_add(Duration::from_secs(seconds))?;
    }
    (count.is_none() && total <= LONGEST).then_some(total)
}

#[cfg(test)]
#[path = "duration_tests.rs"]
mod tests;
