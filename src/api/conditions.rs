//! How conditions are kept: a root condition `Ready` that follows from its dependents.
//!
//! Same rules as the library that Karpenter uses, so that `kubectl wait` and dashboards see the same picture.
//! Nothing here reads a clock: whoever writes a condition says what time it is.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

use crate::api::common::{Condition, ConditionStatus};
use crate::api::nodeclaim::NodeClaim;
use crate::api::nodeoverlay::NodeOverlay;
use crate::api::nodepool::NodePool;

/// The root condition of every kind.
pub const READY: &str = "Ready";
/// NodeClaim: the cloud has accepted the machine.
pub const LAUNCHED: &str = "Launched";
/// NodeClaim: the Node has appeared and was matched.
pub const REGISTERED: &str = "Registered";
/// NodeClaim: the Node is ready, with its resources and without its startup taints.
pub const INITIALIZED: &str = "Initialized";
/// NodeClaim: quiet for long enough that consolidation may look at it.
pub const CONSOLIDATABLE: &str = "Consolidatable";
/// NodeClaim: no longer what its NodePool or NodeClass asks for.
pub const DRIFTED: &str = "Drifted";
/// NodeClaim: chosen to be taken away, and why.
pub const DISRUPTION_REASON: &str = "DisruptionReason";
/// NodeClaim: its pods have left.
pub const DRAINED: &str = "Drained";
/// NodeClaim: its volumes have been detached.
pub const VOLUMES_DETACHED: &str = "VolumesDetached";
/// NodeClaim: the cloud was asked to end the machine.
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
/// NodeClaim: the Node is about as large as the machine was said to be.
pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
/// NodeClaim: the machine is being restarted in place.
pub const REBOOTING: &str = "Rebooting";
/// NodePool, NodeOverlay: what the schema cannot check was checked.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
/// NodePool: the NodeClass exists and is ready.
pub const NODE_CLASS_READY: &str = "NodeClassReady";
/// NodePool: machines made for it do become nodes.
pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";

/// Reason of a condition that nobody has judged yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Reason of a root condition that is false because a dependent is.
pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
/// Reason of a root condition that is unknown because a dependent is, or is out of date.
pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";

/// Message of a condition that nobody has judged yet; dashboards of today match on it.
const AWAITING_MESSAGE: &str = "object is awaiting reconciliation";

/// An object with a root condition.
pub trait Conditioned {
    /// The conditions that the root follows from, in the order in which they are created.
    const DEPENDENTS: &'static [&'static str];

    /// The object's metadata and its conditions; the status is created when there is none.
    fn parts(&mut self) -> (&ObjectMeta, &mut Vec<Condition>);

    /// The object's conditions as they are stored; none without a status.
    fn conditions(&self) -> &[Condition];

    /// Opens the conditions for reading and writing.
    ///
    /// The root and the dependents that are missing are created as unknown, dated from the object's creation: so
    /// the deadlines counted from them start there.
    fn condition_set(&mut self) -> ConditionSet<'_> {
        let (metadata, conditions) = self.parts();
        ConditionSet::open(Self::DEPENDENTS, metadata, conditions)
    }
}

impl Conditioned for NodeClaim {
    const DEPENDENTS: &'static [&'static str] = &[LAUNCHED, REGISTERED, INITIALIZED];

    fn parts(&mut self) -> (&ObjectMeta, &mut Vec<Condition>) {
        (&self.metadata, &mut self.status.get_or_insert_default().conditions)
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

impl Conditioned for NodePool {
    const DEPENDENTS: &'static [&'static str] = &[VALIDATION_SUCCEEDED, NODE_CLASS_READY];

    fn parts(&mut self) -> (&ObjectMeta, &mut Vec<Condition>) {
        (&self.metadata, &mut self.status.get_or_insert_default().conditions)
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

impl Conditioned for NodeOverlay {
    const DEPENDENTS: &'static [&'static str] = &[VALIDATION_SUCCEEDED];

    fn parts(&mut self) -> (&ObjectMeta, &mut Vec<Condition>) {
        (&self.metadata, &mut self.status.get_or_insert_default().conditions)
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// The conditions of one object, open for writing.
#[derive(Debug)]
pub struct ConditionSet<'a> {
    dependents: &'static [&'static str],
    conditions: &'a mut Vec<Condition>,
    generation: i64,
    created: Time,
    deleting: bool,
}

/// What a condition is to say from now on.
struct Verdict<'v> {
    type_: &'v str,
    status: ConditionStatus,
    reason: &'v str,
    message: &'v str,
}

/// An attempt to clear a condition that the root follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearDependent {
    /// The condition that was to be cleared.
    pub condition: String,
}

impl fmt::Display for ClearDependent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {} cannot be cleared because Ready follows from it; set it to Unknown", self.condition)
    }
}

impl std::error::Error for ClearDependent {}

impl<'a> ConditionSet<'a> {
    fn open(dependents: &'static [&'static str], metadata: &ObjectMeta, conditions: &'a mut Vec<Condition>) -> Self {
        // Only objects that were never stored lack a creation time; Go dates those from its zero time.
        let created = metadata.creation_timestamp.clone().unwrap_or(Time(Timestamp::UNIX_EPOCH));
        let mut set = Self {
            dependents,
            conditions,
            generation: metadata.generation.unwrap_or(0),
            deleting: metadata.deletion_timestamp.is_some(),
            created,
        };
        for type_ in std::iter::once(READY).chain(dependents.iter().copied()) {
            if set.get(type_).is_none() {
                // The time is used for the root alone, when adding a dependent changes its status.
                let now = set.created.clone();
                set.set_unknown(type_, &now);
            }
        }
        set
    }

    /// All conditions in their order: by transition time, the root last.
    pub fn list(&self) -> &[Condition] {
        self.conditions
    }

    /// One condition.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether a condition holds; one that is absent does not.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Says that a condition holds, with its own type as the reason. Returns whether anything changed.
    pub fn set_true(&mut self, type_: &str, now: &Time) -> bool {
        self.set_true_because(type_, type_, "", now)
    }

    /// Says that a condition holds, and why. Returns whether anything changed.
    pub fn set_true_because(&mut self, type_: &str, reason: &str, message: &str, now: &Time) -> bool {
        self.set(&Verdict { type_, status: ConditionStatus::True, reason, message }, now)
    }

    /// Says that a condition does not hold, and why. Returns whether anything changed.
    pub fn set_false(&mut self, type_: &str, reason: &str, message: &str, now: &Time) -> bool {
        self.set(&Verdict { type_, status: ConditionStatus::False, reason, message }, now)
    }

    /// Says that nobody has judged a condition yet. Returns whether anything changed.
    pub fn set_unknown(&mut self, type_: &str, now: &Time) -> bool {
        self.set_unknown_because(type_, AWAITING_RECONCILIATION, AWAITING_MESSAGE, now)
    }

    /// Says that a condition cannot be judged, and why. Returns whether anything changed.
    pub fn set_unknown_because(&mut self, type_: &str, reason: &str, message: &str, now: &Time) -> bool {
        self.set(&Verdict { type_, status: ConditionStatus::Unknown, reason, message }, now)
    }

    /// Removes a condition and puts the others in alphabetical order. Returns whether it was there.
    ///
    /// The root and its dependents cannot be removed.
    pub fn clear(&mut self, type_: &str) -> Result<bool, ClearDependent> {
        if self.is_dependent(type_) {
            return Err(ClearDependent { condition: type_.to_owned() });
        }
        let before = self.conditions.len();
        self.conditions.retain(|condition| condition.type_ != type_);
        let removed = self.conditions.len() != before;
        if removed {
            self.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        }
        Ok(removed)
    }

    fn is_dependent(&self, type_: &str) -> bool {
        type_ == READY || self.dependents.contains(&type_)
    }

    fn set(&mut self, verdict: &Verdict<'_>, now: &Time) -> bool {
        let old = self.get(verdict.type_);
        let last_transition_time = match old {
            Some(old) if old.status == verdict.status => old.last_transition_time.clone(),
            Some(_) => whole_second(now),
            // A dependent was unknown all along, from the creation of the object.
            None if self.is_dependent(verdict.type_) => self.created.clone(),
            None => whole_second(now),
        };
        let new = Condition {
            type_: verdict.type_.to_owned(),
            status: verdict.status,
            observed_generation: Some(self.generation),
            last_transition_time,
            reason: verdict.reason.to_owned(),
            message: verdict.message.to_owned(),
        };
        if old == Some(&new) {
            return false;
        }
        self.conditions.retain(|condition| condition.type_ != new.type_);
        if self.deleting {
            // Deletion bumps the generation, and nobody judges the other conditions again.
            for condition in self.conditions.iter_mut() {
                condition.observed_generation = Some(self.generation);
            }
        }
        self.conditions.push(new);
        self.conditions.sort_by(|a, b| {
            let root = (a.type_ == READY).cmp(&(b.type_ == READY));
            root.then_with(|| a.last_transition_time.cmp(&b.last_transition_time))
        });
        if verdict.type_ != READY {
            self.follow(now);
        }
        true
    }

    /// Lets the root follow from its dependents.
    fn follow(&mut self, now: &Time) {
        let mut unhealthy: Vec<&Condition> = self
            .conditions
            .iter()
            .filter(|condition| self.dependents.contains(&condition.type_.as_str()))
            .filter(|condition| condition.status != ConditionStatus::True || !self.is_current(condition))
            .collect();
        if unhealthy.is_empty() {
            self.set_true(READY, now);
            return;
        }
        unhealthy.sort_by(|a, b| b.last_transition_time.cmp(&a.last_transition_time));
        let message: Vec<String> =
            unhealthy.iter().map(|condition| format!("{}={}", condition.type_, condition.status)).collect();
        let message = message.join(", ");
        // A verdict on an older generation does not speak about the object of today.
        let failed =
            unhealthy.iter().any(|condition| condition.status == ConditionStatus::False && self.is_current(condition));
        if failed {
            self.set_false(READY, UNHEALTHY_DEPENDENTS, &message, now);
        } else {
            self.set_unknown_because(READY, RECONCILING_DEPENDENTS, &message, now);
        }
    }

    fn is_current(&self, condition: &Condition) -> bool {
        // An absent generation is Go's zero.
        condition.observed_generation.unwrap_or(0) == self.generation
    }
}

/// The time as the API server will store it, so that an order by time survives a round trip.
fn whole_second(time: &Time) -> Time {
    Time(Timestamp::from_second(time.0.as_second()).unwrap_or(time.0))
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
