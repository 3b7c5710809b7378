//! What each actor shows of itself to `/actors`, to metrics and to tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{Kind, Meter};

/// What an actor says of itself when it is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// One word or a short phrase: what it is doing, for a claim its phase.
    pub state: String,
    /// What it waits for, in words; nothing when it waits for nothing in particular.
    pub waits_for: Option<String>,
    /// Moments at which something happens by itself: what, and when.
    pub deadlines: Vec<(String, Timestamp)>,
    /// What happened so far: when, and what.
    pub timeline: Vec<(Timestamp, String)>,
    /// Anything else worth seeing: key and value.
    pub details: Vec<(String, String)>,
}

/// One actor of the live tree.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Unique in this process.
    pub id: u64,
    /// The actor that supervises it; nothing for the root.
    pub parent: Option<u64>,
    /// What kind of actor.
    pub kind: Kind,
    /// Name within its kind: a claim's is that of its NodeClaim, a singleton's that of its kind.
    pub name: String,
    /// When this instance began.
    pub born: Timestamp,
    /// Counters of its place in the tree, which outlive the instance.
    pub meter: Arc<Meter>,
    /// What it says of itself; nothing when it did not answer in time.
    pub view: Option<View>,
}

/// Asks an instance for its view; the future is empty-handed when the instance is gone.
type Probe = Arc<dyn Fn() -> BoxFuture<'static, Option<View>> + Send + Sync>;

/// All live actors of one joiner.
#[derive(Clone, Default)]
pub struct Observations(Arc<Mutex<BTreeMap<u64, Entry>>>);

#[derive(Clone)]
struct Entry {
    parent: Option<u64>,
    kind: Kind,
    name: String,
    born: Timestamp,
    meter: Arc<Meter>,
    probe: Probe,
}

impl Observations {
    /// An actor begins.
    pub(super) fn enter(
        &self,
        id: u64,
        parent: Option<u64>,
        (kind, name): (Kind, String),
        born: Timestamp,
        meter: Arc<Meter>,
        probe: Probe,
    ) {
        self.lock().insert(id, Entry { parent, kind, name, born, meter, probe });
    }

    /// An actor has ended.
    pub(super) fn leave(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// How many actors of each kind are alive.
    pub fn count(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.lock().values() {
            *counts.entry(entry.kind).or_default() += 1;
        }
        counts
    }

    /// The meters of every live place, by kind: claims come many times.
    pub fn meters(&self) -> Vec<(Kind, Arc<Meter>)> {
        self.lock().values().map(|entry| (entry.kind, Arc::clone(&entry.meter))).collect()
    }

    /// The tree without asking anybody: every live actor, the views left out. In order of birth.
    pub fn outline(&self) -> Vec<Observation> {
        self.lock().iter().map(|(id, entry)| entry.observation(*id, None)).collect()
    }

    /// Every live actor for which `wanted` holds, with what it says of itself within `patience`. In order of birth.
    pub async fn read(&self, patience: Duration, wanted: impl Fn(&Observation) -> bool) -> Vec<Observation> {
        let entries: Vec<(u64, Entry)> = {
            let lock = self.lock();
            lock.iter()
                .filter(|(id, entry)| wanted(&entry.observation(**id, None)))
                .map(|(id, entry)| (*id, entry.clone()))
                .collect()
        };
        let asked = entries.into_iter().map(|(id, entry)| async move {
            let view = tokio::time::timeout(patience, (entry.probe)()).await.ok().flatten();
            entry.observation(id, view)
        });
        futures::future::join_all(asked).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn observation(&self, id: u64, view: Option<View>) -> Observation {
        Observation {
            id,
            parent: self.parent,
            kind: self.kind,
            name: self.name.clone(),
            born: self.born,
            meter: Arc::clone(&self.meter),
            view,
        }
    }
}

impl std::fmt::Debug for Observations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observations").field(&self.count()).finish()
    }
}
