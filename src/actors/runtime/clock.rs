//! The only wall clock in the house.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time: the machine's, or in a simulation a made-up one that moves with tokio's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    Machine,
    Simulated { base: Timestamp, started: Instant },
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock that shows `base` now and from then on moves with tokio's clock.
    pub fn simulated(base: Timestamp) -> Self {
        Self(Source::Simulated { base, started: Instant::now() })
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
            Source::Simulated { base, started } => {
                base + SignedDuration::try_from(started.elapsed()).unwrap_or(SignedDuration::MAX)
            }
        }
    }

    /// How long it is until a moment; nothing left when it has passed.
    pub fn until(&self, moment: Timestamp) -> Duration {
        Duration::try_from(moment.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }
}
