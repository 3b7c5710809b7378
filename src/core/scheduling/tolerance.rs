//! Which lists of tolerations answer which lists of taints: each pair is compared once.

use rustc_hash::FxHashMap;

use crate::core::facts::{Effect, Taint, Toleration};

use super::interner::number;

/// Lists of taints and tolerations, numbered, and the memo of their meetings.
#[derive(Default)]
pub(super) struct Tolerance {
    taints: Vec<Vec<Taint>>,
    taint_index: FxHashMap<Vec<Taint>, u32>,
    tolerations: Vec<Vec<Toleration>>,
    toleration_index: FxHashMap<Vec<Toleration>, u32>,
    memo: FxHashMap<(u32, u32, bool), bool>,
    /// Whether any list has a PreferNoSchedule taint: only then is ignoring them a step of relaxation.
    pub(super) has_soft: bool,
}

impl Tolerance {
    pub(super) fn taints(&mut self, list: Vec<Taint>) -> u32 {
        if let Some(known) = self.taint_index.get(&list) {
            return *known;
        }
        let id = number(self.taints.len());
        self.has_soft |= list.iter().any(|taint| taint.effect == Effect::PreferNoSchedule);
        self.taint_index.insert(list.clone(), id);
        self.taints.push(list);
        id
    }

    pub(super) fn tolerations(&mut self, list: &[Toleration]) -> u32 {
        if let Some(known) = self.toleration_index.get(list) {
            return *known;
        }
        let id = number(self.tolerations.len());
        self.toleration_index.insert(list.to_vec(), id);
        self.tolerations.push(list.to_vec());
        id
    }

    /// Whether every taint is tolerated; with `ignore_soft`, those with PreferNoSchedule do not matter.
    pub(super) fn tolerates(&mut self, tolerations: u32, taints: u32, ignore_soft: bool) -> bool {
        if self.taints[taints as usize].is_empty() {
            return true;
        }
        if let Some(known) = self.memo.get(&(tolerations, taints, ignore_soft)) {
            return *known;
        }
        let answer = self.untolerated(tolerations, taints, ignore_soft).next().is_none();
        self.memo.insert((tolerations, taints, ignore_soft), answer);
        answer
    }

    /// The taints that are not tolerated.
    pub(super) fn untolerated(&self, tolerations: u32, taints: u32, ignore_soft: bool) -> impl Iterator<Item = &Taint> {
        self.taints[taints as usize]
            .iter()
            .filter(move |taint| !(ignore_soft && taint.effect == Effect::PreferNoSchedule))
            .filter(move |taint| !self.tolerations[tolerations as usize].iter().any(|t| t.tolerates(taint)))
    }
}
