//! Keeps the same event from being said over and over, and many events from drowning the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::events::{About, Event};
use crate::core::time::later;

/// Events remembered at most; beyond, the one that would be forgotten first is forgotten. About 2 MB.
const CAPACITY: usize = 10_000;
/// Limited events a second; Karpenter's.
const PER_SECOND: f64 = 5.0;
/// Limited events at once; Karpenter's.
const BURST: f64 = 10.0;

/// What makes an event the same as another. Karpenter leaves out what it is about and so lets namesakes silence each other.
type Key = (&'static str, About, String);

/// Remembers what was said.
#[derive(Debug)]
pub struct Dedupe {
    until: BTreeMap<Key, Timestamp>,
    by_end: BTreeSet<(Timestamp, Key)>,
    /// What counted as said, and could not be written.
    unsaid: Arc<Mutex<Vec<Key>>>,
    tokens: f64,
    refilled: Option<Timestamp>,
    capacity: usize,
}

impl Default for Dedupe {
    fn default() -> Self {
        Self {
            until: BTreeMap::new(),
            by_end: BTreeSet::new(),
            unsaid: Arc::default(),
            tokens: BURST,
            refilled: None,
            capacity: CAPACITY,
        }
    }
}

impl Dedupe {
    /// Nothing was said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an event is to be sent now; if so, it counts as said. An event that only the limit held back may be said later.
    pub fn admit(&mut self, event: &Event, now: Timestamp) -> bool {
        self.forget_until(now);
        self.forget_unsaid();
        let key = key(event);
        if key.as_ref().is_some_and(|key| self.until.contains_key(key)) {
            return false;
        }
        if event.limited && !self.take_token(now) {
            return false;
        }
        if let Some(key) = key {
            self.remember(key, now, event.window);
        }
        true
    }

    /// What to call when an admitted event could not be written: it may then be said again at once.
    pub fn on_failure(&self, event: &Event) -> impl FnOnce() + Send + 'static {
        let (key, unsaid) = (key(event), Arc::clone(&self.unsaid));
        move || unsaid.lock().unwrap_or_else(PoisonError::into_inner).extend(key)
    }

    /// How many events are remembered.
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    fn remember(&mut self, key: Key, now: Timestamp, window: Duration) {
        if self.until.len() >= self.capacity
            && let Some((_, oldest)) = self.by_end.pop_first()
        {
            self.until.remove(&oldest);
        }
        let end = later(now, window);
        self.by_end.insert((end, key.clone()));
        self.until.insert(key, end);
    }

    fn forget_until(&mut self, now: Timestamp) {
        while self.by_end.first().is_some_and(|(end, _)| *end <= now) {
            if let Some((_, key)) = self.by_end.pop_first() {
                self.until.remove(&key);
            }
        }
    }

    fn forget_unsaid(&mut self) {
        let unsaid = std::mem::take(&mut *self.unsaid.lock().unwrap_or_else(PoisonError::into_inner));
        for key in unsaid {
            if let Some(end) = self.until.remove(&key) {
                self.by_end.remove(&(end, key));
            }
        }
    }

    fn take_token(&mut self, now: Timestamp) -> bool {
        let since = self.refilled.map_or(0.0, |refilled| now.duration_since(refilled).as_secs_f64().max(0.0));
        self.tokens = since.mul_add(PER_SECOND, self.tokens).min(BURST);
        self.refilled = Some(now);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

fn key(event: &Event) -> Option<Key> {
    event.sameness.clone().map(|words| (event.reason, event.about.clone(), words))
}

#[cfg(test)]
#[path = "dedupe_tests.rs"]
mod tests;
