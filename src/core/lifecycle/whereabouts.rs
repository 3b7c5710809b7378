//! Whereabouts: by which names the cloud is asked for a machine that is not where it was said to be, and when its word is believed that there is none.
//!
//! A machine's mark can be lost, and the ID in the NodeClaim's status edited; its Nodes carry an ID, too. Only when the cloud knows none of them there is
//! no machine; and it must have said so often enough ([`super::Denials`]).

use jiff::Timestamp;

use crate::core::ids::ProviderId;

use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation};

/// Seconds between two questions for a machine that was launched and has never been shown.
const LOOK_AGAIN: i64 = 60;

/// When a machine is asked for again of which the cloud has said a moment ago that it has none with the mark; nothing when it is time.
pub(super) fn look_again(situation: &Situation<'_>) -> Option<Timestamp> {
    let again = situation.memory.looked.filter(|_| situation.memory.sight == Sight::Absent);
    again.map(|looked| step::after(looked, LOOK_AGAIN)).filter(|again| situation.now < *again)
}

/// When a machine that was not where it was said to be is looked for anew, after a round in which the cloud knew none; nothing when there is no pause.
pub(super) fn pause(situation: &Situation<'_>) -> Option<Timestamp> {
    let between = situation.memory.sight == Sight::Missing && situation.memory.tried.is_empty();
    if between { again_at(situation) } else { None }
}

/// When the cloud may be asked again that has said that there is no machine; nothing when it may be now.
fn again_at(situation: &Situation<'_>) -> Option<Timestamp> {
    situation.memory.denials.again_at(situation.now, situation.may_deny_for)
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
    if situation.memory.denials.suffice(situation.may_deny_for) {
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
