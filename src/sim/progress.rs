//! How far a rehearsal is: a bar on a terminal, lines elsewhere, or nothing.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::figures;

/// Parts of the whole that a bar counts in.
const PARTS: u64 = 1000;

/// When progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// If standard error is a terminal.
    Auto,
    /// In any case; without a terminal as a line at each tenth.
    Always,
    /// Never.
    Never,
}

/// Where a rehearsal stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Standing {
    /// Simulated time that has passed.
    pub at: Duration,
    /// Simulated time at which it will end, if that is known.
    pub until: Option<Duration>,
    /// Pods that were bound so far.
    pub bound: u64,
    /// Pods that there will be, as far as is known.
    pub pods: u64,
    /// Nodes now.
    pub nodes: u64,
    /// Price of the machines now, in USD per hour.
    pub price_per_hour: f64,
}

impl Standing {
    /// How much is done, in parts of [`PARTS`]: of the time if its end is known, else of the pods.
    fn parts(&self) -> u64 {
        let share = match self.until {
            Some(until) if !until.is_zero() => self.at.as_secs_f64() / until.as_secs_f64(),
            Some(_) => 1.0,
            None if self.pods == 0 => 0.0,
            None => self.bound as f64 / self.pods as f64,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000")]
        let parts = (share.clamp(0.0, 1.0) * PARTS as f64) as u64;
        parts
    }

    fn words(&self) -> String {
        let until = self.until.map_or_else(String::new, |until| format!(" of {}", figures::span(until.as_secs_f64())));
        format!(
            "{}{until} | {}/{} pods bound | {} nodes | {}/h",
            figures::span(self.at.as_secs_f64()),
            figures::count(self.bound),
            figures::count(self.pods),
            figures::count(self.nodes),
            figures::dollars(self.price_per_hour)
        )
    }
}

/// Shows where a rehearsal stands.
pub struct Progress(Show);

enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines { to: Box<dyn Write + Send>, tenths: Option<u64> },
}

impl Progress {
    /// Progress on standard error.
    pub fn on_stderr(when: When) -> Self {
        let stderr = std::io::stderr();
        match (when, stderr.is_terminal()) {
            (When::Never, _) | (When::Auto, false) => Self(Show::Nothing),
            (When::Always, false) => Self::lines(Box::new(stderr)),
            (When::Auto | When::Always, true) => {
                let bar = ProgressBar::with_draw_target(Some(PARTS), ProgressDrawTarget::stderr());
                // The template is a constant that a test parses.
                if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                    bar.set_style(style);
                }
                Self(Show::Bar(bar))
            }
        }
    }

    fn lines(to: Box<dyn Write + Send>) -> Self {
        Self(Show::Lines { to, tenths: None })
    }

    /// Says where the rehearsal stands now. Cheap enough to be called often: a bar draws itself at most 20 times a second.
    pub fn update(&mut self, standing: &Standing) {
        match &mut self.0 {
            Show::Nothing => {}
            Show::Bar(bar) => {
                bar.set_message(standing.words());
                bar.set_position(standing.parts());
            }
            Show::Lines { to, tenths } => {
                let now = standing.parts() * 10 / PARTS;
                if *tenths < Some(now) {
                    *tenths = Some(now);
                    // Who does not listen is not to stop the rehearsal.
                    let _ = writeln!(to, "{:3} % | {}", now * 10, standing.words());
                }
            }
        }
    }

    /// Takes the bar away, so that the summary has the terminal for itself.
    pub fn finish(self) {
        if let Show::Bar(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}

/// The look of the bar.
const TEMPLATE: &str = "{bar:30} {percent:>3} % | {msg}";

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
