//! The time that is believed: a wall clock beside one that nobody sets, and what is made of it when the two come apart.
//!
//! A clock that is suddenly ahead makes everything overdue at once: NodeClaims expire, grace periods end, pods look stuck. Nothing of that can be undone,
//! and a clock that was set wrong is mostly set right again soon. So the earlier of the two is believed until they have stayed apart, by as much, for
//! longer than that takes. A clock that is behind only delays.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::time::later;

/// How far the two may come apart and still agree: clocks are slewed all the time, and small steps end nothing early that matters.
pub const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);
/// After so long a clock that was set is believed. NTP daemons look every 17 minutes at the latest (a poll interval of 2^10 s), and step a clock that is
/// wrong within three looks.
pub const BELIEVED_AFTER: Duration = Duration::from_hours(1);

/// What two clocks have said so far.
#[derive(Clone, Debug, Default)]
pub struct Steady {
    /// When they last agreed, by each.
    agreed: Option<(Duration, Timestamp)>,
    /// Since when they have been apart, and by how much the wall clock is ahead.
    apart: Option<(Duration, SignedDuration)>,
}

/// What is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// The time.
    pub time: Timestamp,
    /// By how much the wall clock has jumped since it was looked at last, if it has.
    pub jumped: Option<SignedDuration>,
}

impl Steady {
    /// Looks at both clocks: `moment` by the one that nobody sets, `wall` by the other.
    pub fn tell(&mut self, moment: Duration, wall: Timestamp) -> Told {
        let Some((then, time)) = self.agreed else { return self.agree(moment, wall) };
        let expected = later(time, moment.saturating_sub(then));
        let ahead = wall.duration_since(expected);
        if is_small(ahead) {
            return self.agree(moment, wall);
        }
        let known = self.apart.filter(|(_, before)| is_small(ahead - *before));
        if known.is_some_and(|(since, _)| moment.saturating_sub(since) >= BELIEVED_AFTER) {
            return self.agree(moment, wall);
        }
        self.apart = known.or(Some((moment, ahead)));
        Told { time: wall.min(expected), jumped: known.is_none().then_some(ahead) }
    }

    fn agree(&mut self, moment: Duration, wall: Timestamp) -> Told {
        *self = Self { agreed: Some((moment, wall)), apart: None };
        Told { time: wall, jumped: None }
    }
}

/// Notices that the believed time has moved on by more than has passed: a clock that was behind has been set right. What was to take ten minutes has then
/// not had them when the clock says so.
#[derive(Clone, Copy, Debug)]
pub struct Leaps {
    looked: Option<(Duration, Timestamp)>,
    latest: Timestamp,
}

impl Default for Leaps {
    fn default() -> Self {
        Self { looked: None, latest: Timestamp::MIN }
    }
}

impl Leaps {
    /// Looks at both clocks, which is to be done often: `moment` by the one that nobody sets, `time` by the other. Answers as [`Self::latest`].
    pub fn look(&mut self, moment: Duration, time: Timestamp) -> Timestamp {
        if let Some((then, before)) = self.looked.replace((moment, time))
            && time.duration_since(later(before, moment.saturating_sub(then))) > TOLERANCE
        {
            self.latest = time;
        }
        self.latest
    }

    /// The believed time right after it has last leapt ahead: what has begun before counts from then on. [`Timestamp::MIN`] as long as it never has.
    pub fn latest(&self) -> Timestamp {
        self.latest
    }
}

fn is_small(difference: SignedDuration) -> bool {
    difference.abs() <= TOLERANCE
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
