//! The watch on its bad days: late, repeated, broken off, or begun again from a cache that lags behind.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::time::{Instant, sleep_until};

use super::kind::Fault;
use super::mishaps::Mishaps;
use super::past::{Past, about};
use crate::core::facts::{Fact, Kind};
use crate::core::promises::SABOTAGE;
use crate::sim::SimCluster;

/// How many of the last facts may be delivered once more.
const REMEMBERED: usize = 12;

/// What nodes and pods hang on.
const ASIDE: [Kind; 6] =
    [Kind::PodBudget, Kind::VolumeAttachment, Kind::VolumeClaim, Kind::Volume, Kind::NodeClass, Kind::DaemonSet];

/// A watch with faults, and what it still has to deliver.
struct Watch {
    cluster: SimCluster,
    inner: BoxStream<'static, Fact>,
    mishaps: Mishaps,
    past: Past,
    recent: VecDeque<Fact>,
    ready: VecDeque<Fact>,
    /// Kinds of which nothing is heard, and until when; then they are listed.
    silent: BTreeMap<Kind, Instant>,
}

/// Puts faults between a watch and its reader.
pub(super) fn hostile(
    cluster: SimCluster,
    inner: BoxStream<'static, Fact>,
    mishaps: Mishaps,
    past: Past,
) -> BoxStream<'static, Fact> {
    let (recent, ready) = (VecDeque::new(), VecDeque::new());
    let watch = Watch { cluster, inner, mishaps, past, recent, ready, silent: BTreeMap::new() };
    stream::unfold(watch, |mut watch| async move { watch.next().await.map(|fact| (fact, watch)) }).boxed()
}

impl Watch {
    async fn next(&mut self) -> Option<Fact> {
        loop {
            if let Some(fact) = self.ready.pop_front() {
                return Some(fact);
            }
            let wake = self.silent.iter().map(|(kind, until)| (*until, *kind)).min();
            let news = tokio::select! {
                biased;
                () = async { sleep_until(wake.map_or_else(Instant::now, |(until, _)| until)).await }, if wake.is_some() => None,
                fact = self.inner.next() => Some(fact?),
            };
            let Some(fact) = news else {
                if let Some((_, kind)) = wake {
                    self.silent.remove(&kind);
                    let objects = self.cluster.store().all(kind);
                    self.list(kind, objects);
                }
                continue;
            };
            if kind_of(&fact).is_some_and(|kind| self.silent.contains_key(&kind)) {
                continue;
            }
            self.befall(fact).await;
        }
    }

    /// Delivers a fact, in the way that faults have it.
    async fn befall(&mut self, fact: Fact) {
        let watched = |pick: u64| [Kind::Pod, Kind::Node, Kind::NodeClaim, Kind::NodePool][(pick % 4) as usize];
        let aside = |pick: u64| ASIDE[(pick % 6) as usize];
        self.past.go_on();
        self.ready.push_back(fact.clone());
        if matches!(fact, Fact::Relisting(_) | Fact::Relisted(_)) {
            // What is told twice was told by one list.
            self.recent.clear();
            return;
        }
        self.recent.push_back(fact);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        assert!(self.mishaps.strikes(Fault::WatchPanics, "").is_none(), "{SABOTAGE} the watches");
        if self.mishaps.strikes(Fault::WatchDuplicated, "").is_some() {
            self.ready.extend(self.recent.iter().cloned());
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::WatchStalled, "") {
            sleep_until(Instant::now() + mishap.lasting).await;
        }
        if let Some(until) =
            self.mishaps.holds(Fault::ApiAmnesia).map(|mishap| self.mishaps.start() + mishap.at + mishap.lasting)
            && self.silent.insert(Kind::NodeClaim, until) != Some(until)
        {
            self.recent.clear();
            self.ready.extend([Fact::Relisting(Kind::NodeClaim), Fact::Relisted(Kind::NodeClaim)]);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::WatchDropped, "") {
            self.drop(watched(mishap.pick), mishap.lasting);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::WatchStale, "") {
            self.start_over(watched(mishap.pick), mishap.lasting);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::SideWatchDropped, "") {
            self.drop(aside(mishap.pick), mishap.lasting);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::SideWatchStale, "") {
            self.start_over(aside(mishap.pick), mishap.lasting);
        }
    }

    /// A watch breaks, and tells nothing for a while.
    fn drop(&mut self, kind: Kind, lasting: Duration) {
        self.recent.clear();
        self.silent.insert(kind, Instant::now() + lasting);
        self.mishaps.note("", || format!("the watch of {} breaks for {lasting:?}", kind.as_str()));
    }

    /// A watch begins anew with an old list, and tells nothing more for as long as that is old.
    fn start_over(&mut self, kind: Kind, lasting: Duration) {
        self.recent.clear();
        self.list(kind, self.past.list(kind, lasting));
        self.silent.insert(kind, Instant::now() + lasting);
        self.mishaps
            .note("", || format!("the watch of {} starts over with a list that is {lasting:?} old", kind.as_str()));
    }

    /// Delivers a whole list.
    fn list(&mut self, kind: Kind, objects: Vec<Fact>) {
        self.ready.push_back(Fact::Relisting(kind));
        self.ready.extend(objects);
        self.ready.push_back(Fact::Relisted(kind));
    }
}

/// What a watch that is broken does not tell, the end of a list that it broke off included: who has heard half of a list must not believe that
/// it was all.
fn kind_of(fact: &Fact) -> Option<Kind> {
    match fact {
        Fact::Relisting(kind) | Fact::Relisted(kind) => Some(*kind),
        fact => about(fact).map(|about| about.kind),
    }
}
