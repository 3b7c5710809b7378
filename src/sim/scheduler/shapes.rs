//! Pods as the scheduler sees them: by shape, with the groups that their topology rules look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::board::{Board, Slot, SlotId};
use super::groups::{GroupId, KeyId, Question};
use crate::core::facts::{Effect, Pod, PodShape, Taint};
use crate::core::ids::PodUid;
use crate::core::labels::Labels;
use crate::sim::matching;

/// The number of a shape.
pub(super) type ShapeId = usize;

/// Place of a pod in the queue: higher priority first, then who came first.
pub(super) type Turn = (std::cmp::Reverse<i32>, u64);

/// A rule that counts the pods of a group by the values of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) group: GroupId,
    pub(super) key: KeyId,
    /// Whether a pod of this shape counts itself.
    pub(super) own: bool,
}

/// A shape, what its rules look at, and its pods that wait.
pub(super) struct Known {
    pub(super) shape: Arc<PodShape>,
    /// Claims of the one pod that this shape stands for, when it has volumes: where they are decides for that pod alone.
    pub(super) volume_claims: Vec<Arc<str>>,
    /// Groups that count pods of this shape.
    pub(super) counted_in: Vec<GroupId>,
    /// One for each of `shape.spreads`.
    pub(super) spreads: Vec<Rule>,
    pub(super) affinity: Vec<Rule>,
    pub(super) anti_affinity: Vec<Rule>,
    /// Anti-affinity of others that means this shape.
    pub(super) inverse: Vec<Rule>,
    pub(super) preferred_affinity: Vec<(i32, Rule)>,
    pub(super) preferred_anti_affinity: Vec<(i32, Rule)>,
    /// Pods of the same shape, which are spread a little even when nobody asks for it.
    pub(super) alike: GroupId,
    /// Whether the node alone decides, so that only nodes that have improved are worth a second look.
    pub(super) plain: bool,
    /// Pods that wait for a place and are not nominated.
    pub(super) queue: BTreeMap<Turn, PodUid>,
    /// The board's epoch when no node was found.
    pub(super) failed: Option<u64>,
    /// By node: revision of the node, and whether its labels and taints suit.
    suits: Vec<(u32, bool)>,
}

/// All shapes that were ever seen.
#[derive(Default)]
pub(super) struct Shapes {
    ids: BTreeMap<Arc<PodShape>, ShapeId>,
    /// Shortcut: equal shapes mostly come as the same value. Looked up only, never walked.
    by_address: rustc_hash::FxHashMap<usize, ShapeId>,
    /// Shapes of pods with volumes, by their claims.
    with_claims: BTreeMap<(Arc<PodShape>, Vec<Arc<str>>), ShapeId>,
    known: Vec<Known>,
}

impl Shapes {
    pub(super) fn get(&self, id: ShapeId) -> &Known {
        &self.known[id]
    }

    pub(super) fn get_mut(&mut self, id: ShapeId) -> &mut Known {
        &mut self.known[id]
    }

    /// The number of a pod's shape; a new one gets its groups.
    pub(super) fn learn(
        &mut self,
        pod: &Pod,
        board: &mut Board,
        namespaces: &BTreeMap<Arc<str>, Arc<Labels>>,
    ) -> ShapeId {
        let shape = &pod.shape;
        if !pod.volume_claims.is_empty() {
            let key = (Arc::clone(shape), pod.volume_claims.clone());
            if let Some(id) = self.with_claims.get(&key) {
                return *id;
            }
            let id = self.add(shape, board, namespaces);
            self.known[id].volume_claims.clone_from(&pod.volume_claims);
            self.with_claims.insert(key, id);
            return id;
        }
        let address = Arc::as_ptr(shape).addr();
        if let Some(id) = self.by_address.get(&address)
            // An address is used again when its shape has been dropped; the one we keep is alive.
            && Arc::ptr_eq(&self.known[*id].shape, shape)
        {
            return *id;
        }
        if let Some(id) = self.ids.get(shape) {
            return *id;
        }
        let id = self.add(shape, board, namespaces);
        self.ids.insert(Arc::clone(shape), id);
        self.by_address.insert(address, id);
        id
    }

    fn add(
        &mut self,
        shape: &Arc<PodShape>,
        board: &mut Board,
        namespaces: &BTreeMap<Arc<str>, Arc<Labels>>,
    ) -> ShapeId {
        let id = self.known.len();
        self.known.push(Known {
            shape: Arc::clone(shape),
            volume_claims: Vec::new(),
            counted_in: Vec::new(),
            spreads: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            inverse: Vec::new(),
            preferred_affinity: Vec::new(),
            preferred_anti_affinity: Vec::new(),
            alike: 0,
            plain: true,
            queue: BTreeMap::new(),
            failed: None,
            suits: Vec::new(),
        });
        let namespace = namespaces.get(&shape.namespace).map(|labels| &**labels);
        let counted = board.groups.questions().filter(|(question, _)| question.counts(id, shape, namespace));
        self.known[id].counted_in = counted.map(|(_, group)| group).collect();
        self.ask(id, shape, board, namespaces);
        self.find_inverse(id, board, namespace);
        id
    }

    /// Sets up the rules of a shape.
    fn ask(
        &mut self,
        id: ShapeId,
        shape: &Arc<PodShape>,
        board: &mut Board,
        namespaces: &BTreeMap<Arc<str>, Arc<Labels>>,
    ) {
        let mut rule = |question: Question, key: &Arc<str>| self.rule(id, &question, key, board, namespaces);
        let spreads: Vec<_> = shape
            .spreads
            .iter()
            .map(|spread| rule(Question::Selected(shape.namespace.clone(), spread.selector.clone()), &spread.key))
            .collect();
        let mut meant = |term: &crate::core::facts::AffinityTerm| rule(Question::Meant(term.clone()), &term.key);
        let affinity: Vec<_> = shape.affinity.iter().map(&mut meant).collect();
        let anti_affinity: Vec<_> = shape.anti_affinity.iter().map(&mut meant).collect();
        let preferred_affinity = shape.preferred_affinity.iter().map(|w| (w.weight, meant(&w.term))).collect();
        let preferred_anti_affinity =
            shape.preferred_anti_affinity.iter().map(|w| (w.weight, meant(&w.term))).collect();
        for term in &shape.anti_affinity {
            rule(Question::Carriers(term.clone()), &term.key);
        }
        let alike = rule(Question::Alike(id), &"".into()).group;
        let known = &mut self.known[id];
        known.plain =
            shape.spreads.iter().all(|spread| !spread.required) && affinity.is_empty() && anti_affinity.is_empty();
        known.spreads = spreads;
        known.affinity = affinity;
        known.anti_affinity = anti_affinity;
        known.preferred_affinity = preferred_affinity;
        known.preferred_anti_affinity = preferred_anti_affinity;
        known.alike = alike;
    }

    fn rule(
        &mut self,
        id: ShapeId,
        question: &Question,
        key: &Arc<str>,
        board: &mut Board,
        namespaces: &BTreeMap<Arc<str>, Arc<Labels>>,
    ) -> Rule {
        let (group, new) = board.groups.ask(question.clone());
        let key = board.groups.key_id(key);
        if new {
            self.fill(question, group, key, board, namespaces);
        }
        Rule { group, key, own: self.known[id].counted_in.contains(&group) }
    }

    /// Counts the pods that are there already for a new group, and tells the shapes that it concerns.
    fn fill(
        &mut self,
        question: &Question,
        group: GroupId,
        key: KeyId,
        board: &mut Board,
        namespaces: &BTreeMap<Arc<str>, Arc<Labels>>,
    ) {
        for (other, known) in self.known.iter_mut().enumerate() {
            let namespace = namespaces.get(&known.shape.namespace).map(|labels| &**labels);
            if let Question::Carriers(term) = question
                && matching::means(term, &known.shape, namespace)
            {
                known.inverse.push(Rule { group, key, own: false });
                known.plain = false;
            }
            if !question.counts(other, &known.shape, namespace) {
                continue;
            }
            known.counted_in.push(group);
            for (slot, count) in count_by_slot(&board.slots, other) {
                board.groups.add_many(group, slot, count);
            }
        }
    }

    /// Finds the anti-affinity of others that means a new shape.
    fn find_inverse(&mut self, id: ShapeId, board: &mut Board, namespace: Option<&Labels>) {
        let carried: Vec<_> = board
            .groups
            .questions()
            .filter_map(|(question, group)| match question {
                Question::Carriers(term) if matching::means(term, &self.known[id].shape, namespace) => {
                    Some((term.key.clone(), group))
                }
                _ => None,
            })
            .collect();
        for (key, group) in carried {
            let rule = Rule { group, key: board.groups.key_id(&key), own: false };
            let known = &mut self.known[id];
            if !known.inverse.iter().any(|there| there.group == group) {
                known.inverse.push(rule);
                known.plain = false;
            }
        }
    }
}

impl Known {
    /// Whether labels, taints and cordon of a node suit the shape; remembered until they change.
    pub(super) fn suits(&mut self, id: SlotId, slot: &Slot) -> bool {
        if self.suits.len() <= id {
            self.suits.resize(id + 1, (0, false));
        }
        if self.suits[id].0 != slot.revision {
            let suits = matching::attracted(&self.shape, &slot.node.labels) && tolerated(&self.shape, slot);
            self.suits[id] = (slot.revision, suits);
        }
        self.suits[id].1
    }
}

/// Whether a shape tolerates a node's taints and its cordon.
pub(super) fn tolerated(shape: &PodShape, slot: &Slot) -> bool {
    let cordon = || Taint::new("node.kubernetes.io/unschedulable", Effect::NoSchedule);
    matching::tolerates(&shape.tolerations, &slot.node.taints)
        && (!slot.node.cordoned || matching::tolerates(&shape.tolerations, &[cordon()]))
}

fn count_by_slot(slots: &[Option<Slot>], shape: ShapeId) -> Vec<(SlotId, u32)> {
    let count = |slot: &Option<Slot>| slot.as_ref().and_then(|slot| slot.shapes.get(&shape)).copied();
    slots.iter().enumerate().filter_map(|(id, slot)| Some((id, count(slot)?))).collect()
}
