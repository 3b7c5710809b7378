//! What a claim actor warns of while a node comes or goes.

use std::sync::Arc;

use crate::actors::protocol::ClaimMsg;
use crate::actors::runtime::Cx;
use crate::core::facts::{self, DoNotDisrupt, Effect, Node, Pod, Status, Taint, find_condition};
use crate::core::labels;
use crate::core::lifecycle::{drain_deadline, protected_until};
use crate::core::time::rfc3339;
use crate::core::writes::Regarding;
use crate::telemetry::events;

use super::Claim;

impl Claim {
    /// A node is being emptied, and `waiting` pods are still to leave it.
    pub(super) fn warn_of_drain(
        &mut self,
        claim: &facts::Claim,
        nodes: &[Arc<Node>],
        waiting: usize,
        cx: &Cx<ClaimMsg>,
    ) {
        if claim.deleting.is_none() || claim.is("InstanceTerminating") {
            return;
        }
        if claim.is("Drained") {
            return self.warn_of_volumes(claim, nodes, cx);
        }
        let deadline = drain_deadline(claim).map(rfc3339);
        if let Some(deadline) = &deadline {
            let about = Regarding::Claim(claim.name.clone(), claim.uid.clone());
            self.say(events::grace_period_expiring(about, deadline), cx);
        }
        for node in nodes {
            let about = || Regarding::Node(node.name.clone(), node.uid.clone());
            if let Some(deadline) = &deadline {
                self.say(events::grace_period_expiring(about(), deadline), cx);
            }
            if waiting > 0 {
                self.say(events::failed_draining(about(), &format!("{waiting} pods are waiting to be evicted")), cx);
            }
            let snapshot = self.args.wiring.boards.snapshot();
            for pod in snapshot.pods_on(&node.name).filter(|pod| pod.deleting.is_none() && !pod.is_terminal()) {
                self.tell_of_protection(pod, cx);
            }
        }
    }

    /// A drained node waits for its volumes. Said as long as it does: Events are kept for an hour.
    fn warn_of_volumes(&mut self, claim: &facts::Claim, nodes: &[Arc<Node>], cx: &Cx<ClaimMsg>) {
        let Some(waits) = find_condition(&claim.conditions, "VolumesDetached") else { return };
        for node in nodes.iter().filter(|_| waits.status == Status::Unknown) {
            let about = Regarding::Node(node.name.clone(), node.uid.clone());
            self.say(events::awaiting_volume_detachment(about, &waits.message), cx);
        }
    }

    /// What a pod on a node that is being emptied asks for with do-not-disrupt, when that is not plain to see.
    fn tell_of_protection(&mut self, pod: &Pod, cx: &Cx<ClaimMsg>) {
        let about = || Regarding::Pod(pod.key.clone(), pod.uid.clone());
        if let DoNotDisrupt::Meaningless(value) = &pod.shape.do_not_disrupt {
            self.say(events::invalid_do_not_disrupt(about(), value), cx);
        }
        if let Some(until) = protected_until(pod) {
            let event = if cx.now() < until {
                events::do_not_disrupt_until(about(), &rfc3339(until))
            } else {
                events::do_not_disrupt_elapsed(about())
            };
            self.say(event, cx);
        }
    }

    /// A Node is about to be registered, and may have come without the taint that keeps pods away until then.
    pub(super) fn warn_of_missing_taint(&mut self, claim: &facts::Claim, node: &Node, cx: &Cx<ClaimMsg>) {
        let unregistered = Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute);
        let comes = claim.deleting.is_none() && !claim.is("Registered") && !node.was_registered();
        if comes && !node.taints.iter().any(|taint| taint.matches(&unregistered)) {
            tracing::error!(nodeclaim = %claim.name, node = %node.name, "node came without the unregistered taint");
            let about = Regarding::Claim(claim.name.clone(), claim.uid.clone());
            self.say(events::unregistered_taint_missing(about, &node.name), cx);
        }
    }

    fn say(&mut self, event: events::Event, cx: &Cx<ClaimMsg>) {
        self.args.wiring.announce(&cx.house, &mut self.said, event);
    }
}
