//! The promises that this joiner has not kept, as far as it can see that by itself: each is counted and said once for an object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::ids::ClaimUid;
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
    /// What was said, by promise and object.
    told: BTreeMap<(Invariant, String), String>,
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
        let key = (promise, object);
        if book.told.len() >= MOST || book.told.contains_key(&key) {
            return;
        }
        tracing::error!(promise = promise.as_str(), object = key.1, "a promise is broken, please report it: {what}");
        book.told.insert(key, what);
    }

    /// A finalizer is being taken off.
    pub fn release(&self, released: Released) {
        let at = self.moment();
        self.book().vigil.release(at, released);
    }

    /// A machine is being launched for a NodeClaim.
    pub fn launch(&self, uid: &ClaimUid) {
        self.book().vigil.launch(uid);
    }

    /// The auditor has looked.
    pub fn look(&self, look: &Looked<'_>) {
        let broken = self.book().vigil.look(look);
        for broken in broken {
            self.broken(broken);
        }
    }

    /// What was told of so far.
    pub fn told(&self) -> Vec<Broken> {
        let told = self.book().told.clone();
        told.into_iter().map(|((promise, object), what)| Broken { promise, object, what }).collect()
    }

    /// How often each promise that can be watched was broken.
    pub fn counts(&self) -> impl Iterator<Item = (Invariant, u64)> + use<> {
        let mut counts = Invariant::WATCHED.map(|promise| (promise, 0));
        for (promise, _) in self.book().told.keys() {
            counts.iter_mut().filter(|(watched, _)| watched == promise).for_each(|(_, times)| *times += 1);
        }
        counts.into_iter()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "promises_tests.rs"]
mod tests;
