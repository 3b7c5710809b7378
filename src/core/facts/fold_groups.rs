//! Folding facts about groups of pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fold::{Fold, Key};
use super::{Group, Kind};

impl Fold {
    pub(super) fn group_seen(&mut self, group: &Arc<Group>) {
        self.seen(group.kind, &Key::Group(Arc::clone(&group.path)));
        let old = self.snapshot.groups.insert(Arc::clone(&group.path), Arc::clone(group));
        // Pods that were refused for their neighbours may have others now.
        self.news.supply |= old.is_some_and(|old| old.selector != group.selector);
    }

    pub(super) fn group_gone(&mut self, path: &Arc<str>) {
        self.snapshot.groups.remove(path);
    }

    /// Groups of a kind.
    pub(super) fn groups(&self, kind: Kind) -> BTreeSet<Key> {
        let own = self.snapshot.groups.values().filter(|group| group.kind == kind);
        own.map(|group| Key::Group(Arc::clone(&group.path))).collect()
    }
}

#[cfg(test)]
#[path = "fold_groups_tests.rs"]
mod tests;
