//! The objects of the simulated API server, its watchers, its Events and its lease.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cluster::{Announcement, Error};
use crate::core::facts::{Claim, DaemonSet, DeviceSlice, Fact, Kind, Node, NodeClass, PodBudget, PodShape, Pool};
use crate::core::ids::{ClaimName, ClassRef, NodeName, ObjectKey, PodUid, PoolName, PoolUid};
use crate::core::labels::Labels;

use super::features::Features;
use super::pods::{Owned, PodRecord, Tally};
use super::volumes::Volumes;
use crate::sim::Clock;
use crate::sim::seed::{self, Seed};

/// How many Events are kept.
const EVENTS: usize = 10_000;

/// An Event with the time of its writing.
pub type Written = (Timestamp, Announcement);

/// The objects, and who wants to hear of them.
pub struct Store {
    clock: Clock,
    names: Rng,
    jitter: Rng,
    version: u64,
    pub(in crate::sim) pods: BTreeMap<PodUid, PodRecord>,
    pub(in crate::sim) pod_names: BTreeMap<ObjectKey, PodUid>,
    pub(in crate::sim) bound: BTreeMap<NodeName, BTreeSet<PodUid>>,
    pub(in crate::sim) shapes: BTreeMap<Arc<PodShape>, Tally>,
    pub(in crate::sim) by_workload: BTreeMap<Arc<str>, Owned>,
    /// Workloads of which a pod has changed since the controller last looked.
    pub(in crate::sim) touched: BTreeSet<Arc<str>>,
    /// Rings when something was touched.
    pub(in crate::sim) bell: Arc<Notify>,
    pub(in crate::sim) nodes: BTreeMap<NodeName, Arc<Node>>,
    pub(in crate::sim) claims: BTreeMap<ClaimName, Arc<Claim>>,
    pub(in crate::sim) pools: BTreeMap<PoolName, Arc<Pool>>,
    /// NodePools that were deleted: the garbage collector lets nothing be theirs.
    pub(super) gone_pools: BTreeSet<PoolUid>,
    pub(in crate::sim) classes: BTreeMap<ClassRef, Arc<NodeClass>>,
    pub(in crate::sim) daemons: BTreeMap<ObjectKey, Arc<DaemonSet>>,
    pub(in crate::sim) namespaces: BTreeMap<Arc<str>, Arc<Labels>>,
    pub(in crate::sim) budgets: BTreeMap<ObjectKey, Arc<PodBudget>>,
    pub(in crate::sim) volumes: Volumes,
    pub(in crate::sim) slices: BTreeMap<Arc<str>, Arc<DeviceSlice>>,
    pub(in crate::sim) features: Features,
    /// Pods whose containers do not end although they should, and until when.
    pub(in crate::sim) stuck: BTreeMap<PodUid, Instant>,
    /// What was laid for somebody and has held something back: stuck pods by UID, stuck attachments and budgets by name.
    pub(in crate::sim) bitten: BTreeSet<String>,
    pub(in crate::sim) events: VecDeque<Written>,
    pub(in crate::sim) lease: Option<(String, Instant)>,
    /// What a person has written into the lease for the auditor.
    pub(in crate::sim) audit: Option<Arc<str>>,
    /// What the auditor has written into it.
    pub(in crate::sim) record: Option<Arc<str>>,
    /// Labels and finalizers that a mutating admission policy takes off whatever of NodeClaims is changed, and taints off Nodes.
    pub(in crate::sim) stripped: BTreeSet<Arc<str>>,
    subscribers: Vec<Subscriber>,
    last_change: Instant,
}

/// One reader of the watch.
struct Subscriber {
    queue: UnboundedSender<(Instant, Fact)>,
    delay: (Duration, Duration),
    last: Instant,
}

impl Store {
    /// An empty API server.
    pub fn new(seed: Seed, clock: Clock) -> Self {
        let namespace = |name: &str| {
            let labels = Labels::from([(crate::core::labels::NAMESPACE_NAME.into(), name.into())]);
            (Arc::from(name), Arc::new(labels))
        };
        Self {
            clock,
            names: seed.stream("uids"),
            jitter: seed.stream("watch delivery"),
            version: 0,
            pods: BTreeMap::new(),
            pod_names: BTreeMap::new(),
            bound: BTreeMap::new(),
            shapes: BTreeMap::new(),
            by_workload: BTreeMap::new(),
            touched: BTreeSet::new(),
            bell: Arc::new(Notify::new()),
            nodes: BTreeMap::new(),
            claims: BTreeMap::new(),
            pools: BTreeMap::new(),
            gone_pools: BTreeSet::new(),
            classes: BTreeMap::new(),
            daemons: BTreeMap::new(),
            namespaces: ["default", "kube-system"].map(namespace).into(),
            budgets: BTreeMap::new(),
            volumes: Volumes::default(),
            slices: BTreeMap::new(),
            features: Features::default(),
            stuck: BTreeMap::new(),
            bitten: BTreeSet::new(),
            events: VecDeque::new(),
            lease: None,
            audit: None,
            record: None,
            stripped: BTreeSet::new(),
            subscribers: Vec::new(),
            last_change: Instant::now(),
        }
    }

    /// The world's wall clock.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// A fresh UID.
    pub fn uid(&mut self) -> String {
        seed::uid(&mut self.names)
    }

    /// A fresh suffix for a generated name.
    pub fn suffix(&mut self, length: usize) -> String {
        seed::suffix(&mut self.names, length)
    }

    /// Subscribes to every change after a first full list. Each fact arrives after a delay between the two bounds, in order.
    pub fn subscribe(&mut self, delay: (Duration, Duration)) -> UnboundedReceiver<(Instant, Fact)> {
        let (queue, reader) = unbounded();
        let now = Instant::now();
        let mut subscriber = Subscriber { queue, delay, last: now };
        for kind in Kind::ALL {
            let listed = std::iter::once(Fact::Relisting(kind)).chain(self.all(kind));
            for fact in listed.chain(std::iter::once(Fact::Relisted(kind))) {
                subscriber.send(&mut self.jitter, now, fact);
            }
        }
        self.subscribers.push(subscriber);
        reader
    }

    /// Writes an Event; the oldest go when there are too many.
    pub fn announce(&mut self, announcement: Announcement) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((self.now(), announcement));
    }

    /// Takes or renews the lease for `holder` for `term`, unless somebody else has it. Answers who has it, and for how long.
    pub fn renew_lease(&mut self, holder: &str, term: Duration) -> (String, Duration) {
        let now = Instant::now();
        match &self.lease {
            Some((other, until)) if other != holder && *until > now => (other.clone(), *until - now),
            _ => {
                self.lease = Some((holder.to_owned(), now + term));
                (holder.to_owned(), term)
            }
        }
    }

    /// Writes into the lease what a person has to say to the auditor, or takes it away; whether that is news.
    pub fn annotate_lease(&mut self, audit: Option<&str>) -> bool {
        let before = std::mem::replace(&mut self.audit, audit.map(Into::into));
        before != self.audit
    }

    /// Has a mutating admission policy take these labels and finalizers off whatever of NodeClaims is changed from now on, and these taints off Nodes.
    pub fn strip(&mut self, keys: &[&str]) {
        self.stripped = keys.iter().map(|&key| key.into()).collect();
    }

    /// Gives the lease back, if `holder` has it.
    pub fn release_lease(&mut self, holder: &str) {
        if self.lease.as_ref().is_some_and(|(other, _)| other == holder) {
            self.lease = None;
        }
    }

    /// The NodeClaims.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.claims.values()
    }

    /// The Nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The NodeClasses.
    pub fn classes(&self) -> impl Iterator<Item = &Arc<NodeClass>> {
        self.classes.values()
    }

    /// The pods, and what is known of them.
    pub fn pods(&self) -> impl Iterator<Item = &PodRecord> {
        self.pods.values()
    }

    /// When an object changed last.
    pub fn last_change(&self) -> Instant {
        self.last_change
    }

    /// How many objects of a kind there are.
    pub fn number_of(&self, kind: Kind) -> usize {
        self.all(kind).len()
    }

    pub(in crate::sim) fn all(&self, kind: Kind) -> Vec<Fact> {
        match kind {
            Kind::Pod => self.pods.values().map(|record| Fact::PodSeen(Arc::clone(&record.pod))).collect(),
            Kind::Node => self.nodes.values().cloned().map(Fact::NodeSeen).collect(),
            Kind::NodeClaim => self.claims.values().cloned().map(Fact::ClaimSeen).collect(),
            Kind::NodePool => self.pools.values().cloned().map(Fact::PoolSeen).collect(),
            Kind::NodeClass => self.classes.values().cloned().map(Fact::ClassSeen).collect(),
            Kind::DaemonSet => self.daemons.values().cloned().map(Fact::DaemonSeen).collect(),
            Kind::Namespace => {
                self.namespaces.iter().map(|(name, labels)| Fact::NamespaceSeen(name.clone(), labels.clone())).collect()
            }
            Kind::PodBudget => self.budgets.values().cloned().map(Fact::PodBudgetSeen).collect(),
            about_features => self.all_of_features(about_features),
        }
    }

    /// Tells every subscriber; those that have gone are forgotten.
    pub(super) fn emit(&mut self, fact: &Fact) {
        let now = Instant::now();
        self.last_change = now;
        let Self { subscribers, jitter, .. } = self;
        subscribers.retain_mut(|subscriber| subscriber.send(jitter, now, fact.clone()));
    }

    /// The next resourceVersion.
    pub(super) fn next_version(&mut self) -> Arc<str> {
        self.version += 1;
        self.version.to_string().into()
    }
}

impl Subscriber {
    /// Queues a fact; false when the reader has gone.
    fn send(&mut self, jitter: &mut Rng, now: Instant, fact: Fact) -> bool {
        let at = match self.delay {
            (Duration::ZERO, Duration::ZERO) => self.last.max(now),
            bounds => self.last.max(now + seed::between(jitter, bounds)),
        };
        self.last = at;
        self.queue.unbounded_send((at, fact)).is_ok()
    }
}

/// Whether a write is meant for the version that is there, or for any.
pub(in crate::sim) fn is_current(meant: Option<&Arc<str>>, there: &Arc<str>) -> bool {
    meant.is_none_or(|meant| meant == there)
}

/// Refuses when a write was meant for another version than the one that is there.
pub(super) fn check_version(object: &str, meant: Option<&Arc<str>>, there: &Arc<str>) -> Result<(), Error> {
    if is_current(meant, there) { Ok(()) } else { Err(Error::Conflict(object.to_owned())) }
}

/// Refuses to replace a whole list without saying which version of it was read.
pub(super) fn check_guarded(object: &str, field: &str, guarded: bool) -> Result<(), Error> {
    if guarded {
        return Ok(());
    }
    let message = format!("{field} can only be replaced together with the resourceVersion that was read; set it");
    Err(Error::Invalid { object: object.to_owned(), message })
}

/// Takes keys away.
pub(super) fn without(from: &mut Labels, keys: &[Arc<str>]) {
    from.retain(|key, _| !keys.contains(key));
}

/// Adds labels or annotations; whether anything changed.
pub(super) fn merge(into: &mut Labels, from: &Labels) -> bool {
    let mut changed = false;
    for (key, value) in from {
        changed |= into.insert(key.clone(), value.clone()).as_ref() != Some(value);
    }
    changed
}
