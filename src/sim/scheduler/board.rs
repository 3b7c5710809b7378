//! Nodes as the scheduler sees them: each in a slot with a number, with its free room, its ports and its nominations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::groups::Groups;
use super::shapes::{ShapeId, Shapes};
use crate::core::facts::{HostPort, Node};
use crate::core::ids::{NodeName, PodUid};
use crate::core::resources::Resources;

/// The number of a node.
pub(super) type SlotId = usize;

/// A node with what is left of it.
pub(super) struct Slot {
    pub(super) node: Arc<Node>,
    pub(super) free: Resources,
    /// What is left when the nominated pods have come, whatever their priority.
    pub(super) open: Resources,
    /// How many pods of each shape are on it.
    pub(super) shapes: BTreeMap<ShapeId, u32>,
    pub(super) ports: BTreeMap<PodUid, Vec<HostPort>>,
    /// Pods nominated to it and not yet bound, with their priority.
    pub(super) nominated: BTreeMap<PodUid, (i32, ShapeId)>,
    /// What the nominated pods need, by priority.
    pub(super) reserved: BTreeMap<i32, Resources>,
    /// The board's epoch when a pod was last more likely to fit here.
    pub(super) improved: u64,
    /// Rises when labels, taints or cordon change, so that what was derived from them is known to be old.
    pub(super) revision: u32,
}

/// All nodes.
#[derive(Default)]
pub(super) struct Board {
    pub(super) slots: Vec<Option<Slot>>,
    pub(super) index: BTreeMap<NodeName, SlotId>,
    pub(super) groups: Groups,
    vacant: BTreeSet<SlotId>,
    /// Nominations to nodes that are not there (yet).
    absent: BTreeMap<NodeName, BTreeMap<PodUid, (i32, ShapeId)>>,
    /// Pods bound to nodes that are not there (yet).
    homeless: BTreeMap<NodeName, BTreeMap<PodUid, ShapeId>>,
    /// Rises with every improvement.
    pub(super) epoch: u64,
    /// Which node was last improved at which epoch.
    improvements: BTreeMap<u64, SlotId>,
    revisions: u32,
}

impl Board {
    /// Takes in a node as it is now.
    pub(super) fn see(&mut self, node: &Arc<Node>, shapes: &Shapes) {
        if let Some(id) = self.index.get(&node.name).copied() {
            self.change(id, node);
            return;
        }
        let id = self.vacant.pop_first().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.epoch += 1;
        self.revisions += 1;
        self.slots[id] = Some(Slot {
            node: Arc::clone(node),
            free: node.allocatable.clone(),
            open: node.allocatable.clone(),
            shapes: BTreeMap::new(),
            ports: BTreeMap::new(),
            nominated: BTreeMap::new(),
            reserved: BTreeMap::new(),
            improved: self.epoch,
            revision: self.revisions,
        });
        self.index.insert(node.name.clone(), id);
        self.improvements.insert(self.epoch, id);
        self.groups.place_node(id, &node.labels);
        for (uid, shape) in self.homeless.remove(&node.name).unwrap_or_default() {
            self.occupy(&node.name, &uid, shape, shapes);
        }
        for (uid, (priority, shape)) in self.absent.remove(&node.name).unwrap_or_default() {
            self.nominate(&node.name, &uid, priority, shape, shapes);
        }
    }

    fn change(&mut self, id: SlotId, node: &Arc<Node>) {
        let Some(slot) = &mut self.slots[id] else { return };
        let old = std::mem::replace(&mut slot.node, Arc::clone(node));
        let moved = old.labels != node.labels;
        if moved || old.taints != node.taints || old.cordoned != node.cordoned {
            self.revisions += 1;
            slot.revision = self.revisions;
        } else if old.allocatable == node.allocatable {
            return;
        }
        for left in [&mut slot.free, &mut slot.open] {
            left.subtract(&old.allocatable);
            left.add(&node.allocatable);
        }
        self.improve(id);
        if moved {
            self.groups.place_node(id, &node.labels);
        }
    }

    /// Forgets a node. Its pods and nominations wait for a namesake.
    pub(super) fn forget(&mut self, name: &NodeName, pods: impl Iterator<Item = (PodUid, ShapeId)>) {
        let Some(id) = self.index.remove(name) else { return };
        let Some(slot) = self.slots[id].take() else { return };
        self.vacant.insert(id);
        self.groups.clear_node(id);
        self.epoch += 1;
        self.improvements.remove(&slot.improved);
        if !slot.nominated.is_empty() {
            self.absent.insert(name.clone(), slot.nominated);
        }
        let pods: BTreeMap<_, _> = pods.collect();
        if !pods.is_empty() {
            self.homeless.insert(name.clone(), pods);
        }
    }

    /// Puts a pod on a node.
    pub(super) fn occupy(&mut self, name: &NodeName, uid: &PodUid, shape: ShapeId, shapes: &Shapes) {
        let Some(id) = self.index.get(name).copied() else {
            self.homeless.entry(name.clone()).or_default().insert(uid.clone(), shape);
            return;
        };
        let Some(slot) = &mut self.slots[id] else { return };
        let known = shapes.get(shape);
        slot.free.subtract(&known.shape.requests);
        slot.open.subtract(&known.shape.requests);
        *slot.shapes.entry(shape).or_default() += 1;
        if !known.shape.host_ports.is_empty() {
            slot.ports.insert(uid.clone(), known.shape.host_ports.clone());
        }
        self.groups.add(id, &known.counted_in);
    }

    /// Takes a pod off its node.
    pub(super) fn vacate(&mut self, name: &NodeName, uid: &PodUid, shape: ShapeId, shapes: &Shapes) {
        if let Some(waiting) = self.homeless.get_mut(name) {
            waiting.remove(uid);
        }
        let Some(id) = self.index.get(name).copied() else { return };
        let Some(slot) = &mut self.slots[id] else { return };
        let known = shapes.get(shape);
        slot.free.add(&known.shape.requests);
        slot.open.add(&known.shape.requests);
        if let Some(count) = slot.shapes.get_mut(&shape) {
            *count -= 1;
            if *count == 0 {
                slot.shapes.remove(&shape);
            }
        }
        slot.ports.remove(uid);
        self.improve(id);
        self.groups.remove(id, &known.counted_in);
    }

    /// Keeps room on a node for a pod.
    pub(super) fn nominate(&mut self, name: &NodeName, uid: &PodUid, priority: i32, shape: ShapeId, shapes: &Shapes) {
        let Some(slot) = self.index.get(name).and_then(|id| self.slots[*id].as_mut()) else {
            self.absent.entry(name.clone()).or_default().insert(uid.clone(), (priority, shape));
            return;
        };
        if slot.nominated.insert(uid.clone(), (priority, shape)).is_none() {
            let requests = &shapes.get(shape).shape.requests;
            slot.reserved.entry(priority).or_default().add(requests);
            slot.open.subtract(requests);
        }
    }

    /// Gives the room up that was kept for a pod; `improves` unless the pod has just been given a node, which nobody is tried again for.
    pub(super) fn withdraw(&mut self, name: &NodeName, uid: &PodUid, shapes: &Shapes, improves: bool) {
        if let Some(waiting) = self.absent.get_mut(name) {
            waiting.remove(uid);
            if waiting.is_empty() {
                self.absent.remove(name);
            }
        }
        let Some(id) = self.index.get(name).copied() else { return };
        let Some(slot) = &mut self.slots[id] else { return };
        let Some((priority, shape)) = slot.nominated.remove(uid) else { return };
        let requests = &shapes.get(shape).shape.requests;
        if let Some(reserved) = slot.reserved.get_mut(&priority) {
            reserved.subtract(requests);
        }
        slot.open.add(requests);
        if slot.nominated.is_empty() {
            slot.reserved.clear();
        }
        if improves {
            self.improve(id);
        }
    }

    /// Any node may have become better unnoticed: everybody who found no place is worth another try.
    pub(super) fn improve_all(&mut self) {
        for id in 0..self.slots.len() {
            self.improve(id);
        }
    }

    /// A pod is more likely to fit on a node than before.
    fn improve(&mut self, id: SlotId) {
        let Some(slot) = &mut self.slots[id] else { return };
        self.epoch += 1;
        self.improvements.remove(&slot.improved);
        slot.improved = self.epoch;
        self.improvements.insert(self.epoch, id);
    }

    /// Whether a node has improved since an epoch.
    pub(super) fn has_improved(&self, since: u64) -> bool {
        self.improvements.last_key_value().is_some_and(|(epoch, _)| *epoch > since)
    }

    /// The numbers of nodes in the order in which a search looks at them that begins at `start`: all, or those that have improved since an
    /// epoch.
    pub(super) fn round(&self, start: SlotId, since: Option<u64>) -> Vec<SlotId> {
        let mut round: Vec<SlotId> = match since {
            Some(since) => self.improvements.range(since + 1..).map(|(_, id)| *id).collect(),
            None => (0..self.slots.len()).collect(),
        };
        round.sort_unstable();
        let first = round.partition_point(|id| *id < start);
        round.rotate_left(first);
        round
    }

    /// The nodes there are, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}
