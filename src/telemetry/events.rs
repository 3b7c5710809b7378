//! Kubernetes Events, as values: what they are about, their reason, their sentence, and how often the same may be said.
//!
//! Reasons are Karpenter's, so that alerts and habits carry over. Builders decide nothing and send nothing; [`super::dedupe::Dedupe`] says
//! whether an event is worth sending.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClaimUid, NodeName, NodeUid, ObjectKey, PodUid, PoolName, PoolUid};

use super::conditions::Transition;

/// Most characters of a message; the API server refuses longer ones.
const LONGEST: usize = 1024;
/// For how long the same is not said again, unless an event says otherwise; Karpenter's.
const WINDOW: Duration = Duration::from_mins(2);

/// The object that an event is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum About {
    /// A pod.
    Pod(ObjectKey, PodUid),
    /// A node.
    Node(NodeName, NodeUid),
    /// A NodeClaim.
    Claim(ClaimName, ClaimUid),
    /// A NodePool.
    Pool(PoolName, PoolUid),
}

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
        let message = shortened(message.into(), LONGEST);
        Self { about, warning, reason, message, sameness: Some(String::new()), window: WINDOW, limited: false }
    }

    fn normal(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(about, false, reason, message)
    }

    fn warning(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(about, true, reason, message)
    }

    /// The same only when these words are the same too.
    fn same_if(mut self, words: impl Into<String>) -> Self {
        self.sameness = Some(words.into());
        self
    }

    fn every(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }
}

/// At most so many characters, with an ellipsis where something was cut.
fn shortened(text: String, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text;
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}

// Pods

/// A pod was planned for a NodeClaim, a node, or a NodeClaim with its node.
pub fn nominated(pod: About, claim: Option<&ClaimName>, node: Option<&NodeName>) -> Event {
    let claim = claim.map(|name| format!("nodeclaim/{name}"));
    let node = node.map(|name| format!("node/{name}"));
    let places: Vec<String> = claim.into_iter().chain(node).collect();
    let mut event = Event::normal(pod, "Nominated", format!("Pod should schedule on: {}", places.join(", ")));
    event.limited = true;
    event
}

/// No place was found for a pod.
pub fn failed_scheduling(pod: About, why: &str) -> Event {
    Event::warning(pod, "FailedScheduling", format!("Failed to schedule pod, {why}")).every(Duration::from_mins(5))
}

/// The NodeClaim that a pod was planned for got no machine.
pub fn insufficient_capacity_for_pod(pod: About, claim: &ClaimName, error: &str) -> Event {
    let message = format!("NodeClaim {claim} that was planned for this pod got no machine: {error}");
    let mut event = Event::warning(pod, "InsufficientCapacityError", message);
    event.limited = true;
    event
}

/// A pod was evicted, for the reason of its node's disruption.
pub fn evicted(pod: About, reason: &str) -> Event {
    Event::normal(pod, "Evicted", format!("Evicted pod: {reason}"))
}

/// A pod is deleted although it may not be evicted, because its node's deadline leaves it only `granted` of its grace period.
pub fn disrupted(pod: About, granted: Duration, full: Duration) -> Event {
    let message = format!(
        "Deleting pod past disruption budgets and do-not-disrupt so that its node ends in time: {} s of its {} s grace period are left",
        granted.as_secs(),
        full.as_secs()
    );
    Event::normal(pod, "Disrupted", message)
}

/// The value of a pod's do-not-disrupt annotation makes no sense.
pub fn invalid_do_not_disrupt(pod: About, value: &str) -> Event {
    let message = format!(
        "Ignoring annotation karpenter.sh/do-not-disrupt: {value:?} is neither \"true\" nor a positive duration such as \"30m\""
    );
    Event::warning(pod, "InvalidDoNotDisruptAnnotation", message).same_if(value)
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

/// Conditions whose changes are events: the condition is the event's reason.
const CONDITIONS: [&str; 15] = [
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
];

/// joiner's finalizer was taken off.
pub fn finalized(about: About) -> Event {
    let mut event = Event::normal(about, "Finalized", "Finalized karpenter.sh/termination");
    event.sameness = None;
    event
}

/// The cloud has no machine for a NodeClaim.
pub fn insufficient_capacity(claim: About, name: &ClaimName, error: &str) -> Event {
    Event::warning(claim, "InsufficientCapacityError", format!("NodeClaim {name} event: {error}"))
}

/// A node came up without the taint that keeps pods away until it is registered.
pub fn unregistered_taint_missing(claim: About) -> Event {
    let message = "Node came up without taint karpenter.sh/unregistered:NoExecute: pods may land on it too early; \
                   set the taint in the kubelet's register-with-taints";
    Event::warning(claim, "UnregisteredTaintMissing", message)
}

/// A node has less of a resource than its NodeClaim promised.
pub fn failed_consistency_check(claim: About, finding: &str) -> Event {
    Event::warning(claim, "FailedConsistencyCheck", finding).same_if(finding)
}

/// So many pods on a draining node are not evicted yet.
pub fn failed_draining(node: About, waiting: usize) -> Event {
    Event::warning(node, "FailedDraining", format!("Failed to drain node, {waiting} pods are waiting to be evicted"))
}

/// A PodDisruptionBudget keeps a draining node from losing a pod.
pub fn eviction_blocked(node: About, pod: &ObjectKey, why: &str) -> Event {
    let message = format!("Failed to drain node, eviction is refused: {why} (Pod={pod})");
    Event::warning(node, "FailedDraining", message).same_if(pod.to_string())
}

/// All pods of a node will be deleted at a moment, evicted or not.
pub fn termination_grace_period_expiring(about: About, deadline: Timestamp) -> Event {
    Event::warning(about, "TerminationGracePeriodExpiring", format!("All pods will be deleted by {deadline:.0}"))
        .same_if(deadline.to_string())
}

/// Volumes are still attached to a drained node. Five are named.
pub fn awaiting_volume_detachment(node: About, attachments: &[String]) -> Event {
    let named = attachments.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    let others = match attachments.len().saturating_sub(5) {
        0 => String::new(),
        others => format!(" and {others} other(s)"),
    };
    Event::normal(node, "AwaitingVolumeDetachment", format!("Waiting for volumes to detach: {named}{others}"))
}

/// A rebooted node has shown a new boot.
pub fn reboot_observed(claim: About, episode: Timestamp) -> Event {
    Event::normal(claim, "RebootObserved", "New boot observed (bootID changed); awaiting node readiness")
        .same_if(episode.to_string())
        .every(Duration::from_mins(30))
}

/// A reboot did not help.
pub fn reboot_failed(claim: About, episode: Timestamp, why: &str) -> Event {
    Event::warning(claim, "RebootFailed", why).same_if(episode.to_string()).every(Duration::from_mins(30))
}

/// Too many nodes are broken to repair one more.
pub fn node_repair_blocked(about: About, why: &str) -> Event {
    Event::warning(about, "NodeRepairBlocked", why).every(Duration::from_mins(15))
}

// NodePools

/// No instance type on sale meets a NodePool's requirements.
pub fn no_compatible_instance_types(pool: About, min_values: bool) -> Event {
    let with = if min_values { " and its minValues" } else { "" };
    let message = format!("No instance type on sale meets the requirements of this NodePool{with}");
    Event::warning(pool, "NoCompatibleInstanceTypes", message).every(Duration::from_mins(1))
}

/// A NodePool's budgets let no node go for a reason (`Drifted`, ...).
pub fn budget_blocks(pool: About, reason: &str) -> Event {
    let message = format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
    Event::normal(pool, "DisruptionBlocked", message).same_if(reason).every(Duration::from_mins(1))
}

// Disruption

/// A node or NodeClaim may not be disrupted, and why.
pub fn disruption_blocked(about: About, why: &str) -> Event {
    Event::normal(about, "DisruptionBlocked", why)
}

/// A replacement is being launched, for a reason (`Drifted`, ...).
pub fn disruption_launching(replacement: About, reason: &str) -> Event {
    Event::normal(replacement, "DisruptionLaunching", format!("Launching NodeClaim: {reason}")).same_if(reason)
}

/// A replacement is not ready yet.
pub fn disruption_waiting_readiness(replacement: About) -> Event {
    Event::normal(
        replacement,
        "DisruptionWaitingReadiness",
        "Waiting for this NodeClaim to become ready before the nodes it replaces go",
    )
}

/// A node or NodeClaim is being removed, for a reason (`Drifted`, ...).
pub fn disruption_terminating(about: About, reason: &str) -> Event {
    let kind = if matches!(about, About::Node(..)) { "Node" } else { "NodeClaim" };
    Event::normal(about, "DisruptionTerminating", format!("Disrupting {kind}: {reason}")).same_if(reason)
}

/// A node or NodeClaim cannot be consolidated, and why. The message counts for sameness: a new reason is news.
pub fn unconsolidatable(about: About, why: &str) -> Event {
    Event::normal(about, "Unconsolidatable", why).same_if(why).every(Duration::from_mins(15))
}

/// A node or NodeClaim is part of a consolidation that was found; savings in USD per hour.
pub fn consolidation_candidate(about: About, command: &str, savings: f64) -> Event {
    let message = format!("Consolidation candidate: {command} (savings: ${savings:.2})");
    Event::normal(about, "ConsolidationCandidate", message).same_if(command)
}

/// A consolidation was dropped; `why` is `budget`, `scheduling`, `churn` or `unknown`; savings in USD per hour.
pub fn consolidation_rejected(about: About, command: &str, why: &str, savings: f64) -> Event {
    let message = format!("Consolidation rejected: {command}, reason: {why} (savings: ${savings:.2})");
    Event::normal(about, "ConsolidationRejected", message).same_if(format!("{command} {why}"))
}

/// A consolidation met its NodePool's threshold under balanced consolidation.
pub fn consolidation_approved(about: About, judgement: &str) -> Event {
    Event::normal(about, "ConsolidationApproved", judgement)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
