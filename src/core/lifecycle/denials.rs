//! Denials: how often in a row a cloud has said that there is no machine, and when that is believed.
//!
//! A cloud may say for a while that there is none although there is: a list lags behind, a row is lost. It is asked in rounds, and believed when as many
//! as the time holds for which it may be wrong have said the same, one soon after the other. Rounds are counted and not timed: a clock that jumps cuts
//! one pause short, and no more.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Pauses between the rounds of questions of which all must say that there is no machine.
const PAUSES: u32 = 4;
/// A cloud that answers so seldom that it may have shown the machine between any two rounds is believed after so many times as many.
const SELDOM: u32 = 3;
/// The shortest pause: a drain is not looked at more often either.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);

/// What a cloud has said of a machine since it last showed it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Denials {
    /// When it last said that there is none.
    last: Option<Timestamp>,
    /// How many times in a row it has.
    all: u32,
    /// How many of these, the last ones, came so soon after each other that it has not shown the machine in between.
    steady: u32,
}

impl Denials {
    /// The cloud has said once more that there is no machine. It may be wrong again soon: if it was not asked for longer than `may_deny_for`, the
    /// time for which it may be wrong at a stretch, it may have been right in between.
    pub fn add(&mut self, now: Timestamp, may_deny_for: Duration) {
        let most = SignedDuration::try_from(may_deny_for).unwrap_or(SignedDuration::MAX);
        let is_steady = self.last.is_some_and(|last| last <= now && now.duration_since(last) <= most);
        self.all = self.all.saturating_add(1);
        self.steady = if is_steady { self.steady.saturating_add(1) } else { 1 };
        self.last = Some(now);
    }

    /// Whether the cloud has denied the machine for so long that there is none.
    pub fn suffice(&self, may_deny_for: Duration) -> bool {
        may_deny_for.is_zero() || self.steady > PAUSES || self.all > SELDOM * PAUSES
    }

    /// When the cloud may be asked again that has said that there is no machine; nothing when it may be now.
    pub fn again_at(&self, now: Timestamp, may_deny_for: Duration) -> Option<Timestamp> {
        let last = self.last.filter(|last| *last <= now && !may_deny_for.is_zero())?;
        let pause = SHORTEST_PAUSE.max(may_deny_for / PAUSES);
        let again = last.saturating_add(SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX));
        again.ok().filter(|again| now < *again)
    }
}

#[cfg(test)]
#[path = "denials_tests.rs"]
mod tests;
