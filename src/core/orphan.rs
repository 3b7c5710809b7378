//! The Node of a machine that belongs to no NodeClaim: how long its pods have to leave, and what is written onto it, so that whoever acts next
//! knows.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::Node;
use crate::core::labels::{self, Labels};
use crate::core::lifecycle::{close, open};
use crate::core::time::rfc3339;
use crate::core::writes::NodePatch;

/// How long pods may take to leave a machine that is to be taken down and has a Node. It has no NodeClaim whose `terminationGracePeriod` could say
/// so. Karpenter's clouds take such machines down at once, with all that runs there; ten minutes let most budgets move their pods, and cost little.
const DRAIN: SignedDuration = SignedDuration::from_mins(10);

/// When a machine whose pods have begun to leave goes, whatever is left of them.
pub fn drained_by(begun: Timestamp) -> Timestamp {
    begun.saturating_add(DRAIN).unwrap_or(Timestamp::MAX)
}

/// Since when the pods of a Node are leaving, as its annotation says. Nothing when that cannot be read, and when their time is over: while nobody
/// looked, nobody asked them.
fn drained_since(node: &Node, now: Timestamp) -> Option<Timestamp> {
    let deadline: Timestamp = node.annotations.get(labels::ORPHAN_TERMINATION_TIMESTAMP)?.parse().ok()?;
    // A clock that was ahead may have dated it.
    (now < deadline).then(|| deadline.checked_sub(DRAIN).unwrap_or(Timestamp::MIN).min(now))
}

/// What is wrong with what somebody has written onto a Node as the time until which its pods have to leave.
pub fn unreadable_deadline(node: &Node) -> Option<String> {
    let key = labels::ORPHAN_TERMINATION_TIMESTAMP;
    let written = node.annotations.get(key)?;
    written.parse::<Timestamp>().is_err().then(|| {
        format!("metadata.annotations[{key}]: {written:?} is no time and counts for nothing; joiner writes its own")
    })
}

/// Since when the time of the pods on a machine's Nodes runs that were to leave from `begun` on. Nobody is asked before a Node says until when, so that
/// it does not run as long as that cannot be written, or is not seen.
pub fn runs_since(nodes: &[&Node], begun: Timestamp, now: Timestamp) -> Timestamp {
    if nodes.iter().any(|node| says(node, drained_by(begun))) {
        return begun;
    }
    // What was written before the last try may be seen after it.
    nodes.iter().filter_map(|node| drained_since(node, now)).min().unwrap_or(now)
}

/// Whether a Node says that its pods have to leave until then.
fn says(node: &Node, deadline: Timestamp) -> bool {
    node.annotations.get(labels::ORPHAN_TERMINATION_TIMESTAMP).is_some_and(|said| **said == *rfc3339(deadline))
}

/// Closes a Node and says until when its pods have to leave; nothing once that is done.
pub fn begin_drain(node: &Node, deadline: Timestamp) -> Option<NodePatch> {
    let closing = close(node);
    if closing.is_none() && says(node, deadline) {
        return None;
    }
    let annotations = Labels::from([(labels::ORPHAN_TERMINATION_TIMESTAMP.into(), rfc3339(deadline).into())]);
    Some(NodePatch { annotations, ..closing.unwrap_or_else(|| NodePatch::of(node)) })
}

/// Takes [`begin_drain`] back of a Node that is to stay after all; nothing where nothing is to be taken back.
pub fn end_drain(node: &Node) -> Option<NodePatch> {
    node.is_being_evacuated()
        .then(|| NodePatch { without_annotations: vec![labels::ORPHAN_TERMINATION_TIMESTAMP.into()], ..open(node) })
}

#[cfg(test)]
#[path = "orphan_tests.rs"]
mod tests;
