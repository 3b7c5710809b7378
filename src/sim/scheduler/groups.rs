//! Pods counted by node for topology rules: one group per different question, kept up to date pod by pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::board::SlotId;
use super::shapes::ShapeId;
use crate::core::facts::{AffinityTerm, PodShape, Selector};
use crate::core::labels::Labels;
use crate::sim::matching;

/// The number of a group.
pub(super) type GroupId = usize;
/// The number of a topology key.
pub(super) type KeyId = usize;
/// The number of a value of a topology key.
pub(super) type DomainId = usize;

/// Which pods a group counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Question {
    /// Pods of a namespace that a selector selects; without one, none.
    Selected(Arc<str>, Option<Selector>),
    /// Pods that a term of pod (anti-)affinity means, whatever its key.
    Meant(AffinityTerm),
    /// Pods that themselves carry this required anti-affinity term.
    Carriers(AffinityTerm),
    /// Pods of one shape.
    Alike(ShapeId),
}

/// Pods counted by node.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) by_slot: Vec<u32>,
    pub(super) total: u64,
}

/// The values of a topology key.
#[derive(Debug, Default)]
pub(super) struct Key {
    name: Arc<str>,
    domains: BTreeMap<Arc<str>, DomainId>,
    pub(super) by_slot: Vec<Option<DomainId>>,
}

/// All groups and keys.
#[derive(Debug, Default)]
pub(super) struct Groups {
    questions: BTreeMap<Question, GroupId>,
    counted: Vec<Group>,
    key_ids: BTreeMap<Arc<str>, KeyId>,
    keys: Vec<Key>,
    labels: Vec<Option<Labels>>,
}

impl Question {
    /// Whether a pod of a shape is counted.
    pub(super) fn counts(&self, id: ShapeId, shape: &PodShape, namespace: Option<&Labels>) -> bool {
        match self {
            Self::Selected(namespace, selector) => {
                *namespace == shape.namespace
                    && selector.as_ref().is_some_and(|selector| matching::selects(selector, &shape.labels))
            }
            Self::Meant(term) => matching::means(term, shape, namespace),
            Self::Carriers(term) => shape.anti_affinity.contains(term),
            Self::Alike(other) => *other == id,
        }
    }
}

impl Key {
    /// How many values there are.
    pub(super) fn size(&self) -> usize {
        self.domains.len()
    }

    fn place(&mut self, slot: SlotId, labels: Option<&Labels>) {
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        let next = self.domains.len();
        self.by_slot[slot] = labels
            .and_then(|labels| labels.get(&self.name))
            .map(|value| *self.domains.entry(value.clone()).or_insert(next));
    }
}

impl Groups {
    pub(super) fn group(&self, id: GroupId) -> &Group {
        &self.counted[id]
    }

    pub(super) fn key(&self, id: KeyId) -> &Key {
        &self.keys[id]
    }

    pub(super) fn questions(&self) -> impl Iterator<Item = (&Question, GroupId)> {
        self.questions.iter().map(|(question, id)| (question, *id))
    }

    /// The group of a question, and whether it is new (and so still empty).
    pub(super) fn ask(&mut self, question: Question) -> (GroupId, bool) {
        if let Some(id) = self.questions.get(&question) {
            return (*id, false);
        }
        self.counted.push(Group::default());
        let id = self.counted.len() - 1;
        self.questions.insert(question, id);
        (id, true)
    }

    /// The number of a topology key.
    pub(super) fn key_id(&mut self, key: &Arc<str>) -> KeyId {
        if let Some(id) = self.key_ids.get(key) {
            return *id;
        }
        let mut entry = Key { name: key.clone(), ..Key::default() };
        for (slot, labels) in self.labels.iter().enumerate() {
            entry.place(slot, labels.as_ref());
        }
        self.keys.push(entry);
        self.key_ids.insert(key.clone(), self.keys.len() - 1);
        self.keys.len() - 1
    }

    pub(super) fn place_node(&mut self, slot: SlotId, labels: &Labels) {
        if self.labels.len() <= slot {
            self.labels.resize(slot + 1, None);
        }
        self.labels[slot] = Some(labels.clone());
        for key in &mut self.keys {
            key.place(slot, Some(labels));
        }
    }

    pub(super) fn clear_node(&mut self, slot: SlotId) {
        self.labels[slot] = None;
        for key in &mut self.keys {
            key.place(slot, None);
        }
        for group in &mut self.counted {
            if let Some(count) = group.by_slot.get_mut(slot) {
                group.total -= u64::from(std::mem::take(count));
            }
        }
    }

    pub(super) fn add(&mut self, slot: SlotId, groups: &[GroupId]) {
        for id in groups {
            self.add_many(*id, slot, 1);
        }
    }

    pub(super) fn add_many(&mut self, id: GroupId, slot: SlotId, pods: u32) {
        let group = &mut self.counted[id];
        if group.by_slot.len() <= slot {
            group.by_slot.resize(slot + 1, 0);
        }
        group.by_slot[slot] += pods;
        group.total += u64::from(pods);
    }

    pub(super) fn remove(&mut self, slot: SlotId, groups: &[GroupId]) {
        for id in groups {
            let group = &mut self.counted[*id];
            if let Some(count) = group.by_slot.get_mut(slot)
                && *count > 0
            {
                *count -= 1;
                group.total -= 1;
            }
        }
    }
}
