//! What a claim actor learns when an act ends.

use std::fmt;
use std::sync::Arc;

use crate::actors::protocol::{Called, CatalogMsg, ClaimMsg, ClassesMsg, Kept, StateMsg, StaticsMsg, Written};
use crate::actors::runtime::{Cx, Outcome};
use crate::clouds::{self, Deletion, Hooks, LaunchRefused, Whereabouts};
use crate::cluster;
use crate::core::facts::Machine;
use crate::core::ids::{NodeName, NodeUid, ProviderId};
use crate::core::lifecycle::{DeleteReason, Hold, Sight};
use crate::core::writes::{EXEMPT_NODES, not_kept};

use super::Claim;

impl Claim {
    /// Takes in the end of an act. One that is not the current one came too late, and is dropped: the next look sees what it did.
    pub(super) fn outcome(&mut self, message: ClaimMsg, cx: &Cx<ClaimMsg>) {
        match message {
            ClaimMsg::Look => {}
            ClaimMsg::Open => self.memory.may_open = true,
            ClaimMsg::Written(op, outcome) if self.ends(op) => {
                match outcome {
                    Outcome::Failed(cluster::Error::NotFound(_)) => self.tell_that_it_is_gone(),
                    Outcome::Failed(cluster::Error::Conflict(_)) => {
                        self.memory.outdated = self.known.as_ref().map(|known| Arc::clone(&known.version));
                    }
                    _ => {}
                }
                self.claim_written(outcome, cx);
            }
            ClaimMsg::ClaimTold(op, outcome) if self.ends(op) => self.claim_told(outcome, cx),
            ClaimMsg::NodeTold(op, name, outcome) if self.ends(op) => self.node_told(name, outcome, cx),
            ClaimMsg::NodeFound(op, id, outcome) if self.ends(op) => self.node_found(id, outcome, cx),
            ClaimMsg::PodsListed(op, outcome) if self.ends(op) => self.pods_listed(outcome, cx),
            ClaimMsg::AttachmentsListed(op, outcome) if self.ends(op) => self.attachments_listed(outcome, cx),
            ClaimMsg::SlicesListed(op, outcome) if self.ends(op) => self.slices_listed(outcome, cx),
            ClaimMsg::NodeWritten(op, name, uid, outcome) if self.ends(op) => {
                self.node_written(name, uid, outcome, cx);
            }
            ClaimMsg::DriftTold(op, outcome) if self.ends_aside(op) => self.drift_told(outcome, cx),
            ClaimMsg::Launched(op, outcome) if self.ends(op) => self.launched(outcome, cx),
            ClaimMsg::Found(op, outcome) if self.ends(op) => self.found(outcome, cx),
            ClaimMsg::Got(op, id, outcome) if self.ends(op) => self.got(id, outcome, cx),
            // What was asked for aside may have been confirmed to be gone meanwhile.
            ClaimMsg::Got(op, id, outcome) if self.ends_aside(op) && self.memory.sight != Sight::Gone => {
                self.got(id, outcome, cx);
            }
            ClaimMsg::Deleted(op, outcome) if self.ends(op) => self.ordered_down(outcome, cx),
            ClaimMsg::HooksTold(op, outcome) if self.ends(op) => self.hooks_told(outcome, cx),
            ClaimMsg::Rebooted(op, operation, outcome) if self.ends(op) => self.rebooted(operation, outcome, cx),
            ClaimMsg::Written(..)
            | ClaimMsg::ClaimTold(..)
            | ClaimMsg::NodeTold(..)
            | ClaimMsg::NodeFound(..)
            | ClaimMsg::PodsListed(..)
            | ClaimMsg::AttachmentsListed(..)
            | ClaimMsg::SlicesListed(..)
            | ClaimMsg::NodeWritten(..)
            | ClaimMsg::DriftTold(..)
            | ClaimMsg::Launched(..)
            | ClaimMsg::Found(..)
            | ClaimMsg::Got(..)
            | ClaimMsg::HooksTold(..)
            | ClaimMsg::Rebooted(..)
            | ClaimMsg::Deleted(..) => {}
        }
    }

    /// A Node was changed, or will be deleted.
    fn node_written(&mut self, name: NodeName, uid: NodeUid, outcome: Written<Vec<String>>, cx: &Cx<ClaimMsg>) {
        if let Outcome::Done(missing) = &outcome
            && !missing.is_empty()
        {
            self.memory.patched_node = None;
            return self.failed("the Node", &not_kept(missing, EXEMPT_NODES), false, cx);
        }
        if matches!(outcome, Outcome::Failed(cluster::Error::NotFound(_))) {
            self.args.wiring.slots.state.cast(StateMsg::NoNode(name, uid));
        }
        let overtaken = matches!(outcome, Outcome::Failed(cluster::Error::Conflict(_)));
        // After a conflict the version that was patched is known to be outdated: nothing before the next one is seen.
        if self.written("the Node", outcome, cx).is_none() && !overtaken {
            self.memory.patched_node = None;
        }
        if overtaken {
            self.memory.cluster.until = None;
        }
    }

    /// The NodeClaim was changed, or will be deleted.
    fn claim_written(&mut self, outcome: Written<Option<Kept>>, cx: &Cx<ClaimMsg>) {
        // A change that is granted and not to be seen in the answer would be made again at once, and for ever.
        if let Outcome::Done(Some((claim, missing))) = &outcome
            && !missing.is_empty()
        {
            self.tell_of_change(claim, cx);
            self.written = Some(Arc::clone(claim));
            let remedy = "exempt NodeClaims from the mutating admission policy or webhook that takes this back, or apply the definitions of \
                          `joiner crds` if theirs is older";
            let what = not_kept(missing, remedy);
            return self.failed("the NodeClaim", &what, false, cx);
        }
        match self.written("the NodeClaim", outcome, cx) {
            Some(Some((claim, _))) => {
                if claim.has_finalizer() && self.known.as_ref().is_some_and(|known| !known.has_finalizer()) {
                    self.memory.finalizer_added(&claim);
                }
                self.tell_of_change(&claim, cx);
                self.written = Some(claim);
            }
            // Only a deletion returns no object.
            Some(None) => self.deletion_granted(cx),
            None => {}
        }
    }

    /// The cloud was told to take the machine down.
    fn ordered_down(&mut self, outcome: Called<Deletion>, cx: &Cx<ClaimMsg>) {
        match self.called("the deletion", outcome, cx) {
            Some(Deletion::Gone) => self.gone(cx),
            Some(Deletion::Missing) if self.args.wiring.settings.protections.disbelief => {
                self.note(cx.now(), "the cloud knows no such machine");
                self.memory.order_denied = Some(cx.now());
                self.memory.sight = Sight::Missing;
            }
            Some(Deletion::Missing) => self.gone(cx),
            Some(Deletion::InProgress) => {
                self.memory.delete_asked = Some(cx.now());
                if !self.args.wiring.settings.protections.confirmation {
                    self.memory.sight = Sight::Gone;
                }
            }
            None => {}
        }
    }

    /// The machine is no more.
    fn gone(&mut self, cx: &Cx<ClaimMsg>) {
        self.note(cx.now(), "the cloud confirms that the machine is gone");
        self.tell_of_end_of_machine(cx);
        self.memory.sight = Sight::Gone;
    }

    /// The API server will delete the NodeClaim: only now it counts as disrupted, and once.
    fn deletion_granted(&mut self, cx: &Cx<ClaimMsg>) {
        if let Some(deletion) = &mut self.memory.deletion {
            deletion.grant();
        }
        if let (Some((reason, pods)), Some(claim)) = (self.doomed.take(), self.known.clone()) {
            self.note(cx.now(), &format!("deleted: {}", reason.as_str()));
            self.tell_of_granted_deletion(&claim, &reason, pods, cx.now());
            if let Some(pool) = claim.pool().filter(|_| reason.is_of_launch()) {
                self.args.wiring.slots.statics.cast(StaticsMsg::GivenUp(pool));
            }
        }
    }

    fn launched(&mut self, outcome: Called<Box<Machine>>, cx: &Cx<ClaimMsg>) {
        let cause = if let Outcome::Failed(error) = &outcome { error.cause() } else { "LaunchFailed" };
        match outcome {
            Outcome::Done(machine) => {
                self.note(cx.now(), &format!("the cloud launched {}", machine.id));
                self.memory.shown(*machine);
                self.memory.launch_failure = None;
                self.memory.cloud = Hold::default();
            }
            Outcome::Failed(clouds::Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, message })) => {
                self.args.wiring.slots.catalog.cast(CatalogMsg::SoldOut(sold_out));
                let what = format!("insufficient capacity, {message}");
                self.memory.refused = Some(DeleteReason::InsufficientCapacity(what));
            }
            Outcome::Failed(clouds::Error::Launch(LaunchRefused::ClassNotReady(message))) => {
                // The NodeClass was ready when the launch began: what is launched in place of this would be refused as well.
                if let Some(claim) = &self.known {
                    self.args.wiring.slots.classes.cast(ClassesMsg::Doubted(claim.class.clone()));
                }
                self.memory.refused = Some(DeleteReason::ClassNotReady(message));
            }
            Outcome::Failed(clouds::Error::Unknown(message)) => self.unanswered(cause, message, cx),
            Outcome::NotLeader => self.barred(true, cx),
            Outcome::Lost => self.unanswered(cause, "the cloud gave no answer".to_owned(), cx),
            refused => {
                if let Err(why) = refused.answer() {
                    self.postpone(cause, why, cx);
                }
            }
        }
    }

    /// Nobody knows whether the launch took effect: the cloud is asked before it is tried again.
    fn unanswered(&mut self, cause: &'static str, message: String, cx: &Cx<ClaimMsg>) {
        self.tell_of_doubt();
        self.memory.unanswered(cx.now());
        self.postpone(cause, message, cx);
    }

    fn hooks_told(&mut self, outcome: Called<Hooks>, cx: &Cx<ClaimMsg>) {
        if let Some(said) = self.called("what the cloud has still to do before the node opens", outcome, cx) {
            self.memory.hooks = Some((cx.now(), said));
        }
    }

    fn drift_told(&mut self, outcome: Outcome<Option<String>, clouds::Error>, cx: &Cx<ClaimMsg>) {
        let answer = match outcome {
            Outcome::Failed(clouds::Error::Unsupported(_)) => Ok(None),
            outcome => outcome.answer(),
        };
        match answer {
            Ok(drifted) => self.memory.drift.answer = Some(drifted.map(Into::into)),
            Err(trouble) => {
                // What was known of drift stays, and the cloud is asked again in a while.
                self.memory.drift.failed = true;
                cx.slot().meter().failed(cx.now(), &format!("whether the machine has drifted: {trouble}"));
            }
        }
    }

    /// What no repetition changes ends the reboot; everything else is tried again, as the same operation.
    fn rebooted(&mut self, operation: Arc<str>, outcome: Called<()>, cx: &Cx<ClaimMsg>) {
        match outcome {
            Outcome::Failed(
                error @ (clouds::Error::Unsupported(_)
                | clouds::Error::Invalid { .. }
                | clouds::Error::Unauthorized { .. }),
            ) => {
                self.note(cx.now(), &format!("the cloud does not restart the machine: {error}"));
                self.memory.reboot.refused = Some((operation, error.to_string()));
            }
            outcome => {
                if let Outcome::Failed(error) = &outcome {
                    self.memory.reboot.trouble = Some(error.to_string());
                }
                if self.called("the reboot", outcome, cx).is_some() {
                    self.note(cx.now(), "the cloud restarts the machine");
                    self.memory.reboot.issued = Some(operation);
                }
            }
        }
    }

    /// What the cloud has under a provider ID.
    fn got(&mut self, id: ProviderId, outcome: Called<Whereabouts>, cx: &Cx<ClaimMsg>) {
        self.memory.asked = Some(cx.now());
        self.memory.heard = true;
        let Some(whereabouts) = self.called("the cloud", outcome, cx) else { return };
        // It may have been one of two, if the answer to a launch was lost: whether there is another is asked by the mark.
        if whereabouts == Whereabouts::Ended {
            self.note(cx.now(), &format!("the cloud shows that {id} has ended"));
        }
        let uid = self.known.as_ref().map(|known| &known.uid);
        let machine = whereabouts.machine();
        let theirs = machine.as_ref().and_then(|machine| machine.token.as_ref()).filter(|token| Some(*token) != uid);
        self.memory.anothers = theirs.map(|_| id.clone());
        if machine.as_ref().is_none_or(|machine| machine.token.as_ref() != uid) {
            self.memory.tried.insert(id);
        }
        // One that wears another NodeClaim's mark says nothing about this one's.
        if machine.as_ref().is_some_and(|machine| machine.token.is_none() || machine.token.as_ref() == uid) {
            self.memory.undenied();
        }
        self.memory.sight = machine.map_or(Sight::Missing, |machine| Sight::Present(Arc::new(machine)));
    }

    /// Several machines with one token are a fault. The one that the NodeClaim names, else the first by name, is its machine; the others are the
    /// auditor's: he takes them down when he has evidence enough, and sees to it that they are gone.
    fn found(&mut self, outcome: Outcome<Vec<Machine>, clouds::Error>, cx: &Cx<ClaimMsg>) {
        let Some(mut machines) = self.called("the cloud", outcome, cx) else { return };
        let claimed = self.known.as_ref().and_then(|known| known.provider_id.clone());
        machines.sort_by_key(|machine| (claimed.as_ref() != Some(&machine.id), machine.id.clone()));
        let mut machines = machines.into_iter();
        self.memory.looked = Some(cx.now());
        match machines.next() {
            Some(machine) => self.memory.shown(machine),
            None => self.denied(cx),
        }
        for extra in machines {
            tracing::error!(nodeclaim = %self.args.name, machine = %extra.id, "second machine for one nodeclaim, left to the auditor");
            self.note(cx.now(), &format!("{} is a second machine, which the auditor takes down", extra.id));
        }
    }

    /// The cloud shows no machine with the mark, after it was asked for those with the IDs that the NodeClaim and its Nodes name.
    fn denied(&mut self, cx: &Cx<ClaimMsg>) {
        let may_deny_for = self.args.wiring.may_deny_for();
        self.memory.denials.add(cx.now(), may_deny_for);
        let is_deleting = self.known.as_ref().is_some_and(|known| known.deleting.is_some());
        match &self.memory.sight {
            // Neither under the ID that the object has nor under its mark; or the machine that the object names is another's, and there is none of
            // its own to take down.
            Sight::Missing | Sight::Present(_) if is_deleting || self.memory.sight == Sight::Missing => {
                self.memory.absent_since = None;
                if self.memory.denials.suffice(may_deny_for) {
                    return self.gone(cx);
                }
                self.memory.sight = Sight::Missing;
                // Asked once more by all names, in a while.
                self.memory.tried.clear();
            }
            _ => {
                self.memory.sight = Sight::Absent;
                self.memory.absent_since.get_or_insert_with(|| cx.now());
            }
        }
    }

    /// What a request to the API server returned, if it worked. A conflict is no failure: the next look sees what was changed. Nor is what came too
    /// late to be sent: the next look decides anew.
    pub(super) fn written<T>(&mut self, what: &str, outcome: Written<T>, cx: &Cx<ClaimMsg>) -> Option<T> {
        if matches!(outcome, Outcome::Late) {
            return None;
        }
        if matches!(outcome, Outcome::Failed(cluster::Error::Conflict(_) | cluster::Error::NotFound(_))) {
            self.overtaken(cx);
            return None;
        }
        self.answered(what, outcome, false, cx)
    }

    /// What a cloud call returned, if it worked.
    fn called<T>(&mut self, what: &str, outcome: Called<T>, cx: &Cx<ClaimMsg>) -> Option<T> {
        self.answered(what, outcome, true, cx)
    }

    fn answered<T, E: fmt::Display>(
        &mut self,
        what: &str,
        outcome: Outcome<T, E>,
        by_cloud: bool,
        cx: &Cx<ClaimMsg>,
    ) -> Option<T> {
        if matches!(outcome, Outcome::NotLeader) {
            self.barred(by_cloud, cx);
            return None;
        }
        let answer = outcome.answer();
        match &answer {
            // An API server that answers does not make a cloud that fails well, nor the other way round.
            Ok(_) => *self.memory.hold_mut(by_cloud) = Hold::default(),
            Err(why) => self.failed(what, why, by_cloud, cx),
        }
        answer.ok()
    }
}
