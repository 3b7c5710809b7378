//! Axes: round numbers to mark, and words for them.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::sim::figures;

/// An axis from one end to the other with its marks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Axis {
    /// First and last value.
    pub(super) ends: (f64, f64),
    /// Marked values with their words.
    pub(super) marks: Vec<(f64, String)>,
    /// What it measures, with its unit.
    pub(super) title: String,
}

/// An axis is what plotters calls a coordinate: it knows its marks and their words.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.marks.iter().map(|mark| mark.0).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let near = |mark: &&(f64, String)| (mark.0 - value).abs() <= 1e-9 * (self.ends.1 - self.ends.0).abs();
        self.marks.iter().find(near).map(|mark| mark.1.clone()).unwrap_or_default()
    }
}

/// Steps of a time axis: largest span, unit in seconds, its name, steps in that unit.
const CLOCK: [(f64, f64, &str, &[f64]); 4] = [
    (180.0, 1.0, "s", &[1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0]),
    (3.0 * 3600.0, 60.0, "min", &[1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0]),
    (72.0 * 3600.0, 3600.0, "h", &[0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0]),
    (f64::INFINITY, 86_400.0, "d", &[0.5, 1.0, 2.0, 5.0, 7.0, 14.0, 28.0, 56.0, 112.0]),
];

/// Time since the start, over a span of seconds.
pub(super) fn time(span: f64) -> Axis {
    let span = if span > 0.0 { span } else { 1.0 };
    let (_, unit, name, steps) = CLOCK.into_iter().find(|row| span <= row.0).unwrap_or(CLOCK[3]);
    let long = span / unit;
    let step = steps.iter().copied().find(|step| long / step <= 12.0).unwrap_or_else(|| round_step(long, 12.0));
    let marks = multiples(step, long).map(|at| (at * unit, plain(at, step))).collect();
    Axis { ends: (0.0, span), marks, title: format!("time since start [{name}]") }
}

/// Amounts from zero to `most`, marked in whole numbers if they are counts.
pub(super) fn amount(most: f64, title: &str, counts: bool, words: impl Fn(f64) -> String) -> Axis {
    let most = if most > 0.0 { most * 1.05 } else { 1.0 };
    let step = round_step(most, 6.0);
    let step = if counts { step.max(1.0) } else { step };
    let marks = multiples(step, most).map(|at| (at, words(at))).collect();
    Axis { ends: (0.0, most), marks, title: title.to_owned() }
}

/// Counts from zero to `most`.
pub(super) fn counts(most: f64, title: &str) -> Axis {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "marks of counts are small whole numbers"
    )]
    amount(most, title, true, |at| figures::count(at as u64))
}

/// Amounts from zero to `most` with as many decimals as their step needs.
pub(super) fn decimals(most: f64, title: &str) -> Axis {
    let step = round_step(most * 1.05, 6.0);
    amount(most, title, false, |at| plain(at, step))
}

/// Marks of a waiting time: what people count in.
const WAITS: [f64; 19] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 18_000.0, 43_200.0,
    86_400.0, 604_800.0,
];

/// The least wait that is told from none, in seconds.
const LEAST_WAIT: f64 = 0.1;

/// The place of a waiting time on a logarithmic axis.
pub(super) fn log(seconds: f64) -> f64 {
    seconds.max(LEAST_WAIT).log10()
}

/// Waiting times from `least` to `most` seconds, logarithmic: a few pods often wait a hundred times longer than the others.
pub(super) fn waits(least: f64, most: f64) -> Axis {
    let low = WAITS.iter().rev().copied().find(|mark| *mark <= least.max(LEAST_WAIT)).unwrap_or(LEAST_WAIT);
    let high = WAITS.iter().copied().find(|mark| *mark >= most && *mark > low).unwrap_or_else(|| most.max(low * 2.0));
    let marks = WAITS.iter().filter(|mark| **mark >= low && **mark <= high);
    let marks = marks.map(|mark| (log(*mark), figures::span(*mark))).collect();
    Axis { ends: (log(low), log(high)), marks, title: "wait from creation to binding [logarithmic]".to_owned() }
}

/// The smallest of 1, 2, 5 times a power of ten that divides `span` into at most `parts`.
fn round_step(span: f64, parts: f64) -> f64 {
    let raw = (span / parts).max(1e-9);
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= raw * (1.0 - 1e-9)).unwrap_or(raw)
}

fn multiples(step: f64, most: f64) -> impl Iterator<Item = f64> {
    (0_u32..).map(move |at| f64::from(at) * step).take_while(move |at| *at <= most * (1.0 + 1e-9))
}

/// A number with as many decimals as tell neighbours at this step apart.
fn plain(number: f64, step: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 12")]
    let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{number:.digits$}")
}
