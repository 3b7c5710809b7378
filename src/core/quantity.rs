//! Kubernetes quantities: the whole grammar, exact to a billionth.
//!
//! Grammar: an optional sign, decimal digits with an optional point, and a suffix: `n u m k M G T P E`, `Ki Mi Gi Ti Pi Ei`, or
//! `e`/`E` with a signed integer. As in Kubernetes, finer parts than a billionth are rounded up (away from zero), and magnitudes
//! beyond 2⁶³−1 are capped there.

use std::fmt;

/// Billionths in one.
const NANO: i128 = 1_000_000_000;
/// The largest magnitude, in billionths: Kubernetes caps quantities at 2⁶³−1.
const CAP: i128 = i64::MAX as i128 * NANO;

/// How a quantity was written, and so how it is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `Ki`, `Mi`, ...
    Binary,
    /// `m`, `k`, `M`, ...
    Decimal,
    /// `e3`, `E6`, ...
    Exponent,
}

/// An exact amount. Equality and order are those of the amount, whatever the notation.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is not a quantity: {problem}; write for instance 100m, 1.5, 2Gi or 1e3")]
pub struct NotAQuantity {
    text: String,
    problem: &'static str,
}

impl Quantity {
    /// An amount in thousandths, to be printed in the given format.
    pub fn from_milli(milli: i64, format: Format) -> Self {
        Self { nanos: i128::from(milli) * (NANO / 1000), format }
    }

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, NotAQuantity> {
        let wrong = |problem| NotAQuantity { text: text.to_owned(), problem };
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text.as_bytes()[1..]),
            Some(b'+') => (false, &text.as_bytes()[1..]),
            _ => (false, text.as_bytes()),
        };
        let end = unsigned.iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = match number.iter().position(|b| *b == b'.') {
            Some(point) => (&number[..point], &number[point + 1..]),
            None => (number, &[][..]),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(wrong("it has no digits"));
        }
        if fraction.contains(&b'.') {
            return Err(wrong("it has two decimal points"));
        }
        let (scale, format) = scale(suffix).ok_or_else(|| wrong("its suffix is unknown"))?;
        let nanos = magnitude(whole, fraction, scale);
        Ok(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    /// The amount in thousandths, rounded up: how requests are counted. Saturates at the ends of `i64`.
    pub fn milli_up(self) -> i64 {
        let milli = self.nanos.div_euclid(NANO / 1000) + i128::from(self.nanos.rem_euclid(NANO / 1000) != 0);
        i64::try_from(milli).unwrap_or(if milli < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount in thousandths, rounded down: how capacities are counted. Saturates at the ends of `i64`.
    pub fn milli_down(self) -> i64 {
        let milli = self.nanos.div_euclid(NANO / 1000);
        i64::try_from(milli).unwrap_or(if milli < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount as a floating-point number, for reports.
    pub fn approximate(self) -> f64 {
        self.nanos as f64 / NANO as f64
    }

    /// Whether the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    /// Two to this power.
    Two(u32),
    /// Ten to this power.
    Ten(i64),
}

fn scale(suffix: &[u8]) -> Option<(Scale, Format)> {
    let decimal = |power| Some((Scale::Ten(power), Format::Decimal));
    let binary = |power| Some((Scale::Two(power), Format::Binary));
    match suffix {
        b"" => decimal(0),
        b"n" => decimal(-9),
        b"u" => decimal(-6),
        b"m" => decimal(-3),
        b"k" => decimal(3),
        b"M" => decimal(6),
        b"G" => decimal(9),
        b"T" => decimal(12),
        b"P" => decimal(15),
        b"E" => decimal(18),
        b"Ki" => binary(10),
        b"Mi" => binary(20),
        b"Gi" => binary(30),
        b"Ti" => binary(40),
        b"Pi" => binary(50),
        b"Ei" => binary(60),
        [b'e' | b'E', power @ ..] => {
            let power: i64 = std::str::from_utf8(power).ok()?.parse().ok()?;
            Some((Scale::Ten(power), Format::Exponent))
        }
        _ => None,
    }
}

/// `whole.fraction × scale` in billionths, rounded up and capped.
fn magnitude(whole: &[u8], fraction: &[u8], scale: Scale) -> i128 {
    let (factor, shift) = match scale {
        Scale::Two(power) => (1_i128 << power, 9),
        Scale::Ten(power) => (1, power.saturating_add(9)),
    };
    // The digits are taken as one integer with the decimal point `fraction.len()` places from the right, then moved to
    // billionths. Beyond 38 digits an i128 is full: what overflows on the left is capped, what is lost on the right rounds up.
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let mut mantissa: i128 = 0;
    let mut dropped: i64 = 0;
    let mut lost = false;
    for digit in whole.iter().chain(fraction).map(|b| i128::from(b - b'0')) {
        match mantissa.checked_mul(10).and_then(|m| m.checked_add(digit)).filter(|m| m.checked_mul(factor).is_some()) {
            Some(more) if dropped == 0 => mantissa = more,
            _ => {
                dropped += 1;
                lost |= digit != 0;
            }
        }
    }
    let mut value = mantissa * factor;
    let mut power = shift.saturating_sub(places).saturating_add(dropped);
    while power > 0 && value != 0 {
        value = match value.checked_mul(10) {
            Some(more) if more <= CAP => more,
            _ => return CAP,
        };
        power -= 1;
    }
    while power < 0 && value != 0 {
        lost |= value % 10 != 0;
        value /= 10;
        power += 1;
    }
    // Something non-zero that vanished altogether still counts as one billionth.
    (value + i128::from(lost)).min(CAP)
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Prints the canonical form: no fraction, the largest suffix that needs none. Binary amounts below 1,024 or with a fraction are
/// printed as decimal ones, as Kubernetes does.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && self.nanos % NANO == 0 && self.nanos.abs() >= 1024 * NANO {
            let mut value = self.nanos / NANO;
            let mut step = 0;
            while value % 1024 == 0 && step + 1 < BINARY.len() {
                value /= 1024;
                step += 1;
            }
            return write!(f, "{value}{}", BINARY[step]);
        }
        let mut value = self.nanos;
        let mut step = 0;
        while value % 1000 == 0 && step + 1 < DECIMAL.len() {
            value /= 1000;
            step += 1;
        }
        let power = i32::try_from(step).unwrap_or(0) * 3 - 9;
        match self.format {
            Format::Exponent if power != 0 => write!(f, "{value}e{power}"),
            Format::Exponent => write!(f, "{value}"),
            Format::Binary | Format::Decimal => write!(f, "{value}{}", DECIMAL[step]),
        }
    }
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
