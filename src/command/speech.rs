//! How a process speaks: log lines and metrics, set up once at its start.

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Result;

use crate::actors::runtime::Clock;
use crate::config::{LogLevel, LogOutput, Settings};
use crate::telemetry::log::{self, Format, Level, Output};
use crate::telemetry::metrics::Exporter;

/// Sets up log lines and metrics for the whole process.
pub(super) fn set_up(settings: &Settings, for_people: bool, clock: Clock) -> Result<Exporter> {
    let level = match settings.log_level {
        LogLevel::Debug => Level::Debug,
        LogLevel::Info => Level::Info,
        LogLevel::Error => Level::Error,
    };
    let outputs: Vec<Output> = settings
        .log_outputs
        .iter()
        .map(|output| match output {
            LogOutput::Stdout => Output::Stdout,
            LogOutput::Stderr => Output::Stderr,
            LogOutput::File(path) => Output::File(path.clone()),
        })
        .collect();
    let format = if for_people {
        Format::Human { colour: std::io::stdout().is_terminal() }
    } else {
        Format::Json { commit: option_env!("JOINER_COMMIT") }
    };
    log::install(level, format, &outputs, Arc::new(move || clock.now()))?;
    let exporter = Exporter::install()?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    Ok(exporter)
}
