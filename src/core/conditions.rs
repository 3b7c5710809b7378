//! Keeping a list of status conditions as Karpenter's objects do: a root `Ready` that follows from its dependents, and transition
//! times that move only when a status does.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Condition, Status};

/// Reason and message of a condition that nobody has judged yet.
const AWAITING: (&str, &str) = ("AwaitingReconciliation", "object is awaiting reconciliation");

/// The conditions of one object while they are being rewritten.
#[derive(Clone, Debug)]
pub struct Conditions<'a> {
    dependents: &'a [&'a str],
    generation: i64,
    now: Timestamp,
    list: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// Begins with what an object has. Dependents and `Ready` that are missing are added as Unknown since the object's creation.
    pub fn of(
        current: &[Condition],
        dependents: &'a [&'a str],
        generation: i64,
        created: Timestamp,
        now: Timestamp,
    ) -> Self {
        let mut list = current.to_vec();
        for kind in std::iter::once(&"Ready").chain(dependents) {
            if !list.iter().any(|condition| &*condition.kind == *kind) {
                list.push(Condition {
                    kind: (*kind).into(),
                    status: Status::Unknown,
                    reason: AWAITING.0.into(),
                    message: AWAITING.1.into(),
                    since: created,
                    generation,
                });
            }
        }
        Self { dependents, generation, now, list }
    }

    /// The list as it is now, nothing judged and nothing sorted.
    pub fn as_they_are(self) -> Vec<Condition> {
        self.list
    }

    /// The condition of a kind.
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| &*condition.kind == kind)
    }

    /// Makes a condition True, with its own name as the reason and no message.
    pub fn set_true(&mut self, kind: &str) {
        self.set(kind, Status::True, kind, "");
    }

    /// Gives a condition a status, a reason and a message. The transition time moves only with the status.
    pub fn set(&mut self, kind: &str, status: Status, reason: &str, message: &str) {
        let (generation, now) = (self.generation, self.now);
        match self.list.iter_mut().find(|condition| &*condition.kind == kind) {
            Some(condition) => {
                if condition.status != status {
                    condition.since = now;
                    condition.status = status;
                }
                if &*condition.reason != reason {
                    condition.reason = reason.into();
                }
                if &*condition.message != message {
                    condition.message = message.into();
                }
                condition.generation = generation;
            }
            None => self.list.push(Condition {
                kind: kind.into(),
                status,
                reason: reason.into(),
                message: message.into(),
                since: now,
                generation,
            }),
        }
    }

    /// Removes a condition; dependents stay.
    pub fn clear(&mut self, kind: &str) {
        if kind != "Ready" && !self.dependents.contains(&kind) {
            self.list.retain(|condition| &*condition.kind != kind);
        }
    }

    /// Judges the conditions that stay as they are for this generation, too.
    pub fn confirm(&mut self) {
        self.list.iter_mut().for_each(|condition| condition.generation = self.generation);
    }

    /// Works out `Ready` and puts the list in order: oldest transition first, `Ready` last.
    pub fn finish(mut self) -> Vec<Condition> {
        self.judge_root();
        self.list.sort_by(|a, b| (&*a.kind == "Ready", a.since, &a.kind).cmp(&(&*b.kind == "Ready", b.since, &b.kind)));
        self.list
    }

    fn judge_root(&mut self) {
        let mut unhealthy: Vec<&Condition> = self
            .list
            .iter()
            .filter(|condition| self.dependents.contains(&&*condition.kind))
            .filter(|condition| condition.status != Status::True || condition.generation != self.generation)
            .collect();
        if unhealthy.is_empty() {
            self.set_true("Ready");
            return;
        }
        unhealthy.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.kind.cmp(&b.kind)));
        let failed = unhealthy.iter().any(|c| c.status == Status::False && c.generation == self.generation);
        let message: Vec<String> = unhealthy.iter().map(|c| format!("{}={}", c.kind, c.status.as_str())).collect();
        let message: Arc<str> = message.join(", ").into();
        let (status, reason) =
            if failed { (Status::False, "UnhealthyDependents") } else { (Status::Unknown, "ReconcilingDependents") };
        self.set("Ready", status, reason, &message);
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
