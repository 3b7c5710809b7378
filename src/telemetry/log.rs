//! Log lines: JSON in the shape of Karpenter's, or short lines for people at a terminal.
//!
//! A JSON line has the keys `level` (upper case), `time` (ISO 8601 with milliseconds), `logger`, `message`, `commit` if it is known, then the
//! event's fields; with level `debug` also `caller`. Of equal messages within a second, the first hundred are written and then every hundredth.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Lines of one message that are written in a second before sampling sets in; zap's in Karpenter.
const SAMPLE_FIRST: u32 = 100;
/// From then on, one of so many is written.
const SAMPLE_THEN: u32 = 100;
/// Messages that are counted apart; two that fall on one place are counted together.
const SAMPLE_PLACES: usize = 4096;

/// How much is logged (`LOG_LEVEL`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// Everything of joiner's own.
    Debug,
    /// What an operator wants to see.
    #[default]
    Info,
    /// Failures only.
    Error,
}

/// Where lines go (one of `LOG_OUTPUT_PATHS`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File(PathBuf),
}

impl Output {
    fn open(&self) -> Result<Box<dyn Write + Send>, Error> {
        Ok(match self {
            Self::Stdout => Box::new(std::io::stdout()),
            Self::Stderr => Box::new(std::io::stderr()),
            Self::File(path) => {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                Box::new(file.map_err(|source| Error::Open { path: path.clone(), source })?)
            }
        })
    }
}

/// What lines look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One JSON object a line, with the commit joiner was built from if it is known.
    Json {
        /// Value of the key `commit`.
        commit: Option<&'static str>,
    },
    /// For people.
    Human {
        /// Whether the terminal takes colours.
        colour: bool,
    },
}

/// Tells the time that lines carry; in a simulation it is the simulated one.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An output cannot be opened.
    #[error("cannot open log output {path}: {source}; change LOG_OUTPUT_PATHS / --log-output-paths")]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Logging was set up before.
    #[error("logging is already set up in this process")]
    Twice,
}

/// Sets up logging for the whole process, panics included.
pub fn install(level: Level, format: Format, outputs: &[Output], now: Now) -> Result<(), Error> {
    let sinks = outputs.iter().map(Output::open).collect::<Result<Vec<_>, _>>()?;
    tracing::subscriber::set_global_default(subscriber(level, format, sinks, now)).map_err(|_| Error::Twice)?;
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(target: "joiner::panic", panic = panic.payload_as_str().unwrap_or("(no text)"), location, "panicked");
    }));
    Ok(())
}

/// An error with its causes, each said once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            let _ = write!(text, ": {words}");
        }
        cause = error.source();
    }
    text
}

fn subscriber(
    level: Level,
    format: Format,
    sinks: Vec<Box<dyn Write + Send>>,
    now: Now,
) -> impl Subscriber + Send + Sync {
    // The API client returns its failures, and whoever asked says them, once and in words: its own lines, one an attempt, are for debugging.
    let (own, others, client) = match level {
        Level::Debug => (LevelFilter::DEBUG, LevelFilter::INFO, LevelFilter::INFO),
        Level::Info => (LevelFilter::INFO, LevelFilter::INFO, LevelFilter::OFF),
        Level::Error => (LevelFilter::ERROR, LevelFilter::ERROR, LevelFilter::OFF),
    };
    let lines = Lines {
        format,
        callers: level == Level::Debug,
        now,
        out: Mutex::new(Out { sinks, sampler: Sampler { places: vec![(0, 0); SAMPLE_PLACES] } }),
    };
    let filter = Targets::new()
        .with_target("joiner", own)
        .with_target("kube_client", client)
        .with_target("kube_runtime", client)
        .with_default(others);
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

/// Writes one line per event.
struct Lines {
    format: Format,
    callers: bool,
    now: Now,
    out: Mutex<Out>,
}

struct Out {
    sinks: Vec<Box<dyn Write + Send>>,
    sampler: Sampler,
}

/// Counts equal messages.
struct Sampler {
    /// Second, and messages in it.
    places: Vec<(i64, u32)>,
}

impl Sampler {
    fn admits(&mut self, level: tracing::Level, message: &str, second: i64) -> bool {
        let mut hasher = rustc_hash::FxHasher::default();
        (level, message).hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % SAMPLE_PLACES as u64).unwrap_or(0);
        let (counted, count) = &mut self.places[place];
        if *counted != second {
            (*counted, *count) = (second, 0);
        }
        *count = count.saturating_add(1);
        *count <= SAMPLE_FIRST || (*count - SAMPLE_FIRST).is_multiple_of(SAMPLE_THEN)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // The actor library's own span carries a number that says nothing to people.
        if attributes.metadata().target().starts_with("ractor") {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                for (name, value) in &outer.named {
                    fields.put(name, value.clone());
                }
            }
        }
        event.record(&mut fields);
        let now = (self.now)();
        let metadata = event.metadata();
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if !out.sampler.admits(*metadata.level(), &fields.message, now.as_second()) {
            return;
        }
        let line = match self.format {
            Format::Json { commit } => self.json(metadata, now, commit, &fields),
            Format::Human { colour } => human(metadata, now, colour, &fields),
        };
        for sink in &mut out.sinks {
            // A log that cannot be written has nowhere to say so.
            let _ = sink.write_all(line.as_bytes()).and_then(|()| sink.flush());
        }
    }
}

impl Lines {
    fn json(&self, metadata: &Metadata<'_>, now: Timestamp, commit: Option<&str>, fields: &Fields) -> String {
        let target = metadata.target();
        let own = target == "joiner" || target.starts_with("joiner::");
        let mut line = String::from("{");
        let mut put = |key: &str, value: &Value| {
            let comma = if line.len() > 1 { "," } else { "" };
            let _ = write!(line, "{comma}{}:{value}", Value::from(key));
        };
        put("level", &metadata.level().as_str().into());
        put("time", &format!("{now:.3}").into());
        put("logger", &if own { "controller" } else { target }.into());
        if self.callers
            && let (Some(file), Some(number)) = (metadata.file(), metadata.line())
        {
            let short: Vec<&str> = file.rsplitn(3, '/').take(2).collect();
            put("caller", &format!("{}:{number}", short.into_iter().rev().collect::<Vec<_>>().join("/")).into());
        }
        put("message", &fields.message.as_str().into());
        if let Some(commit) = commit {
            put("commit", &commit.into());
        }
        for (name, value) in &fields.named {
            // A field must not shadow a key that every line has.
            let own_key = matches!(*name, "level" | "time" | "logger" | "caller" | "message" | "commit");
            put(&if own_key { format!("{name}_") } else { (*name).to_owned() }, value);
        }
        line.push_str("}\n");
        line
    }
}

fn human(metadata: &Metadata<'_>, now: Timestamp, colour: bool, fields: &Fields) -> String {
    let paint = |code: &str, text: &str| {
        if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let code = match *metadata.level() {
        tracing::Level::ERROR => "1;31",
        tracing::Level::WARN => "1;33",
        tracing::Level::INFO => "32",
        _ => "2",
    };
    let time = now.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M:%S%.3f").to_string();
    let level = format!("{:5}", metadata.level().as_str());
    let mut line = format!("{} {} {}", paint("2", &time), paint(code, &level), fields.message);
    for (name, value) in &fields.named {
        let text = match value {
            Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '=']) => text.clone(),
            other => other.to_string(),
        };
        let _ = write!(line, " {}{text}", paint("2", &format!("{name}=")));
    }
    line.push('\n');
    line
}

/// The fields of an event or span, in order; a field that comes again replaces the former.
#[derive(Default)]
struct Fields {
    message: String,
    named: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, name: &'static str, value: Value) {
        match self.named.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.named.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.put(field.name(), format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.put(field.name(), value.into());
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field.name(), chain(value).into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }
}

/// Prices in log lines have as many digits as people read.
pub fn rounded(price: f64) -> f64 {
    (price * 1e4).round() / 1e4
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
