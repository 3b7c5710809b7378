//! Counters of one place in the actor tree; they outlive the instances that fill it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Counts what goes through one place in the tree.
#[derive(Debug)]
pub struct Meter {
    made: Instant,
    sent: AtomicU64,
    handled: AtomicU64,
    dropped: AtomicU64,
    folded: AtomicU64,
    busy_nanos: AtomicU64,
    restarts: AtomicU64,
    waiting: AtomicU64,
    /// When the last message was handled, or the first of those that wait came into an empty mailbox; milliseconds after it was made.
    stirred: AtomicU64,
    last_error: Mutex<Option<(Timestamp, String)>>,
    /// When the computations under way began.
    computations: Mutex<Vec<Instant>>,
}

/// A computation that is under way until this is dropped.
#[derive(Debug)]
pub struct Computation {
    meter: Arc<Meter>,
    began: Instant,
}

impl Drop for Computation {
    fn drop(&mut self) {
        let mut all = self.meter.computations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|began| *began == self.began) {
            all.remove(at);
        }
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            made: Instant::now(),
            sent: AtomicU64::default(),
            handled: AtomicU64::default(),
            dropped: AtomicU64::default(),
            folded: AtomicU64::default(),
            busy_nanos: AtomicU64::default(),
            restarts: AtomicU64::default(),
            waiting: AtomicU64::default(),
            stirred: AtomicU64::default(),
            last_error: Mutex::default(),
            computations: Mutex::default(),
        }
    }
}

impl Meter {
    /// A message was put into the mailbox.
    pub fn sent(&self) {
        self.sent.fetch_add(1, Relaxed);
        if self.waiting.fetch_add(1, Relaxed) == 0 {
            self.stir();
        }
    }

    fn stir(&self) {
        let passed = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.stirred.store(passed, Relaxed);
    }

    /// A message had nobody to go to.
    pub fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// A nudge said what another says that waits already.
    pub fn folded(&self) {
        self.folded.fetch_add(1, Relaxed);
    }

    /// A message was handled, or the attempt ended the actor.
    pub fn handled(&self, took: Duration) {
        self.handled.fetch_add(1, Relaxed);
        self.busy_nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.unsent();
        self.stir();
    }

    /// One message less waits: it was handled, or there is no mailbox any more that it could have come into.
    pub fn unsent(&self) {
        let _ = self.waiting.fetch_update(Relaxed, Relaxed, |waiting| Some(waiting.saturating_sub(1)));
    }

    /// A new instance begins with an empty mailbox.
    pub fn emptied(&self) {
        self.waiting.store(0, Relaxed);
    }

    /// The instance ended badly and another takes its place.
    pub fn restarted(&self, at: Timestamp, error: &str) {
        self.restarts.fetch_add(1, Relaxed);
        self.failed(at, error);
    }

    /// Something went wrong that is worth showing.
    pub fn failed(&self, at: Timestamp, error: &str) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, error.to_owned()));
    }

    /// Messages that wait in the mailbox.
    pub fn depth(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// For how long messages wait, the one being handled among them, and none was done with; nothing when none waits.
    pub fn stands_still(&self) -> Option<Duration> {
        let stirred = Duration::from_millis(self.stirred.load(Relaxed));
        (self.depth() > 0).then(|| self.made.elapsed().saturating_sub(stirred))
    }

    /// A computation begins beside the actor.
    pub fn computes(self: &Arc<Self>) -> Computation {
        let began = Instant::now();
        self.computations.lock().unwrap_or_else(PoisonError::into_inner).push(began);
        Computation { meter: Arc::clone(self), began }
    }

    /// For how long the oldest computation beside the actor has been under way; nothing when there is none.
    pub fn computing_for(&self) -> Option<Duration> {
        let all = self.computations.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().min().map(Instant::elapsed)
    }

    /// Messages handled since the place was made.
    pub fn handled_total(&self) -> u64 {
        self.handled.load(Relaxed)
    }

    /// Messages that had nobody to go to.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Nudges that said what another said that waited already.
    pub fn folded_total(&self) -> u64 {
        self.folded.load(Relaxed)
    }

    /// Time spent in handlers.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Relaxed))
    }

    /// How often an instance was replaced.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// The last thing that went wrong, and when.
    pub fn last_error(&self) -> Option<(Timestamp, String)> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
