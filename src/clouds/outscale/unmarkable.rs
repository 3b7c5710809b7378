//! Marks that the API refuses for good: a machine that cannot wear them is taken down, and the next one of its NodeClass would fare no better.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clouds::Judgement;
use crate::core::facts::{NodeClass, Status};

use super::oapi::{Class, Error};

/// How long nothing is launched with a NodeClass whose tags were refused, unless it is edited: each further try makes a machine and takes it down
/// again, and a quota is raised by hand.
const HELD_FOR: Duration = Duration::from_mins(30);

/// NodeClasses whose tags were refused: since when, and why.
#[derive(Default)]
pub(super) struct Unmarkable(Mutex<BTreeMap<Generation, (Instant, String)>>);

/// A NodeClass as somebody wrote it: name, UID and generation.
type Generation = (Arc<str>, Arc<str>, i64);

impl Unmarkable {
    pub(super) fn remember(&self, class: &NodeClass, why: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (since, _)| since.elapsed() < HELD_FOR);
        all.insert(key(class), (Instant::now(), why.to_owned()));
    }

    /// Why nothing is launched with this class now.
    pub(super) fn why(&self, class: &NodeClass) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&key(class)).filter(|(since, _)| since.elapsed() < HELD_FOR).map(|(_, why)| why.clone())
    }

    /// Says it of a class, where the user data, which hold the tags as well, have nothing worse.
    pub(super) fn judge(&self, class: &NodeClass, judgements: &mut [Judgement]) {
        let told = judgements.iter_mut().find(|judgement| judgement.condition == "UserDataReady");
        let Some(judgement) = told.filter(|judgement| judgement.status == Status::True) else { return };
        if let Some(message) = self.why(class) {
            *judgement = Judgement { status: Status::False, reason: "TagsRefused", message, ..*judgement };
        }
    }
}

fn key(class: &NodeClass) -> Generation {
    (Arc::clone(&class.reference.name), Arc::clone(&class.uid), class.generation)
}

/// Whether tags that were refused like this are refused again, as long as nobody changes them, a quota or a policy.
pub(super) fn is_for_good(error: &Error) -> bool {
    matches!(error.class, Class::Quota | Class::SoldOut | Class::Invalid | Class::Denied)
}

/// What was refused and what to do about it, for a machine with so many tags, of which so many are the NodeClass's.
pub(super) fn told(error: &Error, all: usize, of_class: usize) -> String {
    let said = error.stable();
    match error.class {
        // The permission to give is in it.
        Class::Denied => said,
        Class::Invalid => format!("spec.tags: {said}; correct the tag"),
        _ => {
            let fewer = if of_class > 0 { "take tags out of spec.tags, or " } else { "" };
            format!(
                "spec.tags: {said}; a machine is to have {all} tags, {of_class} of them those of spec.tags, which is more than the account's quota of \
                 tags per resource: {fewer}ask Outscale for more; tried again when the NodeClass is edited, or after {} minutes",
                HELD_FOR.as_secs() / 60
            )
        }
    }
}

#[cfg(test)]
#[path = "unmarkable_tests.rs"]
mod tests;
