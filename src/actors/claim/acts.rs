//! How a claim actor does what its next step says: every act becomes one operation.

use std::sync::Arc;

use crate::actors::protocol::{ClaimMsg, EvictorMsg};
use crate::actors::runtime::{Cx, OpId, Permits};
use crate::clouds::LaunchSpec;
use crate::core::eviction::Emptied;
use crate::core::facts::{self, Snapshot, Status, finalizers, find_condition};
use crate::core::ids::{ClaimName, ProviderId};
use crate::core::lifecycle::{Act, Candidates, DeleteReason, Deletion, LaunchFailure, candidates, class_version};
use crate::core::promises::{Released, judge_node_deletion, judge_order};
use crate::core::writes::{ClaimPatch, ClaimStatusPatch};

use super::Claim;
use super::life::wait_until;
use super::tell::tell_of_node;

/// Why a launch is put off for which the cloud was not even asked.
const NOT_ASKED: &str = "LaunchFailed";

impl Claim {
    pub(super) fn perform(&mut self, act: Act, claim: &Arc<facts::Claim>, snapshot: &Arc<Snapshot>, cx: &Cx<ClaimMsg>) {
        let name = claim.name.clone();
        let (cluster, cloud) = (Arc::clone(&self.args.wiring.cluster), Arc::clone(&self.args.wiring.cloud));
        if let Some(deletion) = Deletion::asked(&act, cx.now()) {
            self.memory.deletion = Some(deletion);
        }
        self.judge(&act, claim, snapshot, cx);
        match act {
            Act::Launch => self.launch(claim, snapshot, cx),
            Act::PatchClaim(patch) => self.patch(name, patch, cx),
            Act::PatchStatus(patch) => self.patch_status(name, patch, cx),
            Act::DeleteClaim(reason) => {
                self.tell_of_deletion(claim, &reason, cx);
                let pods = claim
                    .node
                    .as_ref()
                    .map_or(0, |node| snapshot.pods_on(node).filter(|pod| pod.is_reschedulable()).count());
                self.doomed = Some((reason, pods));
                let op = self.begin("the NodeClaim's deletion");
                let uid = claim.uid.clone();
                let call = async move { cluster.delete_claim(&name, &uid).await.map(|()| None) };
                cx.start(Permits::Delete, call, move |outcome| ClaimMsg::Written(op, outcome));
            }
            Act::GetClaim => self.get_claim(name, cx),
            Act::GetNode(node) => self.get_node(node, cx),
            Act::FindNode(id) => self.find_node(id, cx),
            Act::ListPods(nodes) => self.list_pods(nodes, cx),
            Act::ListAttachments(nodes) => self.list_attachments(nodes, cx),
            Act::ListSlices(node) => self.list_slices(node, cx),
            Act::PatchNode(node, uid, patch) => {
                let op = self.begin("the Node");
                self.memory.patched_node.clone_from(&patch.version);
                if let Some(node) = snapshot.nodes.get(&node) {
                    tell_of_node(claim, node, &patch, cx.now());
                    self.tell_of_new_boot(claim, node, &patch, cx);
                    self.warn_of_missing_taint(claim, node, cx);
                }
                let name = node.clone();
                let call = async move {
                    let node = cluster.patch_node(&node, &patch).await?;
                    Ok(node.map(|node| patch.missing_from(&node)).unwrap_or_default())
                };
                cx.start(Permits::WriteCluster, call, move |outcome| ClaimMsg::NodeWritten(op, name, uid, outcome));
            }
            Act::DeleteNode(node, uid) => {
                let op = self.begin("the Node's deletion");
                let (name, doomed) = (node.clone(), uid.clone());
                let call = async move { cluster.delete_node(&node, &uid).await.map(|()| Vec::new()) };
                cx.start(Permits::Delete, call, move |outcome| ClaimMsg::NodeWritten(op, name, doomed, outcome));
            }
            Act::Drain { evict, force } => {
                // With which grace is seen anew when it is done.
                let force = force.into_iter().map(|(pod, _)| pod).collect();
                self.args.wiring.slots.evictor.cast(EvictorMsg::Drain { from: Emptied::Claim(name), evict, force });
            }
            Act::AskDrift => self.ask_drift(claim, snapshot, cx),
            Act::Find(token) => {
                let op = self.begin("the cloud to say whether there is a machine");
                let call = async move { cloud.find(&token).await };
                cx.start(Permits::ReadCloud, call, move |outcome| ClaimMsg::Found(op, outcome));
            }
            Act::Get(id) => {
                let op = self.begin("the cloud to say whether the machine exists");
                self.get(op, id, cx);
            }
            Act::GetAside(id) => self.get_aside(id, cx),
            Act::AskHooks => self.ask_hooks(claim, cx),
            Act::Reboot(id, operation) => self.reboot(id, operation, cx),
            Act::DeleteMachine(id) => {
                let op = self.begin("the cloud to take the machine down");
                let call = async move { cloud.delete(&id).await };
                cx.start(Permits::WriteCloud, call, move |outcome| ClaimMsg::Deleted(op, outcome));
            }
        }
    }

    /// Whether an act breaks a promise, or will turn out to have broken one.
    fn judge(&self, act: &Act, claim: &facts::Claim, snapshot: &Snapshot, cx: &Cx<ClaimMsg>) {
        let promises = &cx.house.promises;
        let lets_go = |left: &Option<Vec<Arc<str>>>| left.as_ref().is_some_and(|left| !finalizers::is_held(left));
        match act {
            Act::DeleteMachine(id) => {
                if let Some(broken) = judge_order(claim, id, &self.memory.sight) {
                    promises.broken(broken);
                }
            }
            Act::DeleteNode(name, _) => {
                let judged = snapshot.nodes.get(name).and_then(|node| {
                    let owners = snapshot.owners_of(node).map(|owner| &**owner);
                    judge_node_deletion(claim, node, owners, &self.memory.sight)
                });
                if let Some(broken) = judged {
                    promises.broken(broken);
                }
            }
            Act::PatchClaim(patch) if claim.has_finalizer() && lets_go(&patch.finalizers) => {
                promises.release(Released::Claim(claim.name.clone(), claim.uid.clone()));
            }
            Act::PatchNode(name, _, patch) if lets_go(&patch.finalizers) => {
                let node = snapshot.nodes.get(name).filter(|node| node.has_finalizer());
                // One that carries another machine's ID is that one's by mistake.
                let id =
                    node.and_then(|node| node.provider_id.clone()).filter(|id| claim.provider_id.as_ref() == Some(id));
                if let Some(id) = id {
                    promises.release(Released::Node(name.clone(), id));
                }
            }
            _ => {}
        }
    }

    fn launch(&mut self, claim: &Arc<facts::Claim>, snapshot: &Snapshot, cx: &Cx<ClaimMsg>) {
        let class = match usable_class(claim, snapshot) {
            Ok(class) => class,
            Err(Unusable::Unjudged(problem)) => return self.postpone(NOT_ASKED, problem, cx),
            Err(Unusable::Refused(problem)) => {
                self.memory.refused = Some(DeleteReason::ClassNotReady(problem));
                cx.cast(ClaimMsg::Look);
                return;
            }
        };
        let catalog = self.args.wiring.boards.catalog();
        // What its NodePool was planned with: NodeOverlays change prices, and what a machine has.
        let of_pool = claim.pool().and_then(|pool| catalog.pools.get(&pool));
        let Some(types) = of_pool.or_else(|| catalog.classes.get(&claim.class)) else {
            self.postpone(NOT_ASKED, "the cloud has not yet told its instance types".to_owned(), cx);
            return;
        };
        let candidates = match candidates(claim, types) {
            Candidates::Some(candidates) => candidates,
            Candidates::SoldOut => {
                let what = "insufficient capacity, all offerings that meet the NodeClaim are sold out".to_owned();
                self.memory.refused = Some(DeleteReason::InsufficientCapacity(what));
                cx.cast(ClaimMsg::Look);
                return;
            }
            Candidates::Impossible(problem) => {
                self.postpone(NOT_ASKED, problem, cx);
                return;
            }
        };
        let cloud = Arc::clone(&self.args.wiring.cloud);
        let op = self.begin("the launch");
        let token = if self.args.wiring.settings.protections.token {
            claim.uid.clone()
        } else {
            format!("{}-{op}", claim.uid).into()
        };
        let spec = LaunchSpec { token, claim: Arc::clone(claim), class, candidates };
        self.note(cx.now(), "asked the cloud for a machine");
        self.memory.launching();
        cx.house.promises.launch(&claim.uid);
        let call = async move { cloud.create(&spec).await.map(Box::new) };
        cx.start(Permits::Launch, call, move |outcome| ClaimMsg::Launched(op, outcome));
    }

    fn reboot(&mut self, id: ProviderId, operation: Arc<str>, cx: &Cx<ClaimMsg>) {
        if self.memory.reboot.first.as_ref().is_none_or(|(known, _)| *known != operation) {
            self.memory.reboot.first = Some((Arc::clone(&operation), cx.now()));
            self.note(cx.now(), "asked the cloud to restart the machine");
        }
        let op = self.begin("the cloud to restart the machine");
        let (cloud, asked) = (Arc::clone(&self.args.wiring.cloud), Arc::clone(&operation));
        let call = async move { cloud.reboot(&id, &asked).await };
        cx.start(Permits::WriteCloud, call, move |outcome| ClaimMsg::Rebooted(op, operation, outcome));
    }

    fn ask_hooks(&mut self, claim: &Arc<facts::Claim>, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the cloud to say what it has still to do before the node opens");
        let (cloud, claim) = (Arc::clone(&self.args.wiring.cloud), Arc::clone(claim));
        let call = async move { cloud.hooks(&claim).await };
        cx.start(Permits::ReadCloud, call, move |outcome| ClaimMsg::HooksTold(op, outcome));
    }

    /// Asks for the machine beside whatever else there is to do. Who has not answered yet is not asked again.
    fn get_aside(&mut self, id: ProviderId, cx: &Cx<ClaimMsg>) {
        let first = self.memory.asked.replace(cx.now()).is_none();
        // What is under way may be a question about drift, which matters no more.
        if first || self.aside.is_none() {
            let op = self.begin_aside();
            self.get(op, id, cx);
        } else {
            // It was asked a while ago and has said nothing: nobody waits for its first word any more.
            self.memory.heard = true;
        }
        cx.cast(ClaimMsg::Look);
    }

    fn get(&self, op: OpId, id: ProviderId, cx: &Cx<ClaimMsg>) {
        let (cloud, asked) = (Arc::clone(&self.args.wiring.cloud), id.clone());
        let call = async move { cloud.get(&asked).await };
        cx.start(Permits::ReadCloud, call, move |outcome| ClaimMsg::Got(op, id, outcome));
    }

    /// Asks the cloud about drift, beside whatever else there is to do: nothing waits for the answer.
    fn ask_drift(&mut self, claim: &Arc<facts::Claim>, snapshot: &Snapshot, cx: &Cx<ClaimMsg>) {
        let Some(class) = snapshot.classes.get(&claim.class).cloned() else { return };
        self.memory.drift.asked = Some(cx.now());
        self.memory.drift.class = Some(class_version(&class));
        self.memory.drift.failed = false;
        let op = self.begin_aside();
        let (cloud, claim) = (Arc::clone(&self.args.wiring.cloud), Arc::clone(claim));
        let call = async move { cloud.drift(&claim, &class).await };
        cx.start(Permits::ReadCloud, call, move |outcome| ClaimMsg::DriftTold(op, outcome));
        cx.cast(ClaimMsg::Look);
    }

    fn patch(&mut self, name: ClaimName, patch: ClaimPatch, cx: &Cx<ClaimMsg>) {
        let (op, cluster) = (self.begin("the NodeClaim's metadata"), Arc::clone(&self.args.wiring.cluster));
        let call = async move {
            let claim = cluster.patch_claim(&name, &patch).await?;
            let missing = patch.missing_from(&claim);
            Ok(Some((claim, missing)))
        };
        cx.start(Permits::WriteCluster, call, move |outcome| ClaimMsg::Written(op, outcome));
    }

    fn patch_status(&mut self, name: ClaimName, patch: ClaimStatusPatch, cx: &Cx<ClaimMsg>) {
        let (op, cluster) = (self.begin("the NodeClaim's status"), Arc::clone(&self.args.wiring.cluster));
        let call = async move {
            let claim = cluster.patch_claim_status(&name, &patch).await?;
            let missing = patch.missing_from(&claim);
            Ok(Some((claim, missing)))
        };
        cx.start(Permits::WriteCluster, call, move |outcome| ClaimMsg::Written(op, outcome));
    }

    /// The launch did not work, and is tried again after a while that grows with every failure. It is kept apart from other failures: it
    /// shows in a condition, whose writing is no success of the launch, and holds up nothing but the next launch.
    pub(super) fn postpone(&mut self, cause: &'static str, message: String, cx: &Cx<ClaimMsg>) {
        let trouble = format!("launch: {message}");
        cx.slot().meter().failed(cx.now(), &trouble);
        let before = self.memory.launch_failure.take();
        if before.as_ref().is_none_or(|before| before.message != message) {
            self.warn(&trouble);
        }
        let attempts = before.map_or(0, |before| before.attempts) + 1;
        let retry_at = wait_until(cx.now(), attempts);
        self.memory.launch_failure = Some(LaunchFailure { cause, message, attempts, retry_at });
        cx.cast(ClaimMsg::Look);
    }
}

/// Why no machine is launched with a NodeClass.
enum Unusable {
    /// It cannot be used as it is.
    Refused(String),
    /// Nobody has said yet whether it can.
    Unjudged(String),
}

/// The NodeClass of a NodeClaim, if machines may be launched with it.
fn usable_class(claim: &facts::Claim, snapshot: &Snapshot) -> Result<Arc<facts::NodeClass>, Unusable> {
    let name = &claim.class;
    let Some(class) = snapshot.classes.get(name) else {
        let what = format!("{name} does not exist; create it, or correct spec.nodeClassRef");
        return Err(Unusable::Refused(what));
    };
    if class.deleting.is_some() {
        return Err(Unusable::Refused(format!("{name} is being deleted")));
    }
    let Some(ready) = find_condition(&class.conditions, "Ready") else {
        return Err(Unusable::Unjudged(format!("{name} has no Ready condition yet")));
    };
    let why = || format!("{} {}", ready.reason, ready.message);
    match ready.status {
        Status::True => Ok(Arc::clone(class)),
        Status::False => Err(Unusable::Refused(format!("{name} is not ready: {}", why()))),
        Status::Unknown => Err(Unusable::Unjudged(format!("whether {name} is ready is not known yet: {}", why()))),
    }
}
