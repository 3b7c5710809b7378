//! One instance of an actor, as those see it who send it messages: its mailbox, and which nudges wait there.
//!
//! A mailbox has no bound of its own. What comes as often as somebody else has news are nudges, and of equal ones only one is in it at a time: the
//! second says nothing that the first does not. None gets lost, as a nudge counts as taken before its handler looks at anything. Whoever sends
//! after that is heard again; whoever sent before was there with his news first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};

use ractor::{ActorRef, ActorStatus};

use super::{Envelope, Meter};

/// What may be in a mailbox.
pub trait Message: Send + 'static {
    /// Which of the actor's nudges this is, from 0 to 31; nothing for what carries news, all of which arrives.
    fn nudge(&self) -> Option<usize> {
        None
    }
}

/// The nudges that wait in a mailbox, one bit each.
#[derive(Clone, Default, Debug)]
pub(super) struct Nudges(Arc<AtomicU32>);

impl Nudges {
    /// Whether a message is to be put into the mailbox; not if it is a nudge and waits there already.
    fn admit(&self, message: &impl Message) -> bool {
        message.nudge().is_none_or(|nudge| self.0.fetch_or(1 << nudge, AcqRel) & (1 << nudge) == 0)
    }

    /// A message is about to be handled.
    pub(super) fn take(&self, message: &impl Message) {
        if let Some(nudge) = message.nudge() {
            self.0.fetch_and(!(1 << nudge), AcqRel);
        }
    }
}

/// One instance.
pub(super) struct Instance<M: Message> {
    actor: ActorRef<Envelope<M>>,
    nudges: Nudges,
}

impl<M: Message> Instance<M> {
    pub(super) fn new(actor: ActorRef<Envelope<M>>, nudges: Nudges) -> Self {
        Self { actor, nudges }
    }

    pub(super) fn actor(&self) -> &ActorRef<Envelope<M>> {
        &self.actor
    }

    /// Whether it still deals with messages.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.actor.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }

    /// Sends a message, and says whether the instance is still there, as far as is known.
    pub(super) fn cast(&self, meter: &Meter, message: M) -> bool {
        if !self.nudges.admit(&message) {
            meter.folded();
            return true;
        }
        meter.sent();
        let arrived = self.actor.cast(Envelope::Message(message)).is_ok();
        if !arrived {
            meter.unsent();
        }
        arrived
    }
}

impl<M: Message> Clone for Instance<M> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), nudges: self.nudges.clone() }
    }
}

impl<M: Message> std::fmt::Debug for Instance<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("id", &self.actor.get_id()).field("nudges", &self.nudges).finish()
    }
}

#[cfg(test)]
#[path = "instance_tests.rs"]
mod tests;
