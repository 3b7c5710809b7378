//! Addresses: a place in the tree that always leads to the instance that currently fills it.

use std::sync::{Arc, PoisonError, RwLock};

use ractor::ActorRef;

use super::{Envelope, Meter};

/// The address of an actor. It outlives restarts; while nobody is there, messages are dropped and counted: a newborn finds what it
/// missed in the snapshot.
pub struct Slot<M: Send + 'static>(Arc<Inner<M>>);

struct Inner<M: Send + 'static> {
    current: RwLock<Option<ActorRef<Envelope<M>>>>,
    meter: Arc<Meter>,
}

impl<M: Send + 'static> Slot<M> {
    /// A place that nobody fills yet.
    pub fn empty() -> Self {
        Self(Arc::new(Inner { current: RwLock::new(None), meter: Arc::default() }))
    }

    /// Sends a message to whoever is there.
    pub fn cast(&self, message: M) {
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner);
        let delivered = current.as_ref().is_some_and(|actor| {
            self.0.meter.sent();
            actor.cast(Envelope::Message(message)).is_ok()
        });
        if !delivered {
            self.0.meter.dropped();
        }
    }

    /// Counters of this place.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.0.meter
    }

    /// Whether somebody is there.
    pub fn is_filled(&self) -> bool {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Puts a new instance there.
    pub(super) fn fill(&self, actor: ActorRef<Envelope<M>>) {
        self.0.meter.emptied();
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Some(actor);
    }

    /// The instance is gone.
    pub(in crate::actors) fn vacate(&self) {
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets the instance finish what it is doing, and ends it.
    pub fn stop(&self) {
        if let Some(actor) = &*self.0.current.read().unwrap_or_else(PoisonError::into_inner) {
            actor.stop(None);
        }
    }
}

impl<M: Send + 'static> Clone for Slot<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Send + 'static> std::fmt::Debug for Slot<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("filled", &self.is_filled()).field("meter", &self.0.meter).finish()
    }
}
