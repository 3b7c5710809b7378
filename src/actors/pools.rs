//! `pools`: keeps the status of NodePools (what they use, whether they are valid, whether their NodeClass is ready, their hash), and of
//! the optional kinds beside them: NodeOverlays and CapacityBuffers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use futures::future::BoxFuture;

use crate::cluster;
use crate::core::facts::{self, Pool, Snapshot};
use crate::core::health::{self, Health};
use crate::core::ids::{PoolName, PoolUid};
use crate::core::pools::{self, Backing, Wanted};
use crate::core::resources::Resources;
use crate::core::writes::Regarding;
use crate::core::{budgets, buffers, overlays};
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::events;

use super::protocol::{Judged, PoolsMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// Changes are gathered for this long before they are written: a burst of nodes is one write per pool (Karpenter's counter polls at 5 s).
const GATHER: Duration = Duration::from_secs(1);
/// Pause before a failed write is repeated.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps NodePool status.
#[derive(Debug)]
pub(super) struct Pools {
    wiring: Arc<Wiring>,
    write: Option<Timer>,
    /// When the last write began.
    written: Option<Instant>,
    under_way: BTreeSet<Judged>,
    failures: BTreeMap<Judged, String>,
    /// How the last launches came out.
    health: BTreeMap<PoolUid, Health>,
    counted: Counted,
    /// Events that were written lately.
    said: Dedupe,
}

/// What NodePools used at the last count. What joiner writes into their status comes back as news, and changes nothing about it.
#[derive(Debug, Default)]
struct Counted {
    /// What was counted: parts of that snapshot, which share what has not changed with every later one.
    of: Snapshot,
    usage: Arc<BTreeMap<PoolName, Resources>>,
}

impl Counted {
    fn usage(&mut self, snapshot: &Snapshot) -> Arc<BTreeMap<PoolName, Resources>> {
        let Snapshot { claims, nodes, nodes_of, .. } = snapshot;
        let known = &self.of;
        if !known.claims.ptr_eq(claims) || !known.nodes.ptr_eq(nodes) || !known.nodes_of.ptr_eq(nodes_of) {
            self.usage = Arc::new(pools::usage(snapshot));
            let (claims, nodes, nodes_of) = (claims.clone(), nodes.clone(), nodes_of.clone());
            self.of = Snapshot { nodes, nodes_of, claims, ..Snapshot::default() };
        }
        Arc::clone(&self.usage)
    }
}

impl Pools {
    fn write(&mut self, cx: &Cx<PoolsMsg>) {
        self.write = None;
        self.written = Some(Instant::now());
        if !cx.house.operations.may_write() {
            // Whoever leads meanwhile hears how launches come out, and writes it down: what is known of it here is outdated.
            self.health.clear();
            return;
        }
        let snapshot = self.wiring.boards.snapshot();
        self.health.retain(|uid, _| snapshot.pools.values().any(|pool| pool.uid == *uid));
        let usage = self.counted.usage(&snapshot);
        let kinds = self.wiring.cloud.class_kinds();
        let alarm = self.wiring.boards.alarm.borrow().clone();
        for pool in snapshot.pools.values() {
            // A pool of another cloud's NodeClass is somebody else's.
            if !pool.is_managed(&kinds) || self.under_way.contains(&Judged::Pool(pool.name.clone())) {
                continue;
            }
            self.tell_of_budgets(pool, cx);
            let used = usage.get(&pool.name).cloned().unwrap_or_default();
            let class = snapshot.classes.get(&pool.template.class).map(|class| &**class);
            // There may well be one.
            if class.is_none() && snapshot.withheld.contains(&facts::Kind::NodeClass) {
                continue;
            }
            let health = self.health.entry(pool.uid.clone()).or_insert_with(|| Health::of(pool));
            if class.is_some_and(|class| health::is_outdated(pool, class)) {
                *health = Health::default();
            }
            let rehashed = || pools::is_rehashed(pool, &snapshot);
            let misfit = class.and_then(|class| self.wiring.cloud.misfit(class, pool));
            let backing = class.map(|class| Backing { class, misfit: misfit.as_deref() });
            if let Some(wanted) = pools::wanted(pool, &used, backing, health, &alarm, rehashed, cx.now()) {
                self.write_pool(pool, wanted, cx);
            }
        }
        self.write_overlays(&snapshot, cx);
        self.write_buffers(&snapshot, cx);
    }

    fn tell_of_budgets(&mut self, pool: &Pool, cx: &Cx<PoolsMsg>) {
        let problems = budgets::problems(pool);
        if !problems.is_empty() {
            let about = Regarding::Pool(pool.name.clone(), pool.uid.clone());
            self.wiring.announce(&cx.house, &mut self.said, events::invalid_budgets(about, &problems));
        }
    }

    fn write_overlays(&mut self, snapshot: &Snapshot, cx: &Cx<PoolsMsg>) {
        let catalog = self.wiring.boards.catalog();
        for (name, judgement) in &catalog.overlays {
            let subject = Judged::Overlay(Arc::clone(name));
            let Some(overlay) = snapshot.overlays.get(name).filter(|_| !self.under_way.contains(&subject)) else {
                continue;
            };
            if let Some(patch) = overlays::wanted(overlay, judgement, cx.now()) {
                let (cluster, name) = (Arc::clone(&self.wiring.cluster), Arc::clone(name));
                let call = async move { cluster.patch_overlay_status(&name, &patch).await };
                self.send(subject, Box::pin(call), cx);
            }
        }
    }

    fn write_buffers(&mut self, snapshot: &Snapshot, cx: &Cx<PoolsMsg>) {
        if !self.wiring.settings.features.capacity_buffer {
            return;
        }
        let rooms = self.wiring.boards.rooms();
        for buffer in snapshot.buffers.values() {
            let subject = Judged::Buffer(buffer.key.clone());
            if self.under_way.contains(&subject) {
                continue;
            }
            if let Some(patch) = buffers::wanted(snapshot, buffer, rooms.of.get(&buffer.key), cx.now()) {
                let (cluster, key) = (Arc::clone(&self.wiring.cluster), buffer.key.clone());
                let call = async move { cluster.patch_buffer_status(&key, &patch).await };
                self.send(subject, Box::pin(call), cx);
            }
        }
    }

    fn write_pool(&mut self, pool: &Pool, wanted: Wanted, cx: &Cx<PoolsMsg>) {
        let (cluster, name) = (Arc::clone(&self.wiring.cluster), pool.name.clone());
        let call = async move {
            match wanted {
                Wanted::Annotations(patch) => cluster.patch_pool(&name, &patch).await,
                Wanted::Status(patch) => cluster.patch_pool_status(&name, &patch).await,
            }
        };
        self.send(Judged::Pool(pool.name.clone()), Box::pin(call), cx);
    }

    fn send(&mut self, subject: Judged, call: BoxFuture<'static, Result<(), cluster::Error>>, cx: &Cx<PoolsMsg>) {
        self.under_way.insert(subject.clone());
        cx.start(Permits::WriteCluster, call, move |outcome| PoolsMsg::Written(subject, outcome));
    }

    fn written(&mut self, subject: Judged, outcome: Written<()>, cx: &Cx<PoolsMsg>) {
        self.under_way.remove(&subject);
        let failure = match outcome {
            // What somebody else wrote comes as a fact, and is looked at then.
            Outcome::Failed(cluster::Error::Conflict(_)) => {
                self.write = Some(cx.after(GATHER, PoolsMsg::Write));
                return;
            }
            Outcome::NotLeader => return,
            outcome => outcome.answer().err(),
        };
        match failure {
            // What was written comes back as a fact, and with it the next look.
            None => {
                self.failures.remove(&subject);
            }
            Some(failure) => {
                if self.failures.get(&subject) != Some(&failure) {
                    tracing::warn!(object = %subject, error = %failure, "status not written, trying again");
                }
                self.failures.insert(subject, failure);
                self.write = Some(cx.after(RETRY, PoolsMsg::Write));
            }
        }
    }
}

impl Behaviour for Pools {
    type Msg = PoolsMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Pools;

    fn born(wiring: &Self::Args, cx: &Cx<PoolsMsg>) -> Self {
        cx.cast(PoolsMsg::Look);
        Self {
            wiring: Arc::clone(wiring),
            write: None,
            written: None,
            under_way: BTreeSet::new(),
            failures: BTreeMap::new(),
            health: BTreeMap::new(),
            counted: Counted::default(),
            said: Dedupe::new(),
        }
    }

    fn handle(&mut self, message: PoolsMsg, cx: &Cx<PoolsMsg>) {
        match message {
            PoolsMsg::Look => {
                if self.write.is_none() {
                    // The first change after a quiet time is written at once: pods wait for a NodePool to become ready.
                    let wait = self.written.map_or(Duration::ZERO, |last| GATHER.saturating_sub(last.elapsed()));
                    self.write = Some(cx.after(wait, PoolsMsg::Write));
                }
            }
            PoolsMsg::Write => self.write(cx),
            PoolsMsg::Launched(uid, outcome) => {
                let snapshot = self.wiring.boards.snapshot();
                // Of a NodePool that is gone nobody wants to know.
                if let Some(pool) = snapshot.pools.values().find(|pool| pool.uid == uid) {
                    self.health.entry(uid).or_insert_with(|| Health::of(pool)).heard(outcome);
                    cx.cast(PoolsMsg::Look);
                }
            }
            PoolsMsg::Written(subject, outcome) => self.written(subject, outcome, cx),
        }
    }

    fn observe(&self, now: Timestamp) -> View {
        let snapshot = self.wiring.boards.snapshot();
        let census = budgets::census(&snapshot);
        let details = snapshot.pools.values().map(|pool| {
            let text = if let Some(failure) = self.failures.get(&Judged::Pool(pool.name.clone())) {
                failure.clone()
            } else if pool.is_ready() {
                "ready".to_owned()
            } else {
                pools::why_not_ready(pool)
            };
            let health = self.health.get(&pool.uid).map(|health| format!("; {}", health.describe()));
            let census = census.get(&pool.name).copied().unwrap_or_default();
            let budgets = budgets::describe(pool, census, now);
            (pool.name.to_string(), format!("{text}{}; {budgets}", health.unwrap_or_default()))
        });
        let others = self.failures.iter().filter(|(subject, _)| !matches!(subject, Judged::Pool(_)));
        let details = details.chain(others.map(|(subject, failure)| (subject.to_string(), failure.clone())));
        View {
            state: if self.under_way.is_empty() { "up to date" } else { "writing" }.to_owned(),
            details: details.collect(),
            ..View::default()
        }
    }
}
