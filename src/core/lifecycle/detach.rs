//! Detaching: which volumes must leave a drained node before its machine may go.
//!
//! A volume that is still attached when its machine ends is not free for the pod's next node before somebody has given the machine up for
//! dead, which takes minutes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Kind, Node, Pod, Snapshot, Status, VolumeAttachment};

use super::drain::is_drainable;
use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation, termination};

/// The condition that says how far it is.
pub(super) const DETACHED: &str = "VolumesDetached";
/// So many are named in a sentence, the others are counted (Karpenter's value).
const NAMED: usize = 5;
/// How often attachments are looked at though nothing was heard of them, and asked for that no watch shows.
const LOOK_AGAIN: i64 = 10;

/// Names of the VolumeAttachments that are waited for: those of the nodes, but for volumes that a pod goes on using that is not drained.
/// Nothing when joiner may not look at them.
pub(super) fn pending(
    snapshot: &Snapshot,
    nodes: &[&Arc<Node>],
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> Option<Vec<Arc<str>>> {
    if !are_volumes_seen(snapshot) {
        return None;
    }
    let attachments = nodes.iter().flat_map(|node| snapshot.attachments_of(&node.name));
    Some(to_go(attachments, snapshot, pods, now))
}

/// How many of the volumes that are attached to a node without a NodeClaim are to be detached before its machine goes: all but those that a pod goes on
/// using.
pub fn still_attached(
    attached: &[Arc<VolumeAttachment>],
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> usize {
    let pods: Vec<&Arc<Pod>> = pods.iter().collect();
    to_go(attached.iter(), snapshot, &pods, now).len()
}

/// Whether joiner may look at what is attached, and at whose volumes these are.
pub fn are_volumes_seen(snapshot: &Snapshot) -> bool {
    ![Kind::VolumeAttachment, Kind::VolumeClaim].iter().any(|kind| snapshot.withheld.contains(kind))
}

/// Names of those VolumeAttachments whose volume no pod goes on using.
fn to_go<'a>(
    attachments: impl Iterator<Item = &'a Arc<VolumeAttachment>>,
    snapshot: &Snapshot,
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> Vec<Arc<str>> {
    let mut pending: Vec<_> =
        attachments.filter_map(|one| one.volume.as_ref().map(|volume| (&one.name, volume))).collect();
    if !pending.is_empty() {
        let staying = pods.iter().filter(|pod| !is_drainable(pod, now));
        let used: Vec<&Arc<str>> = staying.flat_map(|pod| snapshot.volumes_of(pod)).collect();
        pending.retain(|(_, volume)| !used.contains(volume));
    }
    pending.into_iter().map(|(name, _)| Arc::clone(name)).collect()
}

/// Names of the VolumeAttachments that are waited for, by the watch; where that shows none, by the API server's own word. A watch that began anew with
/// an old list shows none of the volumes that came since. Nothing while the API server is still to be asked.
fn left(situation: &Situation<'_>) -> Option<Vec<Arc<str>>> {
    let watched = situation.attachments.as_ref()?;
    if !watched.is_empty() || termination::is_overdue(situation) {
        return Some(watched.clone());
    }
    let memory = situation.memory;
    let (asked, attached) = memory.attached.as_ref()?;
    let pods = memory.pods_there(&situation.pods, situation.now);
    let left = to_go(attached.iter(), situation.snapshot, &pods, situation.now);
    let good_for = if left.is_empty() { termination::GOOD_FOR } else { LOOK_AGAIN };
    // What was attached while pods were still there says nothing about what they left behind.
    let emptied = memory.listed_pods.as_ref().is_none_or(|(emptied, _)| asked >= emptied);
    (emptied && situation.now < step::after(*asked, good_for)).then_some(left)
}

/// The question to the API server itself which volumes are attached to the nodes; nothing when there is no need to ask it.
pub(super) fn ask(situation: &Situation<'_>) -> Option<Act> {
    let asks = situation.attachments.is_some() && !is_over(situation) && left(situation).is_none();
    asks.then(|| Act::ListAttachments(situation.nodes.iter().map(|node| node.name.clone()).collect()))
}

/// Waits until the volumes of a drained node are detached, or the deadline has come; nothing when there is nothing (more) to wait for.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    if !is_due(situation) || is_over(situation) {
        return None;
    }
    if let Some(act) = ask(situation) {
        return Some(Step::act(Phase::Draining, act));
    }
    let left = left(situation)?;
    if let Some(step) = step::write_status(situation, Phase::Draining) {
        return Some(step);
    }
    // A machine that is gone has nothing attached, and a kubelet that is gone lets nothing go.
    if !left.is_empty()
        && let Some(step) = termination::look_for_machine(situation, &situation.nodes)
    {
        return Some(step);
    }
    let look = step::after(situation.now, LOOK_AGAIN);
    let look = termination::deadline(situation.claim).map_or(look, |deadline| look.min(deadline));
    (!left.is_empty()).then(|| Step::wait(Phase::Draining, format!("{} to go", listed(&left))).look_at(look))
}

/// What the condition ought to be: status, reason, message. Nothing when it is as it should be, or when it is none of our business yet.
pub(super) fn wanted(situation: &Situation<'_>) -> Option<(Status, &'static str, String)> {
    let left = left(situation).filter(|_| !is_over(situation))?;
    Some(if left.is_empty() {
        (Status::True, DETACHED, String::new())
    } else if termination::is_overdue(situation) {
        (Status::False, "TerminationGracePeriodElapsed", format!("{} left behind", listed(&left)))
    } else {
        (Status::Unknown, "AwaitingVolumeDetachment", format!("waiting for {} to go", listed(&left)))
    })
}

fn is_due(situation: &Situation<'_>) -> bool {
    situation.memory.sight != Sight::Gone && situation.has("Drained", Status::True) && !situation.nodes.is_empty()
}

/// Whether nobody is waited for any more: the machine was ordered down, or it was said whom it leaves behind at its deadline. Until then volumes are looked at
/// every time, whatever the condition says.
fn is_over(situation: &Situation<'_>) -> bool {
    let gives_up = situation.has(DETACHED, Status::False) && termination::is_overdue(situation);
    gives_up || termination::is_ordered_down(situation)
}

fn listed(names: &[Arc<str>]) -> String {
    named("VolumeAttachments", names)
}

/// Things of a kind by name, as many as a sentence bears; the others are counted.
pub(super) fn named(what: &str, names: &[impl ToString]) -> String {
    let others = names.len().saturating_sub(NAMED);
    let others = if others > 0 { format!(" and {others} other(s)") } else { String::new() };
    format!("{what} {}{others}", first(names))
}

/// The first names of a list, as many as a sentence bears.
pub(super) fn first(names: &[impl ToString]) -> String {
    let first: Vec<_> = names.iter().take(NAMED).map(ToString::to_string).collect();
    first.join(", ")
}
