//! What runs on an orphaned machine leaves it before it is taken down: nobody else would see to that, as it has no NodeClaim.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::actors::protocol::{AuditorMsg, EvictorMsg, Written};
use crate::actors::runtime::{Cx, Outcome, Permits};
use crate::cluster::Error;
use crate::core::audit::Finding;
use crate::core::consent::Decision;
use crate::core::eviction::Emptied;
use crate::core::facts::{Claim, Node};
use crate::core::ids::{NodeName, NodeUid, ProviderId};
use crate::core::lifecycle::{close, drain_of};
use crate::core::orphan::{begin_drain, drained_by, end_drain, runs_since, unreadable_deadline};
use crate::core::writes::{EXEMPT_NODES, NodePatch, Regarding, not_kept};
use crate::telemetry::events;

use super::Auditor;

/// How often it is looked how far the pods have left, as of any drain.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

impl Auditor {
    /// After a look: whose pods are to leave from now on; what a predecessor has begun goes on. A machine that a NodeClaim names by now gets its pods
    /// back, and so does one that a person has said to be left alone.
    pub(super) fn choose_drains(&mut self, claims: &[Arc<Claim>], cx: &Cx<AuditorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let mut before = std::mem::take(&mut self.draining);
        let now = cx.now();
        // Where a Node says since when, that counts once they are asked.
        let wanted = self.verdict.drain.iter().map(|id| (id.clone(), before.remove(id).unwrap_or(now)));
        self.draining = wanted.collect();
        // Those that look empty by now keep their deadline until the API server itself has said that they are.
        let proven = self.verdict.reap.iter().filter_map(|id| before.remove_entry(id));
        self.draining.extend(proven);
        let drained: BTreeSet<_> =
            self.draining.keys().flat_map(|id| snapshot.nodes_with(id)).map(|node| &node.uid).collect();
        self.kept_open.retain(|uid, _| drained.contains(uid));
        self.unwritten.retain(|uid, _| drained.contains(uid));
        let named = claims.iter().filter(|claim| claim.deleting.is_none());
        let named = named.filter_map(|claim| Some((claim.provider_id.as_ref()?, Some(&claim.name))));
        let dismissed = self.history.keys().filter_map(|finding| match finding {
            Finding::OrphanMachine(id) | Finding::SurplusMachine(id) => {
                (self.consent.about(finding) == Some(Decision::Dismiss)).then_some((id, None))
            }
            _ => None,
        });
        let mut open = Vec::new();
        for (id, by) in named.chain(dismissed).filter(|(id, _)| !self.draining.contains_key(*id)) {
            for (node, patch) in snapshot.nodes_with(id).filter_map(|node| Some((node, end_drain(node)?))) {
                let why = by.map_or_else(
                    || "a person has dismissed it".to_owned(),
                    |name| format!("NodeClaim {name} names it"),
                );
                open.push((node, patch, format!("pods may stay on {id}: {why}")));
            }
        }
        for (node, patch, why) in open {
            self.timeline.note(now, why);
            self.patch(node, patch, cx);
        }
        self.drain(cx);
    }

    /// Closes the Nodes of machines that are to go, and has their pods asked to leave.
    pub(super) fn drain(&mut self, cx: &Cx<AuditorMsg>) {
        if cx.house.operations.may_write() {
            self.ask_to_leave(cx);
        }
        self.drain = None;
        if !self.draining.is_empty() {
            self.look_again(cx);
        }
    }

    /// Looks again soon, if that is not to be already.
    pub(super) fn look_again(&mut self, cx: &Cx<AuditorMsg>) {
        self.drain.get_or_insert_with(|| cx.after(LOOK_AGAIN, AuditorMsg::Drain));
    }

    fn ask_to_leave(&mut self, cx: &Cx<AuditorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        for (id, begun) in self.draining.clone() {
            let nodes: Vec<&Node> = snapshot.nodes_with(&id).map(AsRef::as_ref).collect();
            // A Node that keeps nothing does not say until when, and never will.
            let is_kept_open = nodes.iter().any(|node| self.kept_open.contains_key(&node.uid));
            let begun = if is_kept_open { begun } else { self.leaps.latest().max(runs_since(&nodes, begun, cx.now())) };
            self.draining.insert(id.clone(), begun);
            let deadline = drained_by(begun);
            for node in nodes {
                if let Some(patch) = begin_drain(node, deadline)
                    && !self.is_closed_in_vain(node)
                {
                    if !self.kept_open.contains_key(&node.uid) && !self.unwritten.contains_key(&node.uid) {
                        self.tell_of_drain(&id, node, deadline, cx);
                    }
                    self.patch(node, patch, cx);
                    continue;
                }
                let mut drain = drain_of(node, &snapshot, deadline, cx.now());
                if close(node).is_some() {
                    // They would come back: only those leave whose time is up.
                    drain.evict.clear();
                }
                let from = Emptied::Node(node.name.clone(), deadline);
                let force = drain.force.into_iter().map(|(pod, _)| pod).collect();
                self.wiring.slots.evictor.cast(EvictorMsg::Drain { from, evict: drain.evict, force });
            }
        }
    }

    /// Whether it was tried since the last look to close a Node that does not keep it: the next look tries again.
    pub(super) fn is_closed_in_vain(&self, node: &Node) -> bool {
        self.kept_open.get(&node.uid) == Some(&self.looks)
    }

    fn tell_of_drain(&mut self, id: &ProviderId, node: &Node, deadline: Timestamp, cx: &Cx<AuditorMsg>) {
        let mut what = format!(
            "Moving the pods of Node {} away: its machine {id} belongs to no NodeClaim, and is taken down when they have left, at {deadline:.0} at the latest",
            node.name
        );
        if let Some(wrong) = unreadable_deadline(node) {
            what = format!("{what}; {wrong}");
        }
        tracing::warn!(machine = %id, node = %node.name, "{what}");
        self.timeline.note(cx.now(), format!("moves the pods of {id} away"));
        let about = Regarding::Node(node.name.clone(), node.uid.clone());
        self.wiring.announce(&cx.house, &mut self.said, events::terminating(about, &what));
    }

    /// What is not written is tried again at the next look.
    pub(super) fn patch(&self, node: &Node, patch: NodePatch, cx: &Cx<AuditorMsg>) {
        let (cluster, name, uid) = (Arc::clone(&self.wiring.cluster), node.name.clone(), node.uid.clone());
        let changed = name.clone();
        let call = async move {
            let node = cluster.patch_node(&name, &patch).await?;
            Ok(node.map(|node| patch.missing_from(&node)).unwrap_or_default())
        };
        cx.start(Permits::WriteCluster, call, move |outcome| AuditorMsg::NodeWritten(changed, uid, outcome));
    }

    /// A Node was changed, or not. What it was granted and does not keep holds up nobody's deadline, nor does what is refused for as long as pods have to leave.
    pub(super) fn node_written(
        &mut self,
        name: &NodeName,
        uid: NodeUid,
        outcome: Written<Vec<String>>,
        cx: &Cx<AuditorMsg>,
    ) {
        let what = format!("Node {name} was not changed as asked");
        let missing = match outcome {
            Outcome::Done(missing) => missing,
            other => {
                let since = *self.unwritten.entry(uid.clone()).or_insert_with(|| cx.now());
                if let Outcome::Failed(why @ (Error::Invalid { .. } | Error::Forbidden { .. })) = other {
                    if cx.now() >= drained_by(since) {
                        self.kept_open.insert(uid, self.looks);
                    }
                    self.not_done(&what, &why.to_string(), cx);
                }
                return;
            }
        };
        self.unwritten.remove(&uid);
        if missing.is_empty() {
            self.kept_open.remove(&uid);
        } else {
            self.kept_open.insert(uid, self.looks);
            self.not_done(&what, &not_kept(&missing, EXEMPT_NODES), cx);
        }
    }
}
