//! Folding facts about optional features (NodeOverlays, CapacityBuffers and what these are made from), and PodDisruptionBudgets.

use std::sync::Arc;

use super::fold::{Fold, Key};
use super::{Fact, Kind};

impl Fold {
    /// Takes in a fact about optional features; hands others on.
    pub(super) fn fold_features(&mut self, fact: Fact) {
        match fact {
            Fact::OverlaySeen(overlay) => {
                self.seen(Kind::NodeOverlay, &Key::Overlay(Arc::clone(&overlay.name)));
                self.news.overlays = true;
                self.snapshot.overlays.insert(Arc::clone(&overlay.name), overlay);
            }
            Fact::BufferSeen(buffer) => {
                self.seen(Kind::CapacityBuffer, &Key::Buffer(buffer.key.clone()));
                let old = self.snapshot.buffers.insert(buffer.key.clone(), Arc::clone(&buffer));
                // Our own status writes come back here: they change nothing that a plan depends on.
                self.news.buffers |= old.is_none_or(|old| old.generation != buffer.generation || old.uid != buffer.uid);
                self.news.usage = true;
            }
            Fact::TemplateSeen(template) => {
                self.seen(Kind::PodTemplate, &Key::Template(template.key.clone()));
                let old = self.snapshot.templates.insert(template.key.clone(), Arc::clone(&template));
                self.source_changed(old.is_none_or(|old| old != template));
            }
            Fact::ScalableSeen(scalable) => {
                let key = (scalable.kind, scalable.key.clone());
                self.seen(Kind::Scalable(scalable.kind), &Key::Scalable(key.clone()));
                let old = self.snapshot.scalables.insert(key, Arc::clone(&scalable));
                self.source_changed(old.is_none_or(|old| old != scalable));
            }
            Fact::PodBudgetSeen(budget) => {
                self.seen(Kind::PodBudget, &Key::PodBudget(budget.key.clone()));
                self.snapshot.pod_budgets.insert(budget.key.clone(), budget);
            }
            Fact::PodBudgetGone(key) => self.gone(&Key::PodBudget(key)),
            Fact::OverlayGone(name) => self.gone(&Key::Overlay(name)),
            Fact::BufferGone(key) => self.gone(&Key::Buffer(key)),
            Fact::TemplateGone(key) => self.gone(&Key::Template(key)),
            Fact::ScalableGone(kind, key) => self.gone(&Key::Scalable((kind, key))),
            about_volumes => self.fold_volumes(about_volumes),
        }
    }

    /// Forgets an object of an optional feature; hands others on.
    pub(super) fn feature_gone(&mut self, key: &Key) {
        match key {
            Key::Overlay(name) => {
                self.snapshot.overlays.remove(name);
                self.news.overlays = true;
            }
            Key::Buffer(key) => {
                self.snapshot.buffers.remove(key);
                self.news.buffers = true;
            }
            Key::Template(key) => {
                self.snapshot.templates.remove(key);
                self.source_changed(true);
            }
            Key::Scalable(key) => {
                self.snapshot.scalables.remove(key);
                self.source_changed(true);
            }
            Key::PodBudget(key) => drop(self.snapshot.pod_budgets.remove(key)),
            about_volumes => self.volume_gone(about_volumes),
        }
    }

    /// What buffers are made from concerns somebody only while there are buffers.
    fn source_changed(&mut self, changed: bool) {
        self.news.buffers |= changed && !self.snapshot.buffers.is_empty();
    }
}
