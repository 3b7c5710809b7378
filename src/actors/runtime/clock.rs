//! The only wall clock in the house.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time: the machine's, or in a simulation a made-up one that moves with tokio's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    Machine,
    Simulated { base: Timestamp, started: Instant, wrong_by: Option<&'static AtomicI64> },
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock that shows `base` now and from then on moves with tokio's clock.
    pub fn simulated(base: Timestamp) -> Self {
        Self(Source::Simulated { base, started: Instant::now(), wrong_by: None })
    }

    /// The same clock, wrong by as many milliseconds as somebody sets, from one moment to the next: that of a machine whose time is set by
    /// hand or jumps. The machine's own clock is left as it is.
    #[must_use]
    pub fn that_jumps(self, wrong_by: &'static AtomicI64) -> Self {
        match self.0 {
            Source::Machine => self,
            Source::Simulated { base, started, .. } => {
                Self(Source::Simulated { base, started, wrong_by: Some(wrong_by) })
            }
        }
    }

    /// Whether time is made up: then nothing may run on other threads, or histories would not repeat.
    pub fn is_simulated(&self) -> bool {
        matches!(self.0, Source::Simulated { .. })
    }

    /// The time now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn now(&self) -> Timestamp {
        match self.0 {
            Source::Machine => Timestamp::now(),
            Source::Simulated { base, started, wrong_by } => {
                let passed = SignedDuration::try_from(started.elapsed()).unwrap_or(SignedDuration::MAX);
                let wrong = wrong_by.map_or(0, |by| by.load(Ordering::Relaxed));
                base + passed + SignedDuration::from_millis(wrong)
            }
        }
    }

    /// How long it is until a moment; nothing left when it has passed.
    pub fn until(&self, moment: Timestamp) -> Duration {
        Duration::try_from(moment.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }
}
