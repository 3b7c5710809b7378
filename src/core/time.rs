//! Times and durations as annotations and manifests write them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A time as Kubernetes writes it: RFC 3339, UTC, whole seconds.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A moment later by a duration; the end of time when that is beyond it.
pub fn later(moment: Timestamp, by: Duration) -> Timestamp {
    moment.saturating_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}

/// Reads a duration in Go's notation (`1h30m`, `1.5h`, `300ms`), as annotations carry it; nothing when it is none or is negative.
pub fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        nanos = nanos.checked_add(scaled(number, unit)?)?;
        rest = tail;
    }
    // Go holds a duration in an i64 of nanoseconds.
    i64::try_from(nanos).ok().map(|nanos| Duration::from_nanos(nanos.unsigned_abs()))
}

/// A decimal number of units, in nanoseconds.
fn scaled(number: &str, unit: &str) -> Option<u128> {
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits beyond the fifteenth are below a nanosecond even for hours.
    let digits: String = fraction.chars().take(15).collect();
    let part: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    whole.checked_mul(unit)?.checked_add(part * unit / scale)
}

/// Writes a duration as the schemas want it: whole hours, minutes and seconds, such as `1h30m`.
pub fn manifest_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let mut text = String::new();
    for (count, unit) in [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')] {
        if count > 0 {
            text.push_str(&count.to_string());
            text.push(unit);
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
