//! How a machine without a NodeClaim goes: the API server itself says that nothing runs there, and only then is it ordered down.

use std::sync::Arc;

use crate::actors::protocol::{AuditorMsg, Inhabited, StateMsg, Written};
use crate::actors::runtime::{Cx, Outcome, Permits};
use crate::core::audit::Finding;
use crate::core::facts::Fact;
use crate::core::ids::ProviderId;
use crate::core::lifecycle::{are_volumes_seen, close, is_waited_for, still_attached};
use crate::core::orphan::{begin_drain, drained_by};
use crate::telemetry::events;

use super::Auditor;

impl Auditor {
    /// Machines of the latest look that may go now: those that look empty, and those whose pods have had their time.
    pub(super) fn reap(&mut self, cx: &Cx<AuditorMsg>) {
        for id in self.verdict.reap.clone() {
            let protections = self.wiring.settings.protections;
            if protections.fresh_list && protections.evacuation {
                self.ask_for_pods(id, cx);
            } else {
                self.take_down(id, cx);
            }
        }
    }

    /// Asks the API server itself what runs on a machine and what is attached to it. A watch that lags or began anew with an old list shows neither its Node
    /// nor its pods and volumes.
    fn ask_for_pods(&self, id: ProviderId, cx: &Cx<AuditorMsg>) {
        let (cluster, asked) = (Arc::clone(&self.wiring.cluster), id.clone());
        let sees_volumes = are_volumes_seen(&self.wiring.boards.snapshot());
        let call = async move {
            let Some(node) = cluster.find_node(&asked).await? else { return Ok(None) };
            let pods = cluster.pods_on(&node.name).await?;
            let volumes = if sees_volumes { cluster.attached_to(&node.name).await? } else { Vec::new() };
            Ok(Some((node, pods, volumes)))
        };
        cx.start(Permits::ReadCluster, call, move |outcome| AuditorMsg::Inhabited(id, outcome));
    }

    /// What runs on a machine that looked empty, or whose time is over. Nothing goes without an answer: it is asked again at the next look.
    pub(super) fn told_of_pods(&mut self, id: ProviderId, outcome: Written<Option<Inhabited>>, cx: &Cx<AuditorMsg>) {
        // A later look may have found otherwise, or has asked again and was answered first.
        if !self.verdict.reap.contains(&id) {
            return;
        }
        let found = match outcome {
            Outcome::Done(found) => found,
            other => {
                self.has_had_its_turn(&Finding::of_machine(&id));
                let why = other.answer().err().unwrap_or_default();
                return cx.slot().meter().failed(cx.now(), &format!("{id}: {why}"));
            }
        };
        let Some((node, pods, volumes)) = found else { return self.take_down(id, cx) };
        let running = pods.iter().filter(|pod| is_waited_for(pod, cx.now())).count();
        let attached = still_attached(&volumes, &self.wiring.boards.snapshot(), &pods, cx.now());
        let left = running + attached;
        let overdue = self.draining.get(&id).is_some_and(|begun| cx.now() >= drained_by(*begun));
        // One that is open takes pods in at any moment. It came when another Node of this machine had been closed, or nobody was seen on it, or it could not
        // be closed as long as the watch showed it as it was before: nobody has asked its pods to leave.
        let open = close(&node).is_some();
        // One that no write closes is as good as closed when their time is over, for else they would stay for ever.
        let has_had_its_time = overdue && (left == 0 || !open || self.kept_open.contains_key(&node.uid));
        if has_had_its_time || left == 0 && !open {
            return self.take_down(id, cx);
        }
        let why = if left == 0 {
            format!("{id} stays for a moment: its Node was open")
        } else {
            tracing::warn!(machine = %id, node = %node.name, pods = running, volumes = attached, "an orphaned machine that was to go is not empty");
            format!(
                "{id} stays: {running} pods run there that have not been asked to leave, or are not seen; {attached} volumes are attached"
            )
        };
        self.timeline.note(cx.now(), why);
        // They have as long as those that are seen.
        let begun = self.draining.entry(id.clone()).or_insert_with(|| cx.now());
        if overdue {
            *begun = cx.now();
        }
        let deadline = drained_by(*begun);
        let is_closed_in_vain = self.is_closed_in_vain(&node);
        if let Some(patch) = begin_drain(&node, deadline).filter(|_| !is_closed_in_vain) {
            self.patch(&node, patch, cx);
        }
        if left == 0 && !is_closed_in_vain {
            self.emptied.insert(id);
        }
        self.wiring.slots.state.cast(StateMsg::Seen(Fact::NodeSeen(node)));
        self.look_again(cx);
    }

    /// Asks once more about machines on which nothing ran when their Nodes were closed: kube-scheduler has had the time to see that.
    pub(super) fn reap_emptied(&mut self, cx: &Cx<AuditorMsg>) {
        for id in std::mem::take(&mut self.emptied) {
            self.ask_for_pods(id, cx);
        }
    }

    fn take_down(&mut self, id: ProviderId, cx: &Cx<AuditorMsg>) {
        self.verdict.reap.retain(|other| *other != id);
        let surplus = Finding::SurplusMachine(id.clone());
        let (what, finding) = if self.history.contains_key(&surplus) {
            ("second machine of a nodeclaim", surplus)
        } else {
            ("orphaned machine", Finding::OrphanMachine(id.clone()))
        };
        let evidence = self.why(&finding);
        self.has_had_its_turn(&[finding]);
        tracing::warn!(machine = %id, evidence, "taking {what} down");
        self.timeline.note(cx.now(), format!("takes down {id}"));
        self.write_down(&format!("takes {what} {id} down"), &evidence, cx);
        // A machine without a NodeClaim has no object of its own.
        let lease = self.wiring.boards.lease_object();
        if let Some(lease) = lease {
            let event = events::terminating(lease, &format!("Taking {what} {id} down: {evidence}"));
            self.wiring.announce(&cx.house, &mut self.said, event);
        }
        self.order_down(id, cx);
    }

    /// Something is done about what was found, or was tried. Where it stands at the next look all the same, others have their turn first.
    pub(super) fn has_had_its_turn(&mut self, findings: &[Finding]) {
        for finding in findings {
            if let Some(evidence) = self.history.get_mut(finding) {
                evidence.vain += 1;
            }
        }
    }

    /// Orders a machine down. What the cloud does not confirm is looked at again by the next look.
    pub(super) fn order_down(&self, id: ProviderId, cx: &Cx<AuditorMsg>) {
        let (cloud, reaped) = (Arc::clone(&self.wiring.cloud), id.clone());
        let call = async move { cloud.delete(&id).await };
        cx.start(Permits::WriteCloud, call, move |outcome| AuditorMsg::Reaped(reaped, outcome));
    }
}
