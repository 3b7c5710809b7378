//! How often each action is called: one bucket of tokens an action, so that a thousand launches in the queue hold up no deletion.
//!
//! The API counts requests a second on the platform, on the account, and on the account and action; it publishes no numbers. The defaults
//! are what Outscale's own components for Kubernetes allow themselves, for each action. Where the API still refuses, the bucket of that
//! action (or every bucket, when the account as a whole is meant) pauses and slows down, and quickens again with every good answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A rate is never slowed down below this part of what is configured.
const SLOWEST: f64 = 0.1;
/// What a throttled answer does to the rate.
const SLOWER: f64 = 0.5;
/// Calls that were under way when the API complained complain as well: a rate is slowed down once in this time.
const AT_MOST_EVERY: Duration = Duration::from_secs(2);
/// What a good answer does to a rate that was slowed down.
const QUICKER: f64 = 1.05;

/// How often an action may be called.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Calls a second in the long run.
    pub per_second: f64,
    /// Calls at once.
    pub burst: u32,
}

impl Rate {
    /// A rate.
    pub fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }
}

/// How often the actions may be called.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// The rate of every action that has none of its own.
    pub each: Rate,
    /// Rates of single actions.
    pub of: BTreeMap<&'static str, Rate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { each: Rate::new(5.0, 10), of: BTreeMap::new() }
    }
}

/// The buckets.
pub(super) struct Turns {
    limits: Limits,
    buckets: Mutex<BTreeMap<&'static str, Bucket>>,
}

struct Bucket {
    configured: Rate,
    /// What is left of the rate, 1 when the API does not complain.
    pace: f64,
    /// When the bucket will be full again.
    full_at: Instant,
    /// When the rate was last slowed down.
    slowed: Option<Instant>,
    /// How often it was.
    complaints: u64,
    /// Calls that were let through.
    sent: u64,
}

impl Bucket {
    fn new(configured: Rate, now: Instant) -> Self {
        Self { configured, pace: 1.0, full_at: now, slowed: None, complaints: 0, sent: 0 }
    }

    fn interval(&self) -> Duration {
        let rate = (self.configured.per_second * self.pace).max(0.001);
        Duration::from_secs_f64(1.0 / rate)
    }
}

impl Turns {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<&'static str, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the action may be called. When that takes longer than `patience`, no turn is taken, and the wait is returned.
    pub(super) async fn wait(&self, action: &'static str, patience: Duration) -> Result<(), Duration> {
        let latest = Instant::now() + patience;
        loop {
            let (turn, complaints) = self.turn(action, latest)?;
            if turn > Instant::now() {
                sleep_until(turn).await;
            }
            // A turn that was given before the API complained is worth nothing after.
            let mut buckets = self.buckets();
            if let Some(bucket) = buckets.get_mut(action).filter(|bucket| bucket.complaints == complaints) {
                bucket.sent += 1;
                return Ok(());
            }
        }
    }

    /// Takes the next turn, unless it comes too late.
    fn turn(&self, action: &'static str, latest: Instant) -> Result<(Instant, u64), Duration> {
        let now = Instant::now();
        let mut buckets = self.buckets();
        let configured = self.limits.of.get(action).copied().unwrap_or(self.limits.each);
        let bucket = buckets.entry(action).or_insert_with(|| Bucket::new(configured, now));
        let interval = bucket.interval();
        let next = bucket.full_at.max(now) + interval;
        let room = interval * bucket.configured.burst.max(1);
        // A full bucket has room for a burst: only what goes beyond it waits.
        let turn = next.checked_sub(room).map_or(now, |turn| turn.max(now));
        if turn > latest {
            return Err(turn - now);
        }
        bucket.full_at = next;
        Ok((turn, bucket.complaints))
    }

    /// The API found that this was too much: of this action, or (`all`) of everything.
    pub(super) fn slow_down(&self, action: &'static str, all: bool, pause: Duration) {
        let now = Instant::now();
        for (name, bucket) in &mut *self.buckets() {
            let recently = bucket.slowed.is_some_and(|at| now < at + AT_MOST_EVERY);
            if (all || *name == action) && !recently {
                bucket.slowed = Some(now);
                bucket.complaints += 1;
                bucket.pace = (bucket.pace * SLOWER).max(SLOWEST);
                let room = bucket.interval() * bucket.configured.burst.max(1);
                // The queue forms anew: nobody's turn is left, and the bucket is empty until the pause is over.
                bucket.full_at = now + pause + room;
            }
        }
    }

    /// The API answered.
    pub(super) fn quicken(&self, action: &'static str) {
        if let Some(bucket) = self.buckets().get_mut(action) {
            bucket.pace = (bucket.pace * QUICKER).min(1.0);
        }
    }

    /// How many calls of each action were let through.
    pub(super) fn sent(&self) -> BTreeMap<&'static str, u64> {
        self.buckets().iter().map(|(name, bucket)| (*name, bucket.sent)).collect()
    }
}
