//! Registration health: whether the machines that a NodePool launches become Nodes. It stops nothing; it is there for people and dashboards.

use std::collections::VecDeque;

use crate::core::facts::{NodeClass, Pool, Status, find_condition};

/// The condition that says it.
pub const HEALTHY: &str = "NodeRegistrationHealthy";
/// So many launches are remembered (Karpenter's value).
const REMEMBERED: usize = 4;
/// So many failures among them are too many, however few launches there were (Karpenter's value).
const TOO_MANY: usize = 2;

/// Why a machine did not become a Node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// How the last launches of one NodePool came out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// Oldest first; true when a Node came of it.
    outcomes: VecDeque<bool>,
    /// What the condition is to become: True, or False with a reason; nothing when it is to stay.
    verdict: Option<Result<(), Failure>>,
}

impl Health {
    /// What can be known of it from the NodePool: the condition says how it was when somebody last looked.
    pub fn of(pool: &Pool) -> Self {
        let outcomes = match find_condition(&pool.conditions, HEALTHY).map(|condition| condition.status) {
            Some(Status::True) => VecDeque::from([true]),
            Some(Status::False) => VecDeque::from([false; TOO_MANY]),
            Some(Status::Unknown) | None => VecDeque::new(),
        };
        Self { outcomes, verdict: None }
    }

    /// A launch has come out well, or not. A good one does not outweigh failures that are still too many.
    pub fn heard(&mut self, outcome: Result<(), Failure>) {
        if self.outcomes.len() == REMEMBERED {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back(outcome.is_ok());
        if outcome.is_ok() != self.is_bad() {
            self.verdict = Some(outcome);
        }
    }

    /// What the condition is to become, if it is to change; `now` is what it is.
    pub fn verdict(&self, now: Option<Status>) -> Option<(Status, &str, &str)> {
        match self.verdict.as_ref()? {
            Ok(()) => (now != Some(Status::True)).then_some((Status::True, HEALTHY, "")),
            Err(failure) => (now != Some(Status::False)).then_some((Status::False, &failure.reason, &failure.message)),
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let good = self.outcomes.iter().filter(|good| **good).count();
        match self.outcomes.len() {
            0 => "no launch to judge by".to_owned(),
            all => format!("{good} of the last {all} launches became Nodes"),
        }
    }

    fn is_bad(&self) -> bool {
        self.outcomes.iter().filter(|good| !**good).count() >= TOO_MANY
    }
}

/// Whether nothing is known of a NodePool's health: it was never judged, or it or its NodeClass has been edited since.
pub fn is_outdated(pool: &Pool, class: &NodeClass) -> bool {
    find_condition(&pool.conditions, HEALTHY).is_none_or(|condition| condition.generation != pool.generation)
        || pool.class_generation != Some(class.generation)
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
