//! Hold-up: what a drain that takes its time, or that a reboot waits for, waits for itself, in the words of a condition.
//!
//! It names what people can change (annotations, budgets, the deadline) and no numbers: a condition that changed with every pod that leaves would be
//! a write a pod, and a thousand nodes drain at once.

use jiff::Timestamp;

use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::time::rfc3339;

use super::{Drain, Situation, detach, step, termination};

/// Seconds after which a drain is worth an explanation; most are over before.
const LONG: i64 = 60;
/// What is said until then.
const BEGUN: &str = "waiting until no pod has to leave any more";

/// What the drain of a NodeClaim's nodes waits for.
pub(super) fn of(situation: &Situation<'_>) -> String {
    let long = situation.since("Drained").max(situation.claim.deleting.unwrap_or(Timestamp::MIN));
    match &situation.drain {
        Some(drain) if drain.waiting > 0 && situation.now >= step::after(long, LONG) => {
            let deadline = termination::deadline(situation.claim);
            let end = deadline.map(|deadline| format!("whoever is left is deleted by {}", rfc3339(deadline)));
            explained(situation, drain, end)
        }
        _ => BEGUN.to_owned(),
    }
}

/// The same of a machine that is to be restarted: since when, who is still there, and until when that is waited for. Nothing while that is worth no
/// explanation.
pub(super) fn of_reboot(
    situation: &Situation<'_>,
    since: Timestamp,
    drain: &Drain,
    by: Option<Timestamp>,
) -> Option<String> {
    (drain.waiting > 0 && situation.now >= step::after(since, LONG)).then(|| {
        let end = by.map(|by| format!("whoever is left at {} stays on the node", rfc3339(by)));
        explained(situation, drain, end)
    })
}

fn explained(situation: &Situation<'_>, drain: &Drain, end: Option<String>) -> String {
    let mut parts = vec![BEGUN.to_owned()];
    if !drain.protected.is_empty() {
        parts.push(format!(
            "{} must not be disrupted (annotation {}; take it off, or delete the pods)",
            detach::named("pods", &drain.protected),
            labels::DO_NOT_DISRUPT
        ));
    }
    let budgets = budgets(situation, drain);
    if !budgets.is_empty() {
        parts.push(format!(
            "others go when {} allow it (status.disruptionsAllowed; what refuses since when is said in Events of the Node)",
            detach::named("PodDisruptionBudgets", &budgets)
        ));
    }
    if drain.protected.is_empty() && budgets.is_empty() {
        parts.push(
            "pods have their grace period to end once their eviction is granted (what refuses one is on /actors at `evictor`)"
                .to_owned(),
        );
    }
    parts.extend(end);
    parts.join("; ")
}

/// The budgets of the pods that are asked to leave, by name.
fn budgets(situation: &Situation<'_>, drain: &Drain) -> Vec<String> {
    let asked = |uid: &PodUid| drain.evict.iter().any(|asked| asked.uid == *uid);
    let asked: Vec<_> = situation.pods.iter().filter(|pod| asked(&pod.uid)).collect();
    let protects =
        situation.snapshot.pod_budgets.values().filter(|budget| asked.iter().any(|pod| budget.protects(pod)));
    protects.map(|budget| budget.key.to_string()).collect()
}

#[cfg(test)]
#[path = "holdup_tests.rs"]
mod tests;
