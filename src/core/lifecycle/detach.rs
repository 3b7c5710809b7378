//! Detaching: which volumes must leave a drained node before its machine may go.
//!
//! A volume that is still attached when its machine ends is not free for the pod's next node before somebody has given the machine up for
//! dead, which takes minutes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Kind, Node, Pod, Snapshot, Status};

use super::drain::is_drainable;
use super::step::{self, Phase, Step};
use super::{Sight, Situation, termination};

/// The condition that says how far it is.
pub(super) const DETACHED: &str = "VolumesDetached";
/// So many are named in a sentence, the others are counted (Karpenter's value).
const NAMED: usize = 5;
/// How often attachments are looked at though nothing was heard of them.
const LOOK_AGAIN: i64 = 10;

/// Names of the VolumeAttachments that are waited for: those of the nodes, but for volumes that a pod goes on using that is not drained.
/// Nothing when joiner may not look at them.
pub(super) fn pending(
    snapshot: &Snapshot,
    nodes: &[&Arc<Node>],
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> Option<Vec<Arc<str>>> {
    if [Kind::VolumeAttachment, Kind::VolumeClaim].iter().any(|kind| snapshot.withheld.contains(kind)) {
        return None;
    }
    let attachments = nodes.iter().flat_map(|node| snapshot.attachments_of(&node.name));
    let mut pending: Vec<_> =
        attachments.filter_map(|one| one.volume.as_ref().map(|volume| (&one.name, volume))).collect();
    if !pending.is_empty() {
        let staying = pods.iter().filter(|pod| !is_drainable(pod, now));
        let used: Vec<&Arc<str>> = staying.flat_map(|pod| snapshot.volumes_of(pod)).collect();
        pending.retain(|(_, volume)| !used.contains(volume));
    }
    Some(pending.into_iter().map(|(name, _)| Arc::clone(name)).collect())
}

/// Waits until the volumes of a drained node are detached, or the deadline has come; nothing when there is nothing (more) to wait for.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    if !is_due(situation) {
        return None;
    }
    let pending = situation.attachments.as_deref().filter(|_| !is_over(situation))?;
    if let Some(step) = step::write_status(situation, Phase::Draining) {
        return Some(step);
    }
    // A machine that is gone has nothing attached, and a kubelet that is gone lets nothing go.
    if !pending.is_empty()
        && let Some(step) = termination::look_for_machine(situation, &situation.nodes)
    {
        return Some(step);
    }
    let look = step::after(situation.now, LOOK_AGAIN);
    let look = termination::deadline(situation.claim).map_or(look, |deadline| look.min(deadline));
    (!pending.is_empty()).then(|| Step::wait(Phase::Draining, format!("{} to go", listed(pending))).look_at(look))
}

/// What the condition ought to be: status, reason, message. Nothing when it is as it should be, or when it is none of our business yet.
pub(super) fn wanted(situation: &Situation<'_>) -> Option<(Status, &'static str, String)> {
    let pending = situation.attachments.as_deref().filter(|_| !is_over(situation))?;
    let late = || termination::deadline(situation.claim).is_some_and(|deadline| situation.now >= deadline);
    Some(if pending.is_empty() {
        (Status::True, DETACHED, String::new())
    } else if late() {
        (Status::False, "TerminationGracePeriodElapsed", format!("{} left behind", listed(pending)))
    } else {
        (Status::Unknown, "AwaitingVolumeDetachment", format!("waiting for {} to go", listed(pending)))
    })
}

fn is_due(situation: &Situation<'_>) -> bool {
    situation.memory.sight != Sight::Gone && situation.has("Drained", Status::True) && !situation.nodes.is_empty()
}

/// Judged once and for all: what is attached after that is not ours to wait for.
fn is_over(situation: &Situation<'_>) -> bool {
    situation.has(DETACHED, Status::True) || situation.has(DETACHED, Status::False)
}

fn listed(names: &[Arc<str>]) -> String {
    let others = names.len().saturating_sub(NAMED);
    let others = if others > 0 { format!(" and {others} other(s)") } else { String::new() };
    format!("VolumeAttachments {}{others}", first(names))
}

/// The first names of a list, as many as a sentence bears.
pub(super) fn first(names: &[impl ToString]) -> String {
    let first: Vec<_> = names.iter().take(NAMED).map(ToString::to_string).collect();
    first.join(", ")
}
