//! What a claim actor says of its machine's life: Events for people, metrics for dashboards.

use std::time::Duration;

use jiff::Timestamp;

use crate::actors::protocol::{ClaimMsg, PoolsMsg, ProvisionerMsg};
use crate::actors::runtime::Cx;
use crate::core::facts::{self, Node, Snapshot, Status, finalizers, find_condition};
use crate::core::health::Failure;
use crate::core::ids::PoolName;
use crate::core::labels;
use crate::core::lifecycle::{DeleteReason, Sight, conditions_of, inconsistencies, reboot_issued_at};
use crate::core::writes::{NodePatch, Regarding};
use crate::telemetry::conditions::{Transition, transitions};
use crate::telemetry::events;
use crate::telemetry::metrics::{self, CloudCall, DisruptedFor, RebootResult, TerminationMode};

use super::Claim;

impl Claim {
    /// The NodeClaim was written: what changed in its conditions, and whether that ended its life.
    pub(super) fn tell_of_change(&mut self, now: &facts::Claim, cx: &Cx<ClaimMsg>) {
        // Not what the snapshot has by now: the watch may be faster than the answer to the write.
        let Some(before) = self.known.clone().filter(|before| before.uid == now.uid) else { return };
        let pool = pool(now);
        if let (Some(wrong), Some(right)) = (&before.provider_id, &now.provider_id)
            && wrong != right
        {
            let what = format!("status.providerID: {wrong} is not its machine; joiner wrote back {right}");
            tracing::error!(nodeclaim = %now.name, "{what}");
            self.announce(events::mistaken(about(now), &what), cx);
        }
        self.tell_of_inconsistencies(&before, now, cx);
        for transition in transitions(&conditions_of(&before), &conditions_of(now)) {
            metrics::claim_condition_changed(now, &transition);
            match (&*transition.kind, transition.to) {
                ("Rebooting", Status::False) => self.tell_of_end_of_reboot(&before, &transition, cx),
                ("Registered", Status::True) => {
                    metrics::node_created(&pool, label(now, labels::ZONE));
                    self.tell_of_launch(now, Ok(()));
                }
                ("Drained", Status::True) => metrics::node_drained(&pool),
                _ => {}
            }
            if let Some(event) = events::condition_changed(about(now), &transition) {
                self.announce(event, cx);
            }
        }
    }

    /// The Node has less than its machine was said to have: each problem is said when it comes, also beside another one.
    fn tell_of_inconsistencies(&mut self, before: &facts::Claim, now: &facts::Claim, cx: &Cx<ClaimMsg>) {
        let message = |claim: &facts::Claim| {
            let found = find_condition(&claim.conditions, "ConsistentStateFound");
            found
                .filter(|found| found.status == Status::False)
                .map(|found| found.message.to_string())
                .unwrap_or_default()
        };
        let (known, message) = (message(before), message(now));
        for problem in
            inconsistencies(&message).filter(|problem| !inconsistencies(&known).any(|known| known == *problem))
        {
            self.announce(events::failed_consistency_check(about(now), problem), cx);
        }
    }

    /// The NodeClaim is gone. Said when it is no longer seen, and not when its finalizer was taken off: the watch may be faster than the
    /// answer to that.
    pub(super) fn tell_of_end(&mut self, cx: &Cx<ClaimMsg>) {
        let Some(claim) = self.known.take() else { return };
        let Some(deleting) = claim.deleting else { return };
        metrics::claim_terminated(&claim, between(deleting, cx.now()));
        self.announce(events::finalized(about(&claim)), cx);
        tracing::info!(nodeclaim = %claim.name, nodepool = %pool(&claim), "deleted nodeclaim");
    }

    /// The NodeClaim cannot be understood, or can again. Said once for each problem.
    pub(super) fn tell_of_quarantine(&mut self, claim: &facts::Claim, cx: &Cx<ClaimMsg>) {
        if self.broken == claim.broken {
            return;
        }
        self.broken.clone_from(&claim.broken);
        let Some(broken) = &claim.broken else {
            tracing::info!(nodeclaim = %claim.name, "nodeclaim can be understood again");
            return;
        };
        tracing::error!(nodeclaim = %claim.name, problem = %broken.problem, "nodeclaim cannot be understood, its machine is left alone");
        self.announce(events::not_understood(about(claim), &broken.problem), cx);
    }

    /// Somebody has written into the NodeClaim what cannot be right. Said once for each mistake.
    pub(super) fn tell_of_mistakes(&mut self, claim: &facts::Claim, mistakes: &[String], cx: &Cx<ClaimMsg>) {
        let known = self.last_mistakes().to_vec();
        for mistake in mistakes.iter().filter(|mistake| claim.broken.is_none() && !known.contains(mistake)) {
            tracing::error!(nodeclaim = %claim.name, mistake, "nodeclaim needs to be mended");
            self.announce(events::mistaken(about(claim), mistake), cx);
        }
    }

    /// A Node ought to be initialized by now, or a machine to be gone.
    pub(super) fn tell_of_overdue(&mut self, claim: &facts::Claim, what: &str, cx: &Cx<ClaimMsg>) {
        if self.last_overdue() == Some(what) {
            return;
        }
        if claim.deleting.is_some() {
            tracing::warn!(nodeclaim = %claim.name, what, "termination is overdue");
            self.announce(events::termination_overdue(about(claim), what), cx);
        } else {
            tracing::warn!(nodeclaim = %claim.name, what, "initialization is overdue");
            self.announce(events::initialization_overdue(about(claim), what), cx);
        }
    }

    /// A repair is due and does not happen.
    pub(super) fn tell_of_blocked_repair(
        &mut self,
        claim: &facts::Claim,
        snapshot: &Snapshot,
        why: &str,
        cx: &Cx<ClaimMsg>,
    ) {
        let node = snapshot.node_of(claim).map(|node| Regarding::Node(node.name.clone(), node.uid.clone()));
        let pool = claim.pool().and_then(|pool| snapshot.pools.get(&pool));
        let pool = pool.map(|pool| Regarding::Pool(pool.name.clone(), pool.uid.clone()));
        for about in node.into_iter().chain([about(claim)]).chain(pool) {
            self.announce(events::node_repair_blocked(about, why), cx);
        }
    }

    /// The reboot that somebody asked for has ended and the node goes on, or it could not be understood.
    fn tell_of_end_of_reboot(&mut self, before: &facts::Claim, transition: &Transition, cx: &Cx<ClaimMsg>) {
        let now = cx.now();
        let asked = find_condition(&before.conditions, "Rebooting").map(|condition| condition.since);
        let took = asked.map(|asked| between(asked, now)).unwrap_or_default();
        if &*transition.reason == "RebootSucceeded" {
            metrics::reboot_ended(RebootResult::Succeeded, took);
            metrics::reboot_recovered(between(reboot_issued_at(before, &self.memory, now), now));
            self.note(cx.now(), "back from the reboot");
        } else {
            metrics::reboot_ended(RebootResult::InvalidRequest, took);
            self.announce(events::reboot_failed(about(before), &transition.message), cx);
        }
    }

    /// The fence is about to be taken off a Node whose machine was restarted.
    pub(super) fn tell_of_new_boot(&mut self, claim: &facts::Claim, node: &Node, patch: &NodePatch, cx: &Cx<ClaimMsg>) {
        let fenced = |taints: &[facts::Taint]| taints.iter().any(|taint| &*taint.key == labels::REBOOTING_TAINT);
        let opens = fenced(&node.taints) && patch.taints.as_ref().is_some_and(|taints| !fenced(taints));
        let noted = claim.annotations.get(labels::PRE_BOOT_ID);
        if opens
            && claim.is_rebooting()
            && noted.is_some_and(|noted| node.boot_id.as_ref().is_some_and(|id| id != noted))
        {
            self.note(cx.now(), "another boot ID");
            self.announce(events::reboot_observed(about(claim)), cx);
        }
    }

    /// The NodePool's launches are remembered: this one became a Node, or did not.
    fn tell_of_launch(&self, claim: &facts::Claim, outcome: Result<(), Failure>) {
        if let Some(pool) = &claim.owner_pool {
            self.args.wiring.slots.pools.cast(PoolsMsg::Launched(pool.clone(), outcome));
        }
    }

    /// The deletion that joiner asked for was granted.
    pub(super) fn tell_of_granted_deletion(
        &self,
        claim: &facts::Claim,
        reason: &DeleteReason,
        pods: usize,
        now: Timestamp,
    ) {
        count_deletion(claim, reason, pods);
        let result = match reason {
            DeleteReason::RebootRefused(_) => Some(RebootResult::ProviderError),
            DeleteReason::RebootTimeout(_) => Some(RebootResult::RecoveryTimeout),
            _ => None,
        };
        if let (Some(result), Some(asked)) = (result, find_condition(&claim.conditions, "Rebooting")) {
            metrics::reboot_ended(result, between(asked.since, now));
        }
        if !matches!(reason, DeleteReason::LaunchTimeout | DeleteReason::RegistrationTimeout) {
            return;
        }
        let launched = find_condition(&claim.conditions, "Launched");
        let failure = match launched.filter(|launched| launched.status != Status::True) {
            Some(launched) => Failure { reason: launched.reason.to_string(), message: launched.message.to_string() },
            None => Failure { reason: "RegistrationFailed".to_owned(), message: "Failed to register node".to_owned() },
        };
        self.tell_of_launch(claim, Err(failure));
    }

    /// joiner asks for the deletion of a NodeClaim that nobody asked to delete.
    pub(super) fn tell_of_deletion(&mut self, claim: &facts::Claim, reason: &DeleteReason, cx: &Cx<ClaimMsg>) {
        let why = told(reason, claim);
        let machine = claim.provider_id.as_ref().map_or("none", |id| id.as_str());
        let doing = if self.args.wiring.cluster.only_says() { "would delete" } else { "deleting" };
        tracing::info!(nodeclaim = %claim.name, machine, reason = reason.as_str(), why, "{doing} nodeclaim");
        let event = match reason {
            DeleteReason::InsufficientCapacity(_) => {
                self.tell_pods_of_no_capacity(claim, &why);
                events::insufficient_capacity(about(claim), &claim.name, &why)
            }
            DeleteReason::RebootRefused(_) | DeleteReason::RebootTimeout(_) => {
                events::reboot_failed(about(claim), &why)
            }
            _ => events::terminating(about(claim), &format!("Disrupting NodeClaim: {why}")),
        };
        self.announce(event, cx);
    }

    /// Those who were to run on the machine hear of it by whoever tells pods of plans: each of them once, however many NodeClaims fail in a row.
    fn tell_pods_of_no_capacity(&self, claim: &facts::Claim, why: &str) {
        let snapshot = self.args.wiring.boards.snapshot();
        let pods: Vec<_> = snapshot.planned_for.get(&claim.name).into_iter().flatten().cloned().collect();
        if !pods.is_empty() {
            let sold_out = ProvisionerMsg::SoldOut(claim.name.clone(), pods, why.to_owned());
            self.args.wiring.slots.provisioner.cast(sold_out);
        }
    }

    /// The cloud confirms that the machine is gone.
    pub(super) fn tell_of_end_of_machine(&self, cx: &Cx<ClaimMsg>) {
        if self.memory.sight == Sight::Gone {
            return;
        }
        let Some(claim) = self.object() else { return };
        // Not what this actor remembers: the order is repeated, and may be older than the actor.
        let ordered = find_condition(&claim.conditions, "InstanceTerminating");
        if let Some(ordered) = ordered.filter(|ordered| ordered.status == Status::True) {
            metrics::instance_terminated(&pool(&claim), between(ordered.since, cx.now()));
        }
    }

    /// Nobody knows whether a launch took effect.
    pub(super) fn tell_of_doubt(&self) {
        tracing::warn!(nodeclaim = %self.args.name, "outcome of a launch unknown, looking before anything else");
        metrics::cloud_outcome_unknown(CloudCall::Create);
    }

    fn announce(&mut self, event: events::Event, cx: &Cx<ClaimMsg>) {
        self.args.wiring.announce(&cx.house, &mut self.said, event);
    }
}

/// Why a NodeClaim is deleted that nobody asked to delete, for people: with what it waited for, which goes with the object.
fn told(reason: &DeleteReason, claim: &facts::Claim) -> String {
    let waited_for = |kind: &str| {
        let condition = find_condition(&claim.conditions, kind).filter(|condition| !condition.message.is_empty());
        condition.map(|condition| format!(": {}", condition.message)).unwrap_or_default()
    };
    match reason {
        DeleteReason::InsufficientCapacity(why)
        | DeleteReason::ClassNotReady(why)
        | DeleteReason::RebootRefused(why)
        | DeleteReason::RebootTimeout(why) => why.clone(),
        DeleteReason::LaunchTimeout => format!("no machine was launched for it in time{}", waited_for("Launched")),
        DeleteReason::RegistrationTimeout => format!("its Node did not register in time{}", waited_for("Registered")),
        DeleteReason::Expired => "it is older than its expireAfter".to_owned(),
        DeleteReason::NodeDeleted => "its Node is being deleted".to_owned(),
        DeleteReason::Unhealthy(condition) => format!("condition {condition} of its Node has been bad for too long"),
        DeleteReason::MachineGone => "its machine is gone".to_owned(),
    }
}

/// The deletion that joiner asked for was granted; `pods` of the node have to move.
fn count_deletion(claim: &facts::Claim, reason: &DeleteReason, pods: usize) {
    let counted = match reason {
        DeleteReason::InsufficientCapacity(_) => DisruptedFor::InsufficientCapacity,
        DeleteReason::ClassNotReady(_) => DisruptedFor::NodeClassNotReady,
        DeleteReason::LaunchTimeout => DisruptedFor::LaunchTimeout,
        DeleteReason::RegistrationTimeout => DisruptedFor::RegistrationTimeout,
        DeleteReason::Expired => DisruptedFor::Expired,
        DeleteReason::Unhealthy(condition) => {
            metrics::claim_unhealthy(claim, condition, TerminationMode::Forceful);
            DisruptedFor::Unhealthy
        }
        DeleteReason::MachineGone => DisruptedFor::GarbageCollected,
        // A user's act, not ours.
        DeleteReason::NodeDeleted => return,
        // Counted when the reboot was decided: its end is the end of that.
        DeleteReason::RebootRefused(_) | DeleteReason::RebootTimeout(_) => return,
    };
    let mode = TerminationMode::of(claim.termination_grace);
    let pods = u64::try_from(pods).unwrap_or(u64::MAX);
    metrics::claim_disrupted(counted, &pool(claim), label(claim, labels::CAPACITY_TYPE), None, mode, pods);
}

/// A Node's finalizer is about to be taken off, because its machine is gone.
pub(super) fn tell_of_node(claim: &facts::Claim, node: &Node, patch: &NodePatch, now: Timestamp) {
    let (Some(deleting), Some(finalizers)) = (node.deleting, &patch.finalizers) else { return };
    if !finalizers::is_held(finalizers) {
        let (since_deletion, lifetime) = (between(deleting, now), between(node.created, now));
        metrics::node_terminated(claim, node, since_deletion, lifetime);
    }
}

fn about(claim: &facts::Claim) -> Regarding {
    Regarding::Claim(claim.name.clone(), claim.uid.clone())
}

/// The NodePool, or an empty name for a NodeClaim that somebody made by hand.
fn pool(claim: &facts::Claim) -> PoolName {
    claim.pool().unwrap_or_else(|| "".into())
}

fn label<'a>(claim: &'a facts::Claim, key: &str) -> &'a str {
    claim.labels.get(key).map_or("", |value| value)
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
