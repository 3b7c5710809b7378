//! Liveness: the deadlines of a life.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Node, Status};
use crate::core::ids::ProviderId;
use crate::core::time::later;

use super::step::{self, Phase, Step};
use super::{Act, DeleteReason, Situation};
use super::{hooks, launch, status, termination};

/// A NodeClaim that has not been launched after this long is given up, where the cloud does not want longer (Karpenter's `LaunchTimeout`).
pub const LAUNCH_TIMEOUT: Duration = Duration::from_mins(5);
/// A NodeClaim whose Node has not registered after this long is given up (Karpenter's registration TTL).
const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(15);

/// Seconds for which the API server's word that a machine has or has no Node is good.
const LOOK_AGAIN: i64 = 10;

/// Whoever takes over a NodeClaim tries for this long before it is given up, however old it says that it is: its own clock may be the one that is
/// wrong, or the time may have passed while nobody was there.
const FAIR_TRY: Duration = Duration::from_mins(1);

/// The deadlines that are running: what happens, and when.
pub(super) fn deadlines(situation: &Situation<'_>) -> Vec<(&'static str, Timestamp)> {
    let claim = situation.claim;
    if claim.broken.is_some() {
        return Vec::new();
    }
    if claim.deleting.is_some() {
        let pods = termination::deadline(claim).map(|at| ("pods are deleted without asking", at));
        let machine = termination::gone_by(situation).map(|at| ("the machine ought to be gone", at));
        return pods.into_iter().chain(machine).collect();
    }
    // The time during which nothing could be done for it does not count.
    let mended =
        if situation.has(status::VALID, Status::True) { situation.since(status::VALID) } else { claim.created };
    let since = |kind| situation.since(kind).max(mended);
    let tried = situation.memory.since.map_or(Timestamp::MIN, |since| later(since, FAIR_TRY));
    let mut deadlines = Vec::new();
    // A condition can be taken out of the status by hand, and a label off a Node. What there is to see counts more, also where a second Node says
    // that it is this machine. So does what was just written to a Node and is not seen yet. A Node that the cloud holds back is none yet.
    let taken = |node: &Node| node.is_owned_by(claim) && !hooks::are_pending(situation);
    let registered =
        situation.nodes.iter().any(|node| node.is_registered() || taken(node) || situation.has_patched(node));
    if !launch::was_launched(situation.claim) && !registered {
        deadlines.push(("given up: not launched", later(since("Launched"), situation.launch_timeout).max(tried)));
    }
    // A machine of a dry run brings no Node, and would be imagined again in place of the one that is given up.
    let imagined = claim.provider_id.as_ref().is_some_and(ProviderId::is_imagined);
    if !situation.has("Registered", Status::True) && !registered && !imagined {
        deadlines.push(("given up: not registered", later(since("Registered"), REGISTRATION_TIMEOUT).max(tried)));
    }
    if let Some(age) = claim.expire_after {
        deadlines.push(("expires", later(claim.created, age)));
    }
    deadlines
}

/// Why a NodeClaim is to be deleted now, if a deadline has passed.
pub(super) fn due(situation: &Situation<'_>) -> Option<DeleteReason> {
    deadlines(situation).into_iter().filter(|(_, at)| situation.now >= *at).min_by_key(|(_, at)| *at).map(
        |(what, _)| match what {
            "given up: not launched" => DeleteReason::LaunchTimeout,
            "given up: not registered" => DeleteReason::RegistrationTimeout,
            _ => DeleteReason::Expired,
        },
    )
}

/// Gives a NodeClaim up. That no Node has registered is first asked of the API server itself: a watch that lags for so long shows none, though the
/// machine may have served all the while.
pub(super) fn give_up(situation: &Situation<'_>, phase: Phase, reason: DeleteReason) -> Step {
    let machine = situation.provider_id().filter(|_| reason == DeleteReason::RegistrationTimeout);
    machine
        .and_then(|id| prove_nodeless(situation, phase, id))
        .unwrap_or_else(|| Step::act(phase, Act::DeleteClaim(reason)))
}

/// Asks the API server itself for the Node of a machine that none has been seen to register for, and waits for what the watch does not show; nothing
/// when there is no such Node.
pub(super) fn prove_nodeless(situation: &Situation<'_>, phase: Phase, id: &ProviderId) -> Option<Step> {
    if situation.own_nodes().next().is_some() {
        return None;
    }
    let Some((again, found)) = word_on(situation, id) else {
        return Some(Step::act(phase, Act::FindNode(id.clone())));
    };
    let node = found?;
    // One that is seen and not among this NodeClaim's is another's.
    let late = if situation.nodes.iter().any(|seen| seen.name == node.name) {
        situation.is_ours(node)
    } else {
        situation.snapshot.nodes_with(id).all(|seen| seen.name != node.name)
    };
    late.then(|| Step::wait(phase, format!("the watch to show Node {} as it is", node.name)).look_at(again))
}

/// The API server's own word on which Node a machine has, and until when it is good; nothing when it is to be asked.
pub(super) fn word_on<'a>(situation: &Situation<'a>, id: &ProviderId) -> Option<(Timestamp, Option<&'a Node>)> {
    let (asked, _, node) = situation.memory.roll.as_ref().filter(|(_, whose, _)| whose == id)?;
    let until = step::after(*asked, LOOK_AGAIN);
    (situation.now < until).then_some((until, node.as_deref()))
}
