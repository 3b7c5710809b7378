//! `statics`: gives static NodePools (`spec.replicas`) their number of NodeClaims: creates those that are missing, deletes those that are too many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster;
use crate::core::facts::{ClaimDraft, Fact, Pool, Snapshot};
use crate::core::ids::{ClaimName, PoolName};
use crate::core::scheduling::{self, Names, Problem};
use crate::core::statics::{self, Need, Ordered};
use crate::telemetry::metrics::{self, CreatedFor};

use super::protocol::{StateMsg, StaticsMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// Pause before what failed is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// What was ordered and does not show in the snapshot after this long is not waited for any more: the watch has a gap, or the object met
/// somebody else's wish.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
/// A NodePool that lacks nodes is looked at again after this long even if nothing happens (Karpenter: 30 s at its node limit).
const AGAIN: Duration = Duration::from_secs(30);
/// What a predecessor created just before it died is seen by then.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// How often a NodeClaim is tried to be written whose answer got lost. Its name is fixed, so that writing it twice makes one object.
const CREATE_ATTEMPTS: u32 = 3;

/// Keeps static NodePools at their number.
#[derive(Debug)]
pub(super) struct Statics {
    wiring: Arc<Wiring>,
    look: Option<Timer>,
    /// NodeClaims that are being written, and how often each was tried.
    creating: BTreeMap<ClaimName, (ClaimDraft, u32)>,
    /// Created, and not yet in the snapshot.
    created: BTreeMap<ClaimName, (PoolName, Instant)>,
    /// When a NodeClaim of a NodePool was last given up because it got no machine.
    setbacks: BTreeMap<PoolName, Instant>,
    /// Deleted, and not yet so in the snapshot.
    deleted: BTreeMap<ClaimName, Instant>,
    /// What stands in the way of a NodePool.
    troubles: BTreeMap<PoolName, String>,
    /// Makes names differ from look to look.
    looks: u64,
    born: Instant,
}

impl Statics {
    fn look(&mut self, cx: &Cx<StaticsMsg>) {
        self.look = None;
        let snapshot = self.wiring.boards.snapshot();
        if !self.wiring.settings.features.static_capacity || !cx.house.operations.may_write() || !snapshot.is_complete()
        {
            return;
        }
        if let Some(rest) = SETTLES_WITHIN.checked_sub(self.born.elapsed()).filter(|rest| !rest.is_zero()) {
            self.look = Some(cx.after(rest, StaticsMsg::Look));
            return;
        }
        self.created.retain(|name, (_, at)| !snapshot.claims.contains_key(name) && at.elapsed() < SHOWS_WITHIN);
        self.setbacks.retain(|_, at| at.elapsed() < AGAIN);
        let shows = |name: &ClaimName| snapshot.claims.get(name).is_none_or(|claim| claim.deleting.is_some());
        self.deleted.retain(|name, at| !shows(name) && at.elapsed() < SHOWS_WITHIN);
        self.troubles.retain(|name, _| snapshot.pools.contains_key(name));
        let kinds = self.wiring.cloud.class_kinds();
        let (mut again, mut pause) = (false, AGAIN);
        for pool in snapshot.pools.values() {
            if pool.replicas.is_none() || !pool.is_managed(&kinds) {
                continue;
            }
            match statics::need(&snapshot, pool, &self.ordered(), cx.now()) {
                Need::Nothing => {}
                Need::More { create, held_back } => {
                    again = true;
                    self.held_back(&pool.name, held_back);
                    match self.setback(&pool.name) {
                        Some(wait) => pause = pause.min(wait),
                        None => self.create(pool, create, &snapshot, cx),
                    }
                    continue;
                }
                Need::Fewer(names) => self.delete(pool, &names, cx),
            }
            self.troubles.remove(&pool.name);
        }
        let due = self.created.values().map(|(_, at)| at).chain(self.deleted.values()).min();
        let due = due.map(|at| SHOWS_WITHIN.saturating_sub(at.elapsed()));
        let due = due.into_iter().chain(again.then_some(pause)).min();
        self.look = due.map(|due| cx.after(due, StaticsMsg::Look));
    }

    fn ordered(&self) -> Ordered {
        let creating = self.creating.iter().map(|(name, (draft, _))| (name.clone(), draft.pool.clone()));
        let created = self.created.iter().map(|(name, (pool, _))| (name.clone(), pool.clone()));
        Ordered { coming: creating.chain(created).collect(), going: self.deleted.keys().cloned().collect() }
    }

    /// How long to wait because NodeClaims were given up lately without a machine: where nothing can be bought, they would come and go without a pause.
    /// Those that somebody else deletes are made up for at once.
    fn setback(&self, pool: &PoolName) -> Option<Duration> {
        self.setbacks.get(pool).map(|at| AGAIN.saturating_sub(at.elapsed()))
    }

    fn held_back(&mut self, pool: &PoolName, nodes: i64) {
        if nodes == 0 {
            self.troubles.remove(pool);
            return;
        }
        let trouble =
            format!("limits.nodes is reached, {nodes} more nodes are wanted; raise the limit or lower replicas");
        if self.troubles.get(pool) != Some(&trouble) {
            tracing::info!(nodepool = %pool, held_back = nodes, "nodepool node limit reached");
            self.troubles.insert(pool.clone(), trouble);
        }
    }

    fn create(&mut self, pool: &Pool, nodes: i64, snapshot: &Snapshot, cx: &Cx<StaticsMsg>) {
        if nodes == 0 {
            return;
        }
        tracing::info!(nodepool = %pool.name, replicas = pool.replicas, create = nodes, "creating nodeclaims of a static nodepool");
        self.looks += 1;
        let salt = self.wiring.settings.name_salt.wrapping_add(snapshot.epoch).wrapping_mul(1_000_003);
        let mut names = Names::new(snapshot, salt.rotate_left(32).wrapping_add(self.looks));
        let (catalog, settings, keys) =
            (self.wiring.boards.catalog(), scheduling::Settings::default(), self.wiring.cloud.label_keys());
        let mut problem = Problem::new(snapshot, &catalog, &[], &settings);
        problem.label_keys = &keys;
        let open: BTreeSet<&str> = problem.open_keys();
        for _ in 0..nodes {
            let name = loop {
                let name = names.name(&pool.name);
                if !self.creating.contains_key(&name) && !self.created.contains_key(&name) {
                    break name;
                }
            };
            let draft = statics::draft(pool, name.clone(), |key| open.contains(key));
            self.write(&draft, cx);
            self.creating.insert(name, (draft, 1));
        }
    }

    fn write(&self, draft: &ClaimDraft, cx: &Cx<StaticsMsg>) {
        let (cluster, draft, name) = (Arc::clone(&self.wiring.cluster), draft.clone(), draft.name.clone());
        let call = async move { cluster.create_claim(&draft).await };
        cx.start(Permits::WriteCluster, call, move |outcome| StaticsMsg::Created(name, outcome));
    }

    fn created(&mut self, name: ClaimName, outcome: Written<Arc<crate::core::facts::Claim>>, cx: &Cx<StaticsMsg>) {
        let Some((draft, attempts)) = self.creating.remove(&name) else { return };
        let failure = match outcome {
            Outcome::Done(claim) => {
                let did = if self.wiring.cluster.only_says() { "would create" } else { "created" };
                tracing::info!(nodeclaim = %name, nodepool = %draft.pool, "{did} nodeclaim");
                metrics::claim_created(CreatedFor::Provisioned, &draft.pool, false);
                self.wiring.slots.state.cast(StateMsg::Seen(Fact::ClaimSeen(claim)));
                None
            }
            // An earlier attempt whose answer got lost.
            Outcome::Failed(cluster::Error::Exists(_)) => None,
            Outcome::Lost | Outcome::Failed(cluster::Error::Unknown(_)) if attempts < CREATE_ATTEMPTS => {
                self.write(&draft, cx);
                self.creating.insert(name, (draft, attempts + 1));
                return;
            }
            Outcome::NotLeader => return,
            outcome => outcome.answer().err(),
        };
        match failure {
            None => drop(self.created.insert(name, (draft.pool, Instant::now()))),
            Some(failure) => self.failed(&draft.pool, &name, &failure, "nodeclaim not created", cx),
        }
    }

    fn delete(&mut self, pool: &Pool, names: &[ClaimName], cx: &Cx<StaticsMsg>) {
        tracing::info!(nodepool = %pool.name, replicas = pool.replicas, delete = names.len(), "deleting nodeclaims of a static nodepool");
        let snapshot = self.wiring.boards.snapshot();
        for claim in names.iter().filter_map(|name| snapshot.claims.get(name)) {
            let (name, uid) = (claim.name.clone(), claim.uid.clone());
            tracing::info!(nodeclaim = %name, nodepool = %pool.name, "deleting nodeclaim");
            let (cluster, told) = (Arc::clone(&self.wiring.cluster), name.clone());
            self.deleted.insert(name.clone(), Instant::now());
            let call = async move { cluster.delete_claim(&name, &uid).await };
            cx.start(Permits::Delete, call, move |outcome| StaticsMsg::Deleted(told, outcome));
        }
    }

    fn deleted(&mut self, name: &ClaimName, outcome: Written<()>, cx: &Cx<StaticsMsg>) {
        let failure = match outcome {
            Outcome::Failed(cluster::Error::NotFound(_)) => None,
            outcome => outcome.answer().err(),
        };
        let Some(failure) = failure else { return };
        // It counts as there again, and may be chosen anew.
        self.deleted.remove(name);
        let pool = self.wiring.boards.snapshot().claims.get(name).and_then(|claim| claim.pool());
        if let Some(pool) = pool {
            self.failed(&pool, name, &failure, "nodeclaim not deleted", cx);
        }
    }

    /// Says a failure once, and tries again in a while.
    fn failed(&mut self, pool: &PoolName, name: &ClaimName, failure: &str, what: &'static str, cx: &Cx<StaticsMsg>) {
        cx.slot().meter().failed(cx.now(), &format!("{name}: {failure}"));
        // Many NodeClaims fail for one reason.
        let trouble = format!("{what}: {}", failure.replace(name.as_str(), "..."));
        if self.troubles.get(pool) != Some(&trouble) {
            tracing::error!(nodepool = %pool, nodeclaim = %name, error = failure, "{what}");
            self.troubles.insert(pool.clone(), trouble);
        }
        self.look = Some(cx.after(RETRY, StaticsMsg::Look));
    }

    /// Static NodePools, each with what it has of what it asks for.
    fn standing(&self) -> Vec<(String, String)> {
        let (snapshot, ordered) = (self.wiring.boards.snapshot(), self.ordered());
        let pools = snapshot.pools.values().filter_map(|pool| Some((pool, pool.replicas?)));
        pools
            .map(|(pool, replicas)| {
                let census = statics::census(&snapshot, &pool.name, &ordered);
                let mut text = format!("{} of {replicas}, {} being deleted", census.active, census.deleting);
                if let Some(trouble) = self.troubles.get(&pool.name) {
                    text = format!("{text}; {trouble}");
                }
                (pool.name.to_string(), text)
            })
            .collect()
    }
}

impl Behaviour for Statics {
    type Msg = StaticsMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Statics;

    fn born(wiring: &Self::Args, cx: &Cx<StaticsMsg>) -> Self {
        Self {
            wiring: Arc::clone(wiring),
            look: Some(cx.after(SETTLES_WITHIN, StaticsMsg::Look)),
            creating: BTreeMap::new(),
            created: BTreeMap::new(),
            setbacks: BTreeMap::new(),
            deleted: BTreeMap::new(),
            troubles: BTreeMap::new(),
            looks: 0,
            born: Instant::now(),
        }
    }

    fn handle(&mut self, message: StaticsMsg, cx: &Cx<StaticsMsg>) {
        match message {
            StaticsMsg::Look => self.look(cx),
            StaticsMsg::Created(name, outcome) => self.created(name, outcome, cx),
            StaticsMsg::GivenUp(pool) => drop(self.setbacks.insert(pool, Instant::now())),
            StaticsMsg::Deleted(name, outcome) => self.deleted(&name, outcome, cx),
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        if !self.wiring.settings.features.static_capacity {
            return View { state: "off (feature gate StaticCapacity)".to_owned(), ..View::default() };
        }
        let state = if self.creating.is_empty() { "up to date" } else { "creating" };
        let waits_for =
            (!self.creating.is_empty()).then(|| format!("{} NodeClaims to be written", self.creating.len()));
        View { state: state.to_owned(), waits_for, details: self.standing(), ..View::default() }
    }
}
