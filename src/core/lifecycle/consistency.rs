//! Consistency: whether a Node is as large as its machine was said to be. Only people act on it: a smaller Node has a broken disk, a wrong
//! image, or memory that somebody keeps.

use crate::core::facts::Status;

use super::Situation;

/// The condition that says it.
pub(super) const CONSISTENT: &str = "ConsistentStateFound";
/// What a Node may lack, in percent (Karpenter's value).
const MAY_LACK: i128 = 10;
/// What stands between two problems in the condition's message.
const BETWEEN: &str = "; ";

/// What is wrong; nothing when it cannot be said (yet).
fn problems(situation: &Situation<'_>) -> Option<Vec<String>> {
    let claim = situation.claim;
    let node = situation.node()?;
    let mut problems = Vec::new();
    for (name, _) in claim.requests.iter().filter(|(_, milli)| *milli > 0) {
        let (expected, found) = (claim.capacity.get(name), node.capacity.get(name));
        if expected > 0 && i128::from(found) * 100 < i128::from(expected) * (100 - MAY_LACK) {
            problems.push(format!(
                "expected {} of resource {}, but found {} ({:.1}% of expected)",
                name.written(expected),
                name.as_str(),
                name.written(found),
                found as f64 * 100.0 / expected as f64
            ));
        }
    }
    Some(problems)
}

/// Status, reason and message of the condition, for a Node that is initialized.
pub(super) fn wanted(situation: &Situation<'_>) -> Option<(Status, &'static str, String)> {
    let problems = problems(situation)?;
    Some(if problems.is_empty() {
        (Status::True, CONSISTENT, String::new())
    } else {
        (Status::False, "ConsistencyCheckFailed", problems.join(BETWEEN))
    })
}

/// The problems in the message of the condition, one by one.
pub fn listed(message: &str) -> impl Iterator<Item = &str> {
    message.split(BETWEEN).filter(|problem| !problem.is_empty())
}

#[cfg(test)]
#[path = "consistency_tests.rs"]
mod tests;
