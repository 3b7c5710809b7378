//! Who waits, who has a place: the scheduler's view of pods, kept from facts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::board::Board;
use super::groups::GroupId;
use super::shapes::{Known, ShapeId, Shapes, Turn};
use crate::core::facts::{Fact, Fold, Pod};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels::Labels;

/// A pod, its shape and where it stands.
pub(super) struct Entry {
    pub(super) pod: Arc<Pod>,
    pub(super) shape: ShapeId,
    pub(super) turn: Turn,
    pub(super) home: Home,
    /// The board's epoch when no node was found for it where it stands, if it is nominated.
    pub(super) failed: Option<u64>,
}

/// Where a pod stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// In the queue of its shape.
    Waiting,
    /// In the queue of nominated pods, room being kept for it.
    Nominated(NodeName),
    /// On a node, or just sent there.
    On(NodeName),
    /// Nowhere, and not the scheduler's business (any more).
    Nowhere,
}

/// What decides from where the volumes of a pod can be reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Claim(ObjectKey),
    Volume(Arc<str>),
    Classes,
}

/// All pods and nodes, and who is to be tried next.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) board: Board,
    pub(super) shapes: Shapes,
    pub(super) pods: BTreeMap<PodUid, Entry>,
    /// Shapes that are worth a try.
    pub(super) active: BTreeSet<ShapeId>,
    /// Shapes that became worth a try when a pod was placed, since this was last read.
    pub(super) woken: Vec<ShapeId>,
    /// Shapes that have a pod in their queue.
    waiting: BTreeSet<ShapeId>,
    pub(super) nominated: BTreeMap<Turn, PodUid>,
    /// Nominated pods that found no place since the board last improved.
    pub(super) stuck: BTreeMap<Turn, PodUid>,
    /// Pods that are not yet known to be unschedulable, by shape.
    pub(super) unmarked: BTreeMap<ShapeId, BTreeSet<PodUid>>,
    /// Claims, volumes and classes.
    pub(super) volumes: Fold,
    /// The board's epoch when something was last heard of each of them.
    volume_news: BTreeMap<Key, u64>,
    namespaces: BTreeMap<Arc<str>, Arc<Labels>>,
    arrivals: u64,
    awake_at: u64,
    /// Groups that have got a pod more since nominated pods that found no place were last tried again.
    grown: BTreeSet<GroupId>,
}

impl Queue {
    /// Takes in a fact.
    pub(super) fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::PodSeen(pod) => self.see(pod),
            Fact::PodGone(uid) => {
                self.leave(uid);
                self.pods.remove(uid);
            }
            Fact::NodeSeen(node) => self.board.see(node, &self.shapes),
            Fact::NodeGone(name) => {
                let pods = self.pods.iter().filter(|(_, entry)| matches!(&entry.home, Home::On(at) if at == name));
                self.board.forget(name, pods.map(|(uid, entry)| (uid.clone(), entry.shape)));
            }
            Fact::NamespaceSeen(name, labels) => {
                // Groups that look at namespace labels count pods by what the labels were when the pod's shape first came.
                self.namespaces.insert(name.clone(), labels.clone());
            }
            Fact::VolumeClaimSeen(claim) => self.hear_of_volumes(fact, Key::Claim(claim.key.clone())),
            Fact::VolumeClaimGone(key) => self.hear_of_volumes(fact, Key::Claim(key.clone())),
            Fact::VolumeSeen(volume) => self.hear_of_volumes(fact, Key::Volume(Arc::clone(&volume.name))),
            Fact::VolumeGone(name) => self.hear_of_volumes(fact, Key::Volume(Arc::clone(name))),
            Fact::StorageClassSeen(_) | Fact::StorageClassGone(_) => self.hear_of_volumes(fact, Key::Classes),
            _ => {}
        }
    }

    fn hear_of_volumes(&mut self, fact: &Fact, of: Key) {
        self.volumes.fold(fact.clone());
        // Whoever waits for a volume is worth another try.
        self.board.epoch += 1;
        self.volume_news.insert(of, self.board.epoch);
    }

    /// Whether a shape for which no node was right at an epoch needs to look at those only that have improved since.
    pub(super) fn unchanged(&self, shape: ShapeId, since: u64) -> bool {
        let known = self.shapes.get(shape);
        let old = |key: &Key| self.volume_news.get(key).is_none_or(|news| *news <= since);
        let mut claims = known.volume_claims.iter().map(|name| {
            let namespace = Arc::clone(&known.shape.namespace);
            ObjectKey { namespace, name: Arc::clone(name) }
        });
        let volume = |key: &ObjectKey| self.volumes.snapshot().volume_claims.get(key)?.volume.clone();
        known.plain
            && claims.all(|key| {
                let volume = volume(&key);
                old(&Key::Claim(key)) && old(&Key::Classes) && volume.is_none_or(|name| old(&Key::Volume(name)))
            })
    }

    fn see(&mut self, pod: &Arc<Pod>) {
        let home = home(pod);
        if let Some(entry) = self.pods.get_mut(&pod.uid) {
            // News from before our own binding, which cannot be undone.
            let stale = matches!(entry.home, Home::On(_)) && pod.node.is_none();
            if stale || entry.home == home {
                entry.pod = Arc::clone(pod);
                return;
            }
            let turn = entry.turn;
            self.leave(&pod.uid);
            self.enter(pod, home, turn);
            return;
        }
        self.arrivals += 1;
        let turn = (Reverse(pod.shape.priority), self.arrivals);
        self.enter(pod, home, turn);
    }

    fn enter(&mut self, pod: &Arc<Pod>, home: Home, turn: Turn) {
        let shape = self.shapes.learn(pod, &mut self.board, &self.namespaces);
        match &home {
            Home::Waiting => {
                self.shapes.get_mut(shape).queue.insert(turn, pod.uid.clone());
                self.active.insert(shape);
                self.waiting.insert(shape);
            }
            Home::Nominated(name) => {
                self.nominated.insert(turn, pod.uid.clone());
                self.board.nominate(name, &pod.uid, pod.shape.priority, shape, &self.shapes);
            }
            Home::On(name) => self.board.occupy(name, &pod.uid, shape, &self.shapes),
            Home::Nowhere => {}
        }
        if matches!(home, Home::Waiting | Home::Nominated(_)) && !pod.unschedulable {
            self.unmarked.entry(shape).or_default().insert(pod.uid.clone());
        }
        self.pods.insert(pod.uid.clone(), Entry { pod: Arc::clone(pod), shape, turn, home, failed: None });
    }

    /// Takes a pod out of wherever it stands.
    fn leave(&mut self, uid: &PodUid) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let home = std::mem::replace(&mut entry.home, Home::Nowhere);
        let (shape, turn) = (entry.shape, entry.turn);
        if let Home::On(name) = &home {
            self.board.vacate(name, uid, shape, &self.shapes);
        } else {
            self.stop_waiting(uid, shape, turn);
        }
        if let Home::Nominated(name) = &home {
            self.board.withdraw(name, uid, &self.shapes, true);
        }
    }

    fn stop_waiting(&mut self, uid: &PodUid, shape: ShapeId, turn: Turn) {
        let queue = &mut self.shapes.get_mut(shape).queue;
        queue.remove(&turn);
        if queue.is_empty() {
            self.waiting.remove(&shape);
        }
        self.nominated.remove(&turn);
        self.stuck.remove(&turn);
        if let Some(unmarked) = self.unmarked.get_mut(&shape) {
            unmarked.remove(uid);
        }
    }

    /// Puts a pod on a node that it was just sent to.
    pub(super) fn settle(&mut self, uid: &PodUid, node: &NodeName) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let home = std::mem::replace(&mut entry.home, Home::On(node.clone()));
        let (shape, turn) = (entry.shape, entry.turn);
        self.stop_waiting(uid, shape, turn);
        if let Home::Nominated(name) = &home {
            // That the room of a pod which has gone elsewhere is free is no event: the real one tries nobody for it, either.
            self.board.withdraw(name, uid, &self.shapes, false);
        }
        self.board.occupy(node, uid, shape, &self.shapes);
        self.wake_those_who_count(shape);
    }

    /// Drops a pod that could not be bound: the news of why is on its way.
    pub(super) fn drop_waiting(&mut self, uid: &PodUid) {
        self.leave(uid);
    }

    /// After an improvement of the board, everybody who found no place is worth another try.
    pub(super) fn wake(&mut self) {
        if self.awake_at == self.board.epoch {
            return;
        }
        self.awake_at = self.board.epoch;
        self.active.extend(&self.waiting);
        self.nominated.append(&mut self.stuck);
    }

    /// A pod more can make room for others: the emptiest domain has filled up, or a companion has come.
    fn wake_those_who_count(&mut self, placed: ShapeId) {
        let counted_in = &self.shapes.get(placed).counted_in;
        for id in &self.waiting {
            let known = self.shapes.get(*id);
            if known.failed.is_some() && looks_at(known, |group| counted_in.contains(&group)) {
                self.active.insert(*id);
                self.woken.push(*id);
            }
        }
        self.grown.extend(counted_in);
    }

    /// The same for nominated pods. They are tried one by one, so this is asked for only when nobody else can be placed. Says whether
    /// any is worth another try.
    pub(super) fn wake_nominated_who_count(&mut self) -> bool {
        let grown = std::mem::take(&mut self.grown);
        let Self { stuck, pods, shapes, nominated, .. } = self;
        let before = nominated.len();
        let counts = |uid: &PodUid| {
            pods.get(uid).is_some_and(|entry| looks_at(shapes.get(entry.shape), |group| grown.contains(&group)))
        };
        nominated.extend(stuck.extract_if(.., |_, uid| counts(uid)));
        nominated.len() > before
    }
}

/// Whether the rules of a shape for which more pods can be better look at any of these groups.
fn looks_at(known: &Known, these: impl Fn(GroupId) -> bool) -> bool {
    known.spreads.iter().chain(&known.affinity).any(|rule| these(rule.group))
}

fn home(pod: &Pod) -> Home {
    match (&pod.node, &pod.nominated) {
        _ if pod.is_terminal() => Home::Nowhere,
        (Some(node), _) => Home::On(node.clone()),
        _ if pod.deleting.is_some() || pod.shape.scheduler.is_some() => Home::Nowhere,
        (None, Some(node)) => Home::Nominated(node.clone()),
        (None, None) => Home::Waiting,
    }
}
