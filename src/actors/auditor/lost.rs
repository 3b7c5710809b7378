//! NodeClaims and Nodes whose machine is not listed: the cloud is asked for the one machine, and only when it goes on knowing none do they go.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::actors::protocol::{AuditorMsg, Called};
use crate::actors::runtime::{Cx, Outcome, Permits};
use crate::core::audit::Finding;
use crate::core::facts::finalizers;
use crate::core::ids::{ClaimName, ClaimUid, NodeName, NodeUid, ProviderId};
use crate::core::labels;
use crate::core::writes::{NodePatch, Regarding};
use crate::telemetry::events;
use crate::telemetry::metrics::{self, DisruptedFor, TerminationMode};

use super::Auditor;

/// Looks in which a machine must have been without its mark before it is said that its Node stays for it: the mark may be late.
const PATIENCE: u32 = 2;

impl Auditor {
    /// Asks for the machines of NodeClaims that are to be finished, and of Nodes that are to be let go. A listing may lack a machine without saying
    /// so: whoever is asked for the one machine knows better.
    pub(super) fn ask_for_lost(&mut self, cx: &Cx<AuditorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        // A namesake that has taken the place of one since is none of them.
        let machine = |finding: &Finding| match finding {
            Finding::LostMachine(name, uid) => {
                snapshot.claims.get(name).filter(|claim| claim.uid == *uid)?.provider_id.clone()
            }
            Finding::LeftNode(name, uid) => {
                snapshot.nodes.get(name).filter(|node| node.uid == *uid)?.provider_id.clone()
            }
            _ => None,
        };
        let left: BTreeMap<Finding, ProviderId> =
            self.verdict.finish.iter().filter_map(|finding| Some((finding.clone(), machine(finding)?))).collect();
        self.denied.retain(|denied, _| left.contains_key(denied));
        let (may_deny_for, mut next) = (self.wiring.may_deny_for(), None::<Timestamp>);
        for (finding, id) in left {
            if let Some(again) = self.denied.get(&finding).and_then(|denied| denied.again_at(cx.now(), may_deny_for)) {
                next = Some(next.map_or(again, |next| next.min(again)));
                continue;
            }
            let cloud = Arc::clone(&self.wiring.cloud);
            let call = async move { cloud.get(&id).await.map(|found| found.is_there()) };
            cx.start(Permits::ReadCloud, call, move |outcome| AuditorMsg::MachineAsked(finding, outcome));
        }
        self.ask_at(next, cx);
    }

    /// Looks are further apart than the times for which a cloud may be wrong: it is asked in between, too.
    fn ask_at(&mut self, next: Option<Timestamp>, cx: &Cx<AuditorMsg>) {
        let wait = next.map(|next| next.duration_since(cx.now()).unsigned_abs());
        self.asking = wait.map(|wait| cx.after(wait, AuditorMsg::AskForLost));
    }

    /// The cloud was asked for the one machine of something: only if it is certain that there is none does that go.
    pub(super) fn machine_asked(&mut self, finding: &Finding, outcome: Called<bool>, cx: &Cx<AuditorMsg>) {
        // A later look may have found otherwise, and without the lease nobody looks.
        if !self.verdict.finish.contains(finding) {
            return;
        }
        if !matches!(outcome, Outcome::Done(false)) {
            self.has_had_its_turn(std::slice::from_ref(finding));
        }
        match outcome {
            Outcome::Done(false) => {
                let may_deny_for = self.wiring.may_deny_for();
                let denied = self.denied.entry(finding.clone()).or_default();
                denied.add(cx.now(), may_deny_for);
                if !denied.suffice(may_deny_for) {
                    let again = denied.again_at(cx.now(), may_deny_for);
                    return self.ask_at(again, cx);
                }
            }
            Outcome::Done(true) => {
                self.denied.remove(finding);
                self.timeline.note(cx.now(), format!("{finding}; asked for it, the cloud shows the machine"));
                if let Finding::LeftNode(name, _) = finding {
                    self.tell_of_kept(name, cx);
                }
                return;
            }
            Outcome::Failed(error) => return cx.slot().meter().failed(cx.now(), &format!("{finding}: {error}")),
            Outcome::Lost | Outcome::NotLeader | Outcome::Late => return,
        }
        match finding {
            Finding::LostMachine(name, uid) => self.finish(finding, name, uid, cx),
            Finding::LeftNode(name, uid) => self.release(finding, name, uid, cx),
            _ => {}
        }
    }

    /// Deletes a NodeClaim whose machine is gone.
    fn finish(&mut self, finding: &Finding, name: &ClaimName, uid: &ClaimUid, cx: &Cx<AuditorMsg>) {
        tracing::warn!(nodeclaim = %name, "deleting nodeclaim whose machine is gone");
        self.timeline.note(cx.now(), format!("deletes NodeClaim {name}"));
        let evidence = self.why(finding);
        self.has_had_its_turn(std::slice::from_ref(finding));
        self.write_down(&format!("deletes NodeClaim {name}, whose machine is gone"), &evidence, cx);
        let about = Regarding::Claim(name.clone(), uid.clone());
        let event = events::terminating(about, &format!("Disrupting NodeClaim: its machine is gone: {evidence}"));
        self.wiring.announce(&cx.house, &mut self.said, event);
        let (cluster, name, uid) = (Arc::clone(&self.wiring.cluster), name.clone(), uid.clone());
        let finished = name.clone();
        let call = async move { cluster.delete_claim(&name, &uid).await };
        cx.start(Permits::Delete, call, move |outcome| AuditorMsg::ClaimDeleted(finished, outcome));
    }

    /// A NodeClaim is deleted whose machine is gone.
    pub(super) fn count(&self, name: &ClaimName) {
        let snapshot = self.wiring.boards.snapshot();
        let Some(claim) = snapshot.claims.get(name) else { return };
        let pool = claim.pool().unwrap_or_else(|| "".into());
        let capacity_type = claim.labels.get(labels::CAPACITY_TYPE).map_or("", |value| value);
        let pods =
            claim.node.as_ref().map_or(0, |node| snapshot.pods_on(node).filter(|pod| pod.is_reschedulable()).count());
        let pods = u64::try_from(pods).unwrap_or(u64::MAX);
        let mode = TerminationMode::of(claim.termination_grace);
        metrics::claim_disrupted(DisruptedFor::GarbageCollected, &pool, capacity_type, None, mode, pods);
    }

    /// Says of Nodes that are being deleted why they stay: their NodeClaims are gone, and their machines run and carry no mark that says whose they are.
    pub(super) fn tell_of_unmarked(&mut self, cx: &Cx<AuditorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let unmarked = self.history.iter().filter(|(_, evidence)| evidence.looks >= PATIENCE);
        let unmarked = unmarked.filter_map(|(finding, _)| match finding {
            Finding::UnmarkedMachine(id) => Some(id),
            _ => None,
        });
        let nodes = unmarked.flat_map(|id| snapshot.nodes_with(id)).filter(|node| node.deleting.is_some());
        let alone = nodes.filter(|node| node.has_finalizer() && snapshot.owners_of(node).next().is_none());
        let names: Vec<NodeName> = alone.map(|node| node.name.clone()).collect();
        for name in names {
            self.tell_of_kept(&name, cx);
        }
    }

    fn tell_of_kept(&mut self, name: &NodeName, cx: &Cx<AuditorMsg>) {
        let Some(node) = self.wiring.boards.snapshot().nodes.get(name).cloned() else { return };
        let id = node.provider_id.as_ref().map_or("", |id| id.as_str());
        let what = format!(
            "The Node stays: its NodeClaim is gone, and its machine {id} runs and does not carry joiner's mark, so that joiner does not \
             take it down. Take it down in the cloud; or take the finalizer {} off the Node by hand, and the machine stays",
            labels::TERMINATION_FINALIZER
        );
        let about = Regarding::Node(node.name.clone(), node.uid.clone());
        self.wiring.announce(&cx.house, &mut self.said, events::termination_overdue(about, &what));
    }

    /// Takes joiner's finalizer off a Node whose NodeClaim and machine are both gone. It is tried again at the next look.
    fn release(&mut self, finding: &Finding, name: &NodeName, uid: &NodeUid, cx: &Cx<AuditorMsg>) {
        let Some(node) = self.wiring.boards.snapshot().nodes.get(name).cloned() else { return };
        if node.uid != *uid {
            return;
        }
        tracing::warn!(node = %name, "letting a node go that has neither nodeclaim nor machine");
        self.timeline.note(cx.now(), format!("lets Node {name} go"));
        let evidence = self.why(finding);
        self.has_had_its_turn(std::slice::from_ref(finding));
        self.write_down(&format!("lets Node {name} go, whose NodeClaim and machine are gone"), &evidence, cx);
        let about = Regarding::Node(node.name.clone(), node.uid.clone());
        let event =
            events::terminating(about, &format!("Letting Node go: its NodeClaim and machine are gone: {evidence}"));
        self.wiring.announce(&cx.house, &mut self.said, event);
        let patch = NodePatch { finalizers: Some(finalizers::released(&node.finalizers)), ..NodePatch::of(&node) };
        self.patch(&node, patch, cx);
    }
}
