//! Where figures are kept, and how they become text.
//!
//! Counters, histograms and summaries live in the `metrics` crate's Prometheus recorder. Gauges do not: that recorder can neither delete a
//! series nor count in fractions, so gauges that actors set are kept here, and those that mirror a state are sampled ([`Samples`]).
//! Before [`Exporter::install`] was called, as in simulations, recording costs next to nothing and leads nowhere.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, with_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;

use super::Samples;
use super::families::{FAMILIES, Family, Shape};

/// Quantiles of summaries; Karpenter's.
const QUANTILES: [f64; 5] = [0.0, 0.5, 0.9, 0.99, 1.0];
/// Summaries forget in five steps of two minutes, the ten minutes of Prometheus' Go client.
const SUMMARY_STEP: Duration = Duration::from_mins(2);
/// How many such steps are kept.
const SUMMARY_STEPS: NonZeroU32 = NonZeroU32::new(5).expect("five is not zero");

/// The recorder could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Buckets or quantiles are not acceptable, or there is a recorder already: one process has one.
    #[error("cannot install the metrics recorder: {0}")]
    Recorder(#[from] metrics_exporter_prometheus::BuildError),
}

/// Turns what was recorded and sampled into Prometheus' text format.
#[derive(Clone, Debug)]
pub struct Exporter(PrometheusHandle);

impl Exporter {
    /// From now on everything in this process is recorded.
    pub fn install() -> Result<Self, Error> {
        let handle = builder()?.install_recorder()?;
        with_recorder(describe);
        Ok(Self(handle))
    }

    /// A recorder that is not installed, for tests of one thread.
    #[cfg(test)]
    pub(crate) fn aside() -> Result<(metrics_exporter_prometheus::PrometheusRecorder, Self), Error> {
        let recorder = builder()?.build_recorder();
        describe(&recorder);
        let exporter = Self(recorder.handle());
        Ok((recorder, exporter))
    }

    /// The text of `/metrics`: what was recorded, then what was set, then `samples`.
    pub fn render(&self, mut samples: Samples) -> String {
        for ((name, labels), value) in gauges().iter() {
            samples.line(name, labels, value.now());
        }
        let mut text = self.0.render();
        samples.write(&mut text);
        text
    }

    /// Folds recorded durations into their buckets. Between two calls every single one is kept in memory, so that somebody has to call
    /// this now and then even if nobody reads `/metrics`.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

fn builder() -> Result<PrometheusBuilder, Error> {
    let mut builder = PrometheusBuilder::new()
        .set_quantiles(&QUANTILES)?
        .set_bucket_duration(SUMMARY_STEP)?
        .set_bucket_count(SUMMARY_STEPS);
    for family in FAMILIES {
        if let Shape::Histogram(bounds) = family.shape {
            builder = builder.set_buckets_for_metric(Matcher::Full(family.name.to_owned()), bounds)?;
        }
    }
    Ok(builder)
}

/// Tells a recorder what the families mean.
fn describe(recorder: &dyn metrics::Recorder) {
    for family in FAMILIES {
        let (name, help) = (family.name.into(), family.help.into());
        match family.shape {
            Shape::Counter => recorder.describe_counter(name, None, help),
            Shape::Gauge => recorder.describe_gauge(name, None, help),
            Shape::Histogram(_) | Shape::Summary => recorder.describe_histogram(name, None, help),
        }
    }
}

const METADATA: Metadata<'static> = Metadata::new("joiner", Level::INFO, None);

fn key<const N: usize>(family: &Family<N>, values: &[&str; N], more: &[(&str, &str)]) -> Key {
    let labels = family.labels.iter().zip(values).map(|(name, value)| Label::new(*name, clean(value)));
    let more = more.iter().map(|(name, value)| Label::new((*name).to_owned(), clean(value)));
    Key::from_parts(family.name, labels.chain(more).collect::<Vec<_>>())
}

/// A label value without commas: Karpenter's own test suites split a line's labels at every comma, also inside quotes.
fn clean(value: &str) -> String {
    value.replace(',', ";")
}

/// Adds to a counter.
pub(super) fn count<const N: usize>(family: &Family<N>, values: &[&str; N], by: u64) {
    count_with(family, values, &[], by);
}

/// Adds to a counter, with labels beyond those of the family.
pub(super) fn count_with<const N: usize>(family: &Family<N>, values: &[&str; N], more: &[(&str, &str)], by: u64) {
    with_recorder(|recorder| recorder.register_counter(&key(family, values, more), &METADATA).increment(by));
}

/// Records one duration in a histogram or summary.
pub(super) fn took<const N: usize>(family: &Family<N>, values: &[&str; N], duration: Duration) {
    took_with(family, values, &[], duration);
}

/// Records one duration in a histogram or summary, with labels beyond those of the family.
pub(super) fn took_with<const N: usize>(
    family: &Family<N>,
    values: &[&str; N],
    more: &[(&str, &str)],
    duration: Duration,
) {
    let key = key(family, values, more);
    with_recorder(|recorder| recorder.register_histogram(&key, &METADATA).record(duration.as_secs_f64()));
}

/// What a gauge that was set shows.
#[derive(Clone, Copy, Debug)]
enum Value {
    Fixed(f64),
    Since(Instant),
}

impl Value {
    fn now(self) -> f64 {
        match self {
            Self::Fixed(value) => value,
            Self::Since(moment) => moment.elapsed().as_secs_f64(),
        }
    }
}

/// Gauges that were set: family and written labels, and what they show.
type Gauges = BTreeMap<(&'static str, String), Value>;

fn gauges() -> std::sync::MutexGuard<'static, Gauges> {
    static GAUGES: Mutex<Gauges> = Mutex::new(BTreeMap::new());
    GAUGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a gauge.
pub(super) fn set<const N: usize>(family: &Family<N>, values: &[&str; N], value: f64) {
    gauges().insert((family.name, super::samples::written(family, values, &[])), Value::Fixed(value));
}

/// Lets a gauge show the time since now.
pub(super) fn start<const N: usize>(family: &Family<N>, values: &[&str; N]) {
    started(family, values, Duration::ZERO);
}

/// Lets a gauge show the time since so long ago.
pub(super) fn started<const N: usize>(family: &Family<N>, values: &[&str; N], ago: Duration) {
    let now = Instant::now();
    let moment = Value::Since(now.checked_sub(ago).unwrap_or(now));
    gauges().insert((family.name, super::samples::written(family, values, &[])), moment);
}

/// Takes away all series of a gauge.
pub(super) fn clear_all<const N: usize>(family: &Family<N>) {
    gauges().retain(|(name, _), _| *name != family.name);
}

/// Takes away the series of a gauge whose first label has this value.
pub(super) fn clear<const N: usize>(family: &Family<N>, first: &str) {
    let mut prefix = String::new();
    super::samples::write_label(&mut prefix, family.labels.first().copied().unwrap_or_default(), first);
    gauges().retain(|(name, labels), _| *name != family.name || !labels.starts_with(&prefix));
}
