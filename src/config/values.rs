//! Grammars of single values. Each error says what is accepted.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a port number.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a port number from 0 to 65535 is accepted".to_owned())
}

/// Reads a whole number of at least one.
pub(super) fn positive(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("a whole number from 1 to {} is accepted", u32::MAX)),
    }
}

/// Reads a whole number of any sign.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "a whole number is accepted".to_owned())
}

/// Reads seeds: one, or the first and the last.
pub(super) fn seeds(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.parse(), last.trim_start_matches('=').parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("the first and the last seed are accepted, such as 1..10000".to_owned()),
    }
}

/// Reads a duration as Go writes it (`1h30m`, `1.5s`, `100ms`, `0`).
///
/// The crate's grammar is wider than Go's; what only it knows (spaces, words, ISO 8601) is refused by its letters.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let letters = |c: char| c.is_ascii_digit() || ".hmsuµμn".contains(c);
    let parsed = match text {
        "0" => Some(Duration::ZERO),
        text if text.chars().all(letters) => text.parse::<SignedDuration>().ok().and_then(|d| d.try_into().ok()),
        _ => None,
    };
    parsed.ok_or_else(|| "a duration such as 10s, 1m30s or 500ms is accepted".to_owned())
}

/// Reads a duration that may be negative: `90s`, `-90s`.
pub(super) fn offset(text: &str) -> Result<SignedDuration, String> {
    let wrong = || "a duration such as 90s or -1m30s is accepted".to_owned();
    let (negative, amount) = text.strip_prefix('-').map_or((false, text), |amount| (true, amount));
    let amount = duration(amount).map_err(|_| wrong())?;
    let amount = SignedDuration::try_from(amount).map_err(|_| wrong())?;
    Ok(if negative { -amount } else { amount })
}

/// Reads a truth value with the words of Go's `ParseBool`.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// What [`truth`] accepts, for messages.
pub(super) const TRUTH: &str = "true, false, 1, 0, t or f is accepted";

/// Reads a name that can stand in tags: letters, digits, dots, dashes and underscores.
pub(super) fn mark(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=64).contains(&text.len()) && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("1 to 64 letters, digits, dots, dashes and underscores are accepted".to_owned())
    }
}

/// Reads a part of a whole, such as `0.075`, as thousandths.
pub(super) fn thousandths(text: &str) -> Result<i64, String> {
    match text.parse::<f64>() {
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 500")]
        Ok(part) if (0.0..=0.5).contains(&part) => Ok((part * 1000.0).round() as i64),
        _ => Err("a part from 0 to 0.5 is accepted, such as 0.075".to_owned()),
    }
}
