//! Kubernetes Events, as values: what they are about, their reason, their sentence, and how often the same may be said.
//!
//! Reasons are Karpenter's, so that alerts and habits carry over. Builders decide nothing and send nothing; [`super::dedupe::Dedupe`] says
//! whether an event is worth sending.

use std::time::Duration;

use crate::core::ids::{ClaimName, NodeName, ObjectKey};
pub use crate::core::writes::Regarding as About;

use super::conditions::Transition;

/// Most bytes of a message; the API server refuses longer ones.
const LONGEST: usize = 1024;
/// Where the rest was left out, as in conditions.
const DOTS: &str = "...";
/// For how long the same is not said again, unless an event says otherwise; Karpenter's.
const WINDOW: Duration = Duration::from_mins(2);

/// An event that could be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The object that it is about.
    pub about: About,
    /// Whether people should worry (type Warning instead of Normal).
    pub warning: bool,
    /// One word, Karpenter's.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
    /// What makes it the same as another of this reason about this object; nothing when it is never the same.
    pub sameness: Option<String>,
    /// For how long the same is not said again.
    pub window: Duration,
    /// Whether it comes in such numbers that there is a limit on how many a second.
    pub limited: bool,
}

impl Event {
    fn new(about: About, warning: bool, reason: &'static str, message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        Self { about, warning, reason, message, sameness: Some(String::new()), window: WINDOW, limited: false }
    }

    fn normal(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(about, false, reason, message)
    }

    fn warning(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(about, true, reason, message)
    }

    fn every(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    fn limited(mut self) -> Self {
        self.limited = true;
        self
    }
}

/// What an Event has room for, with an ellipsis where something was cut.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST - DOTS.len()));
        text.push_str(DOTS);
    }
    text
}

// Pods

/// A pod was planned for a NodeClaim, a node, or a NodeClaim with its node.
pub fn nominated(pod: About, claim: Option<&ClaimName>, node: Option<&NodeName>) -> Event {
    let claim = claim.map(|name| format!("nodeclaim/{name}"));
    let node = node.map(|name| format!("node/{name}"));
    let places: Vec<String> = claim.into_iter().chain(node).collect();
    Event::normal(pod, "Nominated", format!("Pod should schedule on: {}", places.join(", "))).limited()
}

/// No place was found for a pod.
pub fn failed_scheduling(pod: About, why: &str) -> Event {
    Event::warning(pod, "FailedScheduling", format!("Failed to schedule pod, {why}")).every(Duration::from_mins(5))
}

/// The cloud has no machine for the NodeClaim that a pod was planned for.
pub fn insufficient_capacity_for(pod: About, claim: &ClaimName, error: &str) -> Event {
    let message = format!("NodeClaim {claim}, planned for this pod, could not be launched: {error}");
    Event::warning(pod, "InsufficientCapacityError", message).limited()
}

// NodePools

/// A NodePool's own requirements leave it no instance type that could be bought.
pub fn no_compatible_types(pool: About, why: &str) -> Event {
    let message = format!("NodePool requirements filtered out all compatible available instance types: {why}");
    Event::warning(pool, "NoCompatibleInstanceTypes", message).every(Duration::from_mins(1))
}

/// Budgets of a NodePool cannot be read.
pub fn invalid_budgets(pool: About, problems: &[String]) -> Event {
    let message = format!("{}; until then none of its nodes is disrupted by choice", problems.join("; "));
    Event::warning(pool, "InvalidDisruptionBudget", message).every(Duration::from_hours(1))
}

// NodeClaims and nodes

/// A condition has changed its status. Nothing for a condition that was not there before, as upstream has it, and for one that joiner does
/// not know.
pub fn condition_changed(about: About, transition: &Transition) -> Option<Event> {
    let reason = CONDITIONS.into_iter().find(|kind| **kind == *transition.kind)?;
    let (from, _) = transition.from?;
    let mut message = format!(
        "Status condition transitioned, Type: {reason}, Status: {} -> {}, Reason: {}",
        from.as_str(),
        transition.to.as_str(),
        transition.reason
    );
    if !transition.message.is_empty() {
        message.push_str(", Message: ");
        message.push_str(&transition.message);
    }
    let mut event = Event::normal(about, reason, message);
    event.sameness = None;
    Some(event)
}

/// Conditions of NodeClaims, NodePools and Nodes whose changes are events: the condition is the event's reason.
const CONDITIONS: [&str; 19] = [
    "Launched",
    "Registered",
    "Initialized",
    "Ready",
    "Consolidatable",
    "Drifted",
    "ConsistentStateFound",
    "InstanceTerminating",
    "Drained",
    "VolumesDetached",
    "DisruptionReason",
    "Rebooting",
    "NodeClassReady",
    "ValidationSucceeded",
    "NodeRegistrationHealthy",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
];

/// A drained node waits for its volumes.
pub fn awaiting_volume_detachment(node: About, what: &str) -> Event {
    Event::normal(node, "AwaitingVolumeDetachment", what)
}

/// A Node is smaller than its machine was said to be.
pub fn failed_consistency_check(claim: About, problem: &str) -> Event {
    let mut event = Event::warning(claim, "FailedConsistencyCheck", problem);
    event.sameness = Some(problem.to_owned());
    event
}

/// A node is not empty yet, and why.
pub fn failed_draining(node: About, why: &str) -> Event {
    Event::warning(node, "FailedDraining", format!("Failed to drain node, {why}"))
}

/// A pod may not leave a node that is to be empty: which, why, and since when. Of many pods not all are told at once.
pub fn eviction_blocked(node: About, pod: &ObjectKey, why: &str, since: &str) -> Event {
    let mut event = failed_draining(node, &format!("{why} (Pod={pod}, since {since})")).limited();
    event.sameness = Some(pod.to_string());
    event
}

/// A pod's `karpenter.sh/do-not-disrupt` means nothing, and its node goes.
pub fn invalid_do_not_disrupt(pod: About, value: &str) -> Event {
    let message = format!(
        "Annotation karpenter.sh/do-not-disrupt: {value:?} is neither \"true\" nor a duration such as \"1h30m\", and protects nothing; write one of \
         these, or take it off"
    );
    let mut event = Event::warning(pod, "InvalidDoNotDisruptAnnotation", message).every(Duration::from_mins(15));
    event.sameness = Some(value.to_owned());
    event
}

/// A pod's `karpenter.sh/do-not-disrupt` keeps it on a node that goes, for a time.
pub fn do_not_disrupt_until(pod: About, until: &str) -> Event {
    let message = format!("Do-not-disrupt grace period of the pod ends at {until}");
    let mut event = Event::normal(pod, "DoNotDisruptUntil", message).every(Duration::from_mins(15));
    event.sameness = Some(until.to_owned());
    event
}

/// A pod's `karpenter.sh/do-not-disrupt` no longer keeps it on a node that goes.
pub fn do_not_disrupt_elapsed(pod: About) -> Event {
    let message = "Do-not-disrupt grace period of the pod is over, and it may be disrupted";
    Event::normal(pod, "DoNotDisruptGracePeriodElapsed", message).every(Duration::from_mins(15))
}

/// A pod was evicted, and why its node goes.
pub fn evicted(pod: About, reason: &str) -> Event {
    Event::normal(pod, "Evicted", format!("Evicted pod: {reason}"))
}

/// A pod is deleted, whatever protects it, because its node must be gone soon.
pub fn deleted_for_deadline(pod: About, grace_seconds: i64) -> Event {
    let message = format!(
        "Deleting the pod with {grace_seconds} s of grace, past PodDisruptionBudgets and karpenter.sh/do-not-disrupt: the \
         terminationGracePeriod of its node ends"
    );
    Event::normal(pod, "Disrupted", message)
}

/// The pods of a node are deleted at this time, whatever protects them.
pub fn grace_period_expiring(about: About, deadline: &str) -> Event {
    Event::warning(about, "TerminationGracePeriodExpiring", format!("All pods will be deleted by {deadline}"))
}

/// A Node came without the taint that keeps pods away until it is registered.
pub fn unregistered_taint_missing(claim: About, node: &NodeName) -> Event {
    let message = format!(
        "Node {node} came without the taint karpenter.sh/unregistered: pods may be on it that do not belong there; let its kubelet \
         register with the taint"
    );
    Event::warning(claim, "UnregisteredTaintMissing", message)
}

/// What joiner's finalizer was on is gone.
pub fn finalized(about: About) -> Event {
    let mut event = Event::normal(about, "Finalized", "Finalized karpenter.sh/termination");
    event.sameness = None;
    event
}

/// A NodeClaim cannot be understood. Karpenter has no such event; the reason is the kubelet's for pods of which the same is true.
pub fn not_understood(claim: About, problem: &str) -> Event {
    let message = format!("NodeClaim cannot be understood, its machine is left alone: {problem}");
    let mut event = Event::warning(claim, "FailedValidation", message);
    event.sameness = Some(problem.to_owned());
    event
}

/// joiner fails at a NodeClaim again and again, and leaves it alone for a while. Karpenter has no such event.
pub fn quarantined(claim: About, why: &str) -> Event {
    Event::warning(claim, "Quarantined", why).every(Duration::from_mins(15))
}

/// Somebody has written into a NodeClaim what cannot be right: field and remedy.
pub fn mistaken(claim: About, mistake: &str) -> Event {
    let mut event = Event::warning(claim, "FailedValidation", mistake);
    event.sameness = Some(mistake.to_owned());
    event
}

/// A Node registered long ago and still waits for something before pods count on it. Karpenter has no such event.
pub fn initialization_overdue(claim: About, what: &str) -> Event {
    Event::warning(claim, "InitializationOverdue", what).every(Duration::from_mins(15))
}

/// A machine was ordered down a while ago and is still there, or its Node cannot go. Karpenter has no such event.
pub fn termination_overdue(about: About, what: &str) -> Event {
    Event::warning(about, "TerminationOverdue", what).every(Duration::from_mins(15))
}

/// The auditor does not dare to act: why, and what a person can do.
pub fn audit_breaker_open(lease: About, reason: &str, remedy: &str) -> Event {
    let message = format!("Nothing is removed: {reason}. {remedy}");
    let mut event = Event::warning(lease, "AuditBreakerOpen", message.as_str()).every(Duration::from_mins(15));
    event.sameness = Some(message);
    event
}

/// A person has decided about the auditor's findings.
pub fn audit_decided(lease: About, decision: &str, findings: usize) -> Event {
    Event::normal(lease, "AuditDecided", format!("A person said {decision} about {findings} findings of the auditor"))
}

/// A broken node is not repaired, because too many are.
pub fn node_repair_blocked(about: About, why: &str) -> Event {
    Event::warning(about, "NodeRepairBlocked", why).every(Duration::from_mins(15))
}

/// A NodeClass that is being deleted is kept, because NodeClaims still use it.
pub fn waiting_on_claims(class: About, claims: &[&ClaimName]) -> Event {
    let first: Vec<String> = claims.iter().take(5).map(ToString::to_string).collect();
    let more = claims.len().checked_sub(first.len()).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    let message = format!("Waiting on NodeClaim termination for {}{more}", first.join(", "));
    Event { sameness: Some(message.clone()), ..Event::normal(class, "WaitingOnNodeClaimTermination", message) }
}

/// A machine was restarted: its Node has another boot ID.
pub fn reboot_observed(claim: About) -> Event {
    let message = "New boot observed (bootID changed); awaiting node readiness";
    Event::normal(claim, "RebootObserved", message).every(Duration::from_mins(30))
}

/// A machine was to be restarted, and was not, or did not come back.
pub fn reboot_failed(claim: About, why: &str) -> Event {
    Event::warning(claim, "RebootFailed", why).every(Duration::from_mins(30))
}

/// The cloud will do something to a machine. Said again as often as Events are forgotten (an hour), so that whoever looks sees it.
pub fn maintenance_planned(about: About, claim: &ClaimName, plan: &str) -> Event {
    let message = format!(
        "The cloud plans to interrupt the machine: {plan}. To have its pods moved before, delete NodeClaim {claim}: its NodePool gets another machine"
    );
    let mut event = Event::warning(about, "MaintenancePlanned", message).every(Duration::from_hours(1));
    event.sameness = Some(plan.to_owned());
    event
}

/// The cloud has no machine for a NodeClaim.
pub fn insufficient_capacity(claim: About, name: &ClaimName, error: &str) -> Event {
    Event::warning(claim, "InsufficientCapacityError", format!("NodeClaim {name} event: {error}"))
}

/// joiner ends by itself what nobody asked to end: what, and why. On the object, or on joiner's Lease where there is none.
pub fn terminating(about: About, what: &str) -> Event {
    let mut event = Event::normal(about, "DisruptionTerminating", what);
    event.sameness = Some(what.to_owned());
    event
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
