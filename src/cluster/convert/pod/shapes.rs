//! Shapes shared among equal pods, and the names of their owners.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::core::facts::PodShape;

/// Hands out one shape for all pods that are equal. It holds shapes weakly: when the last pod of a shape is gone, so is the shape.
#[derive(Default, Debug)]
pub struct ShapeStore(Mutex<Shelves>);

#[derive(Default, Debug)]
struct Shelves {
    /// Shapes by the hash of their content.
    by_hash: FxHashMap<u64, Vec<Weak<PodShape>>>,
    /// How many shapes are on the shelves, dead ones included.
    count: usize,
    /// At how many the dead ones are thrown out next.
    sweep_at: usize,
    /// Texts that several pods have in common. Held strongly, and thrown out when nobody else holds them.
    texts: FxHashSet<Arc<str>>,
    /// At how many texts those that nobody holds are thrown out next.
    sweep_texts_at: usize,
}

impl ShapeStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The shape that equals this one, if some pod has it already; else this one.
    pub fn share(&self, shape: PodShape) -> Arc<PodShape> {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(&shape);
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shelves
            .by_hash
            .get(&hash)
            .and_then(|shelf| shelf.iter().filter_map(Weak::upgrade).find(|other| **other == shape));
        if let Some(found) = found {
            return found;
        }
        let shape = Arc::new(shape);
        shelves.by_hash.entry(hash).or_default().push(Arc::downgrade(&shape));
        shelves.count += 1;
        if shelves.count > shelves.sweep_at {
            shelves.sweep();
        }
        shape
    }

    /// The text that equals this one, if some pod has it already; else a new one.
    pub fn share_text(&self, text: &str) -> Arc<str> {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = shelves.texts.get(text) {
            return Arc::clone(found);
        }
        if shelves.texts.len() >= shelves.sweep_texts_at {
            shelves.texts.retain(|text| Arc::strong_count(text) > 1);
            shelves.sweep_texts_at = (shelves.texts.len() * 2).max(1024);
        }
        let text: Arc<str> = text.into();
        shelves.texts.insert(Arc::clone(&text));
        text
    }

    /// How many shapes are alive.
    pub fn len(&self) -> usize {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.sweep();
        shelves.count
    }

    /// How many texts are kept.
    #[cfg(test)]
    pub(in crate::cluster::convert) fn texts(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.len()
    }

    /// Whether no shape is alive.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shelves {
    /// Throws out what is dead; the next sweep is due when the shelves have doubled, so that each shape pays for it once.
    fn sweep(&mut self) {
        self.by_hash.retain(|_, shelf| {
            shelf.retain(|shape| shape.strong_count() > 0);
            !shelf.is_empty()
        });
        self.count = self.by_hash.values().map(Vec::len).sum();
        self.sweep_at = (self.count * 2).max(1024);
        self.by_hash.shrink_to(self.sweep_at);
    }
}
