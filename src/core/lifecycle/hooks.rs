//! What a cloud has still to do for a machine before pods may come to its Node (Karpenter's registration hooks).

use std::sync::Arc;
use std::time::Duration;

use crate::core::labels::Labels;
use crate::core::time::later;
use crate::core::writes::ClaimPatch;

use super::hydration::less;
use super::step::{self, Phase, Step};
use super::{Act, Situation};

/// What a cloud says of a machine whose Node is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hooks {
    /// What is still to be done, by name, in the cloud's order; nothing when the Node may open.
    pub pending: Vec<Arc<str>>,
    /// How soon to ask again while something is.
    pub again: Duration,
    /// Labels for the NodeClaim and its Node that were not known at the launch.
    pub labels: Labels,
}

/// What holds a Node that is there back from opening: a question to the cloud, a label to be written, or a wait; nothing once the cloud lets it go.
pub(super) fn next(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    if !situation.hooks {
        return None;
    }
    // Why the cloud could not be asked is written down before it is asked again.
    if situation.memory.cloud.trouble.is_some()
        && let Some(step) = step::tell(situation, phase)
    {
        return Some(step);
    }
    let Some((asked, said)) = &situation.memory.hooks else {
        return Some(Step::act(phase, Act::AskHooks));
    };
    let missing = less(said.labels.clone(), &situation.claim.labels);
    if !missing.is_empty() {
        return Some(Step::act(phase, Act::PatchClaim(ClaimPatch { labels: missing, ..ClaimPatch::default() })));
    }
    if said.pending.is_empty() {
        return None;
    }
    let again = later(*asked, said.again);
    if situation.now >= again {
        return Some(Step::act(phase, Act::AskHooks));
    }
    let wait = Step::wait(phase, format!("the cloud to be done with {}", said.pending.join(", "))).look_at(again);
    Some(step::tell_then_wait(situation, wait))
}

/// Whether the cloud has not let the Node go yet.
pub(super) fn are_pending(situation: &Situation<'_>) -> bool {
    situation.hooks && situation.memory.hooks.as_ref().is_none_or(|(_, said)| !said.pending.is_empty())
}

/// What the cloud has still to do, by name, or why it could not be asked; nothing where it was not asked yet, or lets the Node go.
pub(super) fn pending(situation: &Situation<'_>) -> Option<String> {
    if !are_pending(situation) {
        return None;
    }
    let names = situation.memory.hooks.as_ref().map(|(_, said)| said.pending.join(", "));
    match (names, &situation.memory.cloud.trouble) {
        (Some(names), Some(trouble)) => Some(format!("{names} ({trouble})")),
        (names, trouble) => names.or_else(|| trouble.clone()),
    }
}
