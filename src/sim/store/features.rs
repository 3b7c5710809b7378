//! NodeOverlays, CapacityBuffers, PodTemplates and scalable workloads in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::objects::{Store, check_version};
use crate::cluster::{BufferStatusPatch, Error, OverlayStatusPatch};
use crate::core::facts::{Buffer, Fact, Kind, Overlay, PodTemplate, Scalable, ScalableKind};
use crate::core::ids::ObjectKey;

/// What optional features are told with.
#[derive(Default)]
pub(in crate::sim) struct Features {
    overlays: BTreeMap<Arc<str>, Arc<Overlay>>,
    buffers: BTreeMap<ObjectKey, Arc<Buffer>>,
    templates: BTreeMap<ObjectKey, Arc<PodTemplate>>,
    scalables: BTreeMap<(ScalableKind, ObjectKey), Arc<Scalable>>,
}

impl Store {
    /// Puts a NodeOverlay as a user wrote it; its status stays.
    pub fn apply_overlay(&mut self, mut overlay: Overlay) {
        match self.features.overlays.get(&overlay.name) {
            None => {
                overlay.uid = self.uid().into();
                overlay.created = self.now();
                overlay.generation = 1;
            }
            Some(there) => {
                overlay.conditions.clone_from(&there.conditions);
                overlay.uid = Arc::clone(&there.uid);
                overlay.created = there.created;
                overlay.version = Arc::clone(&there.version);
                overlay.generation = there.generation;
                if overlay == **there {
                    return;
                }
                overlay.generation += 1;
            }
        }
        self.save_overlay(overlay);
    }

    /// A NodeOverlay, as it is.
    pub fn overlay(&self, name: &str) -> Option<Overlay> {
        self.features.overlays.get(name).map(|overlay| (**overlay).clone())
    }

    /// Changes the status of a NodeOverlay.
    pub fn patch_overlay_status(&mut self, name: &str, patch: &OverlayStatusPatch) -> Result<(), Error> {
        let object = format!("NodeOverlay {name}");
        let there = self.features.overlays.get(name).ok_or_else(|| Error::NotFound(object.clone()))?;
        check_version(&object, patch.version.as_ref(), &there.version)?;
        let overlay = Overlay { conditions: patch.conditions.clone(), ..(**there).clone() };
        self.save_overlay(overlay);
        Ok(())
    }

    /// Lets somebody else change something about a NodeOverlay that nobody looks at: it has another version from then on.
    pub(in crate::sim) fn touch_overlay(&mut self, name: &str) {
        if let Some(overlay) = self.overlay(name) {
            self.save_overlay(overlay);
        }
    }

    /// Deletes a NodeOverlay; false when there is none.
    pub fn delete_overlay(&mut self, name: &str) -> bool {
        let there = self.features.overlays.remove(name);
        if let Some(overlay) = &there {
            self.emit(&Fact::OverlayGone(Arc::clone(&overlay.name)));
        }
        there.is_some()
    }

    fn save_overlay(&mut self, mut overlay: Overlay) {
        overlay.version = self.next_version();
        let overlay = Arc::new(overlay);
        self.features.overlays.insert(Arc::clone(&overlay.name), Arc::clone(&overlay));
        self.emit(&Fact::OverlaySeen(overlay));
    }

    /// Puts a CapacityBuffer as a user wrote it; its status stays.
    pub fn apply_buffer(&mut self, mut buffer: Buffer) {
        match self.features.buffers.get(&buffer.key) {
            None => {
                buffer.uid = self.uid().into();
                buffer.generation = 1;
            }
            Some(there) => {
                buffer.conditions.clone_from(&there.conditions);
                buffer.status.clone_from(&there.status);
                buffer.uid = Arc::clone(&there.uid);
                buffer.version = Arc::clone(&there.version);
                buffer.generation = there.generation;
                if buffer == **there {
                    return;
                }
                buffer.generation += 1;
            }
        }
        self.save_buffer(buffer);
    }

    /// Changes the status of a CapacityBuffer.
    pub fn patch_buffer_status(&mut self, key: &ObjectKey, patch: &BufferStatusPatch) -> Result<(), Error> {
        let object = format!("CapacityBuffer {key}");
        let there = self.features.buffers.get(key).ok_or_else(|| Error::NotFound(object.clone()))?;
        check_version(&object, patch.version.as_ref(), &there.version)?;
        let (status, conditions) = (patch.status.clone(), patch.conditions.clone());
        let buffer = Buffer { status, conditions, ..(**there).clone() };
        self.save_buffer(buffer);
        Ok(())
    }

    /// The same of a CapacityBuffer, by namespace and name.
    pub(in crate::sim) fn touch_buffer(&mut self, name: &str) {
        let named = self.features.buffers.values().find(|buffer| buffer.key.to_string() == name);
        if let Some(buffer) = named.map(|buffer| Buffer::clone(buffer)) {
            self.save_buffer(buffer);
        }
    }

    /// Deletes a CapacityBuffer; false when there is none.
    pub fn delete_buffer(&mut self, key: &ObjectKey) -> bool {
        let there = self.features.buffers.remove(key).is_some();
        if there {
            self.emit(&Fact::BufferGone(key.clone()));
        }
        there
    }

    fn save_buffer(&mut self, mut buffer: Buffer) {
        buffer.version = self.next_version();
        let buffer = Arc::new(buffer);
        self.features.buffers.insert(buffer.key.clone(), Arc::clone(&buffer));
        self.emit(&Fact::BufferSeen(buffer));
    }

    /// Puts a PodTemplate; its generation rises when it has changed.
    pub fn apply_template(&mut self, mut template: PodTemplate) {
        let there = self.features.templates.get(&template.key);
        template.generation = there.map_or(1, |there| there.generation + i64::from(there.shape != template.shape));
        let template = Arc::new(template);
        self.features.templates.insert(template.key.clone(), Arc::clone(&template));
        self.emit(&Fact::TemplateSeen(template));
    }

    /// Deletes a PodTemplate; false when there is none.
    pub fn delete_template(&mut self, key: &ObjectKey) -> bool {
        let there = self.features.templates.remove(key).is_some();
        if there {
            self.emit(&Fact::TemplateGone(key.clone()));
        }
        there
    }

    /// Puts a workload as CapacityBuffers see it.
    pub fn apply_scalable(&mut self, scalable: Scalable) {
        let key = (scalable.kind, scalable.key.clone());
        let scalable = Arc::new(scalable);
        if self.features.scalables.insert(key, Arc::clone(&scalable)).as_ref() != Some(&scalable) {
            self.emit(&Fact::ScalableSeen(scalable));
        }
    }

    /// A workload wants another number of pods.
    pub fn scale_scalable(&mut self, kind: &str, key: &ObjectKey, replicas: i64) {
        if let Some(there) = scalable_kind(kind).and_then(|kind| self.features.scalables.get(&(kind, key.clone()))) {
            let scalable = Scalable { replicas, ..(**there).clone() };
            self.apply_scalable(scalable);
        }
    }

    /// A workload is gone.
    pub fn delete_scalable(&mut self, kind: &str, key: &ObjectKey) {
        if let Some(kind) = scalable_kind(kind)
            && self.features.scalables.remove(&(kind, key.clone())).is_some()
        {
            self.emit(&Fact::ScalableGone(kind, key.clone()));
        }
    }

    pub(super) fn all_of_features(&self, kind: Kind) -> Vec<Fact> {
        let features = &self.features;
        match kind {
            Kind::NodeOverlay => features.overlays.values().cloned().map(Fact::OverlaySeen).collect(),
            Kind::CapacityBuffer => features.buffers.values().cloned().map(Fact::BufferSeen).collect(),
            Kind::PodTemplate => features.templates.values().cloned().map(Fact::TemplateSeen).collect(),
            Kind::Scalable(scalable) => {
                let of_kind = features.scalables.values().filter(|one| one.kind == scalable);
                of_kind.cloned().map(Fact::ScalableSeen).collect()
            }
            about_volumes => self.all_of_volumes(about_volumes),
        }
    }
}

fn scalable_kind(word: &str) -> Option<ScalableKind> {
    ScalableKind::ALL.into_iter().find(|kind| kind.as_str() == word)
}
