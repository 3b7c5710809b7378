//! Addresses: a place in the tree that always leads to the instance that currently fills it.

use std::sync::{Arc, PoisonError, RwLock};

use ractor::ActorStatus;

use super::instance::Instance;
use super::{Message, Meter};

/// The address of an actor. It outlives restarts; while nobody is there, messages are dropped and counted: a newborn finds what it
/// missed in the snapshot.
pub struct Slot<M: Message>(Arc<Inner<M>>);

struct Inner<M: Message> {
    current: RwLock<Option<Instance<M>>>,
    meter: Arc<Meter>,
}

impl<M: Message> Slot<M> {
    /// A place that nobody fills yet.
    pub fn empty() -> Self {
        Self(Arc::new(Inner { current: RwLock::new(None), meter: Arc::default() }))
    }

    /// Sends a message to whoever is there.
    pub fn cast(&self, message: M) {
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner);
        let delivered = current.as_ref().is_some_and(|instance| instance.cast(&self.0.meter, message));
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

    /// Whether whoever was put there last has not ended; also where nobody vacates the place.
    pub fn is_alive(&self) -> bool {
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|instance| instance.actor().get_status() < ActorStatus::Stopping)
    }

    /// Puts a new instance there.
    pub(super) fn fill(&self, instance: Instance<M>) {
        self.0.meter.emptied();
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Some(instance);
    }

    /// The instance is gone.
    pub(in crate::actors) fn vacate(&self) {
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets the instance finish what it is doing, and ends it.
    pub fn stop(&self) {
        if let Some(instance) = &*self.0.current.read().unwrap_or_else(PoisonError::into_inner) {
            instance.actor().stop(None);
        }
    }
}

impl<M: Message> Clone for Slot<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Message> std::fmt::Debug for Slot<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("filled", &self.is_filled()).field("meter", &self.0.meter).finish()
    }
}
