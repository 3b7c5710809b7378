//! Drain: which pods must leave a node before it may go, in which order, and which may no longer be asked politely.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, DoNotDisrupt, Effect, Node, Owner, Pod, Snapshot, Taint};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::time::later;

use super::{PodRef, detach, reboot, situation, termination};

/// A pod whose grace period ended this long ago and that is still there is stuck: nobody waits for it (Karpenter's value).
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// What a drain still has to do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drain {
    /// Pods that must still go.
    pub waiting: usize,
    /// To be evicted now: the first tier that is not empty.
    pub evict: Vec<PodRef>,
    /// To be deleted now with this much grace, past budgets: their time is up.
    pub force: Vec<(PodRef, i64)>,
    /// Pods that may not be evicted (do-not-disrupt), by name.
    pub protected: Vec<String>,
    /// When the next pod must be deleted without asking.
    pub force_at: Option<Timestamp>,
}

/// Looks at the pods of a node that is to be emptied by `deadline`, if there is one.
pub(super) fn drain(pods: &[&Arc<Pod>], deadline: Option<Timestamp>, now: Timestamp) -> Drain {
    let mut drain = Drain::default();
    let mut tiers: [Vec<&Pod>; 4] = Default::default();
    for pod in pods.iter().filter(|pod| is_waited_for(pod, now)) {
        drain.waiting += 1;
        if let Some(grace) = overdue(pod, deadline, now) {
            drain.force.push((PodRef::of(pod), grace));
        } else {
            if pod.deleting.is_none() {
                drain.force_at = earliest(drain.force_at, deadline.map(|deadline| last_moment(pod, deadline)));
            }
            tiers[tier(pod)].push(pod);
        }
    }
    for pod in tiers.into_iter().find(|tier| !tier.is_empty()).unwrap_or_default() {
        if pod.deleting.is_some() {
            continue;
        }
        if is_protected(pod, now) {
            drain.protected.push(pod.key.to_string());
        } else {
            drain.evict.push(PodRef::of(pod));
        }
    }
    drain
}

/// How a pod leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It is evicted, unless a budget forbids it.
    Evict,
    /// It is deleted, past budgets, with so many seconds of grace.
    Delete(i64),
}

/// How a pod on a node of this NodeClaim has to leave at this moment; nothing when it does not have to, may not, or does already. A pod that was to
/// leave a while ago is looked at with this before it is asked again: it may be protected by now, its deadline is nearer, or its node stays.
pub fn way_out(claim: &Claim, snapshot: &Snapshot, pod: &PodUid, now: Timestamp) -> Option<Way> {
    let deadline = if claim.deleting.is_some() {
        termination::deadline(claim)
    } else if reboot::is_emptying(claim, now) {
        None
    } else {
        return None;
    };
    let mut nodes = situation::nodes(claim, snapshot, claim.provider_id.as_ref(), false);
    // Somebody may have edited the status, which says where the machine is, or let another NodeClaim take the Node. The actor that wants the pod to leave
    // has seen by the machine's mark whose it is.
    let own = snapshot.pods.get(pod).and_then(|pod| snapshot.nodes.get(pod.node.as_ref()?));
    nodes.extend(own.filter(|own| nodes.iter().all(|node| node.name != own.name)));
    let pods: Vec<_> = nodes.iter().flat_map(|node| snapshot.pods_on(&node.name)).collect();
    way(&drain(&pods, deadline, now), pod)
}

/// What is still to be done to empty a node that has no NodeClaim by `deadline`.
pub fn drain_of(node: &Node, snapshot: &Snapshot, deadline: Timestamp, now: Timestamp) -> Drain {
    let pods: Vec<_> = snapshot.pods_on(&node.name).collect();
    drain(&pods, Some(deadline), now)
}

/// Whether a node that has no NodeClaim is not empty yet: pods are to leave it, or volumes, which would not be free for their next node otherwise.
pub fn is_occupied(node: &Arc<Node>, snapshot: &Snapshot, deadline: Timestamp, now: Timestamp) -> bool {
    let pods: Vec<_> = snapshot.pods_on(&node.name).collect();
    drain(&pods, Some(deadline), now).waiting > 0
        || detach::pending(snapshot, &[node], &pods, now).is_some_and(|left| !left.is_empty())
}

/// How a pod on a node that has no NodeClaim has to leave at this moment; see [`way_out`]. Nothing when the node turns out to have one, or says no more that
/// its pods have to leave.
pub fn way_off(node: &Node, snapshot: &Snapshot, deadline: Timestamp, pod: &PodUid, now: Timestamp) -> Option<Way> {
    if !node.is_being_evacuated() || snapshot.owners_of(node).next().is_some() {
        return None;
    }
    way(&drain_of(node, snapshot, deadline, now), pod)
}

fn way(drain: &Drain, pod: &PodUid) -> Option<Way> {
    let forced = drain.force.iter().find(|(forced, _)| forced.uid == *pod).map(|(_, grace)| Way::Delete(*grace));
    forced.or_else(|| drain.evict.iter().any(|asked| asked.uid == *pod).then_some(Way::Evict))
}

/// Whether the drain is over only when this pod has gone.
pub fn is_waited_for(pod: &Pod, now: Timestamp) -> bool {
    !pod.is_terminal() && is_drainable(pod, now)
}

/// Whether a drain makes this pod go at all: it does not tolerate the taint, is not the kubelet's own, and is not stuck.
pub(in crate::core) fn is_drainable(pod: &Pod, now: Timestamp) -> bool {
    let disrupted = Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule);
    let stuck = pod.deleting.is_some_and(|end| now.duration_since(end) > STUCK_AFTER);
    !stuck
        && pod.shape.owner != Owner::Node
        && !pod.shape.tolerations.iter().any(|toleration| toleration.tolerates(&disrupted))
}

/// Order of leaving: workloads, their daemons, critical workloads, critical daemons.
fn tier(pod: &Pod) -> usize {
    usize::from(pod.shape.critical) * 2 + usize::from(pod.shape.owner == Owner::DaemonSet)
}

/// Whether do-not-disrupt protects the pod at this moment.
pub(in crate::core) fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    match pod.shape.do_not_disrupt {
        DoNotDisrupt::Unsaid | DoNotDisrupt::Meaningless(_) => false,
        DoNotDisrupt::Always => true,
        DoNotDisrupt::For(_) => protected_until(pod).is_none_or(|end| now < end),
    }
}

/// When the time is over for which a pod asks not to be disrupted; nothing before its start, and when it asks for no time.
pub fn protected_until(pod: &Pod) -> Option<Timestamp> {
    let DoNotDisrupt::For(time) = pod.shape.do_not_disrupt else { return None };
    Some(later(pod.started?, time))
}

/// The grace with which a pod must be deleted now to be gone by the deadline, if it must. A pod with a long grace period is deleted
/// before the deadline, so that it can use it.
fn overdue(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> Option<i64> {
    let deadline = deadline?;
    let late = match pod.deleting {
        Some(end) => end > deadline,
        None => now >= last_moment(pod, deadline),
    };
    // Never 0: the kubelet must confirm that the containers have stopped.
    late.then(|| deadline.duration_since(now).as_secs().max(1))
}

/// When a pod must be deleted at the latest to have its grace period and be gone by the deadline.
fn last_moment(pod: &Pod, deadline: Timestamp) -> Timestamp {
    deadline.saturating_sub(SignedDuration::from_secs(pod.shape.grace_seconds)).unwrap_or(Timestamp::MIN)
}

/// The earlier of two moments, as far as there are any.
fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
