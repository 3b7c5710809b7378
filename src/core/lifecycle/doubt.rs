//! Launches that nobody heard the end of: for a while they may still make a machine, and the NodeClaim waits for that before it goes.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Condition, Status, find_condition};

use super::step::{Phase, Step};
use super::{Act, Memory, Sight, Situation, whereabouts};

/// How long a launch may be under way without anybody here knowing: calls to the cloud are given up after two minutes.
pub(super) const DOUBT: Duration = Duration::from_mins(2);
/// The reason of `Launched` when another launch may have been under way beside the one that made the machine. Whoever looks after the NodeClaim next has
/// nothing else to know it by: without it, every NodeClaim that is launched shortly before joiner is restarted would have to be doubted.
const REASON: &str = "MaybeLaunchedTwice";
/// Its message.
const MESSAGE: &str = "an earlier launch may have been under way, and have made a second machine: that is looked for when this NodeClaim goes";

/// The condition `Launched`, where it says that there is a machine.
fn launched<'a>(situation: &Situation<'a>) -> Option<&'a Condition> {
    find_condition(&situation.claim.conditions, "Launched").filter(|launched| launched.status == Status::True)
}

/// Reason and message of a `Launched` that is True, where there is something to say. No launch begins once that is written; what is said stays, as
/// nobody asks the cloud for a second machine before the NodeClaim goes.
pub(super) fn told(situation: &Situation<'_>) -> Option<(&'static str, &'static str)> {
    may_have_launched_twice(situation).then_some((REASON, MESSAGE))
}

/// Whether another launch may have been under way beside the one that made the machine, an earlier one of this actor's or of one that died before it: where
/// a cloud does not honour tokens, or no longer does once the machine has gone, it makes a second.
pub(super) fn may_have_launched_twice(situation: &Situation<'_>) -> bool {
    let memory = situation.memory;
    match launched(situation) {
        Some(launched) => &*launched.reason == REASON,
        None => memory.launched_beside && memory.doubt_until.is_some_and(|until| !has_looked_since(memory, until)),
    }
}

/// Whether the cloud was asked for machines with the mark when the doubt was over: no launch has made one since.
fn has_looked_since(memory: &Memory, until: Timestamp) -> bool {
    memory.looked.is_some_and(|looked| looked >= until)
}

/// The cloud knows no machine. A launch that is still on its way may yet make one: it is asked again when that can no longer be.
pub(super) fn wait(situation: &Situation<'_>) -> Option<Step> {
    let phase = Phase::Terminating;
    let memory = situation.memory;
    let until = memory.doubt_until?;
    if has_looked_since(memory, until) {
        // One that has ended, and is no more under its mark either, needs no further word.
        return if memory.sight == Sight::Gone { None } else { whereabouts::ask_again(situation, phase) };
    }
    if situation.now < until {
        return Some(
            Step::wait(phase, "a launch without an answer to show its machine, or to be too old for one")
                .look_at(until),
        );
    }
    Some(Step::act(phase, Act::Find(situation.claim.uid.clone())))
}
