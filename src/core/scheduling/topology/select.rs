//! Label selectors on pods, found by label: each pod class asks only the selectors that could match it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{AffinityTerm, PodShape, Selector, Snapshot};

use super::super::interner::number;

/// Which pods are meant: those in these namespaces (nothing: in all) that the selector matches (nothing: none).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in super::super) struct Target {
    pub(in super::super) namespaces: Option<Vec<Arc<str>>>,
    pub(in super::super) selector: Option<Selector>,
}

impl Target {
    /// Pods of one namespace.
    pub(in super::super) fn within(namespace: &Arc<str>, selector: Option<&Selector>) -> Self {
        Self { namespaces: Some(vec![Arc::clone(namespace)]), selector: selector.cloned() }
    }

    /// The pods that an affinity term means.
    pub(in super::super) fn of(term: &AffinityTerm, snapshot: &Snapshot) -> Self {
        let namespaces = match &term.namespace_selector {
            Some(all) if *all == Selector::default() => None,
            by_label => {
                let mut names = term.namespaces.clone();
                if let Some(selector) = by_label {
                    let chosen = snapshot.namespaces.iter().filter(|(_, labels)| selector.matches(labels));
                    names.extend(chosen.map(|(name, _)| Arc::clone(name)));
                }
                names.sort_unstable();
                names.dedup();
                Some(names)
            }
        };
        Self { namespaces, selector: term.selector.clone() }
    }

    /// Whether a pod is meant.
    pub(in super::super) fn selects(&self, shape: &PodShape) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.binary_search(&shape.namespace).is_ok())
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&shape.labels))
    }
}

/// All targets of a problem, each once.
#[derive(Default)]
pub(in super::super) struct Targets {
    all: Vec<Target>,
    index: FxHashMap<Target, u32>,
    /// Targets whose selector demands a label, by one such label.
    by_label: FxHashMap<(Arc<str>, Arc<str>), Vec<u32>>,
    /// All other targets.
    others: Vec<u32>,
}

impl Targets {
    pub(in super::super) fn add(&mut self, target: Target) -> u32 {
        if let Some(known) = self.index.get(&target) {
            return *known;
        }
        let id = number(self.all.len());
        match target.selector.as_ref().and_then(|s| s.labels.iter().next()) {
            Some((key, value)) => self.by_label.entry((Arc::clone(key), Arc::clone(value))).or_default().push(id),
            None => self.others.push(id),
        }
        self.index.insert(target.clone(), id);
        self.all.push(target);
        id
    }

    pub(in super::super) fn selects(&self, target: u32, shape: &PodShape) -> bool {
        self.all[target as usize].selects(shape)
    }

    /// The targets that mean this pod, ascending.
    pub(in super::super) fn meaning(&self, shape: &PodShape) -> Vec<u32> {
        let labelled = shape
            .labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(&(Arc::clone(key), Arc::clone(value))))
            .flatten();
        let mut found: Vec<u32> =
            labelled.chain(&self.others).copied().filter(|target| self.selects(*target, shape)).collect();
        found.sort_unstable();
        found
    }
}
