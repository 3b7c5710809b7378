//! What each actor shows of itself to `/actors`, to metrics and to tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::telemetry::metrics::ActorFigures;

use super::{Kind, Meter};

/// Meters of places that nobody fills any more are folded into totals whenever so many have gathered.
const FOLD_EVERY: usize = 1024;

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

/// What an actor remembers of what happened: the latest so many.
#[derive(Clone, Debug)]
pub struct Timeline {
    most: usize,
    noted: Vec<(Timestamp, String)>,
}

impl Timeline {
    /// Nothing has happened yet, and so much is remembered at most.
    pub fn new(most: usize) -> Self {
        Self { most, noted: Vec::new() }
    }

    /// Something has happened. The oldest is forgotten for it.
    pub fn note(&mut self, at: Timestamp, what: String) {
        if self.noted.len() == self.most {
            self.noted.remove(0);
        }
        self.noted.push((at, what));
    }

    /// What happened, the oldest first.
    pub fn noted(&self) -> Vec<(Timestamp, String)> {
        self.noted.clone()
    }
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
pub struct Observations(Arc<Mutex<Census>>);

#[derive(Default)]
struct Census {
    live: BTreeMap<u64, Entry>,
    /// The live children of each parent.
    children: BTreeMap<u64, BTreeSet<u64>>,
    /// Meters of actors that have ended, by address: a place that is filled again takes its meter back from here.
    vacant: BTreeMap<usize, (Kind, Arc<Meter>)>,
    /// What the actors of places that no longer exist had done. Without it, totals would fall whenever a NodeClaim goes.
    past: BTreeMap<Kind, ActorFigures>,
}

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
        let mut census = self.lock();
        census.vacant.remove(&address(&meter));
        if let Some(parent) = parent {
            census.children.entry(parent).or_default().insert(id);
        }
        census.live.insert(id, Entry { parent, kind, name, born, meter, probe });
    }

    /// An actor has ended, and with it all below it: ractor ends the children of an actor that dies, and tells nobody but the dead.
    pub(super) fn leave(&self, id: u64) {
        let mut census = self.lock();
        let mut ended = vec![id];
        while let Some(id) = ended.pop() {
            ended.extend(census.children.remove(&id).unwrap_or_default());
            let Some(entry) = census.live.remove(&id) else { continue };
            if let Some(siblings) = entry.parent.and_then(|parent| census.children.get_mut(&parent)) {
                siblings.remove(&id);
            }
            census.vacant.insert(address(&entry.meter), (entry.kind, entry.meter));
            if census.vacant.len().is_multiple_of(FOLD_EVERY) {
                census.fold();
            }
        }
    }

    /// How many actors of each kind are alive.
    pub fn count(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.lock().live.values() {
            *counts.entry(entry.kind).or_default() += 1;
        }
        counts
    }

    /// What the actors of each kind do and have done. Totals count those that have ended, too, and never fall.
    pub fn figures(&self) -> BTreeMap<Kind, ActorFigures> {
        let mut census = self.lock();
        census.fold();
        let mut figures = census.past.clone();
        for (kind, meter) in census.vacant.values() {
            add_totals(figures.entry(*kind).or_default(), meter);
        }
        for entry in census.live.values() {
            let sum = figures.entry(entry.kind).or_default();
            add_totals(sum, &entry.meter);
            sum.alive += 1;
            sum.waiting += entry.meter.depth();
            sum.fullest = sum.fullest.max(entry.meter.depth());
        }
        figures
    }

    /// The live actors that have messages and have been done with none for this long: kind, name, and for how long.
    pub fn stalled(&self, patience: Duration) -> Vec<(Kind, String, Duration)> {
        self.late(patience, Meter::stands_still)
    }

    /// The live actors for which something has been computed for this long: kind, name, and for how long.
    pub fn lost_in_thought(&self, patience: Duration) -> Vec<(Kind, String, Duration)> {
        self.late(patience, Meter::computing_for)
    }

    fn late(&self, patience: Duration, time: fn(&Meter) -> Option<Duration>) -> Vec<(Kind, String, Duration)> {
        let census = self.lock();
        let late = census.live.values().filter_map(|entry| {
            let time = time(&entry.meter).filter(|time| *time >= patience)?;
            Some((entry.kind, entry.name.clone(), time))
        });
        late.collect()
    }

    /// The tree without asking anybody: every live actor, the views left out. In order of birth.
    pub fn outline(&self) -> Vec<Observation> {
        self.lock().live.iter().map(|(id, entry)| entry.observation(*id, None)).collect()
    }

    /// Every live actor for which `wanted` holds, with what it says of itself within `patience`. In order of birth.
    pub async fn read(&self, patience: Duration, wanted: impl Fn(&Observation) -> bool) -> Vec<Observation> {
        let entries: Vec<(u64, Entry)> = {
            let lock = self.lock();
            lock.live
                .iter()
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

    /// What these actors say of themselves within `patience`; those that are gone or silent are missing.
    pub async fn ask(&self, patience: Duration, ids: &[u64]) -> BTreeMap<u64, View> {
        let probes: Vec<(u64, Probe)> = {
            let census = self.lock();
            ids.iter().filter_map(|id| Some((*id, Arc::clone(&census.live.get(id)?.probe)))).collect()
        };
        let asked = probes.into_iter().map(|(id, probe)| async move { Some((id, probe().await?)) });
        // One timer for all: they run side by side.
        let answers: futures::stream::FuturesUnordered<_> = asked.collect();
        let mut views = BTreeMap::new();
        // Running out of time leaves what has come in so far.
        let _ = tokio::time::timeout(patience, async {
            futures::pin_mut!(answers);
            while let Some(answer) = futures::StreamExt::next(&mut answers).await {
                views.extend(answer);
            }
        })
        .await;
        views
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Census> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Census {
    /// Adds what is left of places that no longer exist to the totals of the past.
    fn fold(&mut self) {
        let Self { vacant, past, .. } = self;
        vacant.retain(|_, (kind, meter)| {
            // Whoever could fill the place again holds its slot, and with it the meter.
            let kept = Arc::strong_count(meter) > 1;
            if !kept {
                add_totals(past.entry(*kind).or_default(), meter);
            }
            kept
        });
    }
}

fn add_totals(sum: &mut ActorFigures, meter: &Meter) {
    sum.handled += meter.handled_total();
    sum.dropped += meter.dropped_total();
    sum.folded += meter.folded_total();
    sum.busy += meter.busy();
    sum.restarts += meter.restarts();
}

fn address(meter: &Arc<Meter>) -> usize {
    Arc::as_ptr(meter).addr()
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

#[cfg(test)]
#[path = "observation_tests.rs"]
mod tests;
