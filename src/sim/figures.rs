//! How numbers are written for people.

use jiff::SignedDuration;

/// A count with its thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of things: `1 node`, `2 nodes`.
pub fn counted(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// An amount of money: `$1,234.56`, with more digits below ten cents.
pub fn dollars(amount: f64) -> String {
    if amount != 0.0 && amount.abs() < 0.1 {
        return format!("${amount:.4}");
    }
    let text = format!("{:.2}", amount.abs());
    let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{}${whole}.{cents}", if amount < 0.0 { "-" } else { "" })
}

/// A time span: `0.4s`, `52s`, `6h 12m`. Seconds are left out from an hour on.
pub fn span(seconds: f64) -> String {
    if seconds < 10.0 && seconds.fract() > 0.05 {
        return format!("{seconds:.1}s");
    }
    let Ok(exact) = SignedDuration::try_from_secs_f64(seconds.round()) else { return "very long".to_owned() };
    let days = exact.as_hours() / 24;
    let rest = exact - SignedDuration::from_hours(days * 24);
    let rest = match rest.as_secs() {
        long if exact.as_secs() >= 3600 => SignedDuration::from_secs(long / 60 * 60),
        short => SignedDuration::from_secs(short),
    };
    match (days, rest.is_zero()) {
        (0, _) => format!("{rest:#}"),
        (days, true) => format!("{days}d"),
        (days, false) => format!("{days}d {rest:#}"),
    }
}

/// An amount of memory: `96.0 MiB`.
pub fn bytes(amount: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = amount;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{scaled:.0} B") } else { format!("{scaled:.1} {}", units[unit]) }
}

/// A share of a whole: `97 %`; nothing of nothing is nothing.
pub fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0} %", 100.0 * part / whole) } else { "–".to_owned() }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
