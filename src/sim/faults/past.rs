//! What the API server held a while ago: what a cache that lags behind still shows, as it was then, what has gone since included.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::kind::Fault;
use super::mishaps::Mishaps;
use crate::core::facts::{Fact, Kind};
use crate::sim::SimCluster;

/// The faults that show it.
const STALE: [Fault; 3] = [Fault::ApiStaleList, Fault::WatchStale, Fault::SideWatchStale];

/// The past of a cluster, as far back as any cache lags. Clones are handles to the same one.
#[derive(Clone)]
pub(super) struct Past(Option<Arc<Mutex<Memory>>>);

struct Memory {
    news: UnboundedReceiver<(Instant, Fact)>,
    /// How far back it goes.
    depth: Duration,
    /// What there was then.
    then: Objects,
    /// What has happened since.
    since: VecDeque<(Instant, Fact)>,
}

/// Objects by kind and name.
type Objects = BTreeMap<(Kind, String), Fact>;

impl Past {
    /// Remembers from now on, if that will be asked for.
    pub(super) fn of(cluster: &SimCluster, mishaps: &Mishaps) -> Self {
        Self(mishaps.expects(&STALE).then(|| {
            let depth = STALE.iter().map(|fault| fault.lasts().1).max().unwrap_or_default();
            let mut news = cluster.store().subscribe((Duration::ZERO, Duration::ZERO));
            let mut then = Objects::new();
            // What is there already counts as old.
            while let Ok((_, fact)) = news.try_recv() {
                happen(&mut then, &fact);
            }
            Arc::new(Mutex::new(Memory { news, depth, then, since: VecDeque::new() }))
        }))
    }

    /// Forgets what nobody will ask for any more. Whoever remembers has to do that now and then.
    pub(super) fn go_on(&self) {
        if let Some(memory) = &self.0 {
            memory.lock().unwrap_or_else(PoisonError::into_inner).go_on();
        }
    }

    /// The objects of a kind as they were so long ago.
    pub(super) fn list(&self, kind: Kind, ago: Duration) -> Vec<Fact> {
        let Some(memory) = &self.0 else { return Vec::new() };
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.go_on();
        let of_kind = memory.then.iter().filter(|((known, _), _)| *known == kind);
        let mut objects: Objects = of_kind.map(|(key, fact)| (key.clone(), fact.clone())).collect();
        let until_then = memory.since.iter().take_while(|(at, _)| at.elapsed() >= ago).map(|(_, fact)| fact);
        for fact in until_then.filter(|fact| about(fact).is_some_and(|about| about.kind == kind)) {
            happen(&mut objects, fact);
        }
        objects.into_values().collect()
    }
}

impl Memory {
    fn go_on(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            self.since.push_back(news);
        }
        while let Some((_, fact)) = self.since.pop_front_if(|(at, _)| at.elapsed() > self.depth) {
            happen(&mut self.then, &fact);
        }
    }
}

/// An object is as given from now on, or gone.
fn happen(objects: &mut Objects, fact: &Fact) {
    let Some(About { kind, name, is_there }) = about(fact) else { return };
    let key = (kind, name.to_string());
    if is_there {
        objects.insert(key, fact.clone());
    } else {
        objects.remove(&key);
    }
}

/// Which object a fact is about.
pub(super) struct About<'a> {
    /// Of which kind it is.
    pub(super) kind: Kind,
    name: &'a dyn Display,
    is_there: bool,
}

/// Which object a fact is about, if it is of a kind whose watches break.
pub(super) fn about(fact: &Fact) -> Option<About<'_>> {
    let (kind, name, is_there): (_, &dyn Display, _) = match fact {
        Fact::PodSeen(pod) => (Kind::Pod, &pod.uid, true),
        Fact::PodGone(uid) => (Kind::Pod, uid, false),
        Fact::NodeSeen(node) => (Kind::Node, &node.name, true),
        Fact::NodeGone(name) => (Kind::Node, name, false),
        Fact::ClaimSeen(claim) => (Kind::NodeClaim, &claim.name, true),
        Fact::ClaimGone(name, _) => (Kind::NodeClaim, name, false),
        Fact::PoolSeen(pool) => (Kind::NodePool, &pool.name, true),
        Fact::PoolGone(name) => (Kind::NodePool, name, false),
        Fact::ClassSeen(class) => (Kind::NodeClass, &class.reference, true),
        Fact::ClassGone(reference) => (Kind::NodeClass, reference, false),
        Fact::DaemonSeen(daemon) => (Kind::DaemonSet, &daemon.key, true),
        Fact::DaemonGone(key) => (Kind::DaemonSet, key, false),
        Fact::VolumeClaimSeen(claim) => (Kind::VolumeClaim, &claim.key, true),
        Fact::VolumeClaimGone(key) => (Kind::VolumeClaim, key, false),
        Fact::VolumeSeen(volume) => (Kind::Volume, &volume.name, true),
        Fact::VolumeGone(name) => (Kind::Volume, name, false),
        Fact::AttachmentSeen(one) => (Kind::VolumeAttachment, &one.name, true),
        Fact::AttachmentGone(name) => (Kind::VolumeAttachment, name, false),
        Fact::PodBudgetSeen(budget) => (Kind::PodBudget, &budget.key, true),
        Fact::PodBudgetGone(key) => (Kind::PodBudget, key, false),
        _ => return None,
    };
    Some(About { kind, name, is_there })
}
