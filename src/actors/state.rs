//! `state`: folds facts into snapshots, publishes them, and nudges those whom the news concerns.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::metrics;

use super::protocol::{
    BatcherMsg, CatalogMsg, ClassesMsg, NominatorMsg, PoolsMsg, ProvisionerMsg, StateMsg, StaticsMsg,
};
use super::runtime::{Behaviour, Cx, Kind, Mailbox, Timer, View};
use super::tree::Wiring;
use super::witness::Witness;
use crate::core::backoff::backoff;
use crate::core::facts::{Fact, Fold, News};

/// Pause before a stream of facts that ended is begun anew; it doubles with each that ends soon, up to the longest.
const RECONNECT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);
/// A stream that ends sooner has failed like the one before.
const SOON: Duration = Duration::from_mins(5);

/// So many facts of watches wait at most to be folded; a pod's is a few KB. Beyond, nothing is read from the watches, and the API server keeps what
/// has happened, or ends a watch that is too slow: then that kind is listed anew.
const BACKLOG: usize = 4096;

/// Folds facts.
#[derive(Debug)]
pub(super) struct State {
    wiring: Arc<Wiring>,
    fold: Fold,
    witness: Witness,
    /// Events that were said of late.
    said: Dedupe,
    /// Carries facts from the cluster to this instance; ends with it.
    pump: tokio::task::JoinHandle<()>,
    reconnect: Option<Timer>,
    /// When the stream began, and how many ended soon before it.
    began: Timestamp,
    failures: u32,
    facts: u64,
    synced: bool,
    /// Whether pods had a place in a plan when the nominator was last told: it hears of the end, too.
    plans: bool,
}

impl Drop for State {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// Carries facts to an instance until either end is gone.
fn pump(wiring: &Wiring, mailbox: Mailbox<StateMsg>) -> tokio::task::JoinHandle<()> {
    let facts = wiring.cluster.facts();
    tokio::spawn(async move {
        carry(facts, |fact, place| mailbox.cast(StateMsg::Watched(fact, place))).await;
        mailbox.cast(StateMsg::Reconnect);
    })
}

/// Hands out facts, each with its place in the backlog, until there are no more, reading one panics, or nobody takes them.
async fn carry(mut facts: BoxStream<'static, Fact>, hand_over: impl Fn(Fact, OwnedSemaphorePermit) -> bool) {
    let backlog = Arc::new(Semaphore::new(BACKLOG));
    let carrying = async {
        // A place first: what is not read yet costs nothing here.
        while let Ok(place) = Arc::clone(&backlog).acquire_owned().await
            && let Some(fact) = facts.next().await
            && hand_over(fact, place)
        {}
    };
    // A panic while an object is read is an end like any other. Were it not told, nothing would be heard of any more.
    drop(AssertUnwindSafe(carrying).catch_unwind().await);
}

impl State {
    fn publish(&mut self) {
        // Until everything was listed once, absence means nothing: what a predecessor published is better than a part.
        if !self.fold.snapshot().is_complete() {
            return;
        }
        let mut news = self.fold.take_news();
        if !self.synced {
            self.synced = true;
            metrics::cluster_synced(true);
            // What a predecessor knew and the lists no longer have is news too.
            news.claims.extend(self.wiring.boards.snapshot().claims.keys().cloned());
        }
        self.wiring.boards.snapshot.send_replace(Arc::new(self.fold.snapshot().clone()));
        self.wiring.boards.waits.send_replace(Arc::new(self.witness.waits().clone()));
        self.nudge(news);
    }

    fn nudge(&mut self, news: News) {
        metrics::pods_landed(news.landed);
        let slots = &self.wiring.slots;
        if !news.claims.is_empty() {
            self.wiring.stir(news.claims);
        }
        let plans = !self.fold.snapshot().planned.is_empty();
        if plans || self.plans {
            slots.nominator.cast(NominatorMsg::Look);
        }
        self.plans = plans;
        if news.pools || news.classes || news.overlays {
            slots.catalog.cast(CatalogMsg::Look);
        }
        if news.classes {
            slots.classes.cast(ClassesMsg::Look);
        }
        if news.usage || news.pools || news.classes || news.overlays || news.buffers {
            slots.pools.cast(PoolsMsg::Look);
        }
        if news.usage || news.pools {
            slots.statics.cast(StaticsMsg::Look);
        }
        if news.pending || news.buffers && self.wiring.settings.features.capacity_buffer {
            slots.batcher.cast(BatcherMsg::PodsPending);
        }
        if news.arrivals {
            slots.batcher.cast(BatcherMsg::PodsCame);
        }
        if news.supply {
            slots.provisioner.cast(ProvisionerMsg::SupplyChanged);
        }
    }
}

impl Behaviour for State {
    type Msg = StateMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::State;

    fn born(wiring: &Self::Args, cx: &Cx<StateMsg>) -> Self {
        // Plans and waits are what no list brings back; what a predecessor published of them is kept.
        let fold = Fold::with_plans_of(&wiring.boards.snapshot());
        let witness = Witness::after(&wiring.boards.waits());
        let pump = pump(wiring, cx.mailbox());
        metrics::cluster_synced(false);
        let (wiring, said) = (Arc::clone(wiring), Dedupe::default());
        Self {
            wiring,
            fold,
            witness,
            said,
            pump,
            reconnect: None,
            began: cx.now(),
            failures: 0,
            facts: 0,
            synced: false,
            plans: true,
        }
    }

    fn handle(&mut self, message: StateMsg, cx: &Cx<StateMsg>) {
        match message {
            StateMsg::Seen(fact) | StateMsg::Watched(fact, _) => {
                self.facts += 1;
                let leads = cx.house.operations.may_write();
                for event in self.witness.see(&fact, self.fold.snapshot(), leads, cx.now()) {
                    self.wiring.announce(&cx.house, &mut self.said, event);
                }
                let relisted = if let Fact::Relisted(kind) = &fact { Some(*kind) } else { None };
                self.fold.at(cx.now());
                self.fold.fold(fact);
                if let Some(kind) = relisted {
                    self.witness.relisted(kind, self.fold.snapshot());
                }
            }
            StateMsg::Decided { placed, refused } => self.witness.decided(&placed, &refused, cx.now()),
            StateMsg::Planned(claim, pods) => self.fold.planned(&claim, pods),
            StateMsg::NoClaim(claim, uid) => self.fold.no_claim(&claim, &uid),
            StateMsg::NoNode(node, uid) => self.fold.no_node(&node, &uid),
            StateMsg::Unplanned(claim) => self.fold.unplanned(&claim),
            StateMsg::Publish => {
                self.publish();
                return;
            }
            StateMsg::Reconnect => {
                if self.reconnect.take().is_none() {
                    let lasted = Duration::try_from(cx.now().duration_since(self.began)).unwrap_or_default();
                    self.failures = if lasted < SOON { self.failures + 1 } else { 1 };
                    let pause = backoff(RECONNECT, LONGEST, self.failures);
                    tracing::error!(?pause, "the stream of facts ended; listing anew after a pause");
                    self.reconnect = Some(cx.after(pause, StateMsg::Reconnect));
                } else {
                    self.began = cx.now();
                    self.pump = pump(&self.wiring, cx.mailbox());
                }
                return;
            }
        }
        // Behind what is in the mailbox already, and once: a burst of facts makes one snapshot.
        cx.cast(StateMsg::Publish);
    }

    fn observe(&self, _: Timestamp) -> View {
        let snapshot = self.fold.snapshot();
        let missing = self.fold.not_listed();
        let (state, waits_for) = if self.reconnect.is_some() {
            ("cut off", Some("a pause after the stream of facts ended; the log says why".to_owned()))
        } else if missing.is_empty() {
            ("up to date", None)
        } else {
            ("listing", Some(format!("first list of {}", missing.join(", "))))
        };
        View {
            state: state.to_owned(),
            waits_for,
            details: vec![
                ("facts".to_owned(), self.facts.to_string()),
                ("epoch".to_owned(), snapshot.epoch.to_string()),
                ("pods".to_owned(), snapshot.pods.len().to_string()),
                ("pending pods".to_owned(), snapshot.pending.len().to_string()),
                ("nodes".to_owned(), snapshot.nodes.len().to_string()),
                ("NodeClaims".to_owned(), snapshot.claims.len().to_string()),
                ("NodePools".to_owned(), snapshot.pools.len().to_string()),
                ("planned pods".to_owned(), snapshot.planned.len().to_string()),
                ("pods not ready yet".to_owned(), self.witness.waits().len().to_string()),
            ],
            ..View::default()
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
