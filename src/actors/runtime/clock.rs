//! The only wall clock in the house.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::core::steady::{BELIEVED_AFTER, Steady};

/// Tells the time: the machine's, or in a simulation a made-up one that moves with tokio's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// What was told so far, where jumps are not followed at once.
    steady: Option<&'static Doubt>,
}

/// Looks at the clock that nobody sets, and at what came of that.
#[derive(Debug)]
struct Doubt {
    started: Instant,
    steady: Mutex<Steady>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Machine,
    Simulated { base: Timestamp, started: Instant, wrong_by: Option<&'static AtomicI64> },
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self { source: Source::Machine, steady: None }
    }

    /// A clock that shows `base` now and from then on moves with tokio's clock.
    pub fn simulated(base: Timestamp) -> Self {
        Self { source: Source::Simulated { base, started: Instant::now(), wrong_by: None }, steady: None }
    }

    /// The same clock, wrong by as many milliseconds as somebody sets, from one moment to the next: that of a machine whose time is set by
    /// hand or jumps. The machine's own clock is left as it is.
    #[must_use]
    pub fn that_jumps(self, wrong_by: &'static AtomicI64) -> Self {
        match self.source {
            Source::Machine => self,
            Source::Simulated { base, started, .. } => {
                Self { source: Source::Simulated { base, started, wrong_by: Some(wrong_by) }, ..self }
            }
        }
    }

    /// The same clock, which follows no jump ahead before it has stayed there for a while: see [`crate::core::steady`]. To be asked for once a joiner, as
    /// a few bytes of it stay.
    #[must_use]
    pub fn careful(self) -> Self {
        let doubt = Doubt { started: Instant::now(), steady: Mutex::default() };
        Self { steady: Some(Box::leak(Box::new(doubt))), ..self }
    }

    /// Whether time is made up: then nothing may run on other threads, or histories would not repeat.
    pub fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulated { .. })
    }

    /// The time now, as far as it is believed.
    pub fn now(&self) -> Timestamp {
        let Some(doubt) = self.steady else { return self.shown() };
        let mut steady = doubt.steady.lock().unwrap_or_else(PoisonError::into_inner);
        let told = steady.tell(doubt.started.elapsed(), self.shown());
        drop(steady);
        if let Some(jumped) = told.jumped {
            let seconds = jumped.as_secs();
            let hours = BELIEVED_AFTER.as_secs() / 3600;
            tracing::warn!(
                seconds,
                "the clock has jumped; where it is ahead, it is believed after it has stayed there for {hours} h"
            );
        }
        told.time
    }

    /// What the clock shows.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn shown(&self) -> Timestamp {
        match self.source {
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
