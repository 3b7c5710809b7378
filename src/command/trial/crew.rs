//! Whoever runs joiner in a history: kills it, starts it again, strikes its actors, and asks it what it waits for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use jiff::SignedDuration;
use tokio::time::{sleep, timeout};

use crate::actors::runtime::{Clock, House, Kind, Observation, View};
use crate::actors::{Boards, Joiner, Parts, Settings};
use crate::clouds::Cloud;
use crate::cluster::Cluster;
use crate::core::facts::{self, Snapshot};
use crate::core::ids::{ClaimName, PodUid};
use crate::core::promises::{self, Broken};
use crate::core::steady::TOLERANCE;
use crate::sim::SimCluster;
use crate::sim::faults::Order;
use crate::sim::invariants::{Invariants, Memory};

use super::oncall::OnCall;
use crate::command::health::stirring;

/// Shortest time between two lives.
const PAUSE: Duration = Duration::from_millis(200);
/// How often the liveness probe is looked at: three times of ten seconds each must it fail, as the chart has it.
const PROBE: Duration = Duration::from_secs(30);
/// Time that an actor gets to say what it waits for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often joiner is asked what it remembers.
const ASKED: u32 = 3;
/// Time in which an actor takes a step, and its parent starts one anew that failed three times in a row.
const MOMENT: Duration = Duration::from_secs(2);

/// Runs joiner.
pub(super) struct Crew {
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) cloud: Arc<dyn Cloud>,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    /// By how much joiner's clock is wrong.
    pub(super) wrong_by: &'static AtomicI64,
    /// How much of that joiner follows: what it was when this joiner began, which cannot know it, and small steps since.
    followed: &'static AtomicI64,
    joiner: RefCell<Option<Joiner>>,
    /// The promises that the joiners have seen broken by themselves.
    pub(super) broken: RefCell<Vec<Broken>>,
    /// How many joiners there were: no two may give the same names.
    pub(super) lives: Cell<u64>,
    /// Whether an actor that is made to panic says that this is on purpose.
    candid: bool,
}

impl Crew {
    pub(super) fn new(
        cluster: Arc<dyn Cluster>,
        cloud: Arc<dyn Cloud>,
        settings: Settings,
        clock: Clock,
        (wrong_by, followed): (&'static AtomicI64, &'static AtomicI64),
        candid: bool,
    ) -> Self {
        let clock = clock.that_jumps(wrong_by);
        Self {
            cluster,
            cloud,
            settings,
            clock,
            wrong_by,
            followed,
            joiner: RefCell::new(None),
            broken: RefCell::default(),
            lives: Cell::new(0),
            candid,
        }
    }

    /// Starts joiner.
    pub(super) fn start(&self) {
        let life = self.lives.replace(self.lives.get() + 1);
        let settings = Settings {
            name_salt: self.settings.name_salt.wrapping_add(life << 32),
            identity: format!("joiner_{life}"),
            ..self.settings.clone()
        };
        self.followed.store(self.wrong_by.load(Ordering::Relaxed), Ordering::Relaxed);
        let (cluster, cloud) = (Arc::clone(&self.cluster), Arc::clone(&self.cloud));
        let joiner = Joiner::start(Parts { cluster, cloud, settings, clock: self.clock });
        if !self.candid {
            joiner.house().saboteur.keep_silent();
        }
        *self.joiner.borrow_mut() = Some(joiner);
    }

    /// Ends joiner without a word. What it has seen of broken promises is kept.
    pub(super) fn kill(&self) {
        if let Some(joiner) = self.joiner.borrow_mut().take() {
            self.broken.borrow_mut().extend(joiner.house().promises.told());
            joiner.kill();
        }
    }

    /// Does to joiner what the faults have in store for it.
    pub(super) async fn run(&self, mut orders: UnboundedReceiver<Order>) {
        loop {
            let order = match timeout(PROBE, orders.next()).await {
                Ok(Some(order)) => order,
                Ok(None) => break,
                // The kubelet has asked.
                Err(_) if self.is_alive() => continue,
                Err(_) => Order::Kill(PAUSE),
            };
            match order {
                Order::Kill(pause) => {
                    self.kill();
                    sleep(pause.max(PAUSE)).await;
                    self.start();
                }
                Order::Stall(pick, lasting) => self.stall(pick, lasting),
                Order::Panic(pick) => self.strike(pick),
                Order::Clock(wrong_by) => self.set_clock(wrong_by),
            }
        }
        std::future::pending::<()>().await;
    }

    /// Sets the clock. A step that is small is followed, and the next one is measured from there: joiner looks at once, as one that is set twice between
    /// two looks has made another step for it.
    fn set_clock(&self, wrong_by: i64) {
        self.wrong_by.store(wrong_by, Ordering::Relaxed);
        if let Some(joiner) = &*self.joiner.borrow() {
            joiner.house().clock.now();
        }
        let step = SignedDuration::from_millis(wrong_by - self.followed.load(Ordering::Relaxed));
        if step.abs() <= TOLERANCE {
            self.followed.store(wrong_by, Ordering::Relaxed);
        }
    }

    /// What the liveness probe of production says.
    fn is_alive(&self) -> bool {
        self.joiner.borrow().as_ref().is_none_or(|joiner| (stirring(joiner).holds)().is_ok())
    }

    /// Lets an actor stand still at one of its next messages.
    fn stall(&self, pick: u64, lasting: Duration) {
        if let Some(joiner) = &*self.joiner.borrow() {
            joiner.house().saboteur.stall(victim(pick), (pick >> 8) % 20, lasting);
        }
    }

    /// Lets actors of a kind panic at one of their next messages, once or several times in a row.
    fn strike(&self, pick: u64) {
        if let Some(joiner) = &*self.joiner.borrow() {
            joiner.house().saboteur.strike(victim(pick), (pick >> 8) % 20, 1 + (pick >> 16) % 3);
        }
    }

    /// Asks all actors what they wait for, and reports those that do not say, and NodeClaims that nobody looks after. An actor that is between two
    /// steps, and a NodeClaim whose actor is between two lives, is looked at again.
    pub(super) async fn look_for_silence(&self, invariants: &Invariants) {
        let observations = self.joiner.borrow().as_ref().map(|joiner| joiner.house().observations.clone());
        let Some(observations) = observations else { return };
        if !observations.stalled(PATIENCE).is_empty() {
            // Who stands still is the liveness probe's, and others wait for him.
            return;
        }
        let claims = |observation: &Observation| observation.kind == Kind::Claim;
        let asked = observations.read(PATIENCE, claims).await;
        let silent: Vec<u64> = asked.iter().filter(|o| is_silent(o)).map(|o| o.id).collect();
        let orphans = self.orphans(&asked);
        if silent.is_empty() && orphans.is_empty() {
            return;
        }
        sleep(MOMENT).await;
        let asked = observations.read(PATIENCE, claims).await;
        for observation in asked.iter().filter(|o| silent.contains(&o.id)) {
            if let Some(view) = observation.view.as_ref().filter(|_| is_silent(observation)) {
                invariants.waits_without_reason(&observation.name, &view.state);
            }
        }
        for name in self.orphans(&asked).intersection(&orphans) {
            invariants.waits_without_reason(name.as_str(), "without an actor");
        }
    }

    /// The NodeClaims that joiner knows and has no actor for, if it is the one that acts.
    fn orphans(&self, actors: &[Observation]) -> BTreeSet<ClaimName> {
        let joiner = self.joiner.borrow();
        let Some(joiner) = joiner.as_ref().filter(|joiner| joiner.house().operations.leads()) else {
            return BTreeSet::new();
        };
        let named: BTreeSet<&str> = actors.iter().map(|actor| actor.name.as_str()).collect();
        let snapshot = joiner.boards().snapshot();
        snapshot.claims.keys().filter(|name| !named.contains(name.as_str())).cloned().collect()
    }

    /// Has somebody read what the auditor found.
    pub(super) async fn call(&self, on_call: &OnCall) {
        let observations = self.joiner.borrow().as_ref().map(|joiner| joiner.house().observations.clone());
        let Some(observations) = observations else { return };
        let auditors = observations.read(PATIENCE, |observation| observation.kind == Kind::Auditor).await;
        auditors.into_iter().filter_map(|auditor| auditor.view).for_each(|view| on_call.read(&view));
    }

    /// What the actors of NodeClaims say of themselves.
    pub(super) async fn said(&self) -> BTreeMap<String, String> {
        let observations = self.joiner.borrow().as_ref().map(|joiner| joiner.house().observations.clone());
        let Some(observations) = observations else { return BTreeMap::new() };
        let claims = observations.read(PATIENCE, |observation| observation.kind == Kind::Claim).await;
        let said = |view: View| format!("{}, waits for {}", view.state, view.waits_for.as_deref().unwrap_or("nothing"));
        claims.into_iter().filter_map(|claim| Some((claim.name, said(claim.view?)))).collect()
    }

    /// Why pods got no place at joiner's last look.
    pub(super) fn refused(&self) -> BTreeMap<PodUid, Vec<String>> {
        let boards = self.joiner.borrow().as_ref().map(|joiner| joiner.boards().clone());
        boards.map(|boards| boards.refusals.borrow().reasons.clone()).unwrap_or_default()
    }

    /// What joiner still remembers of a cluster that is empty, beyond what `there` still is. One that is just starting, and an actor that does not answer,
    /// is asked again.
    pub(super) async fn memory(&self, there: &SimCluster) -> Memory {
        let mut memory = Memory { left: Vec::new(), silent: vec!["joiner".to_owned()] };
        for _ in 0..ASKED {
            let parts = self.joiner.borrow().as_ref().map(|joiner| (joiner.house().clone(), joiner.boards().clone()));
            if let Some((house, boards)) = parts {
                memory = asked(&house, &boards, there).await;
            }
            if memory.silent.is_empty() {
                break;
            }
            sleep(MOMENT).await;
        }
        memory
    }
}

/// What joiner says that it remembers, and which of its actors do not say it.
async fn asked(house: &House, boards: &Boards, there: &SimCluster) -> Memory {
    let mut left = remembered(&boards.snapshot(), there);
    left.extend(written(boards));
    left.push(("claim actors", house.observations.count().get(&Kind::Claim).copied().unwrap_or(0)));
    let mut silent = Vec::new();
    for (kind, what) in [(Kind::Claims, "places of claim actors"), (Kind::Evictor, "pods to evict")] {
        let said = house.observations.read(PATIENCE, |observation| observation.kind == kind).await;
        let number = |view: View| view.state.split(' ').next()?.parse().ok();
        match said.into_iter().find_map(|observation| number(observation.view?)) {
            Some(number) => left.push((what, number)),
            None => silent.push(kind.to_string()),
        }
    }
    Memory { left: left.into_iter().map(|(what, number)| (what.to_owned(), number)).collect(), silent }
}

/// What a picture of the cluster holds that is not there: all of it, so that what is added to a picture is counted too.
fn remembered(snapshot: &Snapshot, there: &SimCluster) -> Vec<(&'static str, usize)> {
    let Snapshot {
        epoch: _,
        pods,
        bound,
        pending,
        denominated,
        undecided,
        weighed,
        nodes,
        nodes_of,
        owned,
        claims,
        pools,
        classes,
        daemons,
        namespaces,
        planned,
        planned_for,
        replanned: _,
        volume_claims,
        volumes,
        storage_classes,
        csi_nodes,
        attachments,
        attached,
        pod_events,
        // So many and no more are kept on purpose.
        departed: _,
        groups,
        overlays,
        buffers,
        templates,
        scalables,
        pod_budgets,
        // Which kinds there are, and not what there is of them.
        listed: _,
        withheld: _,
    } = snapshot;
    let store = there.store();
    let beyond = |known: usize, kind: facts::Kind| known.saturating_sub(store.number_of(kind));
    vec![
        ("pods", beyond(pods.len(), facts::Kind::Pod)),
        ("nodes with pods", bound.len()),
        ("pending pods", pending.len()),
        ("pods that lost a nomination", denominated.len()),
        ("pods that kube-scheduler has not looked at", undecided.len()),
        ("pods for which nodes were weighed", weighed.len()),
        ("nodes", beyond(nodes.len(), facts::Kind::Node)),
        ("provider IDs of nodes", nodes_of.len()),
        ("owners of nodes", owned.len()),
        ("NodeClaims", beyond(claims.len(), facts::Kind::NodeClaim)),
        ("NodePools", beyond(pools.len(), facts::Kind::NodePool)),
        ("NodeClasses", beyond(classes.len(), facts::Kind::NodeClass)),
        ("DaemonSets", beyond(daemons.len(), facts::Kind::DaemonSet)),
        ("namespaces", beyond(namespaces.len(), facts::Kind::Namespace)),
        ("planned pods", planned.len()),
        ("NodeClaims with planned pods", planned_for.len()),
        ("PersistentVolumeClaims", beyond(volume_claims.len(), facts::Kind::VolumeClaim)),
        ("PersistentVolumes", beyond(volumes.len(), facts::Kind::Volume)),
        ("StorageClasses", beyond(storage_classes.len(), facts::Kind::StorageClass)),
        ("CSINodes", beyond(csi_nodes.len(), facts::Kind::CsiNode)),
        ("VolumeAttachments", beyond(attachments.len(), facts::Kind::VolumeAttachment)),
        ("nodes with VolumeAttachments", attached.len()),
        ("nodes with pod events", pod_events.len()),
        ("Services and controllers", groups.len()),
        ("NodeOverlays", beyond(overlays.len(), facts::Kind::NodeOverlay)),
        ("CapacityBuffers", beyond(buffers.len(), facts::Kind::CapacityBuffer)),
        ("PodTemplates", beyond(templates.len(), facts::Kind::PodTemplate)),
        // They are looked at for CapacityBuffers alone, and here are none.
        ("workloads", scalables.len()),
        ("PodDisruptionBudgets", beyond(pod_budgets.len(), facts::Kind::PodBudget)),
    ]
}

/// What stands on the boards about objects: all but the latest value of something that is one.
fn written(boards: &Boards) -> [(&'static str, usize); 5] {
    let Boards {
        snapshot: _,
        stirred,
        waits,
        catalog: _,
        leader_until: _,
        refusals,
        lease: _,
        record: _,
        alarm: _,
        // The last few, on purpose.
        decisions: _,
        rooms,
    } = boards;
    let rooms = rooms.borrow();
    [
        ("NodeClaims with news", stirred.borrow().len()),
        ("pods that wait", waits.borrow().len()),
        ("refused pods", refusals.borrow().reasons.len()),
        ("buffers with room", rooms.of.len()),
        ("NodeClaims with placeholders", rooms.on.len()),
    ]
}

/// Of which kind the actor is that something befalls.
fn victim(pick: u64) -> Kind {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Supervisor).collect();
    kinds[usize::try_from(pick % kinds.len() as u64).unwrap_or(0)]
}

fn is_silent(observation: &Observation) -> bool {
    observation.view.as_ref().is_some_and(|view| promises::is_silent(&view.state, view.waits_for.as_deref()))
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
