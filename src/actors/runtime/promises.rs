//! The promises that this joiner has not kept, as far as it can see that by itself: each is counted and said once for an object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::promises::{Broken, Invariant, Looked, Released, Vigil};

/// Objects that are remembered to have been told of: a promise that is broken so often needs no more exact number.
const MOST: usize = 10_000;

/// The watch on promises. It outlives the actors that see one broken, and acts upon nothing.
#[derive(Clone, Debug)]
pub struct Promises {
    born: Instant,
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    vigil: Vigil,
    told: BTreeSet<(Invariant, String)>,
    counts: BTreeMap<Invariant, u64>,
}

impl Default for Promises {
    fn default() -> Self {
        Self { born: Instant::now(), book: Arc::default() }
    }
}

impl Promises {
    /// The moment, by the clock that [`Looked`] is told in.
    pub fn moment(&self) -> Duration {
        self.born.elapsed()
    }

    /// Notes that a promise is broken; again for the same object says nothing new.
    pub fn broken(&self, broken: Broken) {
        let Broken { promise, object, what } = broken;
        let mut book = self.book();
        if book.told.len() >= MOST || !book.told.insert((promise, object.clone())) {
            return;
        }
        *book.counts.entry(promise).or_default() += 1;
        tracing::error!(promise = promise.as_str(), object, "a promise is broken, please report it: {what}");
    }

    /// A finalizer is being taken off.
    pub fn release(&self, released: Released) {
        let at = self.moment();
        self.book().vigil.release(at, released);
    }

    /// The auditor has looked.
    pub fn look(&self, look: &Looked<'_>) {
        let broken = self.book().vigil.look(look);
        for broken in broken {
            self.broken(broken);
        }
    }

    /// How often each promise that can be watched was broken.
    pub fn counts(&self) -> impl Iterator<Item = (Invariant, u64)> + use<> {
        let counts = self.book().counts.clone();
        Invariant::WATCHED.into_iter().map(move |promise| (promise, counts.get(&promise).copied().unwrap_or_default()))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "promises_tests.rs"]
mod tests;
