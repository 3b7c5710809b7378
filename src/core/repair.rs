//! Repair: which conditions of a Node mean that its machine is broken, since when, and what to do about it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use regex::Regex;

use crate::core::facts::{Condition, Node, Snapshot, Status};
use crate::core::ids::PoolName;
use crate::core::time::later;

/// When more than this share of nodes (in percent, rounded up) is broken, the nodes are not what is broken (Karpenter's value).
const BREAKER: usize = 20;
/// Every so long a broken node waits as one that is a priority more urgent, in seconds (Karpenter's value).
const AGING: f64 = 30.0 * 60.0;

/// What to do with a broken machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RepairAction {
    /// Restart it in place.
    Reboot,
    /// Replace it.
    Replace,
}

/// A node condition that means that the machine is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairPolicy {
    /// Condition type.
    pub condition: &'static str,
    /// The status that is bad.
    pub status: Status,
    /// How long it is tolerated.
    pub toleration: Duration,
    /// What to do then.
    pub action: RepairAction,
    /// How long a drain may take; nothing means as the NodeClaim says.
    pub termination_grace: Option<Duration>,
    /// 0 to 100, the more urgent the higher.
    pub priority: u8,
    /// A regular expression that the condition's reason must contain; nothing marks the one fallback of the whole set.
    pub reason: Option<&'static str>,
}

/// A cloud's policies, checked and ready to be asked.
#[derive(Clone, Debug)]
pub struct Policies(Vec<(RepairPolicy, Option<Regex>)>);

/// What is the matter with a Node.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnosis {
    /// The condition that says so.
    pub condition: Arc<str>,
    /// Its reason.
    pub reason: Arc<str>,
    /// What to do.
    pub action: RepairAction,
    /// How long a drain may take; nothing means as the NodeClaim says.
    pub grace: Option<Duration>,
    /// From when on something is to be done.
    pub due: Timestamp,
    /// How urgent it is among others: the higher, the more. Zero before it is due.
    pub score: f64,
}

impl Policies {
    /// Checks policies. All that is wrong with them, when anything is.
    pub fn new(list: Vec<RepairPolicy>) -> Result<Self, Vec<String>> {
        let (mut checked, mut problems) = (Vec::new(), Vec::new());
        let fallbacks: Vec<&RepairPolicy> = list.iter().filter(|policy| policy.reason.is_none()).collect();
        match fallbacks.as_slice() {
            [one] if one.action == RepairAction::Replace => {}
            [one] => problems.push(format!("policy of {}: the fallback must replace", one.condition)),
            several => {
                problems.push(format!("{} policies without a reason; exactly one is the fallback", several.len()));
            }
        }
        for policy in list {
            if policy.condition.is_empty() {
                problems.push("a policy without a condition".to_owned());
            }
            if policy.priority > 100 {
                problems.push(format!("policy of {}: priority {} is not 0 to 100", policy.condition, policy.priority));
            }
            match policy.reason.map(Regex::new).transpose() {
                Ok(reason) => checked.push((policy, reason)),
                Err(error) => problems.push(format!("policy of {}: {error}", policy.condition)),
            }
        }
        if problems.is_empty() { Ok(Self(checked)) } else { Err(problems) }
    }

    /// What is the matter with a Node, if anything: what is due already, else what will be due first. `rebooted`: when its machine last
    /// came back from a reboot, which it is given time for anew.
    pub fn diagnose(&self, node: &Node, rebooted: Option<Timestamp>, now: Timestamp) -> Option<Diagnosis> {
        let found: Vec<(&RepairPolicy, &Condition, Timestamp)> = node
            .conditions
            .iter()
            .flat_map(|condition| self.matching(condition).into_iter().map(move |policy| (policy, condition)))
            .map(|(policy, condition)| {
                let since = condition.since.max(node.created).max(rebooted.unwrap_or(Timestamp::MIN));
                (policy, condition, later(since, policy.toleration))
            })
            .collect();
        let due: Vec<_> = found.iter().copied().filter(|(_, _, due)| *due <= now).collect();
        let Some(action) = due.iter().map(|(policy, _, _)| policy.action).max() else {
            let (policy, condition, due) =
                found.into_iter().min_by_key(|(_, condition, due)| (*due, &condition.kind))?;
            return Some(diagnosis(policy, condition, due, policy.termination_grace, 0.0));
        };
        let (policy, condition, since) = due
            .iter()
            .filter(|(policy, _, _)| policy.action == action)
            .min_by_key(|(policy, condition, due)| (std::cmp::Reverse(policy.priority), *due, &condition.kind))?;
        let grace = due.iter().filter_map(|(policy, _, _)| policy.termination_grace).min();
        let score = due.iter().map(|(policy, _, due)| self.rank(policy) + age(*due, now) / AGING).fold(0.0, f64::max);
        Some(diagnosis(policy, condition, *since, grace, score))
    }

    /// Karpenter's repair of before 1.15: the condition that is due first among those that ask for a replacement, each judged by its own
    /// policies only.
    pub fn legacy(&self, node: &Node) -> Option<Diagnosis> {
        let found = node.conditions.iter().flat_map(|condition| {
            let asks = self.0.iter().filter(move |(policy, reason)| {
                policy.action == RepairAction::Replace
                    && is_of(policy, condition)
                    && reason.as_ref().is_none_or(|reason| reason.is_match(&condition.reason))
            });
            asks.map(move |(policy, _)| (policy, condition, later(condition.since, policy.toleration)))
        });
        let (policy, condition, due) = found.min_by_key(|(_, condition, due)| (*due, &condition.kind))?;
        Some(diagnosis(policy, condition, due, Some(Duration::ZERO), 0.0))
    }

    /// Why [`legacy`](Self::legacy) repair replaces nothing in a NodePool, or for NodeClaims without one in the whole cluster: too many have what it
    /// repairs at once, however short they have had it.
    pub fn blocked(&self, snapshot: &Snapshot, pool: Option<&PoolName>) -> Option<String> {
        let of_pool = |node: &Node| pool.is_none_or(|pool| node.pool().as_ref() == Some(pool));
        let nodes = || snapshot.nodes.values().filter(|node| of_pool(node));
        let (all, ill) = (nodes().count(), nodes().filter(|node| self.legacy(node).is_some()).count());
        (ill > (all * BREAKER).div_ceil(100)).then(|| match pool {
            Some(pool) => format!("more than {BREAKER}% of nodes in nodepool \"{pool}\" are unhealthy"),
            None => format!("more than {BREAKER}% of nodes in the cluster are unhealthy"),
        })
    }

    /// Policies that a condition meets: those about its reason, even while they tolerate it; else the fallback.
    fn matching(&self, condition: &Condition) -> Vec<&RepairPolicy> {
        let mut of_pair = self.0.iter().filter(|(policy, _)| is_of(policy, condition)).peekable();
        if of_pair.peek().is_none() {
            return Vec::new();
        }
        let is_meant =
            |reason: &Option<Regex>| reason.as_ref().is_some_and(|reason| reason.is_match(&condition.reason));
        let specific: Vec<_> = of_pair.filter(|(_, reason)| is_meant(reason)).map(|(policy, _)| policy).collect();
        if specific.is_empty() {
            return self.0.iter().filter(|(policy, _)| policy.reason.is_none()).map(|(policy, _)| policy).collect();
        }
        specific
    }

    /// Place of a policy's priority among all that there are, the lowest first.
    fn rank(&self, policy: &RepairPolicy) -> f64 {
        let lower: std::collections::BTreeSet<u8> =
            self.0.iter().map(|(other, _)| other.priority).filter(|priority| *priority < policy.priority).collect();
        lower.len() as f64
    }
}

fn is_of(policy: &RepairPolicy, condition: &Condition) -> bool {
    *condition.kind == *policy.condition && condition.status == policy.status
}

fn diagnosis(
    policy: &RepairPolicy,
    condition: &Condition,
    due: Timestamp,
    grace: Option<Duration>,
    score: f64,
) -> Diagnosis {
    let (kind, reason) = (Arc::clone(&condition.kind), Arc::clone(&condition.reason));
    Diagnosis { condition: kind, reason, action: policy.action, grace, due, score }
}

fn age(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64()
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
