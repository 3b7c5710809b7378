//! The loop: take in what has changed, place some pods, rest as long as that would have taken.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use futures::{FutureExt, StreamExt};
use tokio::time::{interval, sleep};

use super::board::SlotId;
use super::filters::{Topology, has_room};
use super::queue::{Home, Queue};
use super::score;
use super::shapes::{ShapeId, Turn};
use super::volumes::Reach;
use crate::core::ids::PodUid;
use crate::sim::cluster::SimCluster;
use crate::sim::seed::Seed;
use crate::sim::store::Store;

/// Pods that are bound between two rests.
const BATCH: u32 = 20;

/// After this long a pod that was sent away is tried again though no event has told of anything better (kube-scheduler's
/// `DefaultPodMaxInUnschedulablePodsDuration`).
const FLUSH: Duration = Duration::from_mins(5);

/// How fast the scheduler is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rhythm {
    /// Time that one binding takes.
    pub per_pod: Duration,
    /// From a change until it is looked at; changes in between are looked at together.
    pub gather: Duration,
}

impl Default for Rhythm {
    /// 500 pods a second, which is what a scheduler on a small control plane does.
    fn default() -> Self {
        Self { per_pod: Duration::from_millis(2), gather: Duration::from_millis(10) }
    }
}

/// kube-scheduler's stand-in.
pub struct Scheduler {
    cluster: SimCluster,
    rhythm: Rhythm,
    rng: Rng,
    queue: Queue,
    /// Where the next search begins, so that all nodes get their turn.
    start: SlotId,
}

impl Scheduler {
    /// The scheduler of a cluster.
    pub fn new(cluster: SimCluster, rhythm: Rhythm, seed: Seed) -> Self {
        Self { cluster, rhythm, rng: seed.stream("scheduler"), queue: Queue::default(), start: 0 }
    }

    /// Plays for as long as it is polled.
    pub async fn run(mut self) {
        let mut facts = self.cluster.prompt_facts();
        let mut placed = 0;
        let mut flush = interval(FLUSH);
        loop {
            if placed == 0 {
                tokio::select! {
                    biased;
                    fact = facts.next() => match fact {
                        None => return,
                        Some(fact) => self.queue.note(&fact),
                    },
                    _ = flush.tick() => self.queue.board.improve_all(),
                }
                sleep(self.rhythm.gather).await;
            }
            while let Some(Some(fact)) = facts.next().now_or_never() {
                self.queue.note(&fact);
            }
            placed = self.pass();
            if placed == 0 && self.queue.wake_nominated_who_count() {
                placed = self.pass();
            }
            if placed > 0 {
                sleep(self.rhythm.per_pod * placed).await;
            }
        }
    }

    /// Places up to a batch of pods, in turn; answers how many.
    fn pass(&mut self) -> u32 {
        self.queue.wake();
        let cluster = self.cluster.clone();
        let mut store = cluster.store();
        let mut heads = self.heads();
        let mut placed = 0;
        while placed < BATCH {
            let shape_turn = heads.first().copied();
            let nominated_turn = self.queue.nominated.first_key_value().map(|(turn, _)| *turn);
            match (shape_turn, nominated_turn) {
                (None, None) => break,
                (Some((turn, shape)), nominated) if nominated.is_none_or(|nominated| turn < nominated) => {
                    heads.pop_first();
                    placed += u32::from(self.try_shape(&mut store, shape, turn));
                    let next = self.queue.shapes.get(shape).queue.keys().next();
                    heads.extend(next.filter(|_| self.queue.active.contains(&shape)).map(|turn| (*turn, shape)));
                }
                (_, Some(turn)) => placed += u32::from(self.try_nominated(&mut store, turn)),
                (Some(_), None) => break,
            }
            // A placement may have woken a shape that was not in this pass.
            for shape in self.queue.woken.drain(..) {
                heads.extend(self.queue.shapes.get(shape).queue.keys().next().map(|turn| (*turn, shape)));
            }
        }
        placed
    }

    fn heads(&self) -> BTreeSet<(Turn, ShapeId)> {
        let first = |id: &ShapeId| Some((*self.queue.shapes.get(*id).queue.keys().next()?, *id));
        self.queue.active.iter().filter_map(first).collect()
    }

    /// Tries the first pod of a shape; when it fits nowhere, none of its shape does.
    fn try_shape(&mut self, store: &mut Store, shape: ShapeId, turn: Turn) -> bool {
        let Some(uid) = self.queue.shapes.get(shape).queue.get(&turn).cloned() else { return false };
        let since = self.queue.shapes.get(shape).failed;
        if let Some(slot) = self.find(shape, &uid, since) {
            return self.place(store, &uid, slot);
        }
        self.fail(store, shape);
        false
    }

    /// Tries a nominated pod: its own node first, then, like any other, all of them.
    fn try_nominated(&mut self, store: &mut Store, turn: Turn) -> bool {
        let Some(uid) = self.queue.nominated.remove(&turn) else { return false };
        let Some(entry) = self.queue.pods.get(&uid) else { return false };
        let since = entry.failed;
        let (shape, Home::Nominated(name)) = (entry.shape, entry.home.clone()) else { return false };
        if since.is_some_and(|since| self.queue.unchanged(shape, since) && !self.queue.board.has_improved(since)) {
            self.queue.stuck.insert(turn, uid);
            return false;
        }
        let own = self.queue.board.index.get(&name).copied();
        if let Some(slot) = own.filter(|slot| self.can_take(shape, &uid, *slot)) {
            return self.place(store, &uid, slot);
        }
        if let Some(slot) = self.find(shape, &uid, since) {
            return self.place(store, &uid, slot);
        }
        if let Some(entry) = self.queue.pods.get_mut(&uid) {
            entry.failed = Some(self.queue.board.epoch);
        }
        self.queue.stuck.insert(turn, uid.clone());
        if self.queue.unmarked.get_mut(&shape).is_some_and(|unmarked| unmarked.remove(&uid)) {
            store.mark_unschedulable(&uid);
        }
        false
    }

    fn place(&mut self, store: &mut Store, uid: &PodUid, slot: SlotId) -> bool {
        let Some(name) = self.queue.board.slots[slot].as_ref().map(|slot| slot.node.name.clone()) else { return false };
        let bound = store.bind(uid, &name);
        if bound {
            // The next pod in turn may share a claim that was bound just now.
            for fact in store.pods.get(uid).map(|record| store.facts_of_claims(&record.pod)).into_iter().flatten() {
                self.queue.volumes.fold(fact);
            }
            self.queue.settle(uid, &name);
        } else {
            self.queue.drop_waiting(uid);
        }
        bound
    }

    fn fail(&mut self, store: &mut Store, shape: ShapeId) {
        self.queue.active.remove(&shape);
        self.queue.shapes.get_mut(shape).failed = Some(self.queue.board.epoch);
        if self.queue.unmarked.get(&shape).is_none_or(BTreeSet::is_empty) {
            return;
        }
        let nominated = |uid: &PodUid| matches!(self.queue.pods.get(uid), Some(entry) if entry.home != Home::Waiting);
        let (kept, told) = self.queue.unmarked.remove(&shape).unwrap_or_default().into_iter().partition(nominated);
        let told: BTreeSet<PodUid> = told;
        for uid in &told {
            store.mark_unschedulable(uid);
        }
        self.queue.unmarked.insert(shape, kept);
    }

    fn can_take(&mut self, shape: ShapeId, uid: &PodUid, at: SlotId) -> bool {
        let Queue { board, shapes, volumes, .. } = &mut self.queue;
        let known = shapes.get_mut(shape);
        let Some(slot) = &board.slots[at] else { return false };
        let reach = Reach::of(volumes.snapshot(), &known.shape.namespace, &known.volume_claims);
        known.shape.broken.is_none()
            && known.suits(at, slot)
            && reach.is_some_and(|reach| reach.includes(&slot.node.labels))
            && has_room(known, slot, uid)
            && (known.plain || Topology::count(known, board).allows(known, board, at))
    }

    /// The best node for a pod. `since` is the epoch at which there was none: nodes that have not improved since are known not to do, if they
    /// and the pod's volumes alone decide.
    fn find(&mut self, shape: ShapeId, uid: &PodUid, since: Option<u64>) -> Option<SlotId> {
        let since = since.filter(|since| self.queue.unchanged(shape, *since));
        let round = self.queue.board.round(self.start, since);
        let Queue { board, shapes, volumes, .. } = &mut self.queue;
        let known = shapes.get_mut(shape);
        if round.is_empty() || known.shape.broken.is_some() {
            return None;
        }
        let reach = Reach::of(volumes.snapshot(), &known.shape.namespace, &known.volume_claims)?;
        let topology = (!known.plain).then(|| Topology::count(known, board));
        let enough = sample(board.index.len());
        let mut feasible = Vec::new();
        for id in round {
            let Some(slot) = &board.slots[id] else { continue };
            if known.suits(id, slot)
                && has_room(known, slot, uid)
                && reach.includes(&slot.node.labels)
                && topology.as_ref().is_none_or(|topology| topology.allows(known, board, id))
            {
                feasible.push(id);
                if feasible.len() == enough {
                    self.start = (id + 1) % board.slots.len();
                    break;
                }
            }
        }
        if feasible.is_empty() { None } else { score::best(known, board, &feasible, &mut self.rng) }
    }
}

/// How many nodes that can take a pod are looked for before the best of them is taken: kube-scheduler's default
/// (`percentageOfNodesToScore` 0: 50 % less one for every 125 nodes, at least 5 %, and never fewer than 100).
fn sample(nodes: usize) -> usize {
    if nodes < 100 {
        return nodes.max(1);
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(5);
    (nodes * percent / 100).max(100)
}
