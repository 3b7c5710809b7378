//! Folding facts about volumes.

use std::sync::Arc;

use super::fold::{Fold, Key};
use super::{Fact, Kind, VolumeAttachment};

impl Fold {
    /// Takes in a fact about volumes; others are none of its business.
    pub(super) fn fold_volumes(&mut self, fact: Fact) {
        match fact {
            Fact::VolumeClaimSeen(claim) => {
                self.seen(Kind::VolumeClaim, &Key::VolumeClaim(claim.key.clone()));
                let old = self.snapshot.volume_claims.insert(claim.key.clone(), Arc::clone(&claim));
                self.volumes_changed(old.as_ref() != Some(&claim));
            }
            Fact::VolumeSeen(volume) => {
                self.seen(Kind::Volume, &Key::Volume(Arc::clone(&volume.name)));
                let old = self.snapshot.volumes.insert(Arc::clone(&volume.name), Arc::clone(&volume));
                self.volumes_changed(old.as_ref() != Some(&volume));
            }
            Fact::StorageClassSeen(class) => {
                self.seen(Kind::StorageClass, &Key::StorageClass(Arc::clone(&class.name)));
                let old = self.snapshot.storage_classes.insert(Arc::clone(&class.name), Arc::clone(&class));
                self.volumes_changed(old.as_ref() != Some(&class));
            }
            Fact::CsiNodeSeen(node) => {
                self.seen(Kind::CsiNode, &Key::CsiNode(node.node.clone()));
                self.snapshot.csi_nodes.insert(node.node.clone(), node);
                self.news.supply = true;
            }
            Fact::AttachmentSeen(attachment) => {
                self.seen(Kind::VolumeAttachment, &Key::Attachment(Arc::clone(&attachment.name)));
                let name = Arc::clone(&attachment.name);
                if let Some(old) = self.snapshot.attachments.insert(name, Arc::clone(&attachment))
                    && old.node != attachment.node
                {
                    self.detached(&old);
                }
                let attached = self.snapshot.attached.entry(attachment.node.clone()).or_default();
                attached.insert(Arc::clone(&attachment.name));
                self.pods_of_node_changed(&attachment.node);
            }
            Fact::VolumeClaimGone(key) => self.gone(&Key::VolumeClaim(key)),
            Fact::VolumeGone(name) => self.gone(&Key::Volume(name)),
            Fact::StorageClassGone(name) => self.gone(&Key::StorageClass(name)),
            Fact::CsiNodeGone(node) => self.gone(&Key::CsiNode(node)),
            Fact::AttachmentGone(name) => self.gone(&Key::Attachment(name)),
            _ => {}
        }
    }

    /// Forgets an object about volumes.
    pub(super) fn volume_gone(&mut self, key: &Key) {
        match key {
            Key::VolumeClaim(key) => drop(self.snapshot.volume_claims.remove(key)),
            Key::Volume(name) => drop(self.snapshot.volumes.remove(name)),
            Key::StorageClass(name) => drop(self.snapshot.storage_classes.remove(name)),
            Key::CsiNode(node) => drop(self.snapshot.csi_nodes.remove(node)),
            Key::Attachment(name) => {
                if let Some(attachment) = self.snapshot.attachments.remove(name) {
                    self.detached(&attachment);
                }
                self.news.supply = true;
            }
            _ => {}
        }
    }

    fn detached(&mut self, attachment: &VolumeAttachment) {
        if let Some(attached) = self.snapshot.attached.get_mut(&attachment.node) {
            attached.remove(&attachment.name);
            if attached.is_empty() {
                self.snapshot.attached.remove(&attachment.node);
            }
        }
        self.pods_of_node_changed(&attachment.node);
    }

    /// A pod that waits for its volume's sake (its claim was not there yet) should not wait for the next round.
    fn volumes_changed(&mut self, changed: bool) {
        self.news.supply |= changed;
        self.news.pending = self.news.pending || changed && self.somebody_waits();
    }
}

#[cfg(test)]
#[path = "fold_volumes_tests.rs"]
mod tests;
