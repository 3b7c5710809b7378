//! What changed between two looks at an object's conditions.

use std::sync::Arc;
use std::time::Duration;

use crate::core::facts::{Condition, Status};

/// A condition that entered a status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Type of the condition.
    pub kind: Arc<str>,
    /// The status that it left and how long that had lasted; nothing when the condition is new.
    pub from: Option<(Status, Duration)>,
    /// The status that it entered.
    pub to: Status,
    /// Its reason now.
    pub reason: Arc<str>,
    /// Its message now.
    pub message: Arc<str>,
}

/// Conditions of `new` that `old` did not have or had with another status, in the order of `new`.
pub fn transitions(old: &[Condition], new: &[Condition]) -> Vec<Transition> {
    let mut changes = Vec::new();
    for now in new {
        let before = old.iter().find(|before| before.kind == now.kind);
        if before.is_some_and(|before| before.status == now.status) {
            continue;
        }
        let from = before.map(|before| {
            let lasted = now.since.duration_since(before.since);
            (before.status, Duration::try_from(lasted).unwrap_or(Duration::ZERO))
        });
        changes.push(Transition {
            kind: Arc::clone(&now.kind),
            from,
            to: now.status,
            reason: Arc::clone(&now.reason),
            message: Arc::clone(&now.message),
        });
    }
    changes
}
