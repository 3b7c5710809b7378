//! Whereabouts: by which names the cloud is asked for a machine that is not where it was said to be, and when its word is believed that there is none.
//!
//! A machine's mark can be lost, and the ID in the NodeClaim's status edited; its Nodes carry an ID, too. Only when the cloud knows none of them there is
//! no machine. And a cloud may say for a while that there is none although there is: a list lags behind, a row is lost. It is asked in rounds, and
//! believed when as many as the time holds for which it may be wrong have said the same, one soon after the other. Rounds are counted and not timed:
//! a clock that jumps cuts one pause short, and no more.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::ids::ProviderId;

use super::step::{Phase, Step};
use super::{Act, Memory, Sight, Situation};

/// Pauses between the rounds of questions of which all must say that there is no machine.
const PAUSES: u32 = 4;
/// A cloud that answers so seldom that it may have shown the machine between any two rounds is believed after so many times as many.
const SELDOM: u32 = 3;
/// The shortest pause: a drain is not looked at more often either.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);

/// Whether the cloud has denied the machine for so long that there is none.
pub fn is_denied(memory: &Memory, may_deny_for: Duration) -> bool {
    may_deny_for.is_zero() || memory.steady_denials > PAUSES || memory.denials > SELDOM * PAUSES
}

/// When a machine that was not where it was said to be is looked for anew, after a round in which the cloud knew none; nothing when there is no pause.
pub(super) fn pause(situation: &Situation<'_>) -> Option<Timestamp> {
    let between = situation.memory.sight == Sight::Missing && situation.memory.tried.is_empty();
    if between { again_at(situation) } else { None }
}

/// When the cloud may be asked again that has said that there is no machine; nothing when it may be now.
fn again_at(situation: &Situation<'_>) -> Option<Timestamp> {
    let memory = situation.memory;
    if situation.may_deny_for.is_zero() || memory.denials == 0 {
        return None;
    }
    let pause = SHORTEST_PAUSE.max(situation.may_deny_for / PAUSES);
    let again = memory.looked?.saturating_add(SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX));
    again.ok().filter(|again| situation.now < *again)
}

/// The next question: for a machine with an ID about which nobody has asked, else for one with the mark; or the pause before it.
pub(super) fn seek(situation: &Situation<'_>, phase: Phase) -> Step {
    if let Some(again) = pause(situation) {
        return wait(situation, phase, again);
    }
    Step::act(
        phase,
        match unasked(situation) {
            Some(id) => Act::Get(id.clone()),
            None => Act::Find(situation.claim.uid.clone()),
        },
    )
}

/// Once more for a machine with the mark: nothing when the cloud has denied it for long enough.
pub(super) fn ask_again(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    if is_denied(situation.memory, situation.may_deny_for) {
        return None;
    }
    let ask = || Step::act(phase, Act::Find(situation.claim.uid.clone()));
    Some(again_at(situation).map_or_else(ask, |again| wait(situation, phase, again)))
}

fn wait(situation: &Situation<'_>, phase: Phase, again: Timestamp) -> Step {
    let seconds = situation.may_deny_for.as_secs();
    let wait = format!("the cloud to say for {seconds} s that there is no machine, as it may be wrong for a while");
    Step::wait(phase, wait).look_at(again)
}

/// An ID that the NodeClaim or one of its Nodes names, and about which the cloud was not asked in vain.
pub(super) fn unasked<'a>(situation: &Situation<'a>) -> Option<&'a ProviderId> {
    let shown = situation.own_nodes().filter_map(|node| node.provider_id.as_ref());
    let mut named = situation.claim.provider_id.iter().chain(shown);
    named.find(|id| !situation.memory.tried.contains(*id))
}

#[cfg(test)]
#[path = "whereabouts_tests.rs"]
mod tests;
