//! How the API thinks of us: whether our keys are good, and how far our clock is off.
//!
//! Four bad signatures in a row lock an access key out for a minute, then for longer, and while that lasts the right keys are refused as
//! well. So the first signed call goes alone, and after a refusal nothing is signed for a minute. A signature four seconds from the future
//! is refused like one with wrong keys, so the clock is set by the answers' `Date`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// How long nothing is signed after the first refusal; as much longer after each further one.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
/// The longest pause: the longest lock-out.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// Differences below this are the answer's way to us and the second that `Date` is cut to.
const NOTICEABLE: SignedDuration = SignedDuration::from_secs(2);

#[derive(Default)]
pub(super) struct Standing(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether a signed call was answered since the last refusal.
    trusted: bool,
    /// Refusals in a row.
    refusals: u32,
    /// Until when nothing is signed, and why.
    closed: Option<(Instant, String)>,
    /// The API's clock minus ours.
    skew: SignedDuration,
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls may be signed side by side.
    pub(super) fn is_trusted(&self) -> bool {
        self.state().trusted
    }

    /// Why nothing may be signed now, and for how long yet.
    pub(super) fn closed(&self) -> Option<(Duration, String)> {
        let state = self.state();
        let (until, why) = state.closed.as_ref()?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| (left, why.clone()))
    }

    /// A signed call was answered in a way that shows that its signature was accepted.
    pub(super) fn accepted(&self) {
        let mut state = self.state();
        state.trusted = true;
        state.refusals = 0;
        state.closed = None;
    }

    /// A signature was refused.
    pub(super) fn refused(&self, why: String) {
        let mut state = self.state();
        state.trusted = false;
        state.refusals = state.refusals.saturating_add(1);
        let pause = (FIRST_PAUSE * state.refusals).min(LONGEST_PAUSE);
        state.closed = Some((Instant::now() + pause, why));
    }

    /// The keys are others than those that were refused. They are on trial, and the next refusal is still one more in a row.
    pub(super) fn has_other_keys(&self) {
        self.state().closed = None;
    }

    /// Learns from the date of an answer that was asked for at `sent` and came at `now`, which may be much later. Returns whether the clock was set
    /// anew.
    pub(super) fn learn(&self, date: Timestamp, (sent, now): (Timestamp, Timestamp)) -> bool {
        let measured = if date > now { date.duration_since(now) } else { date.duration_since(date.max(sent)) };
        let mut state = self.state();
        let off = (measured - state.skew).abs() >= NOTICEABLE;
        if off {
            state.skew = if measured.abs() < NOTICEABLE { SignedDuration::ZERO } else { measured };
        }
        off
    }

    /// What is wrong with our clock and what to do about it, if anything is: in words that stay the same while it is so.
    pub(super) fn clock_trouble(&self) -> Option<String> {
        let skew = self.skew();
        let off = skew.abs();
        let amount = match off.as_secs() {
            0 => return None,
            seconds @ 1..120 => format!("{seconds} s"),
            seconds => format!("{} min", (seconds + 30) / 60),
        };
        let way = if skew.is_negative() { "ahead of" } else { "behind" };
        Some(format!(
            "the clock of this machine is {amount} {way} the API's; joiner signs by the API's, set this machine's by NTP"
        ))
    }

    /// The API's clock minus ours.
    pub(super) fn skew(&self) -> SignedDuration {
        self.state().skew
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
